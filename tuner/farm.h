// The farm as the tuning loop sees it: report, measure, remember. Behind it is a tracker; in tests, a make-believe one.
//
// Errors of every call: Aborted (the lease is not live any more), Cancelled (the job was cancelled, or Abandon was
// called), Unavailable (no tracker for minutes). Thread-safe.
#ifndef HONE_TUNER_FARM_H_
#define HONE_TUNER_FARM_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/measure.pb.h"
#include "hone/v1/record.pb.h"

namespace hone::tuner {

class Farm {
 public:
  virtual ~Farm() = default;
  // Progress, and a sign of life.
  virtual absl::Status Report(const v1::JobProgress& progress) = 0;
  // Submits the batch and waits until it is measured. Its outcomes are in the records then.
  virtual absl::StatusOr<v1::BatchResult> Measure(const v1::Batch& batch) = 0;
  // A device that fulfils the requirements and may get work; nullopt if there is none now.
  virtual absl::StatusOr<std::optional<v1::DeviceState>> FindDevice(const v1::Requirements& requirements) = 0;
  // In the order made; empty parts of the key match everything.
  virtual absl::StatusOr<std::vector<v1::Record>> Records(const v1::RecordKey& key) = 0;
  // Nothing if there is no such record.
  virtual absl::StatusOr<std::optional<v1::BestRecordResponse>> Best(const v1::RecordKey& key,
                                                                     v1::RecordMatch widest) = 0;
  virtual absl::Status Append(const std::vector<v1::Record>& records) = 0;
  // Ends the calls under way and all later ones with Cancelled.
  virtual void Abandon() = 0;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_FARM_H_
