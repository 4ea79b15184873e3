// SPDX-License-Identifier: Apache-2.0
// A farm on this machine for the length of one command: tracker, agent and tuner as child processes.
//
// The same programs and the same path as a farm of boards, over a socket in a folder that is closed to other users.
// What it keeps beyond the command, if anything, is the caller's to say (Options). A child that dies is started again
// (a few times, or never; then Check says what its log says); all of them end with this process, however it ends. Not
// thread-safe. Start at Start.
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
  static constexpr const char* kAgent = "local";  // name of its agent
  struct Options {
    std::filesystem::path records;
    int threads = 0;                   // of the agent; 0: all CPUs
    std::vector<std::string> devices;  // that the agent has, as its --device says them; none: its default
    std::string reproducers = {};      // folder for the tuner's; empty: none
    std::filesystem::path state =
        {};  // folder for jobs, results under way, logs and the socket; empty: a temporary one
    std::optional<int> http_port = {};       // of 127.0.0.1, where the dashboard is; 0: a free one; nullopt: none
    int most_restarts = 20;                  // of each child
    const Interrupts* interrupts = nullptr;  // end the waiting for the tracker; null: nothing does
  };

  // Returns once the tracker serves, however long it takes to bring a large records file of an older Hone up to date.
  // Errors carry the last lines of the log of the child that failed.
  static absl::StatusOr<LocalFarm> Start(const Options& options);
  LocalFarm(LocalFarm&& other) noexcept = default;
  LocalFarm& operator=(LocalFarm&&) = delete;
  ~LocalFarm();

  const std::string& address() const { return address_; }
  // With the key to it, a secret of this user; "" where there is none.
  const std::string& dashboard() const { return dashboard_; }
  // To be called now and then: restarts children that died. Unavailable when one dies again and again.
  absl::Status Check();

 private:
  struct Child {
    std::string program;
    std::vector<std::string> arguments;
    std::filesystem::path log;
    std::uintmax_t logged = 0;  // bytes that were there before it was started the last time
    absl::Time started = {};    // SteadyNow
    pid_t pid = -1;
    int restarts = 0, at_once = 0;  // at_once: how often it ended by itself before it had done anything
  };

  LocalFarm(const Options& options, TemporaryFolder folder);
  absl::Status Spawn(Child& child);
  absl::Status StartTracker();
  absl::Status AwaitTracker(const std::filesystem::path& serves);
  void Add(const std::string& program, std::vector<std::string> arguments);

  Options options_;
  TemporaryFolder folder_;
  std::filesystem::path state_;
  std::string address_, dashboard_;
  std::vector<Child> children_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_LOCAL_FARM_H_
