#include "pki/identity_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "pki/farm_link.h"
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

TEST(IdentityFolder, KeepsOthersOut) {
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

TEST(IdentityFolder, SaysWhoItIsFor) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path pki = folder / "pki", own = folder / "own";
  EXPECT_THAT(std::string(IdentityIn(own).status().message()), HasSubstr("join a farm first"));
  ASSERT_TRUE(MakeTrackerFolder(pki, {"localhost"}, kToday).ok());
  const auto authority = ReadAuthority(pki).value();
  ASSERT_TRUE(IssueIdentity(*authority, own, {Role::kAgent, "board"}, "t:1", kToday).ok());
  EXPECT_EQ(NameIn(own, Role::kAgent).value(), "board");
  EXPECT_THAT(std::string(NameIn(own, Role::kTuner).status().message()), HasSubstr("role tuner is needed"));
  EXPECT_TRUE(absl::IsAlreadyExists(IssueIdentity(*authority, own, {Role::kAgent, "c"}, "t:1", kToday)));
  ASSERT_EQ(chmod(own.c_str(), 0755), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(IdentityIn(own).status()));
  ASSERT_EQ(chmod(own.c_str(), 0700), 0);
  ASSERT_TRUE(WriteFile(FilesIn(own).identity, "none").ok());
  EXPECT_THAT(std::string(IdentityIn(own).status().message()), HasSubstr("identity.pem"));
}

TEST(IdentityFolder, SaysWhetherATrackerCanTakeItsCertificate) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::filesystem::path own = folder / "own";
  const absl::Duration day = absl::Hours(24);
  const Authority farm = Authority::Make({kToday, kToday + 999 * day}).value(),
                  other = Authority::Make({kToday, kToday + 999 * day}).value();
  ASSERT_TRUE(IssueIdentity(farm, own, {Role::kAgent, "board"}, "t:1", kToday).ok());
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
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("of another farm; remove that file"));
  const std::string pem = ReadFile(FilesIn(own).identity).value();
  ASSERT_TRUE(WriteFile(FilesIn(own).identity, pem + farm.certificate()).ok());
  EXPECT_TRUE(CheckCertificateIn(own, kToday).ok()) << "its authority may be one between";
}

TEST(FarmLink, DoesNotBeginWithACertificateThatHasEnded) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const absl::Time issued = absl::Now() - absl::Hours(24 * 366);
  const Authority farm = Authority::Make({issued, issued + absl::Hours(24 * 999)}).value();
  ASSERT_TRUE(IssueIdentity(farm, folder / "own", {Role::kTuner, "t"}, "t:1", issued).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(FarmLink::Open("localhost:1", folder / "own").status()));
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
  EXPECT_THAT(*HostsIn(ReadFile(FilesIn(pki).identity).value()), ElementsAre("localhost", "10.0.0.5"));
  std::filesystem::remove(pki / "authority.key");
  EXPECT_FALSE(ReadAuthority(pki)->has_value());
}

}  // namespace
}  // namespace hone::pki
