// SPDX-License-Identifier: Apache-2.0
// The launcher: a process of one thread that measures batches on one device for the agent, confined, apart from gRPC
// and its threads.
//
// gRPC does not survive fork, and whoever forks for every visit must have one thread. So the agent starts itself once
// more (exec, hence a clean process) as the launcher and speaks with it over a socket: a batch goes in, a result comes
// out. If the launcher dies, the visit has an error and the next one gets a new launcher. What needs the whole system,
// as sensors do, is added here, in the agent. Start at Launcher::Run (the agent's side) and LauncherMain (the process
// itself).
#ifndef HONE_DEVICE_AGENT_AGENT_LAUNCHER_PROCESS_H_
#define HONE_DEVICE_AGENT_AGENT_LAUNCHER_PROCESS_H_

#include <sys/types.h>

#include <array>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/temporary_folder.h"
#include "device_agent/devices/device.h"
#include "device_agent/sandbox/control_group.h"
#include "hone/v1/agent.pb.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Makes the folder for Launcher::Options, in one that stays the agent's own and that others can only pass through. A
// launcher that root starts gives it to another user, who could rename it, and put a link there, if it lay in /tmp.
absl::StatusOr<std::string> MakeLauncherFolder(const TemporaryFolder& parent);

// For one thread at a time.
class Launcher {
 public:
  struct Options {
    std::string device, folder;              // as MakeDevice takes them
    std::string program = "/proc/self/exe";  // that runs LauncherMain
    std::function<Sensors()> sensors;        // read after every visit; may be empty
    bool reads_sensors_in_visits = false;    // and all through them, by a thread of its own
    std::function<double()> peak_gflops;     // of the device; empty, or 0: not known, and no time is too short
    // In one of which it lives with all that it starts; must outlive it. An error: why there are none.
    const absl::StatusOr<ControlGroups>* groups = nullptr;
  };
  explicit Launcher(Options options) : options_(std::move(options)) {}
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Starts the process if there is none. What walls its kernels in.
  absl::StatusOr<v1::Sandbox> Open();
  // Measures the batch; starts the process first if there is none. Never fails as a call: see BatchResult.error, which
  // is "cancelled" soon after a stop was requested.
  v1::BatchResult Run(const v1::Batch& batch, const std::stop_token& stop);
  const Sensors& sensors() const { return sensors_; }  // all that the last visit read of them

 private:
  absl::Status Start();
  void Stop();
  void MakeGroup();
  SandboxLayer GroupLayer() const;
  void ReadSensors();
  absl::StatusOr<v1::BatchResult> Exchange(const v1::Batch& batch, const std::stop_token& stop);

  const Options options_;
  pid_t pid_ = -1;
  int channel_ = -1;
  absl::StatusOr<ControlGroup> group_ = absl::FailedPreconditionError("not asked for");
  v1::Sandbox sandbox_;
  Sensors sensors_;
  // A pipe with a byte in it while the visit is to end. The launcher watches it; only we write and empty it, so that a
  // byte always means the visit that was asked for last.
  std::array<int, 2> cancel_{-1, -1};
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_LAUNCHER_PROCESS_H_
