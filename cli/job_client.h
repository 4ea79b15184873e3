// SPDX-License-Identifier: Apache-2.0
// The client that `tune`, `submit`, `watch` and `cancel` share: submits jobs to a tracker and watches them to their
// end. Not here: the contents of a job (submission.h) and its display (job_text.h, job_view.h).
#ifndef HONE_CLI_JOB_CLIENT_H_
#define HONE_CLI_JOB_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"

namespace hone::cli {

// The time for which an interactive command retries a submission. Passing failures, such as a restart of the tracker,
// are over by then.
inline constexpr absl::Duration kSubmitRetryTimeMax = absl::Minutes(1);

// Movable. Used by one thread at a time. Errors carry the tracker's address.
class JobClient {
 public:
  JobClient(std::shared_ptr<grpc::Channel> channel, std::string address)
      : jobs_(v1::JobService::NewStub(channel)),
        admin_(v1::AdminService::NewStub(channel)),
        address_(std::move(address)) {}

  // Submits all jobs of one submission. If the tracker does not answer or cannot store the job, it is asked again with
  // the same request_id, so that no second job is made. keeps_trying: called before each retry with the time since the
  // first failure; false gives up, and the error then says that the job may be queued. If one job fails, the jobs
  // before it are cancelled.
  absl::StatusOr<std::vector<v1::Job>> Submit(const std::vector<v1::JobSpec>& specs,
                                              const std::function<bool(absl::Duration)>& keeps_trying);
  absl::StatusOr<v1::Job> Cancel(const std::string& job_id);
  // Cancels the jobs one after another and removes each answered one from `job_ids`. If the tracker does not answer,
  // that job and those after it stay in `job_ids` for a later call. Returns the first refusal of the tracker; a missing
  // answer is no error here.
  absl::Status CancelAll(std::vector<std::string>& job_ids);
  absl::StatusOr<v1::ListDevicesResponse> Devices();
  absl::StatusOr<v1::ListTunersResponse> Tuners();
  absl::StatusOr<std::vector<v1::Job>> List(const v1::ListJobsRequest& request);
  // The jobs of the group `id`, or the one job `id`. Usage error: `id` is empty.
  absl::StatusOr<std::vector<v1::Job>> FindJobs(const std::string& id);
  // Watches the jobs until all have ended, and returns their last states. on_answer: called about once a second for
  // each job that has not ended, with the tracker's answer. on_idle: called as often, also while the tracker does not
  // answer. An error of either ends the watching and is returned. on_tracker_away: called with the first error of the
  // connection, and again only after an answer in between; the connection is retried without limit.
  absl::StatusOr<std::vector<v1::Job>> Watch(std::vector<v1::Job> jobs,
                                             const std::function<absl::Status(const v1::WatchJobResponse&)>& on_answer,
                                             const std::function<absl::Status()>& on_idle,
                                             const std::function<void(const absl::Status&)>& on_tracker_away);

 private:
  absl::StatusOr<v1::Job> SubmitOne(const v1::JobSpec& spec);
  absl::StatusOr<v1::Job> SubmitWithRetry(const v1::JobSpec& spec,
                                          const std::function<bool(absl::Duration)>& keeps_trying);
  absl::StatusOr<v1::Job> Get(const std::string& job_id);

  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::string address_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_CLIENT_H_
