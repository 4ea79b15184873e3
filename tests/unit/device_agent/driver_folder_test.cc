// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/driver_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.h"

namespace hone::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class DriverFolderTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs::create_directory(path_)); }
  void Write(const std::string& name, std::string_view bytes) {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }
  // What each file holds, and folders, by names within the folder.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      contents[fs::relative(entry.path(), path_).string()] =
          entry.is_directory() ? "/" : std::string(std::istreambuf_iterator<char>(file), {});
    }
    return contents;
  }

  const TemporaryFolder parent_ = TemporaryFolder::Create().value();
  const fs::path path_ = parent_ / "driver";
  DriverFolder folder_{std::vector<std::string>{path_.string()}};
};

TEST_F(DriverFolderTest, ResetRestoresOnlySavedFiles) {
  ASSERT_TRUE(folder_.Reset().ok());
  folder_.SaveContents();  // nothing yet
  const std::string_view code("co\0de", 5);
  Write("a/kernel.so", code);
  folder_.SaveContents();
  Write("a/kernel.so", "other code");
  Write("a/more.so", "code");
  Write("b/c/kernel.so", "code");
  folder_.SaveContents();  // what a batch has left does not count
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(folder_.Reset().ok());
    EXPECT_THAT(Contents(), ElementsAre(Pair("a", "/"), Pair("a/kernel.so", code)));
  }
}

// What a kernel may have made so that it stays.
TEST_F(DriverFolderTest, ResetRemovesEveryKindOfFile) {
  const fs::path outside = parent_ / "outside";
  ASSERT_TRUE(fs::create_directory(outside));
  std::ofstream(outside / "file") << "x";
  fs::create_directory_symlink(outside, path_ / "link");
  fs::create_symlink(outside / "file", path_ / "other link");
  fs::create_symlink(path_ / "nowhere", path_ / "broken link");
  ASSERT_EQ(mkfifo((path_ / "pipe").c_str(), 0600), 0);
  Write("closed/kernel.so", "code");
  Write("closed/inner/kernel.so", "code");
  for (const char* closed : {"closed/kernel.so", "closed/inner", "closed"})
    ASSERT_EQ(chmod((path_ / closed).c_str(), 0), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0500), 0);
  ASSERT_TRUE(folder_.Reset().ok());
  EXPECT_THAT(Contents(), IsEmpty());
  EXPECT_TRUE(fs::exists(outside / "file"));
}

// Deeper than a process may open files, and than a name may be long.
TEST_F(DriverFolderTest, ResetRemovesDeepFolders) {
  int at = open(path_.c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 3000; ++depth) {
    ASSERT_EQ(mkdirat(at, "deeper", 0700), 0);
    const int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY);
    close(at);
    at = next;
    ASSERT_GE(at, 0);
  }
  close(at);
  ASSERT_TRUE(folder_.Reset().ok());
  EXPECT_THAT(Contents(), IsEmpty());
}

TEST_F(DriverFolderTest, ReplacedFolderIsAnError) {
  const fs::path outside = parent_ / "outside";
  ASSERT_TRUE(fs::create_directory(outside));
  std::ofstream(outside / "file") << "x";
  fs::remove(path_);
  fs::create_directory_symlink(outside, path_);
  EXPECT_FALSE(folder_.Reset().ok());
  EXPECT_TRUE(fs::exists(outside / "file"));
}

TEST(DriverFolder, ADeviceWithoutADriverHasNone) {
  DriverFolder none{std::vector<std::string>()};
  EXPECT_TRUE(none.Reset().ok());
  none.SaveContents();
  EXPECT_TRUE(none.Reset().ok());
}

}  // namespace
}  // namespace hone::agent
