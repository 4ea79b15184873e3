// SPDX-License-Identifier: Apache-2.0
// hone-agent as a service of the system, as its Debian package installs it: what it says to the service manager that
// started it, and how root lets that service join a farm. docs/guides/raspberry-pi.md shows it from outside.
#ifndef HONE_DEVICE_AGENT_AGENT_SERVICE_H_
#define HONE_DEVICE_AGENT_AGENT_SERVICE_H_

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::agent {

// What the service reads; also `hone-agent join`, when root calls it.
inline constexpr char kServiceConfig[] = "/etc/hone/agent.conf";

// Tells the service manager (systemd's Type=notify) that the agent is alive; it restarts one that has stopped saying
// so. Says nothing where none asked for it. Not thread-safe.
class Supervisor {
 public:
  // Takes NOTIFY_SOCKET out of the environment, so that no child speaks for the agent: call it before there are
  // threads.
  Supervisor();
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Whoever calls it must be what makes the agent alive: each turn of its loop, and nobody else.
  void Alive() const;

 private:
  int socket_ = -1;
};

// While it lives, files are made and opened as those of `user` by all threads of this process, which must be root's.
class ActAs {
 public:
  static absl::StatusOr<ActAs> Begin(const std::string& user);  // kFailedPrecondition: there is none, or not root
  ~ActAs();
  ActAs(ActAs&& other) noexcept : active_(other.active_) { other.active_ = false; }
  ActAs& operator=(ActAs&&) = delete;

 private:
  ActAs() = default;
  bool active_ = true;
};

// Starts the service anew, so that it takes what it has joined. An error: why it does not run, as where systemd does
// not, whose folder that is.
absl::Status RestartService(const std::filesystem::path& systemd = "/run/systemd/system");

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_SERVICE_H_
