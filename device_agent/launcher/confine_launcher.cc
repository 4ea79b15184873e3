// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/confine_launcher.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string>

#include "base/resource_limit.h"
#include "base/status.h"
#include "device_agent/launcher/child_process.h"
#include "device_agent/sandbox/landlock.h"
#include "device_agent/sandbox/namespaces.h"
#include "device_agent/visit/child_channel.h"

namespace hone::agent {
namespace {

constexpr rlim_t kOpenFilesMax = 1024;  // of the launcher: a child closes them all one by one
constexpr double kTrySeconds = 30;      // for a child to try a filter

// Whether a child under that filter can make a call that only its setup needs, and continues after it.
bool CanSetUpFilter(const SandboxPolicy& policy, CallFilter filter) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start([&](int channel) {
    const absl::StatusOr<int> listener = ConfineChild(policy, {.channel = channel, .filter = filter});
    if (!listener.ok() || (*listener >= 0) != (filter == CallFilter::kListener)) _exit(1);
    const ChildChannel channel_to_launcher(channel);
    channel_to_launcher.SendConfined(*listener);
    utsname name{};
    uname(&name);
    channel_to_launcher.SendStarted();
    _exit(0);
  });
  VisitMessage message;
  while (child.ok() && child->Next(message, kTrySeconds, -1) == ChildProcess::Event::kMessage) {
    if (message.type == VisitMessage::Type::kStarted) return true;
  }
  return false;
}

SandboxLayer LayerOf(CallFilter filter) {
  switch (filter) {
    case CallFilter::kNone:
      return {Layer::kSystemCalls, false, "the system accepts no system call filter (seccomp)"};
    case CallFilter::kSignal:
      return {Layer::kSystemCalls, true, "the launcher cannot name a forbidden call (no seccomp listener)"};
    case CallFilter::kListener:
      break;
  }
  return {Layer::kSystemCalls, true, ""};
}

}  // namespace

CallFilter DetectCallFilter(const SandboxPolicy& policy) {
  for (const CallFilter filter : {CallFilter::kListener, CallFilter::kSignal}) {
    if (CanSetUpFilter(policy, filter)) return filter;
  }
  return CallFilter::kNone;
}

absl::StatusOr<Confinement> ConfineLauncher(const SandboxPolicy& policy) {
  LimitResource(RLIMIT_NOFILE, kOpenFilesMax);
  Confinement confinement;
  std::vector<SandboxLayer>& layers = confinement.layers;
  HONE_RETURN_IF_ERROR(EnterNamespaces(policy, layers));
  // All of /proc, because the children do not exist yet; each child restricts itself to its own part.
  const absl::StatusOr<int> landlock = RestrictWithLandlock(policy.WithProc("/proc"));
  layers.push_back({Layer::kLandlock, landlock.ok(),
                    landlock.ok() ? fmt::format("version {}", *landlock) : std::string(landlock.status().message())});
  // Children must not read its memory and environment through /proc.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  confinement.filter = DetectCallFilter(policy);
  layers.push_back(LayerOf(confinement.filter));
  return confinement;
}

}  // namespace hone::agent
