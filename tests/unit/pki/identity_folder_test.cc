// SPDX-License-Identifier: Apache-2.0
#include "pki/identity_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <memory>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "hone/v1/identity.grpc.pb.h"
#include "pki/farm_link.h"
#include "pki/join.h"
#include "pki/token.h"
#include "pki/tracker_folder.h"

namespace hone::pki {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kToday = absl::FromUnixSeconds(1'800'000'000);

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat facts{};
  EXPECT_EQ(lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 0777;
}

TEST(IdentityFolder, IsClosedToOtherUsers) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path own = folder / "a" / "b";
  ASSERT_TRUE(MakeFolder(own).ok());
  EXPECT_TRUE(MakeFolder(folder / "new/other/").ok()) << "as a shell completes it";
  EXPECT_EQ(ModeOf(own), 0700u);
  ASSERT_TRUE(WriteFile(own / "key", "secret").ok());
  EXPECT_EQ(ModeOf(own / "key"), 0600u);
  ASSERT_TRUE(WriteFile(own / "key", "other").ok());
  EXPECT_EQ(ReadFile(own / "key").value(), "other");
  ASSERT_EQ(chmod(own.c_str(), 0755), 0);
  EXPECT_THAT(std::string(MakeFolder(own).message()), HasSubstr("chmod 700"));
}

TEST(IdentityFolder, SettingsAreRead) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  EXPECT_EQ(ReadSettings(folder.path())->tracker, "");
  ASSERT_TRUE(WriteSettings(folder.path(), {"t:1", {"a=b c", "d=e"}}).ok());
  const Settings settings = ReadSettings(folder.path()).value();
  EXPECT_EQ(settings.tracker, "t:1");
  EXPECT_THAT(settings.labels, ElementsAre("a=b c", "d=e"));
  ASSERT_TRUE(WriteFile(folder / "settings", "colour red\n").ok());
  EXPECT_THAT(std::string(ReadSettings(folder.path()).status().message()), HasSubstr("line 'colour red'"));
}

TEST(IdentityFolder, ReadsItsIdentity) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path pki = folder / "pki", own = folder / "own";
  EXPECT_THAT(std::string(ReadIdentity(own).status().message()), HasSubstr("join a farm first"));
  ASSERT_TRUE(MakeTrackerFolder(pki, {"localhost"}, kToday).ok());
  const auto authority = ReadAuthority(pki).value();
  ASSERT_TRUE(IssueIdentity(*authority, own, {Role::kAgent, "board"}, "t:1", kToday).ok());
  EXPECT_EQ(ReadName(own, Role::kAgent).value(), "board");
  EXPECT_THAT(std::string(ReadName(own, Role::kTuner).status().message()), HasSubstr("role tuner is needed"));
  EXPECT_TRUE(absl::IsAlreadyExists(IssueIdentity(*authority, own, {Role::kAgent, "c"}, "t:1", kToday)));
  ASSERT_EQ(chmod(own.c_str(), 0755), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(ReadIdentity(own).status()));
  ASSERT_EQ(chmod(own.c_str(), 0700), 0);
  ASSERT_TRUE(WriteFile(FilesIn(own).identity, "none").ok());
  EXPECT_THAT(std::string(ReadIdentity(own).status().message()), HasSubstr("identity.pem"));
}

TEST(IdentityFolder, ChecksWhetherATrackerWillAcceptItsCertificate) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path own = folder / "own";
  const absl::Duration day = absl::Hours(24);
  const Authority farm = Authority::Make({kToday, kToday + 999 * day}).value(),
                  other = Authority::Make({kToday, kToday + 999 * day}).value();
  ASSERT_TRUE(IssueIdentity(farm, own, {Role::kAgent, "board"}, "t:1", kToday).ok());
  EXPECT_THAT(CheckCertificateIn(own, kToday - 300 * day).value(), HasSubstr("clock is behind"));
  EXPECT_EQ(CheckCertificateIn(own, kToday + 300 * day).value(), "");
  EXPECT_THAT(CheckCertificateIn(own, kToday + 340 * day).value(),
              AllOf(HasSubstr("ends at 2028-01-15"), HasSubstr("hone-agent join")));
  const absl::Status ended = CheckCertificateIn(own, kToday + 365 * day).status();
  EXPECT_TRUE(absl::IsUnauthenticated(ended));
  EXPECT_THAT(
      std::string(ended.message()),
      AllOf(HasSubstr("ended at 2028-01-15"), HasSubstr("hone identity revoke board"), HasSubstr("hone-agent join")));
  ASSERT_TRUE(WriteFile(FilesIn(own).authority, other.certificate()).ok());
  const absl::Status foreign = CheckCertificateIn(own, kToday).status();
  EXPECT_TRUE(absl::IsUnauthenticated(foreign));
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("belongs to another farm; remove that file"));
  const std::string pem = ReadFile(FilesIn(own).identity).value();
  ASSERT_TRUE(WriteFile(FilesIn(own).identity, pem + farm.certificate()).ok());
  EXPECT_TRUE(CheckCertificateIn(own, kToday).ok()) << "its authority may be one between";
}

