// SPDX-License-Identifier: Apache-2.0
#include "tests/farm/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/status.h"

namespace hone::farm {

Process::Process(const std::vector<std::string>& arguments, const std::string& log) : log_(log) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  HONE_CHECK(pid_ >= 0);
  if (pid_ > 0) return;
  // The kernel kills this child when the test is killed, so nothing is left behind.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(file, 1);
  dup2(file, 2);
  execv(argv[0], argv.data());
  _exit(127);
}

Process::~Process() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  Wait();
}

void Process::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

int Process::Wait() {
  int status = 0;
  if (!Eventually([&] { return waitpid(pid_, &status, WNOHANG) != 0; })) return -1000;
  pid_ = -1;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

bool Process::Running() {
  siginfo_t details{};
  return pid_ > 0 && waitid(P_PID, pid_, &details, WEXITED | WNOHANG | WNOWAIT) == 0 && details.si_pid == 0;
}

std::string Process::Log() const {
  std::stringstream text;
  text << std::ifstream(log_).rdbuf();
  return text.str();
}

}  // namespace hone::farm
