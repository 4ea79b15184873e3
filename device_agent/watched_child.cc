#include "device_agent/watched_child.h"

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

#include "device_agent/reference_loop.h"

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

absl::StatusOr<WatchedChild> WatchedChild::Start(const std::function<void(int channel)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(fmt::format("cannot make a socket pair: {}", strerror(errno)));
  }
  const pid_t pid = fork();
  if (pid < 0) {
    const std::string why = strerror(errno);
    close(ends[0]);
    close(ends[1]);
    return absl::UnavailableError(fmt::format("cannot fork a measuring process: {}", why));
  }
  if (pid == 0) {
    close(ends[0]);
    body(ends[1]);
    _exit(1);
  }
  close(ends[1]);
  return WatchedChild(pid, ends[0]);
}

WatchedChild::WatchedChild(WatchedChild&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::exchange(other.channel_, -1)) {}

WatchedChild::~WatchedChild() {
  if (pid_ > 0) {
    Kill();
    (void)Ending();
  }
  if (channel_ >= 0) close(channel_);
}

WatchedChild::Event WatchedChild::Next(VisitMessage& message, double seconds, int cancel_fd) {
  const double deadline = SecondsNow() + seconds;
  for (;;) {
    std::array<pollfd, 2> files{{{channel_, POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
    const double left = std::max(0.0, deadline - SecondsNow());
    const int ready =
        poll(files.data(), cancel_fd >= 0 ? 2 : 1, static_cast<int>(std::ceil(std::min(left, 3600.0) * 1e3)));
    if (ready < 0 && errno == EINTR) continue;
    if (files[0].revents != 0) {
      const ssize_t size = recv(channel_, &message, sizeof(message), MSG_TRUNC);
      if (size < 0 && errno == EINTR) continue;
      // Anything but a whole packet means the child is gone, or is no child of ours any more.
      return size == sizeof(message) ? Event::kMessage : Event::kEnded;
    }
    if (files[1].revents != 0) return Event::kCancelled;
    if (left <= 0) return Event::kSilent;
  }
}

void WatchedChild::Kill() {
  // The group too, should the child have managed to fork; it leads one once it is confined.
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
}

std::string WatchedChild::Ending() {
  int status = 0;
  const pid_t pid = std::exchange(pid_, -1);
  // Closing the channel and living on would block us for ever.
  const double deadline = SecondsNow() + 2;
  pid_t waited = 0;
  while ((waited = waitpid(pid, &status, WNOHANG)) == 0 || (waited < 0 && errno == EINTR)) {
    if (SecondsNow() > deadline) kill(pid, SIGKILL);
    usleep(50);
  }
  if (WIFSIGNALED(status)) return fmt::format("was killed by {}", SignalName(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace hone::agent
