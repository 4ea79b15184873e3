// SPDX-License-Identifier: Apache-2.0
// Converts kinds of failure between records/failure.h and the messages of the protocol. The tracker, the tuner and the
// commands that ask a tracker for records use it.
#ifndef HONE_RECORDS_MESSAGE_FAILURE_KIND_H_
#define HONE_RECORDS_MESSAGE_FAILURE_KIND_H_

#include "absl/status/statusor.h"
#include "hone/v1/types.pb.h"
#include "records/failure.h"

namespace hone::records {

v1::FailureKind ToProto(FailureKind kind);

// kInvalidArgument: FAILURE_KIND_UNSPECIFIED, or a kind that a newer Hone added.
absl::StatusOr<FailureKind> FromProto(v1::FailureKind kind);

}  // namespace hone::records

#endif  // HONE_RECORDS_MESSAGE_FAILURE_KIND_H_
