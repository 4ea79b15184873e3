// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/forked_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::conformance {
namespace {

constexpr size_t kMessageBytesMax = 4096;

struct Child {
  pid_t pid;
  int socket;    // carries indices to the child and results back, one packet each
  size_t index;  // the piece that the child works on
};

[[noreturn]] void RunChild(int socket, unsigned timeout_seconds, const std::function<absl::Status(size_t)>& work) {
  size_t index = 0;
  while (recv(socket, &index, sizeof(index), 0) == sizeof(index)) {
    alarm(timeout_seconds);
    const absl::Status status = work(index);
    alarm(0);
    std::string text = fmt::format("{}\n{}", static_cast<int>(status.code()), std::string(status.message()));
    text.resize(std::min(text.size(), kMessageBytesMax));
    if (send(socket, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) _exit(1);
  }
  _exit(0);  // no destructors: they belong to the parent
}

Child Start(const std::vector<Child>& others, const ForkedRunOptions& options,
            const std::function<absl::Status(size_t)>& work) {
  int ends[2];
  HONE_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
  std::fflush(nullptr);  // otherwise both processes would write the buffered output
  const pid_t pid = fork();
  HONE_CHECK(pid >= 0);
  if (pid == 0) {
    close(ends[0]);
    for (const Child& other : others) close(other.socket);  // otherwise they would not see that the parent closes them
    RunChild(ends[1], static_cast<unsigned>(options.timeout_seconds), work);
  }
  close(ends[1]);
  return {pid, ends[0], 0};
}

void Give(Child& child, size_t index) {
  child.index = index;
  // The death of a child is noticed when its result is awaited.
  send(child.socket, &index, sizeof(index), MSG_NOSIGNAL);
}

// Returns the position of a child that has a result or has died.
size_t AwaitOne(const std::vector<Child>& children) {
  std::vector<pollfd> sockets;
  for (const Child& child : children) sockets.push_back({child.socket, POLLIN, 0});
  while (poll(sockets.data(), sockets.size(), -1) < 0) HONE_CHECK(errno == EINTR);
  size_t at = 0;
  while (sockets[at].revents == 0) ++at;
  return at;
}

// Returns nullopt if the child has died.
std::optional<absl::Status> Receive(const Child& child) {
  std::string text(kMessageBytesMax, '\0');
  const ssize_t size = recv(child.socket, text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  text.resize(static_cast<size_t>(size));
  const size_t newline = text.find('\n');
  HONE_CHECK(newline != std::string::npos);
  return absl::Status(static_cast<absl::StatusCode>(std::atoi(text.c_str())), text.substr(newline + 1));
}

// Waits for the child to end. Returns a status that says how it ended.
absl::Status End(const Child& child) {
  close(child.socket);
  int wait_status = 0;
  HONE_CHECK(waitpid(child.pid, &wait_status, 0) == child.pid);
  if (!WIFSIGNALED(wait_status)) {
    return absl::AbortedError(fmt::format("ended with exit code {}", WEXITSTATUS(wait_status)));
  }
  const int signal = WTERMSIG(wait_status);
  if (signal == SIGALRM) return absl::DeadlineExceededError("timed out");
  return absl::AbortedError(fmt::format("crashed: {}", strsignal(signal)));
}

}  // namespace

void ForkedRun(size_t count, const ForkedRunOptions& options, const std::function<absl::Status(size_t)>& work,
               const std::function<void(size_t, const absl::Status&)>& done) {
  std::vector<Child> children;
  size_t next = 0;
  while (next < count || !children.empty()) {
    while (next < count && children.size() < static_cast<size_t>(options.jobs)) {
      children.push_back(Start(children, options, work));
      Give(children.back(), next++);
    }
    const size_t at = AwaitOne(children);
    const std::optional<absl::Status> result = Receive(children[at]);
    const size_t index = children[at].index;
    if (result.has_value() && next < count) {
      Give(children[at], next++);
      done(index, *result);
      continue;
    }
    const absl::Status end = End(children[at]);
    children.erase(children.begin() + static_cast<std::ptrdiff_t>(at));
    done(index, result.value_or(end));
  }
}

}  // namespace hone::conformance
