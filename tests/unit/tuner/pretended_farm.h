// SPDX-License-Identifier: Apache-2.0
// A farm for tests of the tuning loop: one device whose times are computed from the decisions, records in memory, and a
// workload for its jobs.
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
  // Returns the seconds of a candidate from its decisions; negative: the candidate crashes.
  std::function<double(const Batch&, const std::string& decisions)> seconds;
  // Number of candidates of a race that are timed again together with the incumbent, in interleaved rounds; the others
  // drop out. 0: there is no such final.
  int finalists = 0;
  // A batch is answered with this error unless it is empty.
  std::function<std::string(const Batch&)> batch_error;
  // Called by Report, Measure and Records, unless empty. An error becomes the result of the call.
  std::function<absl::Status()> on_report, on_measure;
  std::function<void()> on_records;
  int asks_before_device = 0;  // FindDevice finds no device for this many calls
  // The farm's clock. Each batch advances it by the device's working time, one batch after the other. Time limits are
  // kept as an agent keeps them.
  absl::Time now = absl::UnixEpoch();
  absl::Time Now();

  absl::Status Report(const Progress& progress) override;
  void RenewLease() override { ++signs_of_life; }
  absl::StatusOr<Measured> Measure(const Batch& batch) override;
  absl::StatusOr<std::optional<FarmDevice>> FindDevice(const Requirements& requirements) override;
  absl::StatusOr<std::vector<PastTrial>> Records(const RecordKey& key) override;
  absl::StatusOr<std::optional<PastWinner>> Best(const RecordKey& key) override;
  absl::Status RecordFailures(const RecordKey& key, const Batch& batch,
                              const std::vector<BuildFailed>& failures) override;
  absl::Status RequeueJob(const Requirements& needs) override;
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
  std::optional<Requirements> given_back;  // the requirements with which the job was returned
  std::atomic<bool> abandoned{false};
  std::atomic<int> signs_of_life{0};
};

JobWorkload MatMul(int m, int n, int k);

}  // namespace hone::tuner

#endif  // HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_
