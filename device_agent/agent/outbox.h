// SPDX-License-Identifier: Apache-2.0
// Results that the tracker has not acknowledged yet, on the agent's disk: what was measured is not measured again
// because an agent, a tracker or a machine was restarted meanwhile.
//
// A file for each, written whole before its name appears. Bounded: beyond that the oldest go, with a word in the log.
// An agent whose disk is full keeps them in memory as before, and says so. Not thread-safe: SyncLoop guards it.
#ifndef HONE_DEVICE_AGENT_AGENT_OUTBOX_H_
#define HONE_DEVICE_AGENT_AGENT_OUTBOX_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/agent.pb.h"

namespace hone::agent {

class Outbox {
 public:
  struct Limits {
    size_t results = 4096;  // a night of a busy board without its tracker
    int64_t bytes = int64_t{256} << 20;
  };

  // folder: made where missing, closed to other users.
  static absl::StatusOr<Outbox> Open(std::filesystem::path folder, Limits limits);
  static absl::StatusOr<Outbox> Open(std::filesystem::path folder) { return Open(std::move(folder), Limits()); }

  // What is there, by lease id. Files that make no sense are set aside (NAME.broken).
  std::map<std::string, v1::LeaseResult> Read() const;
  // On the disk when it returns OK. kInvalidArgument: the lease's id is no name for a file.
  absl::Status Keep(const v1::LeaseResult& result);
  void Forget(const std::string& lease_id);

 private:
  Outbox(std::filesystem::path folder, Limits limits) : folder_(std::move(folder)), limits_(limits) {}
  void MakeRoom(int64_t bytes) const;

  std::filesystem::path folder_;
  Limits limits_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_AGENT_OUTBOX_H_
