// The tracker as the tuning loop sees it: calls that wait out a tracker that is being restarted, and what they return.
#ifndef HONE_TUNER_FARM_CLIENT_H_
#define HONE_TUNER_FARM_CLIENT_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"

namespace hone::tuner {

// Errors: Aborted (the lease is not live any more), Cancelled (the job was cancelled), Unavailable (no tracker for a
// minute). Used by one thread at a time.
class FarmClient {
 public:
  FarmClient(const std::shared_ptr<grpc::Channel>& channel, v1::JobLease lease, std::string address);

  absl::Status Report(const v1::JobProgress& progress);
  absl::Status Complete(const v1::JobProgress& progress, const std::string& error);
  // Submits the batches and waits until all are measured. One result per batch, in order. progress is reported while
  // waiting.
  absl::StatusOr<std::vector<v1::BatchResult>> Measure(const std::vector<v1::Batch>& batches,
                                                       const v1::JobProgress& progress);
  // The fingerprint of a device that fulfils the requirements; nullopt if there is none now.
  absl::StatusOr<std::optional<v1::DeviceFingerprint>> FindDevice(const v1::Requirements& requirements);
  absl::StatusOr<std::vector<v1::Record>> Records(const v1::RecordKey& key, bool only_timed, int limit);
  // Nothing if there is no such record.
  absl::StatusOr<std::optional<v1::BestRecordResponse>> Best(const v1::RecordKey& key, v1::RecordMatch widest);
  absl::Status Append(const std::vector<v1::Record>& records);

 private:
  absl::StatusOr<std::string> Submit(const v1::Batch& batch, const std::string& client_id);

  const std::unique_ptr<v1::TunerService::Stub> tuner_;
  const std::unique_ptr<v1::RecordService::Stub> records_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
  const v1::JobLease lease_;
  const std::string address_;
  int64_t next_batch_ = 0;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_FARM_CLIENT_H_
