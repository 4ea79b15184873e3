// SPDX-License-Identifier: Apache-2.0
#include "device_agent/sandbox/sandbox.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/resource_limit.h"
#include "base/status.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/sandbox/landlock.h"
#include "device_agent/sandbox/namespaces.h"
#include "device_agent/visit/child_channel.h"

namespace hone::agent {
namespace {

constexpr uint64_t kMostFileBytes = 256 << 20;  // of what a driver keeps
constexpr rlim_t kMostOpenFiles = 1024;         // of the launcher, so that its children can close all one by one
constexpr double kTrySeconds = 30;

constexpr std::array<std::pair<SandboxLevel, std::string_view>, 3> kLevels = {
    {{SandboxLevel::kNone, "none"}, {SandboxLevel::kFilter, "filter"}, {SandboxLevel::kWall, "wall"}}};

// What there is for it: one of the layers in each of these. Files and the network have two guards.
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

// With leave to write into that part of /proc, where a driver needs it.
SandboxPolicy WithProc(SandboxPolicy policy, const char* part) {
  if (!policy.names_threads) return policy;
  policy.readable.emplace_back(part);
  policy.nodes.emplace_back(part);
  return policy;
}

// Whether a child with that filter makes a call that only setting up needs, and goes on.
bool SetsUp(const SandboxPolicy& policy, CallFilter filter) {
  absl::StatusOr<WatchedChild> child = WatchedChild::Start([&](int channel) {
    const absl::StatusOr<int> listener = ConfineChild(policy, {.channel = channel, .filter = filter});
    if (!listener.ok() || (*listener >= 0) != (filter == CallFilter::kListener)) _exit(1);
    const Voice voice(channel);
    voice.Confined(*listener);
    utsname name{};
    uname(&name);
    voice.Started();
    _exit(0);
  });
  VisitMessage message;
  while (child.ok() && child->Next(message, kTrySeconds, -1) == WatchedChild::Event::kMessage) {
    if (message.type == VisitMessage::Type::kStarted) return true;
  }
  return false;
}

SandboxLayer LayerOf(CallFilter filter) {
  switch (filter) {
    case CallFilter::kNone:
      return {Layer::kSystemCalls, false, "the system takes no filter (seccomp)"};
    case CallFilter::kSignal:
      return {Layer::kSystemCalls, true, "without a listener"};
    case CallFilter::kListener:
      break;
  }
  return {Layer::kSystemCalls, true, ""};
}

}  // namespace

std::vector<std::string> SandboxPolicy::AllReadable() const {
  std::vector<std::string> all = {
      "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/sys/devices/system/cpu"};
  all.insert(all.end(), readable.begin(), readable.end());
  return all;
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
    if (Missing(layers, level).empty()) reached = level;
  }
  return reached;
}

std::string Missing(const std::vector<SandboxLayer>& layers, SandboxLevel level) {
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

CallFilter TrySystemCalls(const SandboxPolicy& policy) {
  for (const CallFilter filter : {CallFilter::kListener, CallFilter::kSignal}) {
    if (SetsUp(policy, filter)) return filter;
  }
  return CallFilter::kNone;
}

absl::StatusOr<Confinement> ConfineLauncher(const SandboxPolicy& policy) {
  LimitResource(RLIMIT_NOFILE, kMostOpenFiles);
  Confinement confinement;
  std::vector<SandboxLayer>& layers = confinement.layers;
  HONE_RETURN_IF_ERROR(EnterOwnWorld(policy, layers));
  // Its children are not there yet: each restricts itself to its own part.
  const absl::StatusOr<int> landlock = RestrictWithLandlock(WithProc(policy, "/proc"));
  layers.push_back({Layer::kLandlock, landlock.ok(),
                    landlock.ok() ? fmt::format("version {}", *landlock) : std::string(landlock.status().message())});
  // Its children shall not read its memory and environment in /proc.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  confinement.filter = TrySystemCalls(policy);
  layers.push_back(LayerOf(confinement.filter));
  return confinement;
}

absl::StatusOr<int> ConfineChild(const SandboxPolicy& policy, const ChildLimits& limits) {
  setsid();
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // else it could not open /proc/self/fd, where the artifact is
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (policy.names_threads) RestrictWithLandlock(WithProc(policy, "/proc/self")).IgnoreError();  // the launcher tells
  LimitResource(RLIMIT_CORE, 0);
  LimitResource(RLIMIT_FSIZE, policy.writable.empty() ? 0 : kMostFileBytes);
  LimitResource(RLIMIT_NOFILE, static_cast<rlim_t>(policy.open_files));
  LimitResource(RLIMIT_MEMLOCK, 0);
  LimitResource(RLIMIT_MSGQUEUE, 0);
  LimitResource(RLIMIT_SIGPENDING, 64);
  if (limits.memory_bytes > 0 && !policy.own_address_space) LimitMemory(limits.memory_bytes);
  // It also keeps files from moving between folders, as a driver's compiler must; a driver has no signals to others.
  if (policy.writable.empty()) KeepSignalsIn();
  return AllowSystemCalls(limits.filter, policy.calls, limits.channel);
}

}  // namespace hone::agent
