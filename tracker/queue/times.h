// SPDX-License-Identifier: Apache-2.0
// Conversion between absl::Time and the protocol's Timestamp.
#ifndef HONE_TRACKER_QUEUE_TIMES_H_
#define HONE_TRACKER_QUEUE_TIMES_H_

#include "absl/time/time.h"
#include "hone/v1/job.pb.h"

namespace hone::tracker {

inline google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp proto;
  const int64_t nanos = absl::ToUnixNanos(time);
  proto.set_seconds(nanos / 1'000'000'000);
  proto.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return proto;
}

inline absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_TIMES_H_
