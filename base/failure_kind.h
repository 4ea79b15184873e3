// SPDX-License-Identifier: Apache-2.0
// The kinds of failure of a candidate: one table of their names, which the tuner, the agent, the tracker and the
// records share. A failed candidate is recorded with its kind, never as a timing with a huge time.
//
// The numbers equal those of hone.v1.FailureKind (proto/convert.h asserts it). Not here: failures of a driver
// (drivers/error.h), which can also say that a device or a machine is at fault.
#ifndef HONE_BASE_FAILURE_KIND_H_
#define HONE_BASE_FAILURE_KIND_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class FailureKind : int32_t {
  kScheduleIllegal = 1,  // a step of the schedule cannot be applied
  kCompileError = 2,     // lowering, code generation, linking or loading failed
  kCompileTimeout = 3,
  kCrashed = 4,     // ended by a signal or an exit
  kRunTimeout = 5,  // a call took longer than the batch allows
  kWrongOutput = 6,
  kOutOfBoundsWrite = 7,
  kLostDevice = 8,      // devices were lost with it, or had too little memory; says nothing against the schedule
  kForbiddenCall = 9,   // made a system call that no kernel may make
  kImpossibleTime = 10  // faster than the device can be, or longer than the agent waited
};

struct FailureKindRow {
  FailureKind kind;
  std::string_view name;  // in the database, in JSON and on the command line
  int64_t since_schema;   // first version of the schema of records that has the kind
};

// In the order of the numbers, which start at 1.
inline constexpr std::array kFailureKindRows = {
    FailureKindRow{FailureKind::kScheduleIllegal, "schedule_illegal", 2},
    FailureKindRow{FailureKind::kCompileError, "compile_error", 2},
    FailureKindRow{FailureKind::kCompileTimeout, "compile_timeout", 2},
    FailureKindRow{FailureKind::kCrashed, "crashed", 2},
    FailureKindRow{FailureKind::kRunTimeout, "run_timeout", 2},
    FailureKindRow{FailureKind::kWrongOutput, "wrong_output", 2},
    FailureKindRow{FailureKind::kOutOfBoundsWrite, "out_of_bounds_write", 2},
    FailureKindRow{FailureKind::kLostDevice, "lost_device", 2},
    FailureKindRow{FailureKind::kForbiddenCall, "forbidden_call", 4},
    FailureKindRow{FailureKind::kImpossibleTime, "impossible_time", 4},
};

inline constexpr auto kAllFailureKinds = [] {
  std::array<FailureKind, kFailureKindRows.size()> kinds{};
  std::ranges::transform(kFailureKindRows, kinds.begin(), &FailureKindRow::kind);
  return kinds;
}();

static_assert([] {
  for (size_t i = 0; i < kAllFailureKinds.size(); ++i) {
    if (static_cast<size_t>(kAllFailureKinds[i]) != i + 1) return false;
  }
  return true;
}());

// The kind with that number; nullopt if there is none, as for a kind that a newer Hone added.
constexpr std::optional<FailureKind> FailureKindFromNumber(int64_t number) {
  if (number < 1 || number > static_cast<int64_t>(kAllFailureKinds.size())) return std::nullopt;
  return static_cast<FailureKind>(number);
}

constexpr std::string_view FailureKindName(FailureKind kind) {
  return kFailureKindRows[static_cast<size_t>(kind) - 1].name;
}

// nullopt: no kind has that name.
constexpr std::optional<FailureKind> FailureKindFromName(std::string_view name) {
  for (const FailureKindRow& row : kFailureKindRows) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

}  // namespace hone

#endif  // HONE_BASE_FAILURE_KIND_H_
