// SPDX-License-Identifier: Apache-2.0
// The agent's side of a launcher: starts the process, sends it batches over a socket, receives results, and ends it.
//
// The launcher forks children for each visit, so it must have one thread, and gRPC does not survive a fork. Therefore
// the agent executes its own program once more as the launcher (launcher/launcher_main.h). If the launcher dies, the
// visit fails and the next visit starts a new launcher. The agent adds what a confined process cannot read, such as
// sensors. Start at Launcher::Run.
#ifndef HONE_DEVICE_AGENT_AGENT_LAUNCHER_PROCESS_H_
#define HONE_DEVICE_AGENT_AGENT_LAUNCHER_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/memory_file.h"
#include "base/roofline.h"
#include "base/temporary_folder.h"
#include "device_agent/devices/device.h"
#include "device_agent/sandbox/control_group.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Creates the folder for Launcher::Options inside `parent`, which stays the agent's; other users can only pass through
// `parent`. A launcher that root starts gives the folder to another user. Directly in /tmp that user could rename it
// and put a link in its place.
absl::StatusOr<std::string> MakeLauncherFolder(const TemporaryFolder& parent);

// A reading of sensors during a run of packages.
struct TimedReading {
  double at;  // SecondsNow
  Sensors sensors;
};

// Used by one thread at a time.
class Launcher {
 public:
  struct Options {
    std::string device, folder;              // as MakeDevice takes them
    std::string program = "/proc/self/exe";  // that runs LauncherMain
    std::function<Sensors()> sensors;        // reads the sensors, after every visit; may be empty
    bool reads_sensors_in_visits = false;    // also read them during visits, in a separate thread
    std::function<double()>
        peak_gflops;  // measured peak of the device; empty or 0: not known, so no time is refused as too short
    std::function<Roofline()> roofline;               // of the device, measured; without levels, or empty: not known
    std::function<v1::RunEnvironment()> environment;  // what a run is made with; empty: not reported
    // Where a control group for the launcher and its descendants is created. Must outlive the Launcher. Null: no
    // control group is wanted; an error says why none can be created.
    const absl::StatusOr<ControlGroups>* groups = nullptr;
  };
  explicit Launcher(Options options) : options_(std::move(options)) {}
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Starts the process if it does not run. Returns the layers of the sandbox around its kernels.
  absl::StatusOr<v1::Sandbox> Open();
  // Measures the batch, after starting the process if it does not run. All failures are in BatchResult.error, which is
  // "cancelled" soon after a stop was requested.
  v1::BatchResult Run(const v1::Batch& batch, const std::stop_token& stop) {
    return RunWithFiles(batch, {}, stop).result;
  }
  // The same for a batch with a run. files: descriptors, open for reading only, of its packages in order, then of its
  // inputs if it has any; they stay the caller's. Only the contents count, so the files may have no name any more.
  struct RunResult {
    v1::BatchResult result;
    // With RunTask.keep_outputs and a report: for each package in order the file of its outputs (.npz), sealed, at its
    // beginning. The report does not name them, because names are digests.
    std::vector<MemoryFile> outputs;
  };
  RunResult RunWithFiles(const v1::Batch& batch, const std::vector<int>& files, const std::stop_token& stop);
  const Sensors& sensors() const { return sensors_; }  // combined from all readings of the last visit

 private:
  absl::Status Start();
  void Stop();
  void MakeGroup();
  SandboxLayer GroupLayer() const;
  Sensors ReadSensors();
  void CountWatts(const Sensors& sensors);
  absl::StatusOr<RunResult> Exchange(const v1::Batch& batch, const std::vector<int>& files,
                                     const std::stop_token& stop);

  const Options options_;
  pid_t pid_ = -1;
  int channel_ = -1;
  absl::StatusOr<ControlGroup> group_ = absl::FailedPreconditionError("not asked for");
  v1::Sandbox sandbox_;
  Sensors sensors_;
  std::vector<TimedReading> readings_;  // of the visit under way or the last one, in order
  double watts_sum_ = 0;                // of the board, over all readings while the visit runs
  int watts_count_ = 0;
  // A pipe that holds a byte while the visit under way is to end. The launcher polls it. Only the agent writes and
  // empties it, so that a byte always concerns the newest visit.
  std::array<int, 2> cancel_{-1, -1};
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_LAUNCHER_PROCESS_H_
