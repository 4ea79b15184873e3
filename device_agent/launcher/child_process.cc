// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/child_process.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "device_agent/sandbox/namespaces.h"
#include "device_agent/visit/pass_files.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {

std::string SignalName(int signal) {
  static constexpr std::array<std::pair<int, const char*>, 12> kNames = {{{SIGSEGV, "SIGSEGV"},
                                                                          {SIGBUS, "SIGBUS"},
                                                                          {SIGILL, "SIGILL"},
                                                                          {SIGFPE, "SIGFPE"},
                                                                          {SIGABRT, "SIGABRT"},
                                                                          {SIGKILL, "SIGKILL"},
                                                                          {SIGTRAP, "SIGTRAP"},
                                                                          {SIGSYS, "SIGSYS"},
                                                                          {SIGXCPU, "SIGXCPU"},
                                                                          {SIGTERM, "SIGTERM"},
                                                                          {SIGPIPE, "SIGPIPE"},
                                                                          {SIGINT, "SIGINT"}}};
  for (const auto& [number, name] : kNames) {
    if (number == signal) return name;
  }
  return fmt::format("signal {}", signal);
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::function<void(int channel)>& body, SetupCalls setup) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(fmt::format("cannot make a socket pair: {}", strerror(errno)));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const std::string why = strerror(errno);
    close(ends[0]);
    close(ends[1]);
    return absl::UnavailableError(fmt::format("cannot fork a measuring process: {}", why));
  }
  if (pid == 0) {
    EndWithParent(parent);
    close(ends[0]);
    body(ends[1]);
    _exit(1);
  }
  close(ends[1]);
  return ChildProcess(pid, ends[0], setup);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      channel_(std::exchange(other.channel_, -1)),
      listener_(std::exchange(other.listener_, -1)),
      setup_(other.setup_),
      setting_up_(other.setting_up_),
      first_(other.first_),
      killed_(other.killed_),
      lost_(other.lost_),
      begun_(other.begun_),
      forbidden_(std::move(other.forbidden_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    Kill();
    (void)AwaitEnd();
  }
  for (const int file : {channel_, listener_}) {
    if (file >= 0) close(file);
  }
}

// Only the first packet may carry files. Files in later packets come from a kernel and are dropped.
ssize_t ChildProcess::Receive(VisitMessage& message) {
  std::vector<int> files;
  const auto packet = std::as_writable_bytes(std::span(&message, 1));
  const ssize_t size = ReceiveWithFiles(channel_, packet, first_ ? &files : nullptr);
  if (size < 0) return size;
  first_ = false;
  if (files.empty()) return size;
  listener_ = files.back();
  files.pop_back();
  for (const int file : files) close(file);
  return size;
}

// Handles a stopped system call. Lets an allowed one continue; returns true for a forbidden one.
bool ChildProcess::Stopped() {
  const absl::StatusOr<StoppedCall> call = ReceiveStoppedCall(listener_, setup_);
  if (!call.ok()) return false;  // a signal ended the call or its thread
  if (setting_up_ && call->for_setup && ContinueStoppedCall(listener_, *call)) return false;
  forbidden_ = call->name;
  return true;
}

ChildProcess::Event ChildProcess::Next(VisitMessage& message, double seconds, int cancel_fd) {
  const double deadline = SecondsNow() + seconds;
  for (;;) {
    std::array<pollfd, 3> files{{{channel_, POLLIN, 0}, {cancel_fd, POLLIN, 0}, {listener_, POLLIN, 0}}};
    const double left = std::max(0.0, deadline - SecondsNow());
    const int wait = static_cast<int>(std::ceil(std::min(left, 3600.0) * 1e3));
    const int ready = poll(files.data(), files.size(), wait);  // ignores descriptors of -1
    if (ready < 0 && errno == EINTR) continue;
    if (files[1].revents != 0) return Event::kCancelled;  // first, because a child may send messages without pause
    if (files[0].revents != 0) {
      const ssize_t size = Receive(message);
      // ECONNRESET comes once if the child ended without reading its task. Its earlier messages are still there.
      if (size < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
      if (size <= 0) return Event::kEnded;
      if (size != sizeof(message)) message = VisitMessage{};  // type 0, which the supervisor refuses
      return Event::kMessage;
    }
    if ((files[2].revents & POLLIN) != 0) {
      if (Stopped()) return Event::kForbidden;
    } else if (files[2].revents != 0) {  // all processes under the filter are gone
      close(std::exchange(listener_, -1));
    }
    if (left <= 0) return Event::kSilent;
  }
}

void ChildProcess::Answer(VisitAnswer answer) const {
  send(channel_, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ChildProcess::SendTask(std::span<const char> packet, std::span<const int> files) {
  begun_ = SecondsNow();
  SendWithFiles(channel_, std::as_bytes(packet), files);
}

void ChildProcess::Kill() {
  killed_ = true;
  // Also kills its process group, in case it managed to fork. A confined child leads a group.
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
}

std::string ChildProcess::AwaitEnd() {
  int status = 0;
  const pid_t pid = std::exchange(pid_, -1);
  // A child that closed the channel but keeps running would block this process for ever.
  const double deadline = SecondsNow() + 2;
  const auto lives = [pid] {
    siginfo_t end{};
    return waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == 0;
  };
  while (lives()) {
    if (SecondsNow() > deadline) {
      killed_ = true;
      kill(pid, SIGKILL);
    }
    usleep(50);
  }
  kill(-pid, SIGKILL);  // its forks; no other process can have its number before waitpid
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  lost_ = !killed_ && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (WIFSIGNALED(status)) return fmt::format("was killed by {}", SignalName(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace hone::agent
