// SPDX-License-Identifier: Apache-2.0
#include "tracker/audit_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "storage/memory/audit_store.h"

namespace hone::tracker {
namespace {

const absl::Time kAuditTime = absl::FromUnixSeconds(1'800'000'000);

std::unique_ptr<AuditLog> LogInMemory(int64_t kept) {
  return std::make_unique<AuditLog>(std::make_unique<storage::MemoryAuditStore>(), kept);
}

TEST(AuditLogTest, TellsTheNewestFirstAndForgetsTheOldest) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  auto log = AuditLog::Open(folder / "audit.db", 3).value();
  for (int i = 0; i < 5; ++i) {
    log->Add({"client", "ann", "ipv4:1", "JobService/Cancel", fmt::format("job{}", i)}, absl::OkStatus(),
             kAuditTime + absl::Seconds(i));
  }
  log.reset();
  log = AuditLog::Open(folder / "audit.db", 3).value();
  const auto entries = log->Newest(10).value();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].object(), "job4");
  EXPECT_EQ(entries[0].number(), 5);
  EXPECT_EQ(entries[0].result(), "ok");
  EXPECT_EQ(entries[0].time().seconds(), 1'800'000'004);
  EXPECT_EQ(entries[2].object(), "job2");
  EXPECT_EQ(log->Newest(1)->size(), 1u);
}

TEST(AuditLogTest, RepeatedRefusalsPushNothingOut) {
  const auto log = LogInMemory(100'000);
  for (int i = 0; i < 100; ++i) log->Add({"agent", "a", "", "x", ""}, absl::PermissionDeniedError("no"), kAuditTime);
  EXPECT_EQ(log->Newest(1000)->size(), 10u);
  log->Add({"agent", "b", "", "x", ""}, absl::PermissionDeniedError("no"), kAuditTime);
  log->Add({"agent", "a", "", "x", ""}, absl::OkStatus(), kAuditTime);
  log->Add({"agent", "a", "", "x", ""}, absl::PermissionDeniedError("no"), kAuditTime + absl::Minutes(1));
  EXPECT_EQ(log->Newest(1000)->size(), 13u);
  EXPECT_EQ((*log->Newest(1))[0].result(), "no");
}

TEST(AuditLogTest, ActsOfAdminsAndJoinsOutliveAllOtherActs) {
  const auto log = LogInMemory(3);
  log->Add({"", "", "", "JoinService/Join", "client/ann"}, absl::OkStatus(), kAuditTime);
  log->Add({"admin", "eve", "", "AdminService/Drain", "board"}, absl::OkStatus(), kAuditTime);
  for (int i = 0; i < 10; ++i) log->Add({"client", "ann", "", "JobService/Submit", "j"}, absl::OkStatus(), kAuditTime);
  for (int i = 0; i < 10; ++i) log->Add({"client", "ann", "", "JoinService/Renew", ""}, absl::OkStatus(), kAuditTime);
  const auto entries = log->Newest(100).value();
  ASSERT_EQ(entries.size(), 5u);
  EXPECT_EQ(entries[3].method(), "AdminService/Drain");
  EXPECT_EQ(entries[4].method(), "JoinService/Join");
  for (int i = 0; i < 10; ++i) log->Add({"admin", "eve", "", "AdminService/Undrain", ""}, absl::OkStatus(), kAuditTime);
  EXPECT_EQ(log->Newest(100)->size(), 6u) << "they too are bounded";
}

TEST(AuditLogTest, AnyBytesMayBeSaidOfAnObject) {
  const auto log = LogInMemory(100'000);
  log->Add({"client", "ann", "", "x", std::string("\0\xff", 2) + std::string(10'000, 'y')}, absl::OkStatus(),
           kAuditTime);
  ASSERT_EQ(log->Newest(1)->size(), 1u);
  EXPECT_LE((*log->Newest(1))[0].object().size(), 300u);
}

}  // namespace
}  // namespace hone::tracker
