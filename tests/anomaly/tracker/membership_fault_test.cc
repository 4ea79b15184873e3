// SPDX-License-Identifier: Apache-2.0
// Each disk operation of the register of members and of the audit log fails once, in turn. Both files must open again.
// The register must have everything it acknowledged: members, spent tokens, revocations. The log must have all acts
// that it could write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/temporary_folder.h"
#include "pki/token.h"
#include "tests/anomaly/records/fault_vfs.h"
#include "tracker/audit_log.h"
#include "tracker/register.h"

namespace hone::tracker {
namespace {

using records::Fault;
using records::FaultVfs;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr int kMembers = 3;

// The facts that a session was told, which must hold afterwards.
struct Told {
  std::map<std::string, std::string> secrets;         // token secrets, by the name that each token was made for
  std::map<std::string, Register::Enrolled> members;  // by name
  std::set<std::string> revoked, perhaps_revoked;     // perhaps: the call was made and answered with an error
  bool opened = false;
};

class MembershipFaultTest : public testing::TestWithParam<Fault> {
 protected:
  // Each member makes a token and joins with it; then the first member is revoked. A failed step is tried once more. If
  // it fails again, because the power is gone, it does not count as told.
  Told RunSession(const std::filesystem::path& folder) {
    Told told;
    auto members = Register::Open(folder / "register.db");
    if (!members.ok()) members = Register::Open(folder / "register.db");
    if (!members.ok()) return told;
    told.opened = true;
    for (int i = 0; i < kMembers; ++i) {
      const std::string name = fmt::format("board{}", i), secret = pki::RandomSecret();
      const auto again = [](const auto& act) { return act() || act(); };
      if (!again([&] {
            return (*members)->AddToken({secret, Role::kAgent, "", 1, kNow + absl::Hours(1), "ann"}, kNow).ok();
          })) {
        continue;
      }
      told.secrets[name] = secret;
      again([&] {
        auto enrolled = (*members)->Enrol({secret, "agent", name, "host"}, signer_, kNow);
        if (enrolled.ok()) told.members[name] = *std::move(enrolled);
        return enrolled.ok();
      });
    }
    for (int tries = 0; tries < 2 && told.revoked.empty() && told.members.contains("board0"); ++tries) {
      const bool revoked = (*members)->Revoke("board0", kNow + absl::Seconds(1)).ok();
      (revoked ? told.revoked : told.perhaps_revoked).insert("board0");
    }
    return told;
  }

  static void ExpectKept(const std::filesystem::path& folder, const Told& told) {
    const auto members = Register::Open(folder / "register.db");
    ASSERT_TRUE(members.ok()) << members.status();
    const absl::Time later = kNow + absl::Seconds(2);
    for (const auto& [name, secret] : told.secrets) {
      if (told.members.contains(name)) {
        EXPECT_FALSE((*members)->CheckToken(secret, later).ok()) << name << ": a token that was spent is good again";
      }
    }
    std::set<std::string> known;
    const auto identities = (*members)->Identities();
    ASSERT_TRUE(identities.ok()) << identities.status();
    for (const v1::Identity& identity : *identities) known.insert(identity.name());
    for (const auto& [name, member] : told.members) {
      EXPECT_TRUE(known.contains(name)) << name << " joined, and is forgotten";
      const absl::Status admitted =
          (*members)->Admit(member.identity, pki::ReadCertificate(member.certificate).value(), later);
      if (told.revoked.contains(name)) {
        EXPECT_FALSE(admitted.ok()) << name << " was revoked, and is admitted";
      } else if (!told.perhaps_revoked.contains(name)) {
        EXPECT_TRUE(admitted.ok()) << name << ": " << admitted;
      }
    }
  }

  const pki::Authority authority_ = pki::Authority::Make({kNow, kNow + absl::Hours(999)}).value();
  const std::string request_ = pki::MakeRequest(pki::MakeKey()).value();
  const Register::Sign signer_ = [this](const FarmIdentity& identity) {
    return authority_.SignMember(request_, identity, {kNow, kNow + absl::Hours(24)});
  };
};

TEST_P(MembershipFaultTest, NoSingleFaultLosesAMemberOrForgivesOne) {
  const bool power_cut = GetParam() == Fault::kPowerCut;
  bool hit = true;
  int n = 0;
  for (n = 1; hit; ++n) {
    const TemporaryFolder folder = TemporaryFolder::Create().value();
    Told told;
    {
      FaultVfs vfs;
      vfs.Arm(GetParam(), n);
      told = RunSession(folder.path());
      hit = vfs.hit();
      if (power_cut && hit) vfs.LosePower(static_cast<uint64_t>(n));
    }
    ExpectKept(folder.path(), told);
    if (!power_cut) {
      EXPECT_TRUE(told.opened);
      EXPECT_EQ(told.members.size(), static_cast<size_t>(kMembers));
      EXPECT_EQ(told.revoked.size(), 1u);
    }
    if (testing::Test::HasFailure()) FAIL() << "at fault " << n;
  }
  const bool rare = GetParam() == Fault::kTruncateError || GetParam() == Fault::kDeleteError;
  EXPECT_GT(n, rare ? 1 : 15) << "the disk saw too little";
}

// A failed log write blocks no act; the act is reported elsewhere. No other act may be lost from the log or be there
// twice.
TEST_P(MembershipFaultTest, NoSingleFaultSpoilsTheAuditLog) {
  constexpr int kActs = 8;
  const bool power_cut = GetParam() == Fault::kPowerCut;
  bool hit = true;
  int n = 0;
  for (n = 1; hit; ++n) {
    const TemporaryFolder folder = TemporaryFolder::Create().value();
    std::set<std::string> seen;
    {
      FaultVfs vfs;
      vfs.Arm(GetParam(), n);
      auto log = AuditLog::Open(folder / "audit.db", 4);
      if (!log.ok()) log = AuditLog::Open(folder / "audit.db", 4);
      EXPECT_TRUE(log.ok() || power_cut) << log.status();
      for (int i = 0; i < kActs && log.ok(); ++i) {
        (*log)->Add({"client", "ann", "", "JobService/Cancel", fmt::format("job{}", i)}, absl::OkStatus(), kNow);
      }
      hit = vfs.hit();
      if (power_cut && hit) {
        log = absl::CancelledError();
        vfs.LosePower(static_cast<uint64_t>(n));
      }
    }
    const auto log = AuditLog::Open(folder / "audit.db", 4);
    ASSERT_TRUE(log.ok()) << "at fault " << n << ": " << log.status();
    const auto entries = (*log)->Newest(100);
    ASSERT_TRUE(entries.ok()) << entries.status();
    for (const v1::AuditEntry& entry : *entries) EXPECT_TRUE(seen.insert(entry.object()).second) << "twice";
    EXPECT_LE(entries->size(), 4u) << "at fault " << n;
    EXPECT_TRUE(power_cut || entries->size() >= 3) << "at fault " << n << ": one is what a fault costs";
    if (testing::Test::HasFailure()) FAIL() << "at fault " << n;
  }
  const bool rare = GetParam() == Fault::kTruncateError || GetParam() == Fault::kDeleteError;
  EXPECT_GT(n, rare ? 1 : 8) << "the disk saw too little";
}

INSTANTIATE_TEST_SUITE_P(AllFaults, MembershipFaultTest,
                         testing::Values(Fault::kWriteError, Fault::kShortWrite, Fault::kSyncError,
                                         Fault::kTruncateError, Fault::kDeleteError, Fault::kDiskFull,
                                         Fault::kPowerCut));

}  // namespace
}  // namespace hone::tracker
