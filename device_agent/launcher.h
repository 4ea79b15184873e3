// The launcher: a process of one thread that measures batches on one device for the agent, confined, apart from gRPC
// and its threads.
//
// gRPC does not survive fork, and whoever forks for every visit must have one thread. So the agent starts itself once
// more (exec, hence a clean process) as the launcher and speaks with it over a socket: a batch goes in, a result comes
// out. If the launcher dies, the visit has an error and the next one gets a new launcher. Start at Launcher::Run (the
// agent's side) and LauncherMain (the process itself).
#ifndef HONE_DEVICE_AGENT_LAUNCHER_H_
#define HONE_DEVICE_AGENT_LAUNCHER_H_

#include <sys/types.h>

#include <atomic>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/device.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// Run is called by one thread at a time; Cancel by any.
class Launcher {
 public:
  // device, folder: as MakeDevice takes them.
  Launcher(std::string device, std::string folder) : device_(std::move(device)), folder_(std::move(folder)) {}
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // Measures the batch; starts the process first if there is none. Never fails as a call: see BatchResult.error.
  v1::BatchResult Run(const v1::Batch& batch);
  // Ends the running visit early with error "cancelled". Without effect when nothing runs.
  void Cancel();

 private:
  absl::Status Start();
  void Stop();
  absl::StatusOr<v1::BatchResult> Exchange(const v1::Batch& batch);

  const std::string device_, folder_;
  pid_t pid_ = -1;
  int channel_ = -1;
  std::atomic<int> cancel_{-1};  // writing end of a pipe the launcher watches
};

// The launcher process: serves batches for `device` from `channel` until it is closed. Returns the exit status.
int LauncherMain(const Device& device, int channel, int cancel);

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_H_
