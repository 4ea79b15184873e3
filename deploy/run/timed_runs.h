// SPDX-License-Identifier: Apache-2.0
// Repeats and times runs of loaded packages, for `hone bench`, `hone profile` and runs on devices. Several packages run
// in turns, so that their times can be compared pair by pair.
#ifndef HONE_DEPLOY_RUN_TIMED_RUNS_H_
#define HONE_DEPLOY_RUN_TIMED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::run {

using Run = std::function<absl::Status()>;

// Calls the runs in turns, first to last and again. Warms up for a tenth of `seconds` for each run, at most 2 s, and at
// least one turn, then measures for `seconds` for each run and at least three turns. After every measured run,
// record(index of the run, its seconds) is called. Returns the first error of a run.
absl::Status TimeInTurns(double seconds, std::span<const Run> runs,
                         const std::function<void(size_t run, double seconds)>& record);

// The same for one run. Returns the seconds of each measured run.
absl::StatusOr<std::vector<double>> TimeRuns(double seconds, const Run& run);

// Values of a long measurement in bounded memory. When there are more than `most`, every second one is dropped, and so
// on, so that those that stay are evenly spread. Two series with equally many values keep the same places.
class SpreadValues {
 public:
  explicit SpreadValues(size_t most) : most_(most) {}
  void Add(double value);
  const std::vector<double>& values() const { return values_; }
  int64_t count() const { return count_; }  // of all values that were added

 private:
  size_t most_;
  int64_t count_ = 0, stride_ = 1;
  std::vector<double> values_;
};

// The runs of each minute of a long measurement, in bounded memory.
class MinuteCurve {
 public:
  struct Minute {
    int64_t runs = 0;
    double median_seconds = 0;  // 0 without runs
  };
  explicit MinuteCurve(size_t most) : most_(most), present_(most) {}  // most: as for SpreadValues, of one minute
  // The minutes count from the beginning of the first run. now: when the run ended, in seconds of a steady clock.
  void Add(double now, double seconds);
  // Call it once, at the end. A last minute of less than 5 s is left out, unless it is the only one.
  std::vector<Minute> Take();

 private:
  void EndMinute();

  size_t most_;
  bool empty_ = true;
  double begun_ = 0;
  double last_ = 0;  // seconds from begun_ to the end of the last run
  SpreadValues present_;
  std::vector<Minute> minutes_;
};

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_TIMED_RUNS_H_
