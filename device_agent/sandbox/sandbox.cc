// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/sandbox.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/resource_limit.h"
#include "device_agent/sandbox/landlock.h"

namespace hone::agent {
namespace {

constexpr uint64_t kFileBytesMax = 256 << 20;  // of one file that a driver keeps, or of a package's code

constexpr std::array<std::pair<SandboxLevel, std::string_view>, 3> kLevels = {
    {{SandboxLevel::kNone, "none"}, {SandboxLevel::kFilter, "filter"}, {SandboxLevel::kWall, "wall"}}};

// The requirements of a level. Each is a list of layers, of which one must hold.
std::vector<std::vector<Layer>> Needed(SandboxLevel level) {
  std::vector<std::vector<Layer>> needed;
  if (level >= SandboxLevel::kFilter) needed = {{Layer::kSystemCalls}, {Layer::kNoPrivileges}};
  if (level >= SandboxLevel::kWall) {
    needed.insert(needed.end(), {{Layer::kFiles, Layer::kLandlock},
                                 {Layer::kNetwork, Layer::kSystemCalls},
                                 {Layer::kProcesses, Layer::kOwnUser},
                                 {Layer::kIpc, Layer::kSystemCalls}});
  }
  return needed;
}

}  // namespace

std::vector<std::string> SandboxPolicy::AllReadable() const {
  std::vector<std::string> all = {
      "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/sys/devices/system/cpu"};
  all.insert(all.end(), readable.begin(), readable.end());
  return all;
}

SandboxPolicy SandboxPolicy::WithProc(const char* part) const {
  SandboxPolicy policy = *this;
  if (!writes_thread_names) return policy;
  policy.readable.emplace_back(part);
  policy.nodes.emplace_back(part);
  return policy;
}

std::string_view Name(Layer layer) {
  switch (layer) {
    case Layer::kSystemCalls:
      return "system-calls";
    case Layer::kNoPrivileges:
      return "no-privileges";
    case Layer::kOwnUser:
      return "own-user";
    case Layer::kProcesses:
      return "processes";
    case Layer::kNetwork:
      return "network";
    case Layer::kIpc:
      return "ipc";
    case Layer::kFiles:
      return "files";
    case Layer::kLandlock:
      return "landlock";
    case Layer::kControlGroup:
      return "control-group";
  }
  return "unknown";
}

std::string_view Name(SandboxLevel level) { return kLevels.at(static_cast<size_t>(level)).second; }

std::optional<SandboxLevel> ParseSandboxLevel(std::string_view name) {
  for (const auto& [level, text] : kLevels) {
    if (text == name) return level;
  }
  return std::nullopt;
}

bool Holds(const std::vector<SandboxLayer>& layers, Layer layer) {
  return std::any_of(layers.begin(), layers.end(),
                     [&](const SandboxLayer& one) { return one.layer == layer && one.holds; });
}

SandboxLevel LevelOf(const std::vector<SandboxLayer>& layers) {
  SandboxLevel reached = SandboxLevel::kNone;
  for (const auto& [level, text] : kLevels) {
    if (MissingLayers(layers, level).empty()) reached = level;
  }
  return reached;
}

std::string MissingLayers(const std::vector<SandboxLayer>& layers, SandboxLevel level) {
  std::string missing;
  for (const std::vector<Layer>& any_of : Needed(level)) {
    if (std::any_of(any_of.begin(), any_of.end(), [&](Layer one) { return Holds(layers, one); })) continue;
    std::string names;
    for (const Layer one : any_of) {
      names += fmt::format("{}{}", names.empty() ? "" : " or ", Name(one));
      for (const SandboxLayer& layer : layers) {
        if (layer.layer == one && !layer.detail.empty()) names += fmt::format(" ({})", layer.detail);
      }
    }
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", names);
  }
  return missing;
}

absl::StatusOr<int> ConfineChild(const SandboxPolicy& policy, const ChildLimits& limits) {
  setsid();
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else it could not open /proc/self/fd, where the artifact is
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (policy.writes_thread_names)
    RestrictWithLandlock(policy.WithProc("/proc/self")).IgnoreError();  // the launcher tells
  LimitResource(RLIMIT_CORE, 0);
  const bool writes_files = !policy.writable.empty() || limits.setup == SetupCalls::kPackages;
  LimitResource(RLIMIT_FSIZE, writes_files ? kFileBytesMax : 0);
  LimitResource(RLIMIT_NOFILE, static_cast<rlim_t>(policy.open_files));
  LimitResource(RLIMIT_MEMLOCK, 0);
  LimitResource(RLIMIT_MSGQUEUE, 0);
  LimitResource(RLIMIT_SIGPENDING, 64);
  if (limits.memory_bytes > 0 && !policy.unlimited_address_space) LimitMemory(limits.memory_bytes);
  // Not for drivers: Landlock would also forbid moving files between folders, which their compilers do. They have no
  // calls that signal other processes.
  if (policy.writable.empty()) BlockOutgoingSignals();
  return AllowSystemCalls(limits.filter, policy.calls, limits.channel, limits.setup);
}

}  // namespace hone::agent
