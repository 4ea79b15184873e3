#include "base/host_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/temporary_folder.h"

namespace hone {
namespace {

class HostLockTest : public testing::Test {
 protected:
  HostLock OpenLock() { return *HostLock::Open(folder_ / "lock"); }
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(HostLockTest, SharedHoldersMeetExclusiveOnesDoNot) {
  HostLock first = OpenLock(), second = OpenLock();
  EXPECT_EQ(first.TryLock(HostLock::Mode::kShared).value(), true);
  EXPECT_EQ(second.TryLock(HostLock::Mode::kShared).value(), true);
  EXPECT_EQ(second.TryLock(HostLock::Mode::kExclusive).value(), false);
  first.Unlock();
  EXPECT_EQ(second.TryLock(HostLock::Mode::kExclusive).value(), true);
  EXPECT_EQ(first.TryLock(HostLock::Mode::kShared).value(), false);
}

TEST_F(HostLockTest, ScopeAndDestructionLetGo) {
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
    third.Unlock();  // the other thread has not come to wait yet
    std::this_thread::yield();
  }
  first.Unlock();
  waiting.join();
  EXPECT_EQ(third.TryLock(HostLock::Mode::kShared).value(), false);
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
