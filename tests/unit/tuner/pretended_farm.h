// A farm for tests of the tuning loop: one device whose times are computed from the decisions, and records in memory.
#ifndef HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_
#define HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tuner/farm.h"

namespace hone::tuner {

class PretendedFarm : public Farm {
 public:
  // Seconds of a candidate, from its decisions; negative: it crashes.
  std::function<double(const v1::Batch&, const std::string& decisions)> seconds;
  // Answers batches with this error if not empty.
  std::function<std::string(const v1::Batch&)> batch_error;
  std::function<absl::Status()> on_report, on_measure;
  int asks_before_device = 0;
  // Goes on by what the device's work takes, one batch after the other. Limits of time are kept as an agent keeps them.
  absl::Time now = absl::UnixEpoch();
  absl::Time Now();

  absl::Status Report(const v1::JobProgress& progress) override;
  absl::StatusOr<v1::BatchResult> Measure(const v1::Batch& batch) override;
  absl::StatusOr<std::optional<v1::DeviceState>> FindDevice(const v1::Requirements& requirements) override;
  absl::StatusOr<std::vector<v1::Record>> Records(const v1::RecordKey& key) override;
  absl::StatusOr<std::optional<v1::BestRecordResponse>> Best(const v1::RecordKey& key, v1::RecordMatch widest) override;
  absl::Status Append(const std::vector<v1::Record>& records) override;
  void Abandon() override { abandoned = true; }

  std::mutex mutex;
  std::vector<v1::Batch> batches;
  std::vector<v1::Record> records;
  std::vector<v1::JobProgress> reports;
  std::atomic<bool> abandoned{false};
};

}  // namespace hone::tuner

#endif  // HONE_TESTS_UNIT_TUNER_PRETENDED_FARM_H_
