// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "base/status.h"
#include "cli/call_tracker.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/farm_devices.h"
#include "cli/job_client.h"
#include "cli/job_text.h"
#include "cli/job_view.h"
#include "cli/model_source.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/submission.h"
#include "cli/tracker_command.h"
#include "cli/tracker_options.h"
#include "hone/v1/admin.grpc.pb.h"
#include "proto/convert.h"
#include "tracker/queue/matches.h"

namespace hone::cli {
namespace {

struct FarmOptions {
  ModelOptions model;
  TrackerOptions tracker;
  SearchOptions search;
  std::string job, agent, reason = "drained by an operator", notify;
  bool json = false, all = false, undo = false;
};

absl::StatusOr<JobClient> Client(FarmOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  return JobClient(channel, options.tracker.address);
}

absl::Status Submit(FarmOptions& options) {
  if (!options.search.HasEnd()) {
    return UsageError("the job has no budget; give --trials N, --time 10m or --until 07:00");
  }
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  JobClient client(channel, options.tracker.address);
  std::vector<v1::Device> known;
  if (NeedsKnownDevices(options.model, options.search)) {
    HONE_ASSIGN_OR_RETURN(const v1::ListDevicesResponse devices, client.Devices());
    known.assign(devices.devices().begin(), devices.devices().end());
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(options.model, options.search, known));
  HONE_ASSIGN_OR_RETURN(std::vector<v1::JobSpec> specs, MakeJobSpecs(options.model, options.search, parts));
  for (v1::JobSpec& spec : specs) spec.set_notify_url(options.notify);
  HONE_RETURN_IF_ERROR(SendModels(channel, specs, {}));
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs,
                        client.Submit(specs, [](absl::Duration refused) { return refused < kSubmitRetryTimeMax; }));
  if (jobs.size() == 1) {
    const v1::Job& job = jobs.front();
    return options.json ? PrintJson({{"job", job.id()}, {"state", StateName(job.state())}})
                        : PrintText(job.id() + "\n");
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text = jobs.front().spec().group() + "\n";
  for (const v1::Job& job : jobs) {
    list.push_back({{"job", job.id()},
                    {"model", job.spec().name()},
                    {"target", job.spec().target()},
                    {"devices", job.spec().devices()},
                    {"state", StateName(job.state())}});
    text += Row("  {}  {}", job.id(), TitleOf(job.spec()));
  }
  return options.json ? PrintJson({{"group", jobs.front().spec().group()}, {"jobs", list}}) : PrintText(text);
}

absl::Status Jobs(FarmOptions& options) {
  v1::ListJobsRequest request;
  request.set_only_open(!options.all);
  request.set_for_people(true);
  HONE_ASSIGN_OR_RETURN(JobClient client, Client(options));
  std::vector<v1::Job> jobs;
  if (options.job.empty()) {
    HONE_ASSIGN_OR_RETURN(jobs, client.List(request));
  } else {
    HONE_ASSIGN_OR_RETURN(jobs, client.FindJobs(options.job));
  }
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const v1::Job& job : jobs) document.push_back(JobToJson(job));
  return options.json ? PrintJson({{"jobs", document}}) : PrintText(JobsTable(jobs));
}

absl::Status Watch(FarmOptions& options) {
  HONE_ASSIGN_OR_RETURN(JobClient client, Client(options));
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> found, client.FindJobs(options.job));
  JobView view(found.size());
  const auto show = [&](const v1::WatchJobResponse& heard) {
    view.Show(heard);
    return absl::OkStatus();
  };
  const auto away = [&](const absl::Status& status) { view.PrintTrackerAway(status); };
  const auto jobs = client.Watch(std::move(found), show, [] { return absl::OkStatus(); }, away);
  view.Finish();
  HONE_RETURN_IF_ERROR(jobs.status());
  HONE_RETURN_IF_ERROR(options.json ? PrintJson(JobsToJson(*jobs)) : PrintText(JobsToText(*jobs)));
  return FirstJobFailure(*jobs);
}

absl::Status Cancel(FarmOptions& options) {
  HONE_ASSIGN_OR_RETURN(JobClient client, Client(options));
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, client.FindJobs(options.job));
  for (v1::Job& job : jobs) {
    HONE_ASSIGN_OR_RETURN(job, client.Cancel(job.id()));
  }
  return options.json ? PrintJson(JobsToJson(jobs)) : PrintText(JobsToText(jobs));
}

std::string ActivityName(v1::DeviceActivity activity) {
  switch (activity) {
    case v1::DEVICE_ACTIVITY_OFFLINE:
      return "offline";
    case v1::DEVICE_ACTIVITY_IDLE:
      return "idle";
    case v1::DEVICE_ACTIVITY_MEASURING:
      return "measuring";
    default:
      return "unknown";
  }
}

