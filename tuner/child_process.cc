// SPDX-License-Identifier: Apache-2.0
#include "tuner/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/resource_limit.h"
#include "base/short_environment.h"

namespace hone::tuner {
namespace {

// What compilers need besides kPlainVariables: where ONNX Runtime is, and fakes of tests.
constexpr std::string_view kCompilerVariables[] = {"HONE_ONNX_RUNTIME", "HONE_FAKE_"};

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options) {
  std::vector<std::string> words = options.command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::vector<const char*> environment = ShortEnvironment(kCompilerVariables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {  // until exec only async-signal-safe calls, because the parent has threads
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);  // a process group of its own, which Kill kills
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (options.memory_max > 0) LimitMemory(options.memory_max);
    LimitResource(RLIMIT_CORE, 0);
    if (options.descriptor >= 0) fcntl(options.descriptor, F_SETFD, 0);
    execve(argv[0], argv.data(), const_cast<char* const*>(environment.data()));
    _exit(127);
  }
  if (pid < 0) return absl::UnavailableError(fmt::format("cannot start a compiler: {}", std::strerror(errno)));
  ChildProcess child;
  child.pid_ = pid;
  return child;
}

bool ChildProcess::Ended() const {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

int ChildProcess::Kill() {
  int status = 0;
  if (pid_ < 0) return status;
  kill(-pid_, SIGKILL);  // its process group, which includes assembler and linker
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

std::string DescribeEnd(int wait_status) {
  return WIFSIGNALED(wait_status)
             ? fmt::format("was killed by signal {} ({})", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)))
             : fmt::format("ended with status {}", WEXITSTATUS(wait_status));
}

}  // namespace hone::tuner
