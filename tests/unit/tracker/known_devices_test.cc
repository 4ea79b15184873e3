// SPDX-License-Identifier: Apache-2.0
// What a tracker knows after a restart of devices that are away.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "proto/convert.h"
#include "tests/farm/builders.h"
#include "tests/farm/fake_agent.h"
#include "tracker/queue/farm.h"

namespace hone::tracker {
namespace {

class KnownDevicesTest : public FarmFixture {
 protected:
  v1::Device DeviceIn(Farm& farm) { return farm.ListDevices(v1::ListDevicesRequest(), now_).at(0); }
};

TEST_F(KnownDevicesTest, ABoardThatIsAwayIsKnownAfterARestart) {
  FakeAgent board("board", "1");
  for (const char* label : {"rpi4", "lab", "shelf", "red"})
    (*board.state.mutable_devices(0)->mutable_labels())[label] = "";
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  const absl::Time seen = now_;
  std::map<std::string, v1::HealthRecord> stored = farm_.TakeChangedHealth();
  Pass(absl::Minutes(1));
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  EXPECT_TRUE(farm_.TakeChangedHealth().empty()) << "nothing new is stored with every call";
  Pass(absl::Hours(1));
  for (const absl::Time now : {now_, seen - absl::Hours(1)}) {  // also with a clock that was set back
    Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
    restarted.Restore({}, {}, stored);
    restarted.Tick(now);
    const v1::Device known = DeviceIn(restarted);
    EXPECT_EQ(known.state().labels().count("rpi4"), 1u);
    EXPECT_EQ(known.state().target(), board.state.devices(0).target());
    EXPECT_FALSE(known.record().has_known()) << "private";
    EXPECT_EQ(known.activity(), v1::DEVICE_ACTIVITY_OFFLINE);
    if (now != now_) continue;
    EXPECT_EQ(FromProto(known.last_seen()), seen);
    // Its agent comes back, with a call that needs no second one.
    FakeAgent again("board", "2");
    EXPECT_FALSE(restarted.devices().IsFirstClaim(again.state));
    ASSERT_TRUE(again.Sync(restarted, now).ok());
    EXPECT_EQ(DeviceIn(restarted).activity(), v1::DEVICE_ACTIVITY_IDLE);
    EXPECT_EQ(DeviceIn(restarted).state().labels().count("rpi4"), 0u) << "what it says now";
  }
}

TEST_F(KnownDevicesTest, ADeviceThatItsAgentNoLongerHasIsForgotten) {
  FakeAgent board("board", "1");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  std::map<std::string, v1::HealthRecord> stored = farm_.TakeChangedHealth();
  board.state.mutable_devices(0)->set_device_id("opencl");
  ASSERT_TRUE(board.Sync(farm_, now_).ok());
  for (auto& [name, record] : farm_.TakeChangedHealth()) stored[name] = record;
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  restarted.Restore({}, {}, stored);
  const std::vector<v1::Device> known = restarted.ListDevices(v1::ListDevicesRequest(), now_);
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].state().device_id(), "opencl");
}

TEST_F(KnownDevicesTest, ARestartEndsNoQuarantineOfADeviceThatIsAway) {
  FakeAgent board("board", "1");
  for (int i = 0; i < 5; ++i) {
    board.Check();
    ASSERT_TRUE(board.Sync(farm_, now_).ok());
  }
  for (int i = 0; i < 2; ++i) {
    board.Check(1);  // far slower than its baseline
    ASSERT_TRUE(board.Sync(farm_, now_).ok());
  }
  ASSERT_EQ(DeviceIn(farm_).health(), v1::DEVICE_HEALTH_QUARANTINED);
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  restarted.Restore({}, {}, farm_.TakeChangedHealth());
  now_ += absl::Hours(24);
  restarted.Tick(now_);
  EXPECT_EQ(DeviceIn(restarted).health(), v1::DEVICE_HEALTH_QUARANTINED);
}

}  // namespace
}  // namespace hone::tracker
