// SPDX-License-Identifier: Apache-2.0
// Runs packages on devices of a farm, for the commands that take --device: compiles what is a model, sends the files,
// submits one job for each device, and waits for all of them.
//
// The run itself is the agent's work (device_agent), and its queue the tracker's. Not here: runs on this machine
// (deploy/run). Start at RunOnDevices.
#ifndef HONE_CLI_DEVICE_RUN_H_
#define HONE_CLI_DEVICE_RUN_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/interrupts.h"
#include "cli/job_client.h"
#include "cli/model_packages.h"
#include "cli/timed_run_options.h"
#include "cli/tracker_options.h"
#include "deploy/run/kept_run.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/job.pb.h"
#include "hone/v1/run.pb.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hone::cli {

struct DeviceRunOptions {
  std::vector<std::string> devices;  // values of --device (tracker/queue/matches.h); empty: run on this machine
  TrackerOptions tracker;

  void AddTo(CLI::App* command);
  // Adds --device alone. text: what it does.
  CLI::Option* AddDeviceTo(CLI::App* command, const std::string& text);
  bool given() const { return !devices.empty(); }
};

// What to run on every device.
struct DeviceRun {
  std::vector<std::string> packages;  // paths of packages, or of models (IsModel), which are compiled for the device
  std::string inputs;                 // path of a .npz file; empty: none
  v1::RunTask task;                   // without its files
};

// Runs the packages on a device for each value of --device, and returns the ended jobs in that order, each of them
// succeeded. Shows on standard error what travels and what is waited for. Ctrl-C cancels the jobs. Errors: a model that
// cannot be compiled, a file that cannot be sent, a device that the tracker does not know, and that of the first job
// that failed.
absl::StatusOr<std::vector<v1::Job>> RunOnDevices(DeviceRunOptions& options, const DeviceRun& run);

// A run for one device, or for any of several.
struct PlannedRun {
  std::string device;                 // a value of --device
  std::vector<std::string> packages;  // paths
};
// Sends the files of all runs, each once, and submits a job for each run; several jobs are a group. inputs, task: as in
// DeviceRun. Errors: a file that cannot be sent, those of JobClient::Submit; kCancelled after an interrupt.
absl::StatusOr<std::vector<v1::Job>> SubmitRuns(const std::shared_ptr<grpc::Channel>& channel, JobClient& client,
                                                const Interrupts& interrupts, const std::vector<PlannedRun>& runs,
                                                const DeviceRun& run);

// What is printed after an interrupt, before the jobs are cancelled.
inline constexpr std::string_view kCancellingRuns =
    "\nending the runs; press Ctrl-C again to leave them to the tracker\n";

// What the options ask of a device, without the files. Usage error: options that exclude each other.
absl::StatusOr<v1::RunTask> TaskOf(const TimedRunOptions& options);

// The whole of `bench` and `profile` with --device: runs the package of the options, and prints the reports as text or
// JSON. profile: measure the kernels, too.
absl::Status MeasureOnDevices(const TimedRunOptions& options, DeviceRunOptions& device, bool profile);

// Runs the package of `run` once on the only device, and returns all that the run read and computed. *device: the name
// of the device. Usage error: several devices are given. Other errors as of RunOnDevices.
absl::StatusOr<run::KeptRun> KeepOnDevice(DeviceRunOptions& options, DeviceRun run, std::string* device);

// Fetches a file of a report from the tracker and writes it to `path`, whole or not at all.
absl::Status FetchFile(DeviceRunOptions& options, const v1::FileName& file, const std::string& path);

}  // namespace hone::cli

#endif  // HONE_CLI_DEVICE_RUN_H_
