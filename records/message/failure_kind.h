// SPDX-License-Identifier: Apache-2.0
// Kinds of failure and the protocol's, into one another: for tracker, tuner and whoever asks one for records.
#ifndef HONE_RECORDS_MESSAGE_FAILURE_KIND_H_
#define HONE_RECORDS_MESSAGE_FAILURE_KIND_H_

#include "absl/status/statusor.h"
#include "hone/v1/types.pb.h"
#include "records/failure.h"

namespace hone::records {

v1::FailureKind ToProto(FailureKind kind);

// kInvalidArgument: none, or one that came with a later version.
absl::StatusOr<FailureKind> FromProto(v1::FailureKind kind);

}  // namespace hone::records

#endif  // HONE_RECORDS_MESSAGE_FAILURE_KIND_H_
