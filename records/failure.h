// SPDX-License-Identifier: Apache-2.0
// The kinds of failure of a candidate, and their names. A failed candidate is recorded with its kind, never as a timing
// with a huge time.
#ifndef HONE_RECORDS_FAILURE_H_
#define HONE_RECORDS_FAILURE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::records {

enum class FailureKind {
  kScheduleIllegal,  // a step of the schedule cannot be applied
  kCompileError,     // lowering, code generation, linking or loading failed
  kCompileTimeout,
  kCrashed,     // ended by a signal or an exit
  kRunTimeout,  // a call took longer than the batch allows
  kWrongOutput,
  kOutOfBoundsWrite,
  kLostDevice,      // devices were lost with it, or had too little memory; says nothing against the schedule
  kForbiddenCall,   // made a system call that no kernel may make
  kImpossibleTime,  // faster than the device can be, or longer than the agent waited
};

inline constexpr std::array kAllFailureKinds = {
    FailureKind::kScheduleIllegal,  FailureKind::kCompileError, FailureKind::kCompileTimeout,
    FailureKind::kCrashed,          FailureKind::kRunTimeout,   FailureKind::kWrongOutput,
    FailureKind::kOutOfBoundsWrite, FailureKind::kLostDevice,   FailureKind::kForbiddenCall,
    FailureKind::kImpossibleTime,
};

// The first version of the records schema that has the kind.
constexpr int64_t SinceSchema(FailureKind kind) {
  switch (kind) {
    case FailureKind::kForbiddenCall:
    case FailureKind::kImpossibleTime:
      return 4;
    case FailureKind::kScheduleIllegal:
    case FailureKind::kCompileError:
    case FailureKind::kCompileTimeout:
    case FailureKind::kCrashed:
    case FailureKind::kRunTimeout:
    case FailureKind::kWrongOutput:
    case FailureKind::kOutOfBoundsWrite:
    case FailureKind::kLostDevice:
      return 2;
  }
  return 2;
}

// The name used in the database, in JSON and on the command line: "wrong_output".
std::string_view FailureKindName(FailureKind kind);
std::optional<FailureKind> FailureKindFromName(std::string_view name);

}  // namespace hone::records

#endif  // HONE_RECORDS_FAILURE_H_
