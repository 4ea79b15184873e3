// SPDX-License-Identifier: Apache-2.0
// Handlers for jobs, devices and the overview, which read the farm but no records.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "absl/time/clock.h"
#include "base/status.h"
#include "proto/convert.h"
#include "tracker/held_call.h"
#include "tracker/http/api.h"
#include "tracker/http/farm_view.h"
#include "tracker/http/json.h"
#include "tracker/job_json.h"

namespace hone::tracker {
namespace {

constexpr int64_t kJobsDefault = 100;
constexpr int64_t kDevicesDefault = 500, kDevicesMax = 2000;
constexpr size_t kRunningJobsMax = 50;  // jobs in the overview

struct JobPage {
  std::vector<std::string> ids;  // newest first
  bool more = false;
  bool found = true;  // whether the job that the page begins after is known
};

// model: of ModelsOf; empty: any.
bool IsAbout(const v1::Job& job, const std::string& model) {
  const std::vector<std::string> models = ModelsOf(job.spec());
  return model.empty() || std::ranges::find(models, model) != models.end();
}

// The jobs of the filter that are about the model, as in IsAbout.
JobPage PageOf(Shell& shell, const v1::ListJobsRequest& filter, const std::string& model, const std::string& after,
               size_t limit) {
  JobPage page{.found = after.empty()};
  shell.WithFarm([&](const Farm& farm, absl::Time) {
    // The whole list is searched, because the job that the page begins after may have ended meanwhile.
    for (const v1::Job* job : farm.jobs().List({})) {
      const bool fits = (filter.group().empty() || filter.group() == job->spec().group()) &&
                        !(filter.only_open() && JobQueue::Ended(*job)) && IsAbout(*job, model);
      page.more = page.found && fits && page.ids.size() == limit;
      if (page.more) return;
      if (page.found && fits) page.ids.push_back(job->id());
      page.found = page.found || job->id() == after;
    }
  });
  return page;
}

}  // namespace

absl::StatusOr<HttpResponse> ListJobs(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const int64_t limit, call.Number("limit", kJobsDefault, 1, static_cast<int64_t>(kPageJobsMax)));
  const std::string state = call.Parameter("state"), after = call.Parameter("after");
  if (state != "" && state != "open" && state != "all") {
    return absl::InvalidArgumentError(fmt::format("state={}: give open or all", state));
  }
  v1::ListJobsRequest filter;
  filter.set_only_open(state == "open");
  filter.set_group(call.Parameter("group"));
  const JobPage page = PageOf(*context.shell, filter, call.Parameter("model"), after, static_cast<size_t>(limit));
  if (!page.found) return absl::NotFoundError(fmt::format("after={}: there is no such job", after));
  Json jobs = Json::array();
  for (const v1::Job& job : GetJobs(*context.shell, page.ids)) jobs.push_back(JobToJson(job, absl::Now()));
  return JsonResponse({{"jobs", jobs}, {"more", page.more}});
}

absl::StatusOr<HttpResponse> ListModels(const ApiContext& context, const ApiCall&) {
  struct Model {
    std::string name, newest;
    int64_t tunes = 0, runs = 0;
  };
  std::vector<Model> models;  // in the order of their newest jobs
  context.shell->WithFarm([&models](const Farm& farm, absl::Time) {
    std::map<std::string, size_t> index;
    for (const v1::Job* job : farm.jobs().List({})) {
      for (const std::string& name : ModelsOf(job->spec())) {
        const auto [found, is_new] = index.emplace(name, models.size());
        if (is_new) models.push_back({.name = name, .newest = job->id()});
        ++(job->spec().has_run() ? models[found->second].runs : models[found->second].tunes);
      }
    }
  });
  Json list = Json::array();
  for (const Model& model : models) {
    list.push_back({{"model", model.name}, {"newest", model.newest}, {"tunes", model.tunes}, {"runs", model.runs}});
  }
  return JsonResponse({{"models", list}});
}

absl::StatusOr<HttpResponse> ShowJob(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const v1::Job job, Await<v1::Job>([&](Done<v1::Job> done) {
                          context.shell->GetJob(call.names[0], std::move(done));
                        }));
  return JsonResponse(JobDetailToJson(job, LatenciesOf(*context.shell, job.id()), absl::Now()));
}

absl::StatusOr<HttpResponse> ListDevices(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const int64_t limit, call.Number("limit", kDevicesDefault, 1, kDevicesMax));
  const std::map<std::string, Running> running = RunningOn(*context.shell);
  const v1::ListDevicesResponse all = context.shell->ListDevices({});
  const std::string after = call.Parameter("after");
  Json devices = Json::array();
  bool found = after.empty(), more = false;
  for (const v1::Device& device : all.devices()) {
    const std::string name = NameOf(device.agent_id(), device.state().device_id());
    more = found && static_cast<int64_t>(devices.size()) == limit;
    if (more) break;
    const auto work = running.find(name);
    if (found) devices.push_back(DeviceToJson(device, work == running.end() ? nullptr : &work->second));
    found = found || name == after;
  }
  if (!found) return absl::NotFoundError(fmt::format("after={}: there is no such device", after));
  return JsonResponse({{"devices", devices}, {"more", more}, {"trouble", all.trouble()}});
}

absl::StatusOr<HttpResponse> ListTuners(const ApiContext& context, const ApiCall&) {
  Json tuners = Json::array();
  const v1::ListTunersResponse known = context.shell->ListTuners();
  for (const v1::Tuner& tuner : known.tuners()) {
    tuners.push_back({{"tuner", tuner.tuner_id()},
                      {"online", tuner.online()},
                      {"last_seen", TimeToJson(FromProto(tuner.last_seen()))},
                      {"jobs", tuner.job_ids()}});
  }
  return JsonResponse({{"tuners", tuners}});
}

absl::StatusOr<HttpResponse> ShowOverview(const ApiContext& context, const ApiCall&) {
  std::vector<std::string> ids;
  Json minutes = Json::array();
  context.shell->WithFarm([&](const Farm& farm, absl::Time now) {
    for (const TrialsByMinute::Minute& minute : farm.trials_by_minute().Until(farm.ToWallTime(now))) {
      minutes.push_back({{"begin", TimeToJson(minute.begin)},
                         {"seconds", absl::ToDoubleSeconds(minute.length)},
                         {"trials", minute.trials}});
    }
    for (const v1::Job* job : farm.jobs().InState(v1::JOB_STATE_RUNNING)) {
      if (ids.size() < kRunningJobsMax) ids.push_back(job->id());
    }
  });
  Json running = Json::array();
  for (const v1::Job& job : GetJobs(*context.shell, ids)) running.push_back(JobToJson(job, absl::Now()));
  Json overview = OverviewToJson(*context.shell, context.store->path());
  overview["running"] = std::move(running);
  overview["minutes"] = std::move(minutes);
  return JsonResponse(overview);
}

}  // namespace hone::tracker
