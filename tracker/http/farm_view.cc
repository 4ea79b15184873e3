// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/farm_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "tracker/http/metrics.h"

namespace hone::tracker {

std::vector<v1::Job> GetJobs(Shell& shell, const std::vector<std::string>& ids) {
  using Jobs = std::vector<v1::Job>;
  return Await<Jobs>([&](Done<Jobs> done) { shell.GetJobSummaries(ids, std::move(done)); }).value_or(Jobs());
}

std::vector<LatencyHistory::Point> LatenciesOf(Shell& shell, const std::string& job) {
  std::vector<LatencyHistory::Point> points;
  shell.WithFarm([&](const Farm& farm, absl::Time) { points = farm.jobs().LatenciesOf(job); });
  return points;
}

std::map<std::string, Running> RunningOn(Shell& shell) {
  std::map<std::string, Running> running;
  shell.WithFarm([&running](const Farm& farm, absl::Time) {
    for (const auto& [id, lease] : farm.batches().leases()) {
      Running& one = running[NameOf(lease.agent_id, lease.device_id)];
      one = {.job = farm.batches().JobOf(lease),
             .model = "",
             .workload = farm.batches().WholeBatch(lease).workload_digest(),
             .attempt = lease.attempt,
             .since = farm.ToWallTime(lease.started)};
      const v1::Job* job = farm.jobs().Find(one.job);
      if (job == nullptr) continue;
      one.model = job->spec().name();
      for (const v1::WorkloadSpec& spec : job->spec().workloads()) {
        if (spec.digest() == one.workload) one.title = TitleOf(spec);
      }
    }
  });
  return running;
}

std::map<std::string, std::string> VersionsOfOpenJobs(Shell& shell, size_t most) {
  std::map<std::string, std::string> signs;
  v1::ListJobsRequest open;
  open.set_only_open(true);
  shell.WithFarm([&](const Farm& farm, absl::Time) {
    std::vector<const v1::Job*> jobs = farm.jobs().List(open);
    const auto queued = std::stable_partition(jobs.begin(), jobs.end(),
                                              [](const v1::Job* job) { return job->state() == v1::JOB_STATE_RUNNING; });
    const auto running = static_cast<size_t>(queued - jobs.begin());
    jobs.resize(std::max(running, std::min(most, jobs.size())));
    for (const v1::Job* job : jobs) {
      const v1::JobProgress& progress = job->progress();
      signs[job->id()] = fmt::format("{} {} {} {} {}", static_cast<int>(job->state()), job->attempts(),
                                     progress.trials(), progress.seconds(), progress.activity());
    }
  });
  return signs;
}

std::set<std::string> OpenAmong(Shell& shell, const std::set<std::string>& ids) {
  std::set<std::string> open;
  shell.WithFarm([&](const Farm& farm, absl::Time) {
    for (const std::string& id : ids) {
      const v1::Job* job = farm.jobs().Find(id);
      if (job != nullptr && !JobQueue::Ended(*job)) open.insert(id);
    }
  });
  return open;
}

Json OverviewToJson(Shell& shell, const std::filesystem::path& records) {
  const FarmMetrics figures = CollectMetrics(shell, records);
  double trials_per_second = 0;
  shell.WithFarm([&trials_per_second](const Farm& farm, absl::Time) {
    for (const v1::Job* job : farm.jobs().InState(v1::JOB_STATE_RUNNING)) {
      if (!farm.LacksDevice(job->id())) trials_per_second += job->progress().trials_per_second();
    }
  });
  return {{"time", TimeToJson(absl::Now())},
          {"started", TimeToJson(figures.started)},
          {"storing", figures.storing},
          {"trials_per_second", trials_per_second},
          {"jobs", figures.jobs},
          {"devices", figures.activity},
          {"health", figures.health},
          {"drained", figures.drained},
          {"pieces_queued", figures.farm.batches_queued()},
          {"pieces_running", figures.farm.batches_running()},
          {"outcomes", figures.outcomes},
          {"records_bytes", figures.records_bytes},
          {"disk_free_bytes", figures.disk_free_bytes}};
}

}  // namespace hone::tracker
