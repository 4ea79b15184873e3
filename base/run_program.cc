#include "base/run_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
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

}  // namespace

absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ResourceExhaustedError(fmt::format("no pipe: {}", strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text = error == 0 ? ReadText(ends[0]) : "";
  close(ends[0]);
  if (error != 0) return absl::NotFoundError(fmt::format("cannot start {}: {}", command[0], strerror(error)));
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
