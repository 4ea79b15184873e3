// SPDX-License-Identifier: Apache-2.0
#include "base/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hone {
namespace {

std::string ReadText(int fd) {
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t bytes = read(fd, part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(part.data(), static_cast<size_t>(bytes));
  }
}

// Replaces the forked child by the program. The parent may have threads, so only async-signal-safe calls are allowed
// before exec. output: the descriptor for standard output and standard error.
[[noreturn]] void ExecuteProgram(const char* program, char* const* arguments, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before prctl took effect
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(program, arguments);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& command) {
  const std::string program = command[0].find('/') == std::string::npos ? FindProgram(command[0]) : command[0];
  if (access(program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(fmt::format("cannot start {}: {}", command[0], strerror(errno)));
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return absl::ResourceExhaustedError(fmt::format("cannot make a pipe: {}", strerror(errno)));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) ExecuteProgram(program.c_str(), arguments.data(), ends[1], parent);
  const int error = errno;
  close(ends[1]);
  std::string text = pid > 0 ? ReadText(ends[0]) : "";
  close(ends[0]);
  if (pid < 0) {
    return absl::ResourceExhaustedError(fmt::format("cannot start {}: {}", command[0], strerror(error)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return text;
  return absl::InternalError(fmt::format("{} ended with wait status {}: {}", command[0], status, text));
}

std::string FindProgram(std::string_view name) {
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    const std::string file = std::string(folder).append("/").append(name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

}  // namespace hone
