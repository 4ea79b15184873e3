// SPDX-License-Identifier: Apache-2.0
// Record: one measured candidate as plain values, the unit that the database of results stores and exchanges.
//
// A record says: this schedule of this workload, built by this compiler for this target, ran on this device with this
// outcome. Schedules, decisions, targets and device fingerprints are opaque text here and are never parsed.
// kColumns below describes every value once. Tables, rows, lines of JSON, the protocol's messages, the limits and the
// check of docs/RECORDS.md are derived from it. docs/howto/add-a-record-column.md says how to add one. Not here: how
// records are stored (store.h) and exchanged (jsonl.h). Start at Record.
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
#include "base/failure_kind.h"

namespace hone::records {

// The conditions for which a measurement is valid. No part may be empty. A record under another key is only a hint,
// because another device or compiler makes other times.
struct Key {
  std::string workload_digest;     // of the workload's canonical text
  std::string target;              // target text: "cpu -mcpu=znver4 -threads=2"
  std::string device_fingerprint;  // text that the device's agent reports
  std::string compiler_version;    // of the code generator; another version may make other code from a schedule

  auto operator<=>(const Key&) const = default;
};

// The outcome of a candidate that was timed. An empty optional: not known.
struct Timing {
  std::vector<double> seconds;  // every repeat, in the order taken; at least one, each finite and above 0
  // The index in `seconds` of the first repeat that was taken in interleaved rounds with the batch's other finalists.
  // From there on, the k-th repeat of each finalist belongs to round k. seconds.size(): no repeat was interleaved.
  // 0: all were, or it is not known.
  int64_t first_interleaved = 0;
  int64_t calls_per_repeat = 0;     // a repeat is the mean time of this many calls in a row; 0: not known
  bool confirmed = false;           // taken in the batch's final comparison of finalists and default, not in a race
  bool verified = false;            // the output agreed with a reference; an unverified timing never wins
  std::optional<double> tolerance;  // allowed relative error of an element (rtol); the absolute part is not recorded
  std::optional<double> reference_seconds;    // median of the device's fixed reference kernel in the same visit
  std::optional<double> drift;                // largest departure from reference_seconds in the visit: 0.02 is 2%
  std::optional<double> max_error;            // largest error of an element, as share of the reference's largest one
  std::optional<double> temperature_celsius;  // hottest sensor of the device after the visit
  std::optional<double> clock_hertz;          // clock of the device after the visit
  std::optional<double> predicted_seconds;    // by the cost model that chose the candidate

  bool operator==(const Timing&) const = default;
};

// The outcome of a candidate that has no timing.
struct Failure {
  FailureKind kind = FailureKind::kCrashed;
  std::string text;  // details for users, any bytes; the store replaces what is not UTF-8 and cuts it at 16 KiB

  bool operator==(const Failure&) const = default;
};

using Outcome = std::variant<Timing, Failure>;
using Instant = std::chrono::sys_time<std::chrono::milliseconds>;

// The latest measured_at that is accepted at `now`: clocks of other machines may be ahead by five minutes. A later time
// must be lowered to this one. Otherwise a failure with it would rule out later timings of its schedule.
constexpr Instant MeasuredAtMax(Instant now) { return now + std::chrono::minutes(5); }

struct Record {
  Key key;
  std::string measurement_id;  // unique for ever, chosen by the program that measured; a store keeps it once
  std::string batch_id;        // equal for the candidates of one device visit; may be empty
  std::string schedule;        // empty: the unscheduled kernel
  std::string decisions;       // the search's decisions that led to the schedule; may be empty
  bool is_default = false;     // the default schedule, which needs no search and is measured for comparison
  Outcome outcome;

  // The values of the workload's open sizes at which it was measured (base/size_points.h); the seconds are the sum over
  // these points. Times at other points are not comparable. Empty: the workload has no open sizes.
  std::string sizes;

  std::string operator_label;  // for users: "conv2d"
  std::string workload_text;   // canonical text, stored once for each workload; may be empty if the store has it
  double flops = 0;            // floating-point (or integer) operations of one run

