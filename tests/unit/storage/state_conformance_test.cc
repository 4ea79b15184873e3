// SPDX-License-Identifier: Apache-2.0
// Every implementation of the stores of a tracker's state must pass these tests. Another kind of database adds its row
// to kStateStores.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/memory/audit_store.h"
#include "storage/memory/farm_store.h"
#include "storage/memory/identity_store.h"
#include "storage/open.h"

namespace hone::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

const absl::Time kStateStart = absl::FromUnixSeconds(1'800'000'000);

// Functions that open an empty store of each kind.
struct StateStores {
  std::string name;
  std::function<std::unique_ptr<FarmStore>(const TemporaryFolder& folder)> farm;
  std::function<std::unique_ptr<IdentityStore>(const TemporaryFolder& folder)> identities;
  std::function<std::unique_ptr<AuditStore>(const TemporaryFolder& folder)> audit;
};

const StateStores kStateStores[] = {
    {"Sqlite", [](const TemporaryFolder& folder) { return OpenFarm(folder / "state").value(); },
     [](const TemporaryFolder& folder) { return OpenIdentities(folder / "register.db").value(); },
     [](const TemporaryFolder& folder) { return OpenAudit(folder / "audit.db").value(); }},
    {"Memory",
     [](const TemporaryFolder&) {
       return std::make_unique<MemoryFarmStore>(std::string(16, 'f'), std::string(64, 'k'));
     },
     [](const TemporaryFolder&) { return std::make_unique<MemoryIdentityStore>(); },
     [](const TemporaryFolder&) { return std::make_unique<MemoryAuditStore>(); }},
};

class StateConformanceTest : public testing::TestWithParam<StateStores> {
 protected:
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

INSTANTIATE_TEST_SUITE_P(Kinds, StateConformanceTest, testing::ValuesIn(kStateStores),
                         [](const auto& stores) { return stores.param.name; });

TEST_P(StateConformanceTest, RunsAreCountedAndTheFarmKeepsItsIdentity) {
  const auto farm = GetParam().farm(folder_);
  const FarmRun first = farm->BeginRun(kStateStart).value();
  EXPECT_EQ(first.incarnation, 30'000'000u) << "minutes since 1970";
  EXPECT_EQ(first.latest_start, kStateStart);
  EXPECT_THAT(first.farm_id, SizeIs(16));
  EXPECT_THAT(first.receipt_key, SizeIs(64));
  const FarmRun second = farm->BeginRun(kStateStart - absl::Hours(1)).value();
  EXPECT_EQ(second.incarnation, 30'000'001u) << "the clock stepped back";
  EXPECT_EQ(second.latest_start, kStateStart);
  EXPECT_EQ(second.farm_id, first.farm_id);
  EXPECT_EQ(second.receipt_key, first.receipt_key);
}

TEST_P(StateConformanceTest, JobsComeInTheOrderOfTheirFirstSaving) {
  const auto farm = GetParam().farm(folder_);
  ASSERT_TRUE(farm->Save({.jobs = {{"b", StoredJob{"spec b", "queued"}}}}).ok());
  ASSERT_TRUE(farm->Save({.jobs = {{"a", StoredJob{"spec a", "queued"}}, {"c", StoredJob{"", "no spec"}}}}).ok());
  ASSERT_TRUE(farm->Save({.jobs = {{"b", StoredJob{"", "running"}}}}).ok());
  std::vector<JobRow> jobs = farm->Jobs().value();
  ASSERT_THAT(jobs, SizeIs(2)) << "a state without a specification is no job";
  EXPECT_EQ(jobs[0].id, "b");
  EXPECT_EQ(jobs[0].job.spec, "spec b") << "an empty specification leaves the stored one";
  EXPECT_EQ(jobs[0].job.state, "running");
  ASSERT_TRUE(farm->SetAside(std::vector<DamagedJob>{{"b", "damaged", jobs[0].job, "failed"}}, kStateStart).ok());
  EXPECT_EQ(farm->Jobs().value()[0].job.spec, "");
  EXPECT_EQ(farm->Jobs().value()[0].job.state, "failed");
  ASSERT_TRUE(farm->Save({.jobs = {{"b", std::nullopt}}}).ok());
  EXPECT_EQ(farm->Jobs().value()[0].id, "a");
}

TEST_P(StateConformanceTest, DrainedAgentsAndHealthAreKeptUntilTheyAreForgotten) {
  const auto farm = GetParam().farm(folder_);
  ASSERT_TRUE(farm->Save({.drained = {{"a", "hot"}, {"b", "old"}}, .health = {{"cpu", std::string("\0x", 2)}}}).ok());
  ASSERT_TRUE(farm->Save({.drained = {{"a", std::nullopt}, {"b", "older"}}}).ok());
  EXPECT_THAT(farm->Drained().value(), ElementsAre(Pair("b", "older")));
  EXPECT_THAT(farm->Health().value(), ElementsAre(Pair("cpu", std::string("\0x", 2))));
  ASSERT_TRUE(farm->Save({.health = {{"cpu", std::nullopt}}}).ok());
  EXPECT_THAT(farm->Health().value(), SizeIs(0));
}

TEST_P(StateConformanceTest, WatchesAreKeptByNameAndDevice) {
  const auto farm = GetParam().farm(folder_);
  ASSERT_TRUE(farm->Save({.watches = {{{"a", ""}, std::string("\0x", 2)}, {{"a", "board/cpu"}, "nights"}}}).ok());
  ASSERT_TRUE(farm->Save({.watches = {{{"a", "board/cpu"}, "more nights"}, {{"b", ""}, "b"}}}).ok());
  EXPECT_THAT(farm->Watches().value(),
              ElementsAre(Pair(WatchKey("a", ""), std::string("\0x", 2)),
                          Pair(WatchKey("a", "board/cpu"), "more nights"), Pair(WatchKey("b", ""), "b")));
  ASSERT_TRUE(farm->Save({.watches = {{{"a", ""}, std::nullopt}, {{"a", "board/cpu"}, std::nullopt}}}).ok());
  EXPECT_THAT(farm->Watches().value(), ElementsAre(Pair(WatchKey("b", ""), "b")));
}

CertificateRow CertificateOf(const std::string& serial, const std::string& name, absl::Time issued = kStateStart) {
  return {serial, "agent", name, issued, issued + absl::Hours(24), "token 1 of ann, for a browser session"};
}

TEST_P(StateConformanceTest, CertificatesAreFoundBySerialAndRevokedByName) {
  const auto store = GetParam().identities(folder_);
  ASSERT_TRUE(store->AddCertificate(CertificateOf("1", "board")).ok());
  EXPECT_FALSE(store->AddCertificate(CertificateOf("1", "other")).ok());
  ASSERT_TRUE(store->AddCertificate(CertificateOf("2", "board", kStateStart + absl::Hours(1))).ok());
  EXPECT_TRUE(store->Find("1", "board")->known);
  EXPECT_FALSE(store->Find("3", "board")->known);
  EXPECT_EQ(*store->VoucherOf("1"), "token 1 of ann, for a browser session");
  EXPECT_EQ(*store->VoucherOf("3"), "");
  EXPECT_EQ(store->LastIssued("agent", "board", "2", kStateStart + absl::Hours(9)).value(), kStateStart);
  EXPECT_EQ(store->LastIssued("agent", "board", "1", kStateStart).value(), std::nullopt) << "2 was issued later";
  ASSERT_THAT(store->NewestCertificates().value(), SizeIs(1));
  EXPECT_EQ(store->NewestCertificates().value()[0].serial, "2");
  EXPECT_TRUE(*store->IsTaken("board"));
  EXPECT_EQ(*store->RevokeName("board", kStateStart), 2);
  EXPECT_EQ(*store->RevokeName("board", kStateStart), 0);
  EXPECT_FALSE(*store->IsTaken("board"));
  EXPECT_TRUE(*store->WasRevoked("board"));
  EXPECT_TRUE(store->Find("1", "board")->revoked);
  EXPECT_TRUE(store->Find("3", "board")->name_revoked);
}

TEST_P(StateConformanceTest, ExpiredCertificatesOfTheIdentityAndOfSessionsAreForgotten) {
  const auto store = GetParam().identities(folder_);
  CertificateRow by_hand = CertificateOf("2", "other");
  by_hand.vouched_by = "signed elsewhere";
  ASSERT_TRUE(store->AddCertificate(CertificateOf("1", "session")).ok());
  ASSERT_TRUE(store->AddCertificate(by_hand).ok());
  ASSERT_TRUE(store->AddCertificate(CertificateOf("3", "session", kStateStart + absl::Hours(30))).ok());
  ASSERT_TRUE(store->ForgetExpired("agent", "board", ", for a browser session", kStateStart + absl::Hours(31)).ok());
  EXPECT_FALSE(store->Find("1", "session")->known);
  EXPECT_TRUE(store->Find("2", "other")->known);
  EXPECT_TRUE(store->Find("3", "session")->known);
  ASSERT_TRUE(store->ForgetExpired("agent", "other", ", for a browser session", kStateStart + absl::Hours(31)).ok());
  EXPECT_FALSE(store->Find("2", "other")->known);
}

TEST_P(StateConformanceTest, TokensAreSpentRevokedAndForgotten) {
  const auto store = GetParam().identities(folder_);
  const auto token = [](const std::string& hash, const std::string& by, absl::Time created) {
    return TokenRow{hash, "agent", "", 2, created, created + absl::Hours(1), by};
  };
  ASSERT_TRUE(store->AddToken(token("aa01", "ann", kStateStart)).ok());
  ASSERT_TRUE(store->AddToken(token("bb02", "bob", kStateStart + absl::Hours(9))).ok());
  ASSERT_THAT(store->Tokens().value(), SizeIs(2));
  EXPECT_EQ(store->Tokens().value()[0].hash, "bb02") << "the newest first";
  ASSERT_TRUE(store->SpendToken("bb02").ok());
  EXPECT_EQ(store->FindToken("bb02").value()->uses_left, 1);
  EXPECT_EQ(store->FindToken("bb02").value()->created, kStateStart + absl::Hours(9));
  EXPECT_FALSE(store->FindToken("bb").value().has_value());
  EXPECT_TRUE(*store->RevokeToken("bb", 2));
  EXPECT_FALSE(*store->RevokeToken("b", 2));
  EXPECT_TRUE(store->FindToken("bb02").value()->revoked);
  ASSERT_TRUE(store->RevokeName("ann", kStateStart).ok());
  EXPECT_TRUE(store->FindToken("aa01").value()->revoked) << "its maker was revoked";
  ASSERT_TRUE(store->ForgetTokens(kStateStart + absl::Hours(2)).ok());
  EXPECT_THAT(store->Tokens().value(), SizeIs(1));
}

TEST_P(StateConformanceTest, AChangeHappensWholeOrNotAtAll) {
  const auto store = GetParam().identities(folder_);
  {
    const auto change = store->Begin().value();
    ASSERT_TRUE(store->AddCertificate(CertificateOf("1", "board")).ok());
    EXPECT_TRUE(*store->IsTaken("board")) << "a change sees itself";
  }
  EXPECT_FALSE(*store->IsTaken("board"));
  {
    const auto change = store->Begin().value();
    ASSERT_TRUE(store->AddCertificate(CertificateOf("1", "board")).ok());
    ASSERT_TRUE(change->Commit().ok());
  }
  EXPECT_TRUE(*store->IsTaken("board"));
}

TEST_P(StateConformanceTest, ActsOfMembershipAreNotPushedOutByOthers) {
  const auto store = GetParam().audit(folder_);
  const auto add = [&](const std::string& role, const std::string& method, const std::string& result) {
    const AuditRow row{.time = kStateStart, .role = role, .name = "ann", .method = method, .result = result};
    ASSERT_TRUE(store->Append(row, 2).ok());
  };
  add("admin", "Drain", "ok");
  add("", "JoinService/Join", "ok");
  add("admin", "Drain", "refused");
  for (int i = 0; i < 3; ++i) add("client", "Submit", "ok");
  std::vector<int64_t> numbers;
  const std::vector<AuditRow> newest = store->Newest(9).value();
  for (const AuditRow& row : newest) numbers.push_back(row.number);
  EXPECT_THAT(numbers, ElementsAre(6, 5, 2, 1));
  EXPECT_EQ(store->Newest(1).value()[0].time, kStateStart);
  add("admin", "Undrain", "ok");
  EXPECT_EQ(store->Newest(9).value().back().number, 2);
}

}  // namespace
}  // namespace hone::storage
