// One measured candidate, as plain values: what the database of results keeps, and what flows in and out of it.
//
// A record says: this schedule of this workload, built by this compiler for this target, ran on this device, and this
// came of it. A failed candidate is data with a kind of its own, never a huge time. Here a schedule, its decisions, the
// target and the device fingerprint are opaque text: this room neither parses nor compares their insides.
// Not here: how records are stored (store.h) and how they are written as lines of JSON (jsonl.h). Protobuf stays at the
// service's edge. Values only: copy freely, no thread rules.
#ifndef HONE_RECORDS_RECORD_H_
#define HONE_RECORDS_RECORD_H_

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace hone::records {

// What a measurement is valid for. No part may be empty: a record of another device or another compiler is a hint,
// never an answer.
struct Key {
  std::string workload_digest;     // of the workload's canonical text
  std::string target;              // target text: "cpu -mcpu=znver4 -threads=2"
  std::string device_fingerprint;  // the device as its agent reports it
  std::string compiler_version;    // of the code generator: the same schedule means other machine code elsewhere

  auto operator<=>(const Key&) const = default;
};

enum class FailureKind {
  kScheduleIllegal,
  kCompileError,
  kCompileTimeout,
  kCrashed,
  kRunTimeout,
  kWrongOutput,
  kOutOfBoundsWrite,
  kLostDevice,
};

inline constexpr std::array kAllFailureKinds = {
    FailureKind::kScheduleIllegal, FailureKind::kCompileError, FailureKind::kCompileTimeout,   FailureKind::kCrashed,
    FailureKind::kRunTimeout,      FailureKind::kWrongOutput,  FailureKind::kOutOfBoundsWrite, FailureKind::kLostDevice,
};

// The name used in the database, in JSON and on the command line: "wrong_output".
std::string_view FailureKindName(FailureKind kind);
std::optional<FailureKind> FailureKindFromName(std::string_view name);

struct Timing {
  std::vector<double> seconds;  // every repeat, in the order taken; at least one, each finite and above 0
  bool confirmed = false;       // taken in the final paired comparison (finalists and incumbent in turns), not a race
  bool verified = false;        // the output was compared with a reference and agreed; unverified is never "best"
  std::optional<double> tolerance;          // relative error that the comparison allowed
  std::optional<double> reference_seconds;  // the device's fixed reference kernel in the same visit: exposes drift

  bool operator==(const Timing&) const = default;
};

struct Failure {
  FailureKind kind = FailureKind::kCrashed;
  std::string text;  // what a person needs to see; any bytes: the store makes it UTF-8 and cuts it at 16 KiB

  bool operator==(const Failure&) const = default;
};

using Outcome = std::variant<Timing, Failure>;
using Instant = std::chrono::sys_time<std::chrono::milliseconds>;

struct Record {
  Key key;
  std::string measurement_id;  // unique for ever, chosen by whoever measured: a repeated one is the same measurement
  std::string batch_id;        // candidates measured in one device visit share it; may be empty
  std::string schedule;        // may be empty: the unscheduled kernel
  std::string decisions;       // the search's decisions that led to the schedule; may be empty
  Outcome outcome;

  std::string operator_label;  // "conv2d 64x56x56 3x3 + relu": for people
  std::string workload_text;   // canonical text; stored once per workload; may be empty if the store has it already
  double flops = 0;            // floating-point (or integer) operations of one run

  std::optional<double> temperature_celsius;  // of the device while measuring, where it tells
  std::optional<double> clock_hertz;
  std::string measured_by;  // who: the agent's name
  Instant measured_at{};    // when, by the measuring machine's clock
  uint64_t seed = 0;        // of the search that proposed the candidate

  bool operator==(const Record&) const = default;
};

// A record with its place in the database: rows are numbered in the order appended.
struct StoredRecord {
  int64_t row = 0;
  Record record;
};

// The middle repeat (mean of the two middle ones for an even count); `seconds` is not empty.
double MedianSeconds(const std::vector<double>& seconds);

// kInvalidArgument naming the first field that cannot be stored: an empty key part, a time that is not above 0, text
// that is not UTF-8, a field over its size limit (16 MiB for the workload's text, 1 MiB for a schedule).
absl::Status Validate(const Record& record);

// `text` with every byte that is not part of UTF-8 text replaced by U+FFFD, NUL included, cut at `limit` bytes.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace hone::records

#endif  // HONE_RECORDS_RECORD_H_
