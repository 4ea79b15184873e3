// SPDX-License-Identifier: Apache-2.0
#include "cli/device_run.h"

#include <fmt/format.h>

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "base/identity.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/device_reports.h"
#include "cli/farm_devices.h"
#include "cli/file_sender.h"
#include "cli/job_follower.h"
#include "cli/job_text.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "deploy/package/atomic_file.h"
#include "files/transfer.h"

namespace hone::cli {
CLI::Option* DeviceRunOptions::AddDeviceTo(CLI::App* command, const std::string& text) {
  return command
      ->add_option("--device", devices, text + ": AGENT, AGENT/DEVICE, LABEL or NAME=VALUE; may be given again")
      ->check(NotEmpty)
      ->expected(1)
      ->take_all();
}

void DeviceRunOptions::AddTo(CLI::App* command) {
  CLI::Option* device = AddDeviceTo(command, "run on this device of a farm");
  tracker.AddTo(command, TrackerOptions::Need::kRequired);
  command->get_option("--tracker")->needs(device);
}

absl::StatusOr<std::vector<v1::Job>> SubmitRuns(const std::shared_ptr<grpc::Channel>& channel, JobClient& client,
                                                const Interrupts& interrupts, const std::vector<PlannedRun>& runs,
                                                const DeviceRun& run) {
  const StopOnInterrupt stop(interrupts);
  FileSender sender(channel, stop.token());
  std::vector<v1::JobSpec> specs;
  const std::string group = runs.size() > 1 ? RandomId() : "";
  for (const PlannedRun& planned : runs) {
    v1::JobSpec& spec = specs.emplace_back();
    spec.set_request_id(RandomId());
    spec.set_name(FileNameOf(planned.packages.front()));
    spec.set_group(group);
    spec.add_devices(planned.device);
    *spec.mutable_run() = run.task;
    for (const std::string& path : planned.packages) {
      HONE_ASSIGN_OR_RETURN(*spec.mutable_run()->add_packages(), sender.Send(path));
    }
    if (run.inputs.empty()) continue;
    HONE_ASSIGN_OR_RETURN(*spec.mutable_run()->mutable_inputs(), sender.Send(run.inputs));
  }
  const auto keeps_trying = [&](absl::Duration refused) {
    return !interrupts.WasInterrupted() && refused < kSubmitRetryTimeMax;
  };
  return client.Submit(specs, keeps_trying);
}

absl::StatusOr<std::vector<v1::Job>> RunOnDevices(DeviceRunOptions& options, const DeviceRun& run) {
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  JobClient client(channel, options.tracker.address);
  HONE_ASSIGN_OR_RETURN(const v1::ListDevicesResponse devices, client.Devices());
  const std::vector<v1::Device> known(devices.devices().begin(), devices.devices().end());
  for (const std::string& words : options.devices) HONE_RETURN_IF_ERROR(SelectDevices(known, words).status());
  ModelPackages models({.shapes = {run.task.shapes().begin(), run.task.shapes().end()},
                        .threads = run.task.threads(),
                        .fallback = run.task.allow_onnx_runtime()},
                       options.tracker);
  std::vector<PlannedRun> runs;
  for (const std::string& words : options.devices) {
    PlannedRun& planned = runs.emplace_back(words);
    for (const std::string& path : run.packages) {
      HONE_ASSIGN_OR_RETURN(planned.packages.emplace_back(), models.ForDevices(path, known, words));
    }
  }
  const Interrupts interrupts;  // from here on, because Ctrl-C ends a compilation at once
  HONE_ASSIGN_OR_RETURN(std::vector<v1::Job> jobs, SubmitRuns(channel, client, interrupts, runs, run));
  const auto stop = [&] { return interrupts.WasInterrupted() ? kCancellingRuns : std::string_view(); };
  HONE_RETURN_IF_ERROR(JobFollower(client, interrupts, options.tracker.address, nullptr).Follow(jobs, stop));
  HONE_RETURN_IF_ERROR(FirstJobFailure(jobs));
  return jobs;
}

absl::StatusOr<v1::RunTask> TaskOf(const TimedRunOptions& options) {
  HONE_RETURN_IF_ERROR(CheckInputOptions(options));
  v1::RunTask task;
  task.set_threads(options.threads);
  task.set_seconds(options.seconds);
  task.mutable_shapes()->Assign(options.shapes.begin(), options.shapes.end());
  task.set_allow_onnx_runtime(!options.fallback.empty());
  return task;
}

absl::Status MeasureOnDevices(const TimedRunOptions& options, DeviceRunOptions& device, bool profile) {
  HONE_ASSIGN_OR_RETURN(v1::RunTask task, TaskOf(options));
  task.set_profile(profile);
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs,
                        RunOnDevices(device, {{options.package}, options.input, std::move(task)}));
  return options.json ? PrintJson(RunsToJson(jobs)) : PrintText(RunsToText(jobs));
}

absl::StatusOr<run::KeptRun> KeepOnDevice(DeviceRunOptions& options, DeviceRun run, std::string* device) {
  if (options.devices.size() > 1) return UsageError("--device: the values come from one device; give one --device");
  run.task.set_keep_outputs(true);
  run.task.set_keep_values(true);
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, RunOnDevices(options, run));
  const v1::JobProgress& progress = jobs.front().progress();
  *device = progress.run_device();
  HONE_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const std::string path = folder / "values.npz";
  HONE_RETURN_IF_ERROR(FetchFile(options, progress.run().packages(0).outputs(), path));
  HONE_ASSIGN_OR_RETURN(const run::NpzReader reader, run::NpzReader::Open(path));
  return run::ReadKept(reader);
}

absl::Status FetchFile(DeviceRunOptions& options, const v1::FileName& file, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const auto channel, options.tracker.Connect());
  HONE_ASSIGN_OR_RETURN(package::AtomicFile target, package::AtomicFile::Create(path));
  const auto write = [&](std::string_view piece) {
    return target.Write({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
  };
  HONE_RETURN_IF_ERROR(files::FileTransfer([&] { return channel; }).DownloadTo(file, write));
  return target.Commit();
}

}  // namespace hone::cli
