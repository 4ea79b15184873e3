// SPDX-License-Identifier: Apache-2.0
// The Farm of a leased job, by calls to a tracker. Calls are repeated without limit while the tracker is being
// restarted, hangs or has a full disk. Meanwhile the job's clock stands still (job_clock.h). Start with
// FarmClient::Measure.
#ifndef HONE_TUNER_FARM_CLIENT_H_
#define HONE_TUNER_FARM_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tuner/farm.h"
#include "tuner/job_clock.h"

namespace hone::tuner {

class FarmClient : public Farm {
 public:
  // Returns the channel to the tracker. It is called for every call, from any thread, because a renewed certificate
  // needs a new channel.
  using Channel = std::function<std::shared_ptr<grpc::Channel>()>;

  // address: of the tracker, for error texts. job_clock: must outlive this; its Now is the clock of the job.
  FarmClient(Channel channel, v1::JobLease lease, std::string address, JobClock* job_clock);

  absl::Status Report(const Progress& progress) override;
  void RenewLease() override;
  absl::StatusOr<Measured> Measure(const Batch& batch) override;
  absl::StatusOr<std::optional<FarmDevice>> FindDevice(const Requirements& requirements) override;
  absl::StatusOr<std::vector<PastTrial>> Records(const RecordKey& key) override;
  absl::StatusOr<std::optional<PastWinner>> Best(const RecordKey& key) override;
  absl::Status RecordFailures(const RecordKey& key, const Batch& batch,
                              const std::vector<BuildFailed>& failures) override;
  absl::Status RequeueJob(const Requirements& needs) override;
  void Abandon() override { abandoned_ = true; }

  // Whether RenewLease has heard that the job ended or belongs to another tuner. Other calls then say which.
  bool HasLostJob() const { return lost_job_; }

  // Submits the batch, whose messages the caller makes, and waits for its result. over: asked about once a second;
  // nullopt once it returns true. Errors: as Farm::Measure.
  absl::StatusOr<std::optional<v1::BatchResult>> Run(const v1::Batch& batch, const std::function<bool()>& over);

  // Ends the job at the tracker. error: why the job failed; "": it succeeded. confirmation: of the whole model; null:
  // the job has none.
  absl::Status Complete(const Progress& progress, const std::string& error, const v1::ModelConfirmation* confirmation);

 private:
  // Repeats the call while the tracker cannot be reached or cannot store anything. bytes: size of a large request,
  // which gets more time.
  absl::Status CallWithRetries(const std::function<grpc::Status(grpc::ClientContext*)>& call, size_t bytes = 0) const;
  absl::StatusOr<std::string> Submit(const v1::Batch& batch, const std::string& client_id);
  // The progress as a message without the schedules that the last report had. Needs report_mutex_ held.
  v1::JobProgress WithoutReportedSchedules(const Progress& progress);

  std::unique_ptr<v1::TunerService::Stub> Tuner() const { return v1::TunerService::NewStub(channel_()); }
  std::unique_ptr<v1::RecordService::Stub> RecordsStub() const { return v1::RecordService::NewStub(channel_()); }
  std::unique_ptr<v1::AdminService::Stub> Admin() const { return v1::AdminService::NewStub(channel_()); }

  const Channel channel_;
  const v1::JobLease lease_;
  const std::string address_;
  JobClock* const job_clock_;
  std::mutex report_mutex_;  // held until the tracker has answered, because a report refers to the one before
  std::vector<std::string> reported_schedules_;  // the schedules of the last report, by workload
  std::atomic<int64_t> report_began_;            // when the last report began, in seconds of the steady clock
  std::atomic<int64_t> next_batch_{0};           // number of the next batch, part of its client id
  std::atomic<bool> abandoned_{false};           // Abandon was called
  std::atomic<bool> lost_job_{false};            // HasLostJob
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_FARM_CLIENT_H_
