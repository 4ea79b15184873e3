// SPDX-License-Identifier: Apache-2.0
// The audit log: which caller changed what, or was refused, and when. Append-only and bounded, in a
// storage::AuditStore.
//
// It leaves out calls that only read or wait, and the work of agents and tuners, because records and jobs show that
// work. It has their joins and their refusals. A program that calls again and again must not push important entries
// out. So at most ten refusals of one caller are logged a minute, and the acts of admins, joins and revocations are
// counted apart from all others. Safe from any thread. If the log cannot be written, calls go on, and the tracker's
// own log has the error.
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
#include "storage/audit_store.h"

namespace hone::tracker {

class AuditLog {
 public:
  // kept: how many entries of either sort (storage/audit_store.h) stay. Older ones are forgotten; up to a hundredth
  // more may be there. Errors as storage::OpenAudit.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::filesystem::path& path, int64_t kept = 100'000);
  AuditLog(std::unique_ptr<storage::AuditStore> store, int64_t kept) : store_(std::move(store)), kept_(kept) {}

  struct Act {
    std::string role, name, peer, method, object;
  };
  void Add(const Act& act, const absl::Status& result, absl::Time now);
  absl::StatusOr<std::vector<v1::AuditEntry>> Newest(int limit);

 private:
  bool IsOverRefusalLimit(const Act& act, absl::Time now);
  absl::Status Insert(const Act& act, const absl::Status& result, absl::Time now);

  std::mutex mutex_;
  const std::unique_ptr<storage::AuditStore> store_;
  const int64_t kept_;
  int64_t since_forgotten_ = kept_;  // entries since old ones were forgotten; begins high: the store may hold too many
  absl::Time minute_ = absl::InfinitePast();
  std::map<std::pair<std::string, std::string>, int> refused_;  // by role and name, since minute_
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_AUDIT_LOG_H_
