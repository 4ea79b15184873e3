// SPDX-License-Identifier: Apache-2.0
#include "cli/local_farm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>

#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "base/temporary_folder.h"
#include "cli/output.h"
#include "cli/progress_line.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kSteadyRun = absl::Minutes(10);        // after it, earlier restarts do not count
constexpr absl::Duration kQuickExitTimeMax = absl::Seconds(5);  // a child that exits sooner after its start cannot work
constexpr int kQuickExitsMax = 2;                               // consecutive such exits that are tolerated

std::filesystem::path ProgramFolder() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path();
}

// A note for an error message if a program's log cannot be written, for example because the disk is full: the program's
// last messages are then missing in it. "" if the log can be written. The test appends an empty line, which is
// harmless.
std::string LogWriteFailureNote(const std::filesystem::path& path) {
  const int log = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const bool written = log >= 0 && write(log, "\n", 1) == 1;
  const int reason = errno;
  if (log >= 0) close(log);
  return written
             ? ""
             : fmt::format("; its log {} could not be written completely: {}", path.string(), std::strerror(reason));
}

// ": " and the last three lines of the log after byte `begin`, without lines of the levels info and warning, which do
// not explain the end of a program. Nothing if there are no such lines, as for a killed program. LogWriteFailureNote
// follows.
std::string LastErrors(const std::filesystem::path& path, std::uintmax_t begin) {
  std::ifstream file(path);
  file.seekg(static_cast<std::streamoff>(begin));
  std::deque<std::string> errors;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.find("] [info] ") != std::string::npos || line.find("] [warning] ") != std::string::npos) {
      continue;
    }
    errors.push_back(std::move(line));
    if (errors.size() > 3) errors.pop_front();
  }
  return (errors.empty() ? "" : fmt::format(": {}", fmt::join(errors, "\n"))) + LogWriteFailureNote(path);
}

std::string DescribeExit(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

LocalFarm::LocalFarm(const Options& options, TemporaryFolder folder)
    : options_(options),
      folder_(std::move(folder)),
      state_(options.state.empty() ? folder_.path() : options.state),
      // The socket is in a folder that only this user can enter: anyone who reaches it can run code and write records
      // as this user.
      address_("unix:" + (state_ / "tracker").string()) {}

absl::StatusOr<LocalFarm> LocalFarm::Start(const Options& options) {
  TemporaryFolder::RemoveAbandoned();  // folders of commands that were killed
  HONE_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  LocalFarm farm(options, std::move(folder));
  farm.children_.reserve(3);  // references to children must stay valid while others are added
  HONE_RETURN_IF_ERROR(farm.StartTracker());
  std::vector<std::string> agent = {"--tracker", farm.address_, "--name", kAgent};
  for (const std::string& device : options.devices) agent.insert(agent.end(), {"--device", device});
  if (options.threads > 0) agent.insert(agent.end(), {"--threads", std::to_string(options.threads)});
  if (!options.state.empty()) {
    agent.insert(agent.end(), {"--outbox", farm.state_ / "outbox", "--files", farm.state_ / "agent-files"});
  }
  farm.Add("hone-agent", std::move(agent));
  std::vector<std::string> tuner = {"--tracker", farm.address_};
  if (!options.reproducers.empty()) tuner.insert(tuner.end(), {"--reproducers", options.reproducers});
  farm.Add("hone-tuner", std::move(tuner));
  HONE_RETURN_IF_ERROR(farm.Spawn(farm.children_[1]));
  HONE_RETURN_IF_ERROR(farm.Spawn(farm.children_[2]));
  return farm;
}

// Jobs are on disk, so they survive a restart of the tracker. They outlive the command only if Options names a folder:
// jobs that a killed `hone tune` left behind must not run before the jobs of the next one.
absl::Status LocalFarm::StartTracker() {
  const std::filesystem::path port_file = folder_ / "serves", dashboard = folder_ / "dashboard";
  std::vector<std::string> arguments = {"--listen", address_,           "--records",   options_.records,
                                        "--state",  state_ / "jobs.db", "--port-file", port_file,
                                        "--files",  state_ / "files"};
  if (options_.http_port.has_value()) {
    arguments.insert(arguments.end(),
                     {"--http", fmt::format("127.0.0.1:{}", *options_.http_port), "--http-file", dashboard});
  }
  for (const std::string& prefix : options_.notify_allowed)
    arguments.insert(arguments.end(), {"--notify-allow", prefix});
  Add("hone-tracker", std::move(arguments));
  HONE_RETURN_IF_ERROR(Spawn(children_[0]));
  HONE_RETURN_IF_ERROR(AwaitTracker(port_file));
  std::ifstream(dashboard) >> dashboard_;
  // A tracker that is started again serves at the address that was printed, also if its port was any free one.
  std::vector<std::string>& own = children_[0].arguments;
  if (const auto http = std::ranges::find(own, "--http"); http != own.end()) {
    const size_t host = dashboard_.find("//") + 2;
    *(http + 1) = dashboard_.substr(host, dashboard_.find('/', host) - host);
  }
  return absl::OkStatus();
}

void LocalFarm::Add(const std::string& program, std::vector<std::string> arguments) {
  arguments.emplace_back("--die-with-parent");
  children_.push_back({program, std::move(arguments), state_ / (program + ".log")});
}

LocalFarm::~LocalFarm() {
  // The children end in the order tuner, agent, tracker, because the first two depend on the tracker.
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    if (child->pid < 0) continue;
    kill(child->pid, SIGTERM);
    for (int i = 0; i < 100 && waitpid(child->pid, nullptr, WNOHANG) == 0; ++i) {
      absl::SleepFor(absl::Milliseconds(30));
      if (i == 98) kill(child->pid, SIGKILL);
    }
  }
}