TEST(FarmLink, RefusesAnExpiredCertificate) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const absl::Time issued = absl::Now() - absl::Hours(24 * 366);
  const Authority farm = Authority::Make({issued, issued + absl::Hours(24 * 999)}).value();
  ASSERT_TRUE(IssueIdentity(farm, folder / "own", {Role::kTuner, "t"}, "t:1", issued).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(FarmLink::Open("localhost:1", folder / "own").status()));
}

TEST(FarmLink, TheLogNamesAClockThatIsBehind) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const absl::Time issued = absl::Now() + absl::Hours(24 * 300);
  const Authority farm = Authority::Make({issued, issued + absl::Hours(24 * 999)}).value();
  ASSERT_TRUE(IssueIdentity(farm, folder / "own", {Role::kAgent, "board"}, "t:1", issued).ok());
  const auto lines = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  spdlog::default_logger()->sinks().push_back(lines);
  {
    const auto link = FarmLink::Open("localhost:1", folder / "own");
    EXPECT_TRUE(link.ok()) << "it waits for the clock to be set: " << link.status();
    for (int i = 0; i < 3000 && lines->last_raw().empty(); ++i) absl::SleepFor(absl::Milliseconds(10));
  }
  spdlog::default_logger()->sinks().pop_back();
  ASSERT_FALSE(lines->last_formatted().empty());
  EXPECT_THAT(lines->last_formatted().front(), HasSubstr("clock is behind"));
}

TEST(FarmLink, AWrongClockDoesNotProlongPausesBetweenRenewals) {
  const absl::Duration life = absl::Hours(300);
  const CertificateFacts facts{.serial = "1", .uris = {}, .from = kToday, .until = kToday + life, .fingerprint = ""};
  const absl::Time late = kToday + 0.9 * life, due = kToday + 0.7 * life, steady = absl::FromUnixSeconds(1000);
  RenewalSchedule tries;
  EXPECT_FALSE(tries.ShouldTry(facts, kToday, steady));
  EXPECT_TRUE(tries.ShouldTry(facts, late, steady));
  EXPECT_FALSE(tries.ShouldTry(facts, late, steady + life / 200));
  EXPECT_TRUE(tries.ShouldTry(facts, due, steady + life / 100)) << "the clock was ahead at the first try";
  EXPECT_FALSE(tries.ShouldTry(facts, due, steady + life / 100));
}

// Before it shows the token: the connection that it would go over cannot be made.
TEST(Join, ReportsClockThatIsBehind) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path pki = folder / "pki", own = folder / "own";
  ASSERT_TRUE(MakeTrackerFolder(pki, {"localhost"}, absl::Now() + absl::Hours(24 * 300)).ok());
  v1::JoinService::Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("localhost:0", ListenCredentials(FilesIn(pki), AnonymousClients::kAccept).value(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const std::string authority = ReadFile(FilesIn(pki).authority).value();
  const JoinOptions options{.token = {Role::kAgent, RandomSecret(), ReadCertificate(authority)->fingerprint},
                            .name = "board",
                            .host_name = "board",
                            .settings = {fmt::format("localhost:{}", port), {}}};
  const absl::Status joined = Join(own, options).status();
  EXPECT_EQ(joined.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(joined.message()), HasSubstr("clock is behind"));
}

TEST(TrackerFolder, IsMadeOnceAndItsKeyIsSecret) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path pki = folder / "pki";
  ASSERT_TRUE(MakeTrackerFolder(pki, {"localhost", "10.0.0.5"}, kToday).ok());
  EXPECT_EQ(ModeOf(pki / "authority.key"), 0600u);
  EXPECT_EQ(ModeOf(pki), 0700u);
  const std::string key = ReadFile(pki / "authority.key").value();
  EXPECT_TRUE(absl::IsAlreadyExists(MakeTrackerFolder(pki, {"localhost"}, kToday)));
  EXPECT_EQ(ReadFile(pki / "authority.key").value(), key);
  EXPECT_THAT(*CertificateHosts(ReadFile(FilesIn(pki).identity).value()), ElementsAre("localhost", "10.0.0.5"));
  std::filesystem::remove(pki / "authority.key");
  EXPECT_FALSE(ReadAuthority(pki)->has_value());
}

}  // namespace
}  // namespace hone::pki
