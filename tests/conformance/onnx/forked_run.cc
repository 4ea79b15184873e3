#include "tests/conformance/onnx/forked_run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::conformance {
namespace {

constexpr size_t kLongestMessage = 4096;  // below a pipe's buffer, so that the child never waits for us

struct Child {
  size_t index;
  int pipe;  // where its result comes out
};

[[noreturn]] void RunChild(int pipe, unsigned timeout_seconds, const std::function<absl::Status()>& work) {
  alarm(timeout_seconds);
  const absl::Status status = work();
  std::string text = fmt::format("{}\n{}", static_cast<int>(status.code()), std::string(status.message()));
  text.resize(std::min(text.size(), kLongestMessage));
  const bool written = write(pipe, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(written ? 0 : 1);  // no destructors: they belong to the parent
}

std::string ReadAll(int pipe) {
  std::string text(kLongestMessage, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(pipe, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

absl::Status ResultOf(int wait_status, const std::string& text) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    if (signal == SIGALRM) return absl::DeadlineExceededError("timed out");
    return absl::AbortedError(fmt::format("crashed: {}", strsignal(signal)));
  }
  const size_t newline = text.find('\n');
  if (WEXITSTATUS(wait_status) != 0 || newline == std::string::npos) {
    return absl::AbortedError(fmt::format("ended with exit code {}", WEXITSTATUS(wait_status)));
  }
  const auto code = static_cast<absl::StatusCode>(std::atoi(text.c_str()));
  return absl::Status(code, text.substr(newline + 1));
}

}  // namespace

void ForkedRun(size_t count, const ForkedRunOptions& options, const std::function<absl::Status(size_t)>& work,
               const std::function<void(size_t, const absl::Status&)>& done) {
  std::map<pid_t, Child> running;
  size_t next = 0;
  while (next < count || !running.empty()) {
    while (next < count && running.size() < static_cast<size_t>(options.jobs)) {
      int ends[2];
      HONE_CHECK(pipe(ends) == 0);
      std::fflush(nullptr);  // or both processes would write what is buffered
      const pid_t pid = fork();
      HONE_CHECK(pid >= 0);
      if (pid == 0) RunChild(ends[1], static_cast<unsigned>(options.timeout_seconds), [&] { return work(next); });
      close(ends[1]);
      running[pid] = {next++, ends[0]};
    }
    int wait_status = 0;
    const pid_t pid = wait(&wait_status);
    if (pid < 0 && errno == EINTR) continue;
    HONE_CHECK(pid > 0 && running.contains(pid));
    const Child child = running[pid];
    running.erase(pid);
    done(child.index, ResultOf(wait_status, ReadAll(child.pipe)));
    close(child.pipe);
  }
}

}  // namespace hone::conformance
