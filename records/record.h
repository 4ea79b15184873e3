// SPDX-License-Identifier: Apache-2.0
// One measured candidate, as plain values: what the database of results keeps, and what flows in and out of it.
//
// A record says: this schedule of this workload, built by this compiler for this target, ran on this device, and this
// came of it. Here a schedule, its decisions, the target and the device fingerprint are opaque text: this room neither
// parses nor compares their insides.
// kColumns below describes every value once; tables, rows, lines of JSON, the protocol's messages, the limits and the
// check of docs/RECORDS.md come from it. docs/howto/add-a-record-column.md adds one. Not here: how records are stored
// (store.h) and exchanged (jsonl.h). Values only: copy freely, no thread rules.
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
#include "records/failure.h"

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

struct Timing {
  std::vector<double> seconds;  // every repeat, in the order taken; at least one, each finite and above 0
  // seconds[first_interleaved..] were taken in turns with the other finalists of the batch, the k-th beside their k-th;
  // the number of repeats where none were. 0 also where it is not known.
  int64_t first_interleaved = 0;
  int64_t calls_per_repeat = 0;     // calls in a row of which a repeat is the mean; 0: not known
  bool confirmed = false;           // taken in the final paired comparison (finalists and default in turns), not a race
  bool verified = false;            // the output was compared with a reference and agreed; unverified is never "best"
  std::optional<double> tolerance;  // what an element may be off, as a share of itself; more by one of the largest
  std::optional<double> reference_seconds;    // the device's fixed reference kernel in the same visit: exposes drift
  std::optional<double> drift;                // its largest departure from that during the visit: 0.02 is 2%
  std::optional<double> max_error;            // largest difference from the reference's output, as share of its largest
  std::optional<double> temperature_celsius;  // of the device after the visit, where it tells
  std::optional<double> clock_hertz;
  std::optional<double> predicted_seconds;  // by the cost model that chose the candidate

  bool operator==(const Timing&) const = default;
};

struct Failure {
  FailureKind kind = FailureKind::kCrashed;
  std::string text;  // what a person needs to see; any bytes: the store makes it UTF-8 and cuts it at 16 KiB

  bool operator==(const Failure&) const = default;
};

using Outcome = std::variant<Timing, Failure>;
using Instant = std::chrono::sys_time<std::chrono::milliseconds>;

// The latest that may be said at `now` of when something was measured: another clock may be ahead by so much. What
// failed speaks against all timings before it, and so must not be of a time to come.
constexpr Instant LatestSaid(Instant now) { return now + std::chrono::minutes(5); }

struct Record {
  Key key;
  std::string measurement_id;  // unique for ever, chosen by whoever measured: a repeated one is the same measurement
  std::string batch_id;        // candidates measured in one device visit share it; may be empty
  std::string schedule;        // may be empty: the unscheduled kernel
  std::string decisions;       // the search's decisions that led to the schedule; may be empty
  bool is_default = false;     // the schedule that needs no search, measured for comparison
  Outcome outcome;

  std::string operator_label;  // "conv2d": for people
  std::string workload_text;   // canonical text; stored once per workload; may be empty if the store has it already
  double flops = 0;            // floating-point (or integer) operations of one run

  std::string environment;  // words "name=value" about the device when it was measured; may be empty
  std::string measured_by;  // who: the agent's name
  Instant measured_at{};    // when, by the clock of the tracker that was told of it
  uint64_t seed = 0;        // of the search that proposed the candidate

  bool operator==(const Record&) const = default;
};

// Which value of which part of a record a column is.
using Member = std::variant<std::string Key::*, std::string Record::*, std::string Failure::*, double Record::*,
                            bool Record::*, uint64_t Record::*, Instant Record::*, bool Timing::*, int64_t Timing::*,
                            std::optional<double> Timing::*, std::vector<double> Timing::*, FailureKind Failure::*>;

enum class Storage {
  kRow,       // in the row itself
  kText,      // in the row as the number of a text, since many rows have equal ones
  kWorkload,  // in the row's workload
};

// Of a text: kGiven and kNotEmpty stand in every line of JSON. Of a number: what it must be; finite it always is.
enum class Range { kAny, kGiven, kNotEmpty, kNotNegative, kPositive };

struct Column {
  std::string_view name;  // in SQL
  Member member;
  std::string_view json;  // field in a line of JSON; "timing.drift" is field drift of the object timing
  std::string_view wire;  // field of hone.v1.Record, likewise
  Storage storage = Storage::kRow;
  Range range = Range::kAny;
  size_t limit = 4096;   // of a text, in bytes
  double wire_unit = 1;  // what 1 in the message means here: 1e6 for megahertz
  int64_t since = 2;     // schema that has it first; the last of these is the schema of today
};

