// SPDX-License-Identifier: Apache-2.0
#include "cli/job_follower.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/shell_word.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "cli/job_view.h"

namespace hone::cli {
namespace {

// The error after Ctrl-C if the tracker does not answer: the job keeps running there.
absl::Status JobStillRunning(const std::vector<v1::Job>& jobs, const std::vector<std::string>& ids,
                             const std::string& tracker) {
  const std::string& what = ids.size() == 1 ? ids.front() : jobs.front().spec().group();
  return absl::UnavailableError(
      fmt::format("{} keeps running at tracker {}, which did not answer; to end it: hone cancel {} --tracker {}", what,
                  tracker, what, ShellWord(tracker)));
}

}  // namespace

absl::Status JobFollower::Follow(std::vector<v1::Job>& jobs, const std::function<std::string_view()>& stop) {
  JobView view(jobs.size());
  std::vector<std::string> cancelling;
  bool cancelled = false;
  const auto idle = [&]() -> absl::Status {
    if (const std::string_view why = stop(); !why.empty() && !cancelled) {
      cancelled = true;
      view.PrintBelow(why);
      for (const v1::Job& job : jobs) cancelling.push_back(job.id());
    }
    HONE_RETURN_IF_ERROR(client_.CancelAll(cancelling));
    if (!cancelling.empty() && interrupts_.MustEndAtOnce()) {
      if (farm_ == nullptr) return JobStillRunning(jobs, cancelling, tracker_);
      return absl::CancelledError("ended while the tracker did not answer; everything measured so far is kept");
    }
    if (farm_ == nullptr) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(farm_->Check());
    return device_.Check();
  };
  absl::Time stored = SteadyNow();
  const auto heard = [&](const v1::WatchJobResponse& response) -> absl::Status {
    view.Show(response);
    device_.UpdateJob(response.job());
    const auto job = std::ranges::find(jobs, response.job().id(), &v1::Job::id);
    if (job != jobs.end()) *job = response.job();
    if (response.trouble().empty()) stored = SteadyNow();
    const bool give_up = farm_ != nullptr && SteadyNow() - stored > kOutageTimeMax;
    return give_up ? absl::ResourceExhaustedError(response.trouble()) : absl::OkStatus();
  };
  const auto away = [&](const absl::Status& status) { view.PrintTrackerAway(status); };
  return client_.Watch(jobs, heard, idle, away).status();
}

}  // namespace hone::cli
