// SPDX-License-Identifier: Apache-2.0
#include "base/host_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "base/temporary_folder.h"

namespace hone {
namespace {

class HostLockTest : public testing::Test {
 protected:
  HostLock OpenLock() { return *HostLock::Open(folder_ / "lock"); }
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(HostLockTest, SharedModeIsSharedAndExclusiveModeIsNot) {
  HostLock first = OpenLock(), second = OpenLock();
  EXPECT_EQ(first.TryLock(HostLock::Mode::kShared).value(), true);
  EXPECT_EQ(second.TryLock(HostLock::Mode::kShared).value(), true);
  EXPECT_EQ(second.TryLock(HostLock::Mode::kExclusive).value(), false);
  first.Unlock();
  EXPECT_EQ(second.TryLock(HostLock::Mode::kExclusive).value(), true);
  EXPECT_EQ(first.TryLock(HostLock::Mode::kShared).value(), false);
}

TEST_F(HostLockTest, ScopeAndDestructorUnlock) {
  HostLock first = OpenLock();
  {
    HostLock second = OpenLock();
    ScopedHostLock scope(second, HostLock::Mode::kExclusive);
    EXPECT_TRUE(scope.status().ok());
    EXPECT_EQ(first.TryLock(HostLock::Mode::kShared).value(), false);
  }
  EXPECT_EQ(first.TryLock(HostLock::Mode::kExclusive).value(), true);
}

TEST_F(HostLockTest, WaitingExclusiveHolderHoldsBackNewSharedOnes) {
  HostLock first = OpenLock(), second = OpenLock(), third = OpenLock();
  ASSERT_TRUE(first.Lock(HostLock::Mode::kShared).ok());
  std::thread waiting([&] { ASSERT_TRUE(second.Lock(HostLock::Mode::kExclusive).ok()); });
  while (third.TryLock(HostLock::Mode::kShared).value()) {
    third.Unlock();  // the other thread does not wait in the queue yet
    std::this_thread::yield();
  }
  first.Unlock();
  waiting.join();
  EXPECT_EQ(third.TryLock(HostLock::Mode::kShared).value(), false);
}

// A process that asks for the lock later waits behind one that waits for it with a limit.
TEST_F(HostLockTest, AnExclusiveHolderWithPatienceComesBetweenSharedOnes) {
  std::atomic<bool> over = false;
  HostLock first = OpenLock(), patient = OpenLock();
  ASSERT_TRUE(first.Lock(HostLock::Mode::kShared).ok());
  EXPECT_EQ(patient.TryLockFor(HostLock::Mode::kExclusive, std::chrono::milliseconds(30)).value(), false);
  EXPECT_EQ(patient.TryLock(HostLock::Mode::kShared).value(), true) << "the queue is free again";
  patient.Unlock();
  std::thread waiting([&] {
    EXPECT_EQ(patient.TryLockFor(HostLock::Mode::kExclusive, std::chrono::seconds(30)).value(), true);
    over = true;
  });
  HostLock later = OpenLock();
  while (later.TryLock(HostLock::Mode::kShared).value()) {
    later.Unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  first.Unlock();
  waiting.join();
  EXPECT_TRUE(over) << "later holders waited behind it";
}

TEST_F(HostLockTest, DefaultPathDoesNotDependOnTheEnvironment) {
  const std::string path = HostLock::DefaultPath();
  const char* const set = std::getenv("XDG_RUNTIME_DIR");
  const std::string before = set == nullptr ? "" : set;
  setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  EXPECT_EQ(HostLock::DefaultPath(), path);
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(HostLock::DefaultPath(), path);
  if (set != nullptr) setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
}

TEST_F(HostLockTest, AFileThatWasRemovedIsMadeAgain) {
  HostLock first = OpenLock();
  for (const char* name : {"lock", "lock.queue"}) ASSERT_EQ(unlink((folder_ / name).c_str()), 0);
  HostLock second = OpenLock();
  ASSERT_TRUE(first.Lock(HostLock::Mode::kExclusive).ok());
  EXPECT_EQ(second.TryLock(HostLock::Mode::kShared).value(), false);
  first.Unlock();
  EXPECT_EQ(second.TryLock(HostLock::Mode::kExclusive).value(), true);
  EXPECT_EQ(first.TryLock(HostLock::Mode::kShared).value(), false);
}

TEST_F(HostLockTest, UncreatableLockFileKeepsTheOldLock) {
  HostLock first = OpenLock(), second = OpenLock();
  for (const char* name : {"lock", "lock.queue"}) {
    ASSERT_EQ(unlink((folder_ / name).c_str()), 0);
    ASSERT_EQ(mkdir((folder_ / name).c_str(), 0700), 0);  // a folder of that name: the file cannot be opened again
  }
  ASSERT_TRUE(first.Lock(HostLock::Mode::kExclusive).ok());
  EXPECT_EQ(second.TryLock(HostLock::Mode::kExclusive).value(), false);
}

// Taking the lock updates the time of its files, because systems remove files from /tmp that are some days old.
TEST_F(HostLockTest, LockingUpdatesTheTimeOfItsFiles) {
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  HostLock lock = OpenLock();
  for (const char* name : {"lock", "lock.queue"}) {
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_ / name).c_str(), long_ago, 0), 0);
  }
  ASSERT_TRUE(lock.Lock(HostLock::Mode::kShared).ok());
  for (const char* name : {"lock", "lock.queue"}) {
    struct stat status;
    ASSERT_EQ(stat((folder_ / name).c_str(), &status), 0);
    EXPECT_GT(status.st_mtim.tv_sec, 1000) << name;
  }
}

TEST_F(HostLockTest, RefusesALinkAndAMissingFolder) {
  const std::string link = folder_ / "link";
  ASSERT_EQ(symlink("/tmp/anything", link.c_str()), 0);
  EXPECT_EQ(HostLock::Open(link).status().code(), absl::StatusCode::kUnavailable);
  unlink(link.c_str());
  EXPECT_THAT(HostLock::Open(folder_ / "none/lock").status().message(), testing::HasSubstr("none/lock"));
}

}  // namespace
}  // namespace hone