// In the order of tables and lines of JSON. A column that is in files already is not changed any more.
inline constexpr std::array kColumns = {
    Column{"measurement", &Record::measurement_id, "measurement", "id", Storage::kRow, Range::kNotEmpty},
    Column{"batch", &Record::batch_id, "batch", "batch_id"},
    Column{"digest", &Key::workload_digest, "workload.digest", "key.workload_digest", Storage::kWorkload,
           Range::kNotEmpty},
    Column{"operator", &Record::operator_label, "workload.operator", "op", Storage::kWorkload},
    Column{"flops", &Record::flops, "workload.flops", "flops", Storage::kWorkload, Range::kNotNegative},
    Column{"text", &Record::workload_text, "workload.text", "workload", Storage::kWorkload, Range::kAny, 16 << 20},
    Column{"target", &Key::target, "target", "key.target", Storage::kText, Range::kNotEmpty},
    Column{"device", &Key::device_fingerprint, "device", "key.device_fingerprint", Storage::kText, Range::kNotEmpty},
    Column{"compiler", &Key::compiler_version, "compiler", "key.compiler_version", Storage::kText, Range::kNotEmpty},
    Column{"schedule", &Record::schedule, "schedule", "schedule", Storage::kRow, Range::kGiven, 1 << 20},
    Column{"decisions", &Record::decisions, "decisions", "decisions", Storage::kRow, Range::kAny, 1 << 20},
    Column{"is_default", &Record::is_default, "is_default", "is_default"},
    Column{"seconds", &Timing::seconds, "timing.seconds", "outcome.timing.seconds", Storage::kRow, Range::kPositive},
    Column{"first_interleaved", &Timing::first_interleaved, "timing.first_interleaved",
           "outcome.timing.first_interleaved", Storage::kRow, Range::kNotNegative},
    Column{"calls_per_repeat", &Timing::calls_per_repeat, "timing.calls_per_repeat", "outcome.timing.calls_per_repeat",
           Storage::kRow, Range::kNotNegative},
    Column{"confirmed", &Timing::confirmed, "timing.confirmed", "confirmed"},
    Column{"verified", &Timing::verified, "timing.verified", "verified"},
    Column{"tolerance", &Timing::tolerance, "timing.tolerance", "tolerance", Storage::kRow, Range::kNotNegative},
    Column{"reference_seconds", &Timing::reference_seconds, "timing.reference_seconds",
           "outcome.timing.reference_seconds", Storage::kRow, Range::kPositive},
    Column{"drift", &Timing::drift, "timing.drift", "outcome.timing.drift", Storage::kRow, Range::kNotNegative},
    Column{"temperature_celsius", &Timing::temperature_celsius, "timing.temperature_celsius",
           "outcome.timing.temperature_c"},
    Column{.name = "clock_hertz",
           .member = &Timing::clock_hertz,
           .json = "timing.clock_hertz",
           .wire = "outcome.timing.clock_mhz",
           .range = Range::kPositive,
           .wire_unit = 1e6},
    Column{.name = "max_error",
           .member = &Timing::max_error,
           .json = "timing.max_error",
           .wire = "outcome.timing.max_error",
           .range = Range::kNotNegative,
           .since = 3},
    Column{.name = "predicted_seconds",
           .member = &Timing::predicted_seconds,
           .json = "timing.predicted_seconds",
           .wire = "predicted_seconds",
           .range = Range::kPositive,
           .since = 5},
    Column{"failure", &Failure::kind, "failure.kind", "outcome.failure.kind"},
    Column{"failure_text", &Failure::text, "failure.text", "outcome.failure.text"},
    Column{"environment", &Record::environment, "environment", "environment", Storage::kText},
    Column{"measured_by", &Record::measured_by, "measured_by", "measured_by", Storage::kText},
    Column{"measured_at_ms", &Record::measured_at, "measured_at_ms", "time", Storage::kRow, Range::kNotNegative},
    Column{"seed", &Record::seed, "seed", "seed"},
};

// A record with its place in the database: rows are numbered in the order appended.
struct StoredRecord {
  int64_t row = 0;
  Record record;
};

// kInvalidArgument naming the first field that cannot be stored: an empty key part, a time that is not above 0, text
// that is not UTF-8, a field over its size limit (16 MiB for the workload's text, 1 MiB for a schedule).
absl::Status Validate(const Record& record);

// `text` with every byte that is not part of UTF-8 text replaced by U+FFFD, NUL included, cut at `limit` bytes.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace hone::records

#endif  // HONE_RECORDS_RECORD_H_
