// SPDX-License-Identifier: Apache-2.0
#include "base/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/temporary_folder.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uid_t kNobody = 65534;

class PrivateFolderTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void Chmod(const std::filesystem::path& path, mode_t mode) { ASSERT_EQ(chmod(path.c_str(), mode), 0); }
  static std::string Problem(const std::filesystem::path& path) {
    return std::string(CheckPrivateFolder(path).message());
  }

  const TemporaryFolder parent_ = TemporaryFolder::Create().value();
  const std::filesystem::path folder_ = parent_ / "folder";
};

TEST_F(PrivateFolderTest, OnlyItsModeLetsOthersIn) {
  Chmod(folder_, 0700);
  EXPECT_EQ(Problem(folder_), "");
  EXPECT_EQ(Problem(parent_.path()), "") << "/tmp is sticky";
  for (const mode_t open : {0710, 0701, 0720, 0777}) {
    Chmod(folder_, open);
    EXPECT_THAT(Problem(folder_), HasSubstr("chmod 700")) << std::oct << open;
  }
}

// Following the advice to close such a folder would lock out all other users.
TEST_F(PrivateFolderTest, SystemFoldersAreRefusedWithoutAdviceToClose) {
  if (geteuid() != 0) GTEST_SKIP() << "they are root's";
  for (const char* folder : {"/", "/tmp", "/etc", "/usr/lib"}) {
    EXPECT_THAT(Problem(folder), AllOf(HasSubstr("use a separate folder"), Not(HasSubstr("chmod")))) << folder;
  }
  Chmod(folder_, 01777);
  EXPECT_THAT(Problem(folder_), HasSubstr("use a separate folder")) << "sticky: it is everybody's";
}

TEST_F(PrivateFolderTest, OtherUsersCannotReplaceTheFolder) {
  Chmod(folder_, 0700);
  for (const mode_t open : {0777, 0770, 0722}) {
    Chmod(parent_.path(), open);
    EXPECT_THAT(Problem(folder_), HasSubstr("chmod go-w " + parent_.path().string())) << std::oct << open;
  }
  Chmod(parent_.path(), 01777);
  EXPECT_EQ(Problem(folder_), "");
  Chmod(parent_.path(), 0755);
  EXPECT_EQ(Problem(folder_), "");
}

TEST_F(PrivateFolderTest, LinksFilesAndMissingPathsAreRefused) {
  Chmod(folder_, 0700);
  const std::filesystem::path link = parent_ / "link";
  std::filesystem::create_symlink(folder_, link);
  EXPECT_THAT(Problem(link), HasSubstr("not a folder"));
  EXPECT_EQ(CheckPrivateFolder(parent_ / "nothing").code(), absl::StatusCode::kNotFound);
}

TEST_F(PrivateFolderTest, AFolderOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  Chmod(folder_, 0700);
  ASSERT_EQ(chown(folder_.c_str(), kNobody, kNobody), 0);
  EXPECT_THAT(Problem(folder_), HasSubstr("belongs to user 65534"));
}

}  // namespace
}  // namespace hone
