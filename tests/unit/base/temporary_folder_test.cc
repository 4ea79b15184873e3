// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <utility>

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, DestructorRemovesTheFolderWithItsContents) {
  std::optional<TemporaryFolder> folder = TemporaryFolder::Create().value();
  const fs::path path = folder->path();
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  fs::create_directory(path / "inner");
  std::ofstream(*folder / "inner/file") << "text";
  folder.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, IsItsOwnAndMoves) {
  TemporaryFolder first = TemporaryFolder::Create().value(), second = TemporaryFolder::Create().value();
  EXPECT_NE(first.path(), second.path());
  const fs::path path = first.path();
  {
    const TemporaryFolder moved = std::move(first);
    EXPECT_EQ(moved.path(), path);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, CreatesInGivenParentAndNamesItInErrors) {
  const TemporaryFolder outer = TemporaryFolder::Create().value();
  EXPECT_EQ(TemporaryFolder::Create(outer.path())->path().parent_path(), outer.path());
  const absl::Status status = TemporaryFolder::Create(outer / "none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("none: No such file or directory"));
}

TEST(TemporaryFolder, RemoveAbandonedRemovesOnlyFoldersOfDeadProcesses) {
  const TemporaryFolder outer = TemporaryFolder::Create().value();
  const TemporaryFolder alive = TemporaryFolder::Create(outer.path()).value();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder left = TemporaryFolder::Create(outer.path()).value();
    const std::string path = left.path();
    _exit(write(pipe_ends[1], path.data(), path.size()) > 0 ? 0 : 1);  // no destructor runs, as in a killed process
  }
  char bytes[256] = {};
  ASSERT_GT(read(pipe_ends[0], bytes, sizeof(bytes) - 1), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const fs::path left = bytes, another = outer / "hone-of-somebody-else";
  fs::create_directory(another);
  TemporaryFolder::RemoveAbandoned(outer.path());
  EXPECT_TRUE(fs::exists(left)) << "it may have been made this moment";
  for (const fs::path& path : {left, alive.path(), another}) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  TemporaryFolder::RemoveAbandoned(outer.path());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(alive.path()));
  EXPECT_TRUE(fs::exists(another));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace hone
