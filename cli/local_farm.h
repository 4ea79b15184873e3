// A farm on this machine for the length of one command: tracker, agent and tuner as child processes.
//
// The same programs and the same path as a farm of boards, over a socket in a folder that is closed to other users. A
// child that dies is started again (a few times; then Check says what its log says); all of them end with this process,
// however it ends. Not thread-safe.
#ifndef HONE_CLI_LOCAL_FARM_H_
#define HONE_CLI_LOCAL_FARM_H_

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/temporary_folder.h"

namespace hone::cli {

class LocalFarm {
 public:
  struct Options {
    std::filesystem::path records;
    int threads = 0;               // of the agent; 0: all CPUs
    std::string device;            // that the agent has, as its --device says it
    std::string reproducers = {};  // folder for the tuner's; empty: none
  };

  // Returns once the tracker serves. Errors carry the last lines of the log of the child that failed.
  static absl::StatusOr<LocalFarm> Start(const Options& options);
  LocalFarm(LocalFarm&& other) noexcept = default;
  LocalFarm& operator=(LocalFarm&&) = delete;
  ~LocalFarm();

  const std::string& address() const { return address_; }
  // To be called now and then: restarts children that died. Unavailable when one dies again and again.
  absl::Status Check();

 private:
  struct Child {
    std::string program;
    std::vector<std::string> arguments;
    std::filesystem::path log;
    pid_t pid = -1;
    int restarts = 0;
  };

  explicit LocalFarm(TemporaryFolder folder) : folder_(std::move(folder)) {}
  absl::Status Spawn(Child& child);
  absl::Status AwaitTracker(const std::filesystem::path& serves);
  void Add(const std::string& program, std::vector<std::string> arguments);

  TemporaryFolder folder_;
  std::string address_;
  std::vector<Child> children_;
};

}  // namespace hone::cli

#endif  // HONE_CLI_LOCAL_FARM_H_
