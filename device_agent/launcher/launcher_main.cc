// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/launcher_main.h"

#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "base/control_groups.h"
#include "base/cpu_cores.h"
#include "base/host_lock.h"
#include "device_agent/devices/device_convert.h"
#include "device_agent/launcher/confine_launcher.h"
#include "device_agent/launcher/driver_folder.h"
#include "device_agent/launcher/launcher_channel.h"
#include "device_agent/launcher/package_runner.h"
#include "device_agent/launcher/visit_convert.h"
#include "device_agent/launcher/visit_runner.h"
#include "device_agent/sandbox/sandbox.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {
namespace {

constexpr int kIdleSecondsMax =
    60;  // memory that visits keep for the next one is freed after this time without a batch
// Freed memory is filled with this byte (mallopt(3), M_PERTURB), because children inherit the launcher's memory.
constexpr int kWiped = 0xa5;

// Whether `fd` becomes readable within `seconds`.
bool IsReadableWithin(int fd, int seconds) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, seconds * 1000) != 0;
}

// If this is the first process of a process namespace: ends all processes in it, which drivers may have left.
void KillStrayProcesses() {
  if (getpid() != 1) return;
  kill(-1, SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

// Resets the folders of the driver. False: no other batch may be measured.
bool HasReset(const DriverFolder& kept) {
  const absl::Status reset = kept.Reset();
  if (!reset.ok()) spdlog::error("the launcher cannot continue: {}", std::string(reset.message()));
  return reset.ok();
}

void LogMissingLayers(const std::string& device, const std::vector<SandboxLayer>& layers) {
  for (const SandboxLayer& layer : layers) {
    if (layer.holds) continue;
    spdlog::warn("the launcher of {} runs without sandbox layer {}: {}", device, Name(layer.layer), layer.detail);
  }
}

}  // namespace

int LauncherMain(const Device& device, int channel, int cancel) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "hone-launcher");
  signal(SIGINT, SIG_IGN);       // a terminal's Ctrl-C is for the agent to act on
  auto lock = HostLock::Open();  // before confinement takes the files away
  if (!lock.ok())
    spdlog::warn("no host lock, so compilations may disturb timings: {}", std::string(lock.status().message()));
  const int64_t memory = UsableMemory();  // from files, too
  SetCpuAffinity(device.cpus());          // the children of visits, too
  const absl::StatusOr<Confinement> wall = ConfineLauncher(device.sandbox());
  if (!wall.ok()) {
    spdlog::error("the launcher of {} cannot start: {}", device.id(), std::string(wall.status().message()));
    return 1;
  }
  LogMissingLayers(device.id(), wall->layers);
  DriverFolder kept(device.sandbox().writable);
  if (!HasReset(kept)) return 1;  // a launcher that was killed may have left something of its batch
  if (!SendMessage(channel, ToProto(wall->layers))) return 1;
  VisitRunner::Options options;
  // One child gets half of the memory, so that a greedy kernel fails before the machine does.
  options.memory_limit = memory / 2;
  options.cache_bytes = options.memory_limit / 8;
  options.filter = wall->filter;
  options.cpus = UsableCpus();
  const auto holding = [&](HostLock::Mode mode, const auto& work) {
    std::optional<ScopedHostLock> held;
    if (lock.ok()) held.emplace(*lock, mode);
    if (held.has_value() && !held->status().ok()) spdlog::warn("{}", std::string(held->status().message()));
    work();
  };
  const PackageRunner package_runner(
      device, {.memory_limit = options.memory_limit, .filter = options.filter, .cpus = options.cpus});
  std::optional<VisitRunner> visit_runner;
  // Serves one batch. False: the agent is gone. The batch and its result are freed here, before children are started
  // for the next batch.
  const auto serve = [&] {
    double peak = 0;
    v1::Batch batch;
    std::vector<MemoryFile> files;
    if (!ReceiveNumber(channel, peak) || !ReceiveMessage(channel, &batch)) return false;
    if (batch.has_run() && !ReceiveFiles(channel, files)) return false;
    if (batch.has_run()) {
      if (visit_runner.has_value()) visit_runner->EndPrestartedChildren();
      PackageVisit visit;
      holding(HostLock::Mode::kExclusive, [&] {
        visit = package_runner.Run(batch, files, cancel);
        KillStrayProcesses();
      });
      std::vector<int> outputs;
      for (const MemoryFile& file : visit.outputs) outputs.push_back(file.descriptor());
      return SendMessage(channel, visit.result) && SendFiles(channel, outputs);
    }
    v1::BatchResult result;
    if (!visit_runner.has_value()) visit_runner.emplace(device, options);
    holding(HostLock::Mode::kExclusive, [&] {
      result = MeasureBatch(*visit_runner, batch, cancel, peak);
      KillStrayProcesses();
    });
    return SendMessage(channel, result);
  };
  mallopt(M_PERTURB, kWiped);
  while (serve()) {
    malloc_trim(0);  // children that are started ahead would have copies of what is free
    if (!HasReset(kept)) return 1;
    // Compilers may run at the same time, because nothing is measured until the next batch.
    bool all_started = false;
    if (visit_runner.has_value()) {
      holding(HostLock::Mode::kShared, [&] { all_started = visit_runner->PrestartChildren(); });
    }
    if (all_started) kept.SaveContents();  // else a driver may be writing still
    if (IsReadableWithin(channel, kIdleSecondsMax)) continue;
    visit_runner.reset();
    KillStrayProcesses();
  }
  return 0;
}

}  // namespace hone::agent
