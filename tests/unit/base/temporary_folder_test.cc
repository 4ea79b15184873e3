#include "base/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <utility>

namespace hone {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, GoesWithAllThatIsInIt) {
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

TEST(TemporaryFolder, MayHaveAnotherParentAndSaysWhereItCouldNotBe) {
  const TemporaryFolder outer = TemporaryFolder::Create().value();
  EXPECT_EQ(TemporaryFolder::Create(outer.path())->path().parent_path(), outer.path());
  const absl::Status status = TemporaryFolder::Create(outer / "none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("none: No such file or directory"));
}

}  // namespace
}  // namespace hone
