// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "base/run_limits.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/comparison.h"
#include "cli/device_run.h"
#include "cli/farm_devices.h"
#include "cli/job_follower.h"
#include "cli/job_text.h"
#include "cli/option_checks.h"
#include "cli/output.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kDevicesPeriod = absl::Seconds(2);  // between two looks at the states of the devices
constexpr std::string_view kNotWaiting = "\nnot waiting any longer for devices that get no work\n";

struct CompareOptions {
  TimedRunOptions runs;
  DeviceRunOptions device;
  std::vector<std::string> packages;  // besides that of `runs`
  double wait = 10;                   // seconds for devices that get no work, after the others have ended
};

bool GetsWork(const v1::Device& device) {
  return !device.drained() && device.activity() != v1::DEVICE_ACTIVITY_OFFLINE &&
         device.health() == v1::DEVICE_HEALTH_GOOD;
}

// Decides when a comparison ends before all its devices have answered, and remembers what was waited for then.
class ComparisonEnd {
 public:
  // client, interrupts and jobs must outlive this object.
  ComparisonEnd(JobClient& client, const Interrupts& interrupts, const std::vector<v1::Job>& jobs, absl::Duration wait)
      : client_(client), interrupts_(interrupts), jobs_(jobs), wait_(wait) {}

  // Why the jobs that have not ended are to be cancelled now; "": they go on.
  std::string_view Reached() {
    if (interrupts_.WasInterrupted()) return Remember(kCancellingRuns);
    if (SteadyNow() - looked_ < kDevicesPeriod) return "";
    looked_ = SteadyNow();
    if (!OnlyDevicesWithoutWorkAreLeft()) {
      alone_since_ = absl::InfiniteFuture();
      return "";
    }
    alone_since_ = std::min(alone_since_, SteadyNow());
    return SteadyNow() - alone_since_ >= wait_ ? Remember(kNotWaiting) : "";
  }
  // What the job waited for at the end; "" if it did not wait.
  std::string WaitedFor(const std::string& job_id) const {
    const auto found = waited_for_.find(job_id);
    return found == waited_for_.end() ? "" : found->second;
  }

 private:
  bool OnlyDevicesWithoutWorkAreLeft() {
    const absl::StatusOr<v1::ListDevicesResponse> devices = client_.Devices();
    if (!devices.ok()) return false;  // the tracker is away; it is asked again
    std::set<std::string> working;
    for (const v1::Device& device : devices->devices()) {
      if (GetsWork(device)) working.insert(NameOf(device));
    }
    return std::ranges::all_of(jobs_, [&](const v1::Job& job) {
      if (HasEnded(job.state())) return true;
      return job.state() == v1::JOB_STATE_QUEUED && !working.contains(job.spec().devices(0));
    });
  }
  std::string_view Remember(std::string_view why) {
    for (const v1::Job& job : jobs_) {
      if (!HasEnded(job.state())) waited_for_[job.id()] = job.waiting_for();
    }
    return why;
  }

  JobClient& client_;
  const Interrupts& interrupts_;
  const std::vector<v1::Job>& jobs_;
  const absl::Duration wait_;
  absl::Time looked_ = absl::InfinitePast(), alone_since_ = absl::InfiniteFuture();
  std::map<std::string, std::string> waited_for_;  // by job
};

// The devices that the values of --device select, each once. Errors as SelectDevices.
absl::StatusOr<std::vector<std::string>> NamesOfDevices(const std::vector<v1::Device>& known,
                                                        const std::vector<std::string>& asked) {
  std::vector<std::string> names;
  for (const std::string& words : asked) {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> meant, SelectDevices(known, words));
    for (const v1::Device& device : meant) {
      if (std::ranges::find(names, NameOf(device)) == names.end()) names.push_back(NameOf(device));
    }
  }
  return names;
}

