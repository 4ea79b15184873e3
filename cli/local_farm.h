// SPDX-License-Identifier: Apache-2.0
// A farm on this machine for the duration of one command: tracker, agent and tuner as child processes. Start at Start.
//
// The programs are those of a farm of boards. They communicate over a socket in a folder that other users cannot enter.
// Options say which state outlives the command. A child that dies is restarted up to a limit; beyond it, Check returns
// the end of the child's log. All children end with this process, even if it is killed. Not thread-safe.
#ifndef HONE_CLI_LOCAL_FARM_H_
#define HONE_CLI_LOCAL_FARM_H_

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/temporary_folder.h"
#include "cli/interrupts.h"

namespace hone::cli {

class LocalFarm {
 public:
  static constexpr const char* kAgent = "local";  // the name of the farm's agent
  struct Options {
    std::filesystem::path records;
    int threads = 0;                   // threads of the agent's CPU device; 0 = the agent's default
    std::vector<std::string> devices;  // values for the agent's --device; empty = the agent's default
    std::string reproducers = {};      // the tuner's folder for reproducers of compiler bugs; empty = none are written
    std::filesystem::path state =
        {};  // folder for jobs, unsent results, logs and the socket; empty = a temporary folder
    std::optional<int> http_port = {};  // the dashboard's port on 127.0.0.1; 0 = a free one; nullopt = no dashboard
    std::vector<std::string> notify_allowed = {};  // values for the tracker's --notify-allow
    int restarts_max = 20;  // the limit for each child, of restarts without ten minutes between two of them
    const Interrupts* interrupts = nullptr;  // a signal ends the wait for the tracker; null = the wait ignores signals
  };

  // Starts the children and returns once the tracker serves. There is no time limit, because the tracker may first have
  // to migrate a large records file of an older Hone. Errors carry the last lines of the log of the child that failed.
  static absl::StatusOr<LocalFarm> Start(const Options& options);
  LocalFarm(LocalFarm&& other) noexcept = default;
  LocalFarm& operator=(LocalFarm&&) = delete;
  ~LocalFarm();

  const std::string& address() const { return address_; }
  // The dashboard's address including its access key, which is a secret of this user; "" if there is no dashboard.
  const std::string& dashboard() const { return dashboard_; }
  // Restarts children that died; call it regularly. kUnavailable: a child has died too often.
  absl::Status Check();

 private:
  struct Child {
    std::string program;
    std::vector<std::string> arguments;
    std::filesystem::path log;
    std::uintmax_t logged = 0;      // bytes in the log before the child was last started
    absl::Time started = {};        // when it was last started, by SteadyNow
    pid_t pid = -1;                 // -1 = not running
    int restarts = 0, at_once = 0;  // at_once: consecutive times that it exited within seconds of its start
  };

  LocalFarm(const Options& options, TemporaryFolder folder);
  absl::Status Spawn(Child& child);
  absl::Status StartTracker();
  absl::Status AwaitTracker(const std::filesystem::path& port_file);
  void Add(const std::string& program, std::vector<std::string> arguments);

  Options options_;
  TemporaryFolder folder_;
  std::filesystem::path state_;
  std::string address_, dashboard_;
  std::vector<Child> children_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_LOCAL_FARM_H_
