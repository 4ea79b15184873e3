// SPDX-License-Identifier: Apache-2.0
#include "cli/job_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "cli/call_tracker.h"
#include "cli/command.h"
#include "cli/job_text.h"
#include "cli/output.h"
#include "proto/convert.h"

namespace hone::cli {
namespace {

// Whether the tracker did not answer, so that a retry may succeed. The tracker may still have executed the call.
bool IsNoAnswer(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

constexpr absl::Duration kSubmitTimeMax = absl::Seconds(30);  // a job may have megabytes
constexpr absl::Duration kWatchTimeMax = absl::Seconds(10);   // it is answered within a second

}  // namespace

absl::StatusOr<v1::Job> JobClient::SubmitOne(const v1::JobSpec& spec) {
  v1::SubmitJobRequest request;
  *request.mutable_spec() = spec;
  return CallTracker(*jobs_, &v1::JobService::Stub::Submit, request, address_, kSubmitTimeMax);
}

absl::StatusOr<v1::Job> JobClient::SubmitWithRetry(const v1::JobSpec& spec,
                                                   const std::function<bool(absl::Duration)>& keeps_trying) {
  std::optional<absl::Time> since;
  absl::Duration pause = absl::Milliseconds(100);
  while (true) {
    absl::StatusOr<v1::Job> job = SubmitOne(spec);
    if (!IsNoAnswer(job.status())) return job;
    if (!since.has_value()) {
      since = SteadyNow();
      PrintMessage(fmt::format("the tracker has not accepted the job yet, submitting it again: {}\n",
                               std::string(job.status().message())));
    }
    if (!keeps_trying(SteadyNow() - *since)) return job;
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Seconds(2));
  }
}

absl::StatusOr<std::vector<v1::Job>> JobClient::Submit(const std::vector<v1::JobSpec>& specs,
                                                       const std::function<bool(absl::Duration)>& keeps_trying) {
  std::vector<v1::Job> jobs;
  for (const v1::JobSpec& spec : specs) {
    absl::StatusOr<v1::Job> job = SubmitWithRetry(spec, keeps_trying);
    if (job.ok()) {
      jobs.push_back(*std::move(job));
      continue;
    }
    // Without an answer, this job may be queued, and the earlier ones may not be cancellable now.
    const bool unknown = IsNoAnswer(job.status());
    bool cancelled = true;
    for (const v1::Job& earlier : jobs) cancelled &= Cancel(earlier.id()).ok();
    if (spec.group().empty() && unknown) {
      return Annotate(job.status(),
                      "the job may be queued although the tracker did not answer; look for it with hone jobs before "
                      "you submit it again");
    }
    if (spec.group().empty() || (cancelled && !unknown)) return job.status();
    return Annotate(job.status(), fmt::format("some jobs may be queued (hone cancel {} ends them)", spec.group()));
  }
  return jobs;
}

absl::StatusOr<v1::Job> JobClient::Get(const std::string& job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return CallTracker(*jobs_, &v1::JobService::Stub::Get, request, address_);
}

absl::StatusOr<std::vector<v1::Job>> JobClient::FindJobs(const std::string& id) {
  if (id.empty())
    return UsageError("the id of the job is empty; `hone jobs` lists the ids");  // an empty group lists all jobs
  v1::ListJobsRequest request;
  request.set_group(id);
  request.set_for_people(true);
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, List(request));
  if (!jobs.empty()) return jobs;
  HONE_ASSIGN_OR_RETURN(v1::Job job, Get(id));
  return std::vector<v1::Job>{std::move(job)};
}

absl::StatusOr<v1::Job> JobClient::Cancel(const std::string& job_id) {
  v1::CancelJobRequest request;
  request.set_job_id(job_id);
  return CallTracker(*jobs_, &v1::JobService::Stub::Cancel, request, address_);
}

absl::Status JobClient::CancelAll(std::vector<std::string>& job_ids) {
  absl::Status refused;
  bool answers = true;
  std::erase_if(job_ids, [&](const std::string& id) {
    if (!answers) return false;  // the tracker does not answer: keep the remaining jobs for the next call
    const absl::Status status = Cancel(id).status();
    answers = !IsNoAnswer(status);
    if (!answers) return false;
    refused.Update(status);
    return true;
  });
  return refused;
}

absl::StatusOr<v1::ListDevicesResponse> JobClient::Devices() {
  return CallTracker(*admin_, &v1::AdminService::Stub::ListDevices, v1::ListDevicesRequest(), address_);
}

absl::StatusOr<v1::ListTunersResponse> JobClient::Tuners() {
  return CallTracker(*admin_, &v1::AdminService::Stub::ListTuners, v1::ListTunersRequest(), address_);
}

absl::StatusOr<std::vector<v1::Job>> JobClient::List(const v1::ListJobsRequest& request) {
  HONE_ASSIGN_OR_RETURN(const v1::ListJobsResponse response,
                        CallTracker(*jobs_, &v1::JobService::Stub::List, request, address_));
  return std::vector<v1::Job>(response.jobs().begin(), response.jobs().end());
}

absl::StatusOr<std::vector<v1::Job>> JobClient::Watch(
    std::vector<v1::Job> jobs, const std::function<absl::Status(const v1::WatchJobResponse&)>& on_answer,
    const std::function<absl::Status()>& on_idle, const std::function<void(const absl::Status&)>& on_tracker_away) {
  std::vector<int64_t> seen(jobs.size(), 0);
  std::vector<bool> ended(jobs.size(), false);
  bool answers = true;
  const absl::Duration wait = absl::Seconds(1) / static_cast<int64_t>(std::max<size_t>(1, jobs.size()));
  while (std::find(ended.begin(), ended.end(), false) != ended.end()) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (ended[i]) continue;
      HONE_RETURN_IF_ERROR(on_idle());
      v1::WatchJobRequest request;
      request.set_job_id(jobs[i].id());
      request.set_after_sequence(seen[i]);
      *request.mutable_max_wait() = ToProto(wait);
      const absl::StatusOr<v1::WatchJobResponse> response =
          CallTracker(*jobs_, &v1::JobService::Stub::Watch, request, address_, kWatchTimeMax);
      if (IsNoAnswer(response.status())) {
        if (std::exchange(answers, false)) on_tracker_away(response.status());
        absl::SleepFor(absl::Milliseconds(300));  // the pause between retries while the tracker restarts
        continue;
      }
      HONE_RETURN_IF_ERROR(response.status());
      answers = true;
      for (const v1::JobEvent& event : response->events()) seen[i] = std::max(seen[i], event.sequence());
      HONE_RETURN_IF_ERROR(on_answer(*response));
      jobs[i] = response->job();
      ended[i] = HasEnded(jobs[i].state());
    }
  }
  return jobs;
}

}  // namespace hone::cli