// The packages for each device, in order. A device for which a model cannot be compiled gets the reason instead.
std::vector<ComparedDevice> Prepare(const CompareOptions& options, const std::vector<v1::Device>& known,
                                    const std::vector<std::string>& names, ModelPackages& models,
                                    std::vector<PlannedRun>& runs) {
  std::vector<std::string> paths = {options.runs.package};
  paths.insert(paths.end(), options.packages.begin(), options.packages.end());
  std::vector<ComparedDevice> devices;
  for (const std::string& name : names) {
    ComparedDevice& device = devices.emplace_back();
    device.name = name;
    PlannedRun run{name, {}};
    for (const std::string& path : paths) {
      device.packages.push_back(FileNameOf(path));
      const absl::StatusOr<std::string> package = models.ForDevices(path, known, name);
      if (package.ok()) {
        run.packages.push_back(*package);
      } else if (device.reason.empty()) {
        device.reason = std::string(package.status().message());
      }
    }
    if (device.reason.empty()) runs.push_back(std::move(run));
  }
  return devices;
}

// Gives each device its ended job, and the reason if that has no report.
void TakeJobs(const std::vector<v1::Job>& jobs, const ComparisonEnd& end, std::vector<ComparedDevice>& devices) {
  for (const v1::Job& job : jobs) {
    const auto device = std::ranges::find(devices, job.spec().devices(0), &ComparedDevice::name);
    device->job = job;
    if (job.state() == v1::JOB_STATE_FAILED) device->reason = job.error();
    if (job.state() != v1::JOB_STATE_CANCELLED) continue;
    device->reason = end.WaitedFor(job.id());
    if (device->reason.empty()) device->reason = "the run was cancelled before it ended";
  }
}

absl::Status RunAll(CompareOptions& options, v1::RunTask task, const std::shared_ptr<grpc::Channel>& channel,
                    JobClient& client, const std::vector<PlannedRun>& runs, std::vector<ComparedDevice>& devices) {
  const Interrupts interrupts;
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs,
                        SubmitRuns(channel, client, interrupts, runs, {{}, options.runs.input, std::move(task)}));
  ComparisonEnd end(client, interrupts, jobs, absl::Seconds(options.wait));
  JobFollower follower(client, interrupts, options.device.tracker.address, nullptr);
  HONE_RETURN_IF_ERROR(follower.Follow(jobs, [&] { return end.Reached(); }));
  TakeJobs(jobs, end, devices);
  return absl::OkStatus();
}

absl::Status Compare(CompareOptions& options) {
  if (options.packages.size() + 1 > kRunPackagesMax) {
    return UsageError(fmt::format("--package: a device compares {} packages at most", kRunPackagesMax));
  }
  HONE_ASSIGN_OR_RETURN(v1::RunTask task, TaskOf(options.runs));
  HONE_ASSIGN_OR_RETURN(const auto channel, options.device.tracker.Connect());
  JobClient client(channel, options.device.tracker.address);
  HONE_ASSIGN_OR_RETURN(const v1::ListDevicesResponse listed, client.Devices());
  const std::vector<v1::Device> known(listed.devices().begin(), listed.devices().end());
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfDevices(known, options.device.devices));
  ModelPackages models(options.runs.ForModel(), options.device.tracker);
  std::vector<PlannedRun> runs;
  std::vector<ComparedDevice> devices = Prepare(options, known, names, models, runs);
  if (!runs.empty()) HONE_RETURN_IF_ERROR(RunAll(options, std::move(task), channel, client, runs, devices));
  HONE_RETURN_IF_ERROR(options.runs.json ? PrintJson(ComparisonToJson(devices)) : PrintText(ComparisonToText(devices)));
  const std::string missing = NamesOfMissing(devices);
  return missing.empty() ? absl::OkStatus() : absl::UnavailableError("no answer of " + missing);
}

}  // namespace

void AddCompareCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      app.add_subcommand("compare", "measure a model or a package on several devices of a farm, as one table");
  options->runs.AddTo(command);
  options->device.AddDeviceTo(command, "each device that this names is a row")->required();
  options->device.tracker.AddTo(command, TrackerOptions::Need::kRequired);
  command
      ->add_option("--package", options->packages,
                   "another package or model, which runs in turns with the first; may be given again")
      ->check(NotEmpty)
      ->expected(1)
      ->take_all();
  command
      ->add_option("--wait", options->wait,
                   "how long to wait for devices that get no work, after the others have answered; as --seconds")
      ->transform(CLI::Validator(DurationAsSeconds, "", "duration"))
      ->check(CLI::Range(0.0, 1e6))
      ->check(NoNan)
      ->capture_default_str();
  command->callback([options, result] { *result = Compare(*options); });
}

}  // namespace hone::cli
