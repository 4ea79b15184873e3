// SPDX-License-Identifier: Apache-2.0
// Records for tests of the records room: plausible values, and every optional field set.
#ifndef HONE_TESTS_UNIT_RECORDS_SAMPLE_RECORDS_H_
#define HONE_TESTS_UNIT_RECORDS_SAMPLE_RECORDS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "records/columns.h"
#include "records/record.h"

namespace hone::records {

inline Key SampleKey() {
  return {"d1ge57", "cpu -mcpu=znver4 -threads=2", "x86_64 AMD EPYC 9R14 2 cores avx512f", "hone 0.1.0"};
}

// A verified timing with the given median. Records with different `number` are different measurements.
inline Record SampleTiming(int number, std::string schedule, double median, Key key = SampleKey()) {
  Record record;
  record.key = std::move(key);
  record.measurement_id = fmt::format("batch-7/{}", number);
  record.batch_id = "batch-7";
  record.schedule = std::move(schedule);
  record.decisions = "oc=4,16 unroll=1";
  record.outcome = Timing{.seconds = {median * 2, median, median / 2},
                          .verified = true,
                          .tolerance = 1e-4,
                          .reference_seconds = 3e-5,
                          .temperature_celsius = 61.5,
                          .clock_hertz = 3.7e9};
  record.operator_label = "conv2d";
  record.workload_text = "workload conv2d of " + record.key.workload_digest;
  record.flops = 2.5e8;
  record.measured_by = "board-3";
  record.measured_at = Instant(std::chrono::milliseconds(1'700'000'000'000 + number));
  record.seed = 0xFFFF'FFFF'FFFF'FFF0ULL;  // above the largest signed value, as which SQLite stores it
  return record;
}

inline Record SampleFailure(int number, std::string schedule, FailureKind kind, Key key = SampleKey()) {
  Record record = SampleTiming(number, std::move(schedule), 1, std::move(key));
  record.outcome = Failure{kind, "block oc: 7 does not fit"};
  return record;
}

inline Record Confirmed(Record record) {
  std::get<Timing>(record.outcome).confirmed = true;
  return record;
}

inline Record OfDefault(Record record) {
  record.is_default = true;
  return record;
}

// Gives every member of a record a different value, which is not its default. A conversion that loses or confuses a
// value then gives an unequal record.
struct Filler {
  int number;
  void operator()(std::string& value) const { value = fmt::format("text {}", number); }
  void operator()(double& value) const { value = number + 0.1; }
  void operator()(std::optional<double>& value) const { value = number + 0.2; }
  void operator()(bool& value) const { value = true; }
  void operator()(int64_t& value) const { value = number; }
  void operator()(uint64_t& value) const { value = ~uint64_t{0} - static_cast<uint64_t>(number); }
  void operator()(Instant& value) const { value = Instant(std::chrono::milliseconds(number)); }
  void operator()(FailureKind& value) const { value = FailureKind::kCompileTimeout; }
  void operator()(std::vector<double>& value) const {
    for (int i = 1; i < 100; ++i) value.push_back(number + i * 0.01);
  }
};

inline Record EveryValueSet(Outcome outcome) {
  Record record;
  record.outcome = std::move(outcome);
  int number = 0;
  for (const Column& column : kColumns) WithValue(record, column, Filler{++number});
  return record;
}

}  // namespace hone::records

#endif  // HONE_TESTS_UNIT_RECORDS_SAMPLE_RECORDS_H_
