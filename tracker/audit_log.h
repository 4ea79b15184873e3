// SPDX-License-Identifier: Apache-2.0
// The audit log: who changed what, or was refused, and when. Append-only, bounded, in a small SQLite file of its own.
//
// Calls that only read or wait are not in it, and neither is the work of agents and tuners, which records and jobs
// show; their joining and their refusals are. Refusals of one caller are written down at most ten times a minute, and
// what admins did, who joined and who was revoked is counted apart from all else: a program that asks again and again
// must not push out what matters. Safe from any thread. A log that cannot be written to stops nobody: it says so on the
// tracker's own log.
#ifndef HONE_TRACKER_AUDIT_LOG_H_
#define HONE_TRACKER_AUDIT_LOG_H_

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/identity.pb.h"
#include "records/database.h"

namespace hone::tracker {

extern const records::DatabaseKind kAuditFile;

class AuditLog {
 public:
  // kept: how many entries of either sort; those before are forgotten, at most a hundredth late.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::filesystem::path& path, int64_t kept = 100'000);

  struct Act {
    std::string role, name, peer, method, object;
  };
  void Add(const Act& act, const absl::Status& result, absl::Time now);
  absl::StatusOr<std::vector<v1::AuditEntry>> Newest(int limit);

 private:
  AuditLog(records::Writer file, int64_t kept) : file_(std::move(file)), kept_(kept) {}
  bool TooMany(const Act& act, absl::Time now);
  absl::Status Insert(const Act& act, const absl::Status& result, absl::Time now);

  std::mutex mutex_;
  const records::Writer file_;
  const records::Connection& connection_ = file_.connection;
  const int64_t kept_;
  int64_t since_forgotten_ = kept_;  // entries; those of earlier processes may be too many
  absl::Time minute_ = absl::InfinitePast();
  std::map<std::pair<std::string, std::string>, int> refused_;  // by role and name, since minute_
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_AUDIT_LOG_H_