absl::Status LocalFarm::Spawn(Child& child) {
  const std::string path = (ProgramFolder() / child.program).string();
  if (access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        fmt::format("{} is missing; it must be in the folder of the hone program; build or install all of Hone", path));
  }
  std::vector<const char*> arguments = {path.c_str()};
  for (const std::string& argument : child.arguments) arguments.push_back(argument.c_str());
  arguments.push_back(nullptr);
  std::error_code error;
  child.logged = std::filesystem::exists(child.log, error) ? std::filesystem::file_size(child.log, error) : 0;
  child.started = SteadyNow();
  const int log = open(child.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);  // its own process group, so that Ctrl-C reaches only the command, which then stops the children
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    signal(SIGPIPE, SIG_DFL);  // this command ignores SIGPIPE, and the program would inherit that
    if (log >= 0) {
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
    }
    execv(path.c_str(), const_cast<char* const*>(arguments.data()));
    _exit(127);
  }
  if (log >= 0) close(log);
  if (pid < 0) return absl::UnavailableError(fmt::format("cannot start {}: {}", child.program, std::strerror(errno)));
  child.pid = pid;
  return absl::OkStatus();
}

absl::Status LocalFarm::AwaitTracker(const std::filesystem::path& port_file) {
  ProgressLine line;
  while (true) {
    if (std::filesystem::exists(port_file)) return absl::OkStatus();
    int status = 0;
    if (waitpid(children_[0].pid, &status, WNOHANG) > 0) {
      children_[0].pid = -1;
      // The tracker's own message is shown alone if there is one, such as that a records file cannot be opened.
      const std::string log = LastErrors(children_[0].log, children_[0].logged);
      const size_t mark = log.rfind("hone-tracker: ");
      return absl::UnavailableError(mark != std::string::npos ? log.substr(mark + 14)
                                                              : "the tracker " + DescribeExit(status) + log);
    }
    if (options_.interrupts != nullptr && options_.interrupts->WasInterrupted()) {
      return absl::CancelledError("ended before the tracker had started");
    }
    line.Show("the tracker is starting; it takes long if it must upgrade a large records file of an older Hone");
    absl::SleepFor(absl::Milliseconds(10));
  }
}

absl::Status LocalFarm::Check() {
  for (Child& child : children_) {
    int status = 0;
    if (child.pid >= 0 && waitpid(child.pid, &status, WNOHANG) <= 0) continue;
    child.pid = -1;
    // A program that exits by itself right after its start, for example because a driver is missing, will do so again.
    if (SteadyNow() - child.started > kSteadyRun) child.restarts = 0;
    const bool at_once = WIFEXITED(status) && SteadyNow() - child.started < kQuickExitTimeMax;
    child.at_once = at_once ? child.at_once + 1 : 0;
    if (++child.restarts > options_.restarts_max || child.at_once > kQuickExitsMax) {
      const std::string before = child.restarts > 1 ? fmt::format(" after {} restarts", child.restarts - 1) : "";
      return absl::UnavailableError(
          fmt::format("{} {}{}{}", child.program, DescribeExit(status), before, LastErrors(child.log, child.logged)));
    }
    PrintMessage(fmt::format("{} {}; starting it again; no record is lost\n", child.program, DescribeExit(status)));
    HONE_RETURN_IF_ERROR(Spawn(child));
  }
  return absl::OkStatus();
}

}  // namespace hone::cli
