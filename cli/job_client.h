// SPDX-License-Identifier: Apache-2.0
// What `tune`, `submit`, `watch` and `cancel` share: jobs handed to a tracker and watched to their end.
// What is in a job is submission.h's, how people see it job_text.h's and job_view.h's.
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

// How long a person waits for a job to be taken: what goes by itself, as a restart of the tracker, is over by then.
inline constexpr absl::Duration kSubmitPatience = absl::Minutes(1);

// Movable; used by one thread at a time.
class JobClient {
 public:
  JobClient(std::shared_ptr<grpc::Channel> channel, std::string address)
      : jobs_(v1::JobService::NewStub(channel)),
        admin_(v1::AdminService::NewStub(channel)),
        address_(std::move(address)) {}

  // All of one submission. A tracker that is away for a moment, or can store nothing now, is asked again with the same
  // request_id, which makes no second job, for as long as `persists` wants it, given how long that has been so; the
  // error then says that the job may be queued. When the tracker refuses one of them, those before it are cancelled.
  absl::StatusOr<std::vector<v1::Job>> Submit(const std::vector<v1::JobSpec>& specs,
                                              const std::function<bool(absl::Duration)>& persists);
  absl::StatusOr<v1::Job> Cancel(const std::string& job_id);
  // One after the other, until no answer comes: that one and those after it stay in `job_ids`, to be cancelled again.
  // The error is of another kind, the first of them.
  absl::Status CancelAll(std::vector<std::string>& job_ids);
  absl::StatusOr<v1::ListDevicesResponse> Devices();
  absl::StatusOr<std::vector<v1::Job>> List(const v1::ListJobsRequest& request);
  // The jobs that a person means by a word: those of the group, or the job, of that id.
  absl::StatusOr<std::vector<v1::Job>> Meant(const std::string& id);
  // Follows the jobs until all have ended. `heard` is called about every second for each that has not, and `idle` as
  // often, also while there is no connection; either may end the watching with an error. Errors of the connection are
  // waited out until then: `away` is told the first of them, and again only after there was an answer.
  absl::StatusOr<std::vector<v1::Job>> Watch(std::vector<v1::Job> jobs,
                                             const std::function<absl::Status(const v1::WatchJobResponse&)>& heard,
                                             const std::function<absl::Status()>& idle,
                                             const std::function<void(const absl::Status&)>& away);

 private:
  absl::StatusOr<v1::Job> SubmitOne(const v1::JobSpec& spec);
  absl::StatusOr<v1::Job> SubmitUntilTaken(const v1::JobSpec& spec,
                                           const std::function<bool(absl::Duration)>& persists);
  absl::StatusOr<v1::Job> Get(const std::string& job_id);

  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::string address_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_JOB_CLIENT_H_
