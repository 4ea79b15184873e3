// SPDX-License-Identifier: Apache-2.0
#include "records/message/failure_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"

namespace hone::records {
namespace {

constexpr std::array kKinds = {std::pair(FailureKind::kScheduleIllegal, v1::FAILURE_KIND_SCHEDULE_ILLEGAL),
                               std::pair(FailureKind::kCompileError, v1::FAILURE_KIND_COMPILE_ERROR),
                               std::pair(FailureKind::kCompileTimeout, v1::FAILURE_KIND_COMPILE_TIMEOUT),
                               std::pair(FailureKind::kCrashed, v1::FAILURE_KIND_CRASHED),
                               std::pair(FailureKind::kRunTimeout, v1::FAILURE_KIND_RUN_TIMEOUT),
                               std::pair(FailureKind::kWrongOutput, v1::FAILURE_KIND_WRONG_OUTPUT),
                               std::pair(FailureKind::kOutOfBoundsWrite, v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE),
                               std::pair(FailureKind::kLostDevice, v1::FAILURE_KIND_LOST_DEVICE),
                               std::pair(FailureKind::kForbiddenCall, v1::FAILURE_KIND_FORBIDDEN_CALL),
                               std::pair(FailureKind::kImpossibleTime, v1::FAILURE_KIND_IMPOSSIBLE_TIME)};
static_assert(std::ranges::equal(kKinds, kAllFailureKinds, {}, [](const auto& pair) { return pair.first; }));

}  // namespace

v1::FailureKind ToProto(FailureKind kind) {
  return std::ranges::find(kKinds, kind, [](const auto& pair) { return pair.first; })->second;
}

absl::StatusOr<FailureKind> FromProto(v1::FailureKind kind) {
  const auto found = std::ranges::find(kKinds, kind, [](const auto& pair) { return pair.second; });
  if (found != kKinds.end()) return found->first;
  return absl::InvalidArgumentError(fmt::format("unknown failure kind {}", static_cast<int>(kind)));
}

}  // namespace hone::records
