// SPDX-License-Identifier: Apache-2.0
// The Farm behind a tracker: calls that wait, with unlimited patience, for a tracker that is being restarted, stands
// still or has a full disk.
#ifndef HONE_TUNER_FARM_CLIENT_H_
#define HONE_TUNER_FARM_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tuner/farm.h"
#include "tuner/patience.h"

namespace hone::tuner {

class FarmClient : public Farm {
 public:
  // To the tracker; asked for at every call, since a renewed certificate means another channel. From any thread.
  using Channel = std::function<std::shared_ptr<grpc::Channel>()>;

  // address: for messages. patience: must outlive this; its Now is the clock of the job.
  FarmClient(Channel channel, v1::JobLease lease, std::string address, Patience* patience);

  absl::Status Report(const Progress& progress) override;
  void SayAlive() override;
  absl::StatusOr<Measured> Measure(const Batch& batch) override;
  absl::StatusOr<std::optional<FarmDevice>> FindDevice(const Requirements& requirements) override;
  absl::StatusOr<std::vector<PastTrial>> Records(const RecordKey& key) override;
  absl::StatusOr<std::optional<PastWinner>> Best(const RecordKey& key) override;
  absl::Status RecordFailures(const RecordKey& key, const Batch& batch,
                              const std::vector<BuildFailed>& failures) override;
  absl::Status GiveBack(const Requirements& needs) override;
  void Abandon() override { abandoned_ = true; }

  // Ends the job. error: "" for success.
  absl::Status Complete(const Progress& progress, const std::string& error);

 private:
  // bytes: that the call sends, where they are many.
  absl::Status Persist(const std::function<grpc::Status(grpc::ClientContext*)>& call, size_t bytes = 0) const;
  absl::StatusOr<std::string> Submit(const v1::Batch& batch, const std::string& client_id);
  v1::JobProgress WithoutWhatWasTold(const Progress& progress);

  std::unique_ptr<v1::TunerService::Stub> Tuner() const { return v1::TunerService::NewStub(channel_()); }
  std::unique_ptr<v1::RecordService::Stub> RecordsStub() const { return v1::RecordService::NewStub(channel_()); }
  std::unique_ptr<v1::AdminService::Stub> Admin() const { return v1::AdminService::NewStub(channel_()); }

  const Channel channel_;
  const v1::JobLease lease_;
  const std::string address_;
  Patience* const patience_;
  std::mutex reporting_;           // held until the tracker has answered: it knows reports by the one before
  std::vector<std::string> told_;  // the schedules of the last report
  std::atomic<int64_t> reported_;  // when the last report was begun, in seconds of the steady clock
  std::atomic<int64_t> next_batch_{0};
  std::atomic<bool> abandoned_{false};
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_FARM_CLIENT_H_