  // What the job that measured it says. Any of these may be empty.
  std::string job_id;
  std::string model;  // the job's name, usually the name of the model's file
  std::string title;  // of the workload, for users: "conv2d 56x56x64 (3x3x3)"
  std::string nodes;  // of the model's file, by name and separated by ", ": the first 16 that the workload computes

  std::string environment;  // words "name=value" about the device when it measured; may be empty
  std::string measured_by;  // name of the agent
  Instant measured_at{};    // by the clock of the tracker that received the measurement
  uint64_t seed = 0;        // of the search that proposed the candidate

  bool operator==(const Record&) const = default;
};

// The workload for users: its title, or the operator in records of older versions.
inline const std::string& TitleOf(const Record& record) {
  return record.title.empty() ? record.operator_label : record.title;
}

// A pointer to the member of Key, Record, Timing or Failure that holds a column's value.
using Member = std::variant<std::string Key::*, std::string Record::*, std::string Failure::*, double Record::*,
                            bool Record::*, uint64_t Record::*, Instant Record::*, bool Timing::*, int64_t Timing::*,
                            std::optional<double> Timing::*, std::vector<double> Timing::*, FailureKind Failure::*>;

// The place of a column's value in the database.
enum class Storage {
  kRow,       // in the row itself
  kText,      // in a table of texts, and the row has its number, because many rows share the text
  kWorkload,  // in the row's workload
};

// The condition that a column's value must satisfy. A number must always be finite.
enum class Range {
  kAny,
  kRequired,  // a text that every line of JSON must have; it may be empty
  kNotEmpty,  // a text that every line of JSON must have, and that is not empty
  kNotNegative,
  kPositive
};

struct Column {
  std::string_view name;  // in SQL
  Member member;
  std::string_view json;  // field in a line of JSON; "timing.drift" is the field `drift` of the object `timing`
  std::string_view wire;  // field of the message hone.v1.Record, in the same notation
  Storage storage = Storage::kRow;
  Range range = Range::kAny;
  size_t limit = 4096;   // largest size of a text, in bytes; unused for other types
  double wire_unit = 1;  // the message's unit in this value's unit: 1e6 for megahertz
  int64_t since = 2;     // the first schema version that has the column
};

// The columns, in the order of the SQL table and of a line of JSON. A released column must not change, because files
// have it.
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
    Column{"schedule", &Record::schedule, "schedule", "schedule", Storage::kRow, Range::kRequired, 1 << 20},
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
    Column{.name = "sizes",
           .member = &Record::sizes,
           .json = "sizes",
           .wire = "sizes",
           .storage = Storage::kText,
           .since = 6},
    Column{.name = "job",
           .member = &Record::job_id,
           .json = "job",
           .wire = "job_id",
           .storage = Storage::kText,
           .since = 7},
    Column{.name = "model",
           .member = &Record::model,
           .json = "model",
           .wire = "model",
           .storage = Storage::kText,
           .since = 7},
    Column{.name = "title",
           .member = &Record::title,
           .json = "workload.title",
           .wire = "title",
           .storage = Storage::kText,
           .since = 7},
    Column{.name = "nodes",
           .member = &Record::nodes,
           .json = "nodes",
           .wire = "nodes",
           .storage = Storage::kText,
           .limit = 8192,
           .since = 7},
};

// A record with its row number. A store numbers rows in the order appended, and never reuses a number.
struct StoredRecord {
  int64_t row = 0;
  Record record;
};

// kInvalidArgument names the first field that cannot be stored: an empty key part, a time that is not above 0, text
// that is not UTF-8, a field over its size limit (16 MiB for the workload's text, 1 MiB for a schedule).
absl::Status Validate(const Record& record);

// Returns `text` as UTF-8 of at most `limit` bytes: U+FFFD replaces each NUL and each byte that is not valid UTF-8.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace hone::records

#endif  // HONE_RECORDS_RECORD_H_
