// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/folder_path.h"
#include "base/host_lock.h"
#include "base/private_folder.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/local_farm.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "records/default_path.h"

namespace hone::cli {
namespace {

constexpr absl::Duration kLook =
    absl::Milliseconds(100);  // interval of the checks for signals and for children that died

struct UpOptions {
  std::string state;
  int port = 9191;
  int threads = 0;
  std::vector<std::string> devices = {}, notify_allowed = {};
  bool json = false;
};

// The absolute path of the state folder, which is created if needed. It is absolute because programs in other folders
// get the path of its socket. Error if other users can enter the folder.
absl::StatusOr<std::filesystem::path> StateFolder(const UpOptions& options) {
  std::filesystem::path folder = options.state;
  if (folder.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::filesystem::path records, records::DefaultRecordsPath());
    folder = records.parent_path() / "farm";
  }
  std::error_code error;
  folder = FolderPath(std::filesystem::absolute(folder, error));
  if (!error) std::filesystem::create_directories(folder.parent_path(), error);
  if (!error && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) error = {errno, std::generic_category()};
  if (error) {
    return absl::UnavailableError(
        fmt::format("cannot make the folder {}: {}; name another with --state", folder.string(), error.message()));
  }
  HONE_RETURN_IF_ERROR(CheckPrivateFolder(folder));
  return folder;
}

// Takes the lock of the state folder, which is held as long as the farm runs. kFailedPrecondition: another `hone up`
// holds it.
absl::StatusOr<HostLock> TakeState(const std::filesystem::path& state) {
  HONE_ASSIGN_OR_RETURN(HostLock lock, HostLock::Open(state / "lock"));
  HONE_ASSIGN_OR_RETURN(const bool taken, lock.TryLock(HostLock::Mode::kExclusive));
  if (taken) return lock;
  return absl::FailedPreconditionError(fmt::format(
      "another hone up is running with {}; use it (--tracker unix:{}), end it, or name another folder with --state",
      state.string(), (state / "tracker").string()));
}

// The options to suggest for `hone submit`, so that a job asks for no more than this farm's agent has.
std::string SubmitOptions(const UpOptions& options) {
  std::string words = "--time 10m";
  if (!options.devices.empty()) {
    words += fmt::format(" --device {}", LocalFarm::kAgent);  // the device's target includes its number of threads
  } else if (options.threads > 0) {
    words += fmt::format(" --threads {}", options.threads);
  }
  return words;
}

absl::Status Up(const UpOptions& options) {
  const Interrupts interrupts;
  HONE_ASSIGN_OR_RETURN(const std::filesystem::path state, StateFolder(options));
  HONE_ASSIGN_OR_RETURN(const HostLock lock, TakeState(state));
  HONE_ASSIGN_OR_RETURN(LocalFarm farm, LocalFarm::Start({.records = state / "records.db",
                                                          .threads = options.threads,
                                                          .devices = options.devices,
                                                          .state = state,
                                                          .http_port = options.port,
                                                          .notify_allowed = options.notify_allowed,
                                                          .interrupts = &interrupts}));
  HONE_RETURN_IF_ERROR(
      options.json
          ? PrintJson({{"dashboard", farm.dashboard()}, {"tracker", farm.address()}, {"state", state.string()}})
          : PrintText(fmt::format("dashboard: {}\n"
                                  "tracker:   {}\n"
                                  "In another shell: export HONE_TRACKER={}; hone submit MODEL.onnx {}\n"
                                  "Ctrl-C ends it; jobs and records stay in {}\n",
                                  farm.dashboard(), farm.address(), ShellWord(farm.address()), SubmitOptions(options),
                                  state.string())));
  while (!interrupts.WasInterrupted()) {
    HONE_RETURN_IF_ERROR(farm.Check());
    absl::SleepFor(kLook);
  }
  return absl::OkStatus();
}

}  // namespace

void AddUpCommand(CLI::App& app, absl::Status* result) {
  const auto options = std::make_shared<UpOptions>();
  CLI::App* command =
      app.add_subcommand("up", "run a farm on this machine until Ctrl-C: tracker, tuner, agent and dashboard");
  command
      ->add_option("--state", options->state,
                   "folder for jobs, records and logs, closed to other users (default: ~/.local/share/hone/farm)")
      ->check(NotEmpty);
  command
      ->add_option("--port", options->port,
                   "port of the dashboard on 127.0.0.1; the printed address gives access; 0: a free port")
      ->check(IntegerInRange(65535))
      ->capture_default_str();
  command->add_option("--device", options->devices,
                      "device to measure on, as for hone-agent (default: cpu); may be repeated");
  command->add_option("--threads", options->threads, "largest number of threads for a kernel (default: all CPUs)")
      ->check(IntegerInRange(kThreadsMax));
  command
      ->add_option("--notify-allow", options->notify_allowed,
                   "first part of the URLs that jobs may give with --notify, as for hone-tracker; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--json", options->json, "print the addresses as one JSON document");
  command->callback([options, result] { *result = Up(*options); });
}

}  // namespace hone::cli
