// SPDX-License-Identifier: Apache-2.0
#include "tracker/audit_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <optional>

#include "base/status.h"
#include "proto/convert.h"
#include "records/record.h"
#include "storage/open.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

constexpr int kRefusalsPerMinute = 10;
constexpr size_t kAuditTextBytesMax = 300;
}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::filesystem::path& path, int64_t kept) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<storage::AuditStore> store, storage::OpenAudit(path));
  return std::make_unique<AuditLog>(std::move(store), kept);
}

bool AuditLog::IsOverRefusalLimit(const Act& act, absl::Time now) {
  if (now - minute_ >= absl::Minutes(1) || now < minute_) {
    refused_.clear();
    minute_ = now;
  }
  return ++refused_[{act.role, act.name}] > kRefusalsPerMinute;
}

void AuditLog::Add(const Act& act, const absl::Status& result, absl::Time now) {
  const std::lock_guard lock(mutex_);
  if (!result.ok() && IsOverRefusalLimit(act, now)) return;
  if (const absl::Status written = Insert(act, result, now); !written.ok()) {
    spdlog::error("the audit log could not store {} of {} {} on {}: {}", act.method, act.role, act.name, act.object,
                  std::string(written.message()));
  }
}

absl::Status AuditLog::Insert(const Act& act, const absl::Status& result, absl::Time now) {
  const auto clean = [](const std::string& text) { return records::CleanText(text, kAuditTextBytesMax); };
  // Looking for acts to forget reads all of them, so it is not done at every act.
  const bool forget = ++since_forgotten_ > kept_ / 100;
  HONE_RETURN_IF_ERROR(store_->Append({.time = now,
                                       .role = clean(act.role),
                                       .name = clean(act.name),
                                       .peer = clean(act.peer),
                                       .method = clean(act.method),
                                       .object = clean(act.object),
                                       .result = clean(result.ok() ? "ok" : std::string(result.message()))},
                                      forget ? std::optional(kept_) : std::nullopt));
  if (forget) since_forgotten_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::AuditEntry>> AuditLog::Newest(int limit) {
  const std::lock_guard lock(mutex_);
  HONE_ASSIGN_OR_RETURN(const std::vector<storage::AuditRow> rows, store_->Newest(limit));
  std::vector<v1::AuditEntry> entries;
  for (const storage::AuditRow& row : rows) {
    v1::AuditEntry& entry = entries.emplace_back();
    entry.set_number(row.number);
    *entry.mutable_time() = ToProto(row.time);
    entry.set_role(row.role);
    entry.set_name(row.name);
    entry.set_peer(row.peer);
    entry.set_method(row.method);
    entry.set_object(row.object);
    entry.set_result(row.result);
  }
  return entries;
}

}  // namespace hone::tracker
