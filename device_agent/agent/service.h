// SPDX-License-Identifier: Apache-2.0
// hone-agent as a system service, as its Debian package installs it: watchdog messages to the service manager, and
// `join` by root on behalf of the service's user. docs/guides/raspberry-pi.md shows the user's side.
#ifndef HONE_DEVICE_AGENT_AGENT_SERVICE_H_
#define HONE_DEVICE_AGENT_AGENT_SERVICE_H_

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// The configuration of the service. `hone-agent join` reads it too when root calls it.
inline constexpr char kServiceConfig[] = "/etc/hone/agent.conf";

// Tells the service manager (systemd, Type=notify) that the agent is alive. The service manager restarts an agent that
// stops telling. Does nothing if NOTIFY_SOCKET is not set. Not thread-safe.
class ServiceWatchdog {
 public:
  // Removes NOTIFY_SOCKET from the environment, so that no child can report for the agent. Construct it before the
  // process starts threads.
  ServiceWatchdog();
  ~ServiceWatchdog();
  ServiceWatchdog(const ServiceWatchdog&) = delete;
  ServiceWatchdog& operator=(const ServiceWatchdog&) = delete;

  // Only the agent's main loop may call this, once in each iteration: a call from elsewhere would hide a stuck loop.
  void ReportAlive() const;

 private:
  int socket_ = -1;
};

// During its lifetime all threads of this process, which must be root's, create and open files as `user`.
class ScopedUser {
 public:
  static absl::StatusOr<ScopedUser> Begin(const std::string& user);  // kFailedPrecondition: no such user, or not root
  ~ScopedUser();
  ScopedUser(ScopedUser&& other) noexcept : active_(other.active_) { other.active_ = false; }
  ScopedUser& operator=(ScopedUser&&) = delete;

 private:
  ScopedUser() = default;
  bool active_ = true;
};

// Restarts the service, so that it uses the identity that it got by joining. `systemd` is the folder that exists where
// systemd runs. The error says why the service was not restarted.
absl::Status RestartService(const std::filesystem::path& systemd = "/run/systemd/system");

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_SERVICE_H_