std::string HealthName(const v1::Device& device) {
  if (device.drained()) return "drained";
  switch (device.health()) {
    case v1::DEVICE_HEALTH_GOOD:
      return "good";
    case v1::DEVICE_HEALTH_QUARANTINED:
      return "quarantined";
    case v1::DEVICE_HEALTH_COOLING:
      return "cooling";
    case v1::DEVICE_HEALTH_UNWALLED:
      return "unwalled";
    default:
      return "unknown";
  }
}

std::string SandboxName(const v1::Sandbox& sandbox) {
  switch (sandbox.level()) {
    case v1::SANDBOX_LEVEL_NONE:
      return "none";
    case v1::SANDBOX_LEVEL_FILTER:
      return "filter";
    case v1::SANDBOX_LEVEL_WALL:
      return "wall";
    default:
      return "unknown";
  }
}

// The golden kernel's time in microseconds: at the newest check, and usually. Null if the device has not run it.
nlohmann::ordered_json GoldenToJson(const v1::Device& device) {
  if (!device.state().has_golden()) return nullptr;
  const v1::GoldenCheck& golden = device.state().golden();
  nlohmann::ordered_json json = {{"passed", golden.passed()},
                                 {"reason", golden.reason()},
                                 {"us", golden.median_seconds() * 1e6},
                                 {"baseline_us", device.golden_baseline_seconds() * 1e6},
                                 {"baseline_mad_us", device.golden_baseline_mad_seconds() * 1e6},
                                 {"temperature_c", nullptr}};
  if (golden.has_temperature_c()) json["temperature_c"] = golden.temperature_c();
  return json;
}

std::string GoldenToText(const v1::Device& device) {
  const v1::GoldenCheck& golden = device.state().golden();
  if (!golden.passed()) return device.state().has_golden() ? "fails" : "-";
  const double drift =
      device.golden_baseline_seconds() > 0 ? golden.median_seconds() / device.golden_baseline_seconds() - 1 : 0;
  return fmt::format("{:.1f} us {:+.0f}%", golden.median_seconds() * 1e6, drift * 100);
}

nlohmann::ordered_json MissingLayers(const v1::Sandbox& sandbox) {
  nlohmann::ordered_json missing = nlohmann::ordered_json::object();
  for (const v1::SandboxLayer& layer : sandbox.layers()) {
    if (!layer.holds()) missing[layer.name()] = layer.detail();
  }
  return missing;
}

nlohmann::ordered_json LabelsToJson(const v1::DeviceState& device) {
  nlohmann::ordered_json labels = nlohmann::ordered_json::object();
  for (const auto& [name, value] : std::map(device.labels().begin(), device.labels().end())) labels[name] = value;
  return labels;
}

std::string LabelsToText(const v1::DeviceState& device) {
  std::string text;
  for (const auto& [name, value] : std::map(device.labels().begin(), device.labels().end())) {
    text += ", " + tracker::LabelText(name, value);
  }
  return text;
}

absl::Status Devices(FarmOptions& options) {
  HONE_ASSIGN_OR_RETURN(JobClient client, Client(options));
  HONE_ASSIGN_OR_RETURN(const v1::ListDevicesResponse response, client.Devices());
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::string text = fmt::format("{:<16} {:<10} {:<12} {:<8} {:>8} {:>16}  {}\n", "agent", "activity", "health",
                                 "sandbox", "batches", "golden", "device");
  for (const v1::Device& d : response.devices()) {
    const std::string health = HealthName(d);
    document.push_back({{"agent", d.agent_id()},
                        {"device", d.state().device_id()},
                        {"activity", ActivityName(d.activity())},
                        {"health", health},
                        {"reason", d.health_reason()},
                        {"sandbox", SandboxName(d.state().sandbox())},
                        {"missing_layers", MissingLayers(d.state().sandbox())},
                        {"target", d.state().target()},
                        {"labels", LabelsToJson(d.state())},
                        {"fingerprint", d.state().fingerprint().text()},
                        {"threads", d.state().threads()},
                        {"batches", d.batches_done()},
                        {"losses", d.losses()},
                        {"golden", GoldenToJson(d)}});
    text += Row("{:<16} {:<10} {:<12} {:<8} {:>8} {:>16}  {}: {}, {} threads{}{}", d.agent_id(),
                ActivityName(d.activity()), health, SandboxName(d.state().sandbox()), d.batches_done(), GoldenToText(d),
                d.state().device_id(), d.state().fingerprint().cpu_model(), d.state().threads(),
                LabelsToText(d.state()), d.health_reason().empty() ? "" : ": " + d.health_reason());
  }
  if (!response.trouble().empty())
    text += "all jobs wait because the tracker cannot store anything: " + response.trouble() + "\n";
  return options.json ? PrintJson({{"devices", document}, {"trouble", response.trouble()}}) : PrintText(text);
}

