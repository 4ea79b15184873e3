// SPDX-License-Identifier: Apache-2.0
// Conversions between values of the protocol and those of the programs: durations, times, kinds of failure and element
// types. Every room that speaks the protocol uses them. Conversions of one room's own types are in that room.
//
// A room that declares further overloads of ToProto or FromProto hides these: there, write hone::FromProto.
#ifndef HONE_PROTO_CONVERT_H_
#define HONE_PROTO_CONVERT_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/element_type.h"
#include "base/failure_kind.h"
#include "hone/v1/types.pb.h"

namespace hone {

// Precise to the nanosecond, rounded towards zero. Infinity becomes the most nanoseconds that fit in 64 bits, 292
// years.
inline google::protobuf::Duration ToProto(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) duration = absl::Nanoseconds(std::numeric_limits<int64_t>::max());
  absl::Duration rest;
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

inline absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

// Precise to the nanosecond. The time must be between 1970 and 2262.
inline google::protobuf::Timestamp ToProto(absl::Time time) {
  const google::protobuf::Duration since_1970 = ToProto(absl::Nanoseconds(absl::ToUnixNanos(time)));
  google::protobuf::Timestamp proto;
  proto.set_seconds(since_1970.seconds());
  proto.set_nanos(since_1970.nanos());
  return proto;
}

inline absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

// Kinds of failure and element types have the same numbers in the protocol.
static_assert(static_cast<int>(FailureKind::kScheduleIllegal) == v1::FAILURE_KIND_SCHEDULE_ILLEGAL);
static_assert(static_cast<int>(FailureKind::kCompileError) == v1::FAILURE_KIND_COMPILE_ERROR);
static_assert(static_cast<int>(FailureKind::kCompileTimeout) == v1::FAILURE_KIND_COMPILE_TIMEOUT);
static_assert(static_cast<int>(FailureKind::kCrashed) == v1::FAILURE_KIND_CRASHED);
static_assert(static_cast<int>(FailureKind::kRunTimeout) == v1::FAILURE_KIND_RUN_TIMEOUT);
static_assert(static_cast<int>(FailureKind::kWrongOutput) == v1::FAILURE_KIND_WRONG_OUTPUT);
static_assert(static_cast<int>(FailureKind::kOutOfBoundsWrite) == v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE);
static_assert(static_cast<int>(FailureKind::kLostDevice) == v1::FAILURE_KIND_LOST_DEVICE);
static_assert(static_cast<int>(FailureKind::kForbiddenCall) == v1::FAILURE_KIND_FORBIDDEN_CALL);
static_assert(static_cast<int>(FailureKind::kImpossibleTime) == v1::FAILURE_KIND_IMPOSSIBLE_TIME);
static_assert(static_cast<int>(kAllFailureKinds.size()) == v1::FailureKind_MAX);

inline v1::FailureKind ToProto(FailureKind kind) { return static_cast<v1::FailureKind>(kind); }

// kInvalidArgument: FAILURE_KIND_UNSPECIFIED, or a kind that a newer Hone added.
inline absl::StatusOr<FailureKind> FromProto(v1::FailureKind kind) {
  if (const std::optional<FailureKind> known = FailureKindFromNumber(kind)) return *known;
  return absl::InvalidArgumentError("unknown failure kind " + std::to_string(static_cast<int>(kind)));
}

static_assert(static_cast<int>(DType::kBool) == v1::DTYPE_BOOL);
static_assert(static_cast<int>(DType::kInt8) == v1::DTYPE_I8);
static_assert(static_cast<int>(DType::kInt16) == v1::DTYPE_I16);
static_assert(static_cast<int>(DType::kInt32) == v1::DTYPE_I32);
static_assert(static_cast<int>(DType::kInt64) == v1::DTYPE_I64);
static_assert(static_cast<int>(DType::kUInt8) == v1::DTYPE_U8);
static_assert(static_cast<int>(DType::kUInt16) == v1::DTYPE_U16);
static_assert(static_cast<int>(DType::kUInt32) == v1::DTYPE_U32);
static_assert(static_cast<int>(DType::kUInt64) == v1::DTYPE_U64);
static_assert(static_cast<int>(DType::kFloat16) == v1::DTYPE_F16);
static_assert(static_cast<int>(DType::kBFloat16) == v1::DTYPE_BF16);
static_assert(static_cast<int>(DType::kFloat32) == v1::DTYPE_F32);
static_assert(static_cast<int>(DType::kFloat64) == v1::DTYPE_F64);
static_assert(static_cast<int>(kDTypeRows.size()) == v1::DType_MAX);

inline v1::DType ToProto(DType dtype) { return static_cast<v1::DType>(dtype); }

// nullopt: DTYPE_UNSPECIFIED, or a type that a newer Hone added.
inline std::optional<DType> FromProto(v1::DType dtype) {
  if (dtype < 1 || dtype > v1::DType_MAX) return std::nullopt;
  return static_cast<DType>(dtype);
}

}  // namespace hone

#endif  // HONE_PROTO_CONVERT_H_
