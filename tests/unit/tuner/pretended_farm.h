// SPDX-License-Identifier: Apache-2.0
// A farm for tests of the tuning loop: one device whose times are computed from the decisions, and records in memory.
// And a workload that its jobs may have.
#ifndef HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_
#define HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tuner/farm.h"

namespace hone::tuner {

class PretendedFarm : public Farm {
 public:
  // Seconds of a candidate, from its decisions; negative: it crashes.
  std::function<double(const Batch&, const std::string& decisions)> seconds;
  // Of a race, so many are timed once more, in turns, with the incumbent; the others drop out. 0: nobody does.
  int finalists = 0;
  // Answers batches with this error if not empty.
  std::function<std::string(const Batch&)> batch_error;
  std::function<absl::Status()> on_report, on_measure;
  std::function<void()> on_records;
  int asks_before_device = 0;
  // Goes on by what the device's work takes, one batch after the other. Limits of time are kept as an agent keeps them.
  absl::Time now = absl::UnixEpoch();
  absl::Time Now();

  absl::Status Report(const Progress& progress) override;
  void SayAlive() override { ++signs_of_life; }
  absl::StatusOr<Measured> Measure(const Batch& batch) override;
  absl::StatusOr<std::optional<FarmDevice>> FindDevice(const Requirements& requirements) override;
  absl::StatusOr<std::vector<PastTrial>> Records(const RecordKey& key) override;
  absl::StatusOr<std::optional<PastWinner>> Best(const RecordKey& key) override;
  absl::Status RecordFailures(const RecordKey& key, const Batch& batch,
                              const std::vector<BuildFailed>& failures) override;
  absl::Status GiveBack(const Requirements& needs) override;
  void Abandon() override { abandoned = true; }

  struct Record {
    std::string workload_digest;
    bool is_default = false, verified = false;
    PastTrial trial;
  };

  std::mutex mutex;
  std::vector<Batch> batches;
  std::vector<Record> records;
  std::vector<Progress> reports;
  std::optional<Requirements> given_back;  // what it needs
  std::atomic<bool> abandoned{false};
  std::atomic<int> signs_of_life{0};
};

JobWorkload MatMul(int m, int n, int k);

}  // namespace hone::tuner

#endif  // HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_