absl::Status Tuners(FarmOptions& options) {
  HONE_ASSIGN_OR_RETURN(JobClient client, Client(options));
  HONE_ASSIGN_OR_RETURN(const v1::ListTunersResponse response, client.Tuners());
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::string text = fmt::format("{:<24} {:<8} {:<24} {}\n", "tuner", "state", "last heard of", "jobs");
  for (const v1::Tuner& tuner : response.tuners()) {
    const std::string state = !tuner.online() ? "offline" : tuner.job_ids().empty() ? "idle" : "tuning";
    const std::string heard = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", FromProto(tuner.last_seen()), absl::UTCTimeZone());
    document.push_back(
        {{"tuner", tuner.tuner_id()}, {"state", state}, {"last_seen", heard}, {"jobs", tuner.job_ids()}});
    text += Row("{:<24} {:<8} {:<24} {}", tuner.tuner_id(), state, heard, fmt::join(tuner.job_ids(), ", "));
  }
  if (response.tuners().empty()) {
    PrintMessage("no tuner called this tracker in the last day; jobs wait until one is started: hone-tuner\n");
  }
  return options.json ? PrintJson({{"tuners", document}}) : PrintText(text);
}

absl::Status Drain(FarmOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  const auto admin = v1::AdminService::NewStub(channel);
  if (options.undo) {
    v1::UndrainRequest request;
    request.set_agent_id(options.agent);
    HONE_RETURN_IF_ERROR(
        CallTracker(*admin, &v1::AdminService::Stub::Undrain, request, options.tracker.address).status());
  } else {
    v1::DrainRequest request;
    request.set_agent_id(options.agent);
    request.set_reason(options.reason);
    HONE_RETURN_IF_ERROR(
        CallTracker(*admin, &v1::AdminService::Stub::Drain, request, options.tracker.address).status());
  }
  // The name of an agent that has not joined yet is allowed. Usually it is a typing error, and the intended board keeps
  // working, so a message says so.
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices, KnownDevices(options.tracker));
  const bool known = std::ranges::find(devices, options.agent, &v1::Device::agent_id) != devices.end();
  if (!known) {
    PrintMessage(fmt::format(
        "the farm has no agent '{}' yet; {} (hone devices lists the agents)\n", options.agent,
        options.undo ? "it will get work when it joins" : "an agent of that name will get no work when it joins"));
  }
  return options.json ? PrintJson({{"agent", options.agent}, {"drained", !options.undo}, {"known", known}})
                      : absl::OkStatus();
}

}  // namespace

void AddFarmCommands(CLI::App& app, absl::Status* result) {
  const auto fresh = [] { return std::make_shared<FarmOptions>(); };
  auto options = fresh();
  CLI::App* submit = AddTrackerCommand(
      app, "submit", "queue models for tuning at a tracker, one job for each kind of device, and return at once",
      options, Submit, result);
  options->model.AddTo(submit, ModelOptions::Count::kSeveral, ModelOptions::Count::kSeveral);
  options->model.AddPlaceTo(submit);
  options->search.AddTo(submit);
  submit
      ->add_option("--priority", options->search.priority,
                   "jobs of higher priority are tuned first; only admins may give more than 0")
      ->capture_default_str();
  submit
      ->add_option("--notify", options->notify,
                   "URL to which JSON is posted when a job ends; the farm's owner must allow it")
      ->check(NotEmpty);

  options = fresh();
  CLI::App* jobs = AddTrackerCommand(app, "jobs", "list the open jobs of a tracker, or the given job or group", options,
                                     Jobs, result);
  jobs->add_option("job", options->job, "id of a job or a group, open or ended")->check(NotEmpty);
  jobs->add_flag("--all", options->all, "list ended jobs too");

  options = fresh();
  AddTrackerCommand(app, "watch", "follow a job, or all jobs of a group, until it ends", options, Watch, result)
      ->add_option("job", options->job, "id of a job or a group")
      ->required();

  options = fresh();
  AddTrackerCommand(app, "cancel", "end a job, or all jobs of a group; measured results are kept", options, Cancel,
                    result)
      ->add_option("job", options->job, "id of a job or a group")
      ->required();

  options = fresh();
  AddTrackerCommand(app, "devices", "list the devices of a tracker", options, Devices, result);

  options = fresh();
  AddTrackerCommand(app, "tuners", "list the tuners of a tracker and the jobs that they hold", options, Tuners, result);

  options = fresh();
  CLI::App* drain = AddTrackerCommand(app, "drain", "give an agent no new work; its running batch is finished", options,
                                      Drain, result);
  drain->add_option("agent", options->agent, "name of the agent")->required();
  drain->add_option("--reason", options->reason, "reason that users of the farm see")->capture_default_str();
  drain->add_flag("--undo", options->undo, "give it work again, and end its quarantine");
}

}  // namespace hone::cli
