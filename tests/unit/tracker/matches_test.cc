// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/matches.h"

#include "gtest/gtest.h"

namespace hone::tracker {
namespace {

v1::DeviceState Board() {
  v1::DeviceState device;
  device.set_device_id("cpu");
  (*device.mutable_labels())["rpi4"] = "";
  (*device.mutable_labels())["room"] = "lab";
  return device;
}

TEST(MatchesWords, MatchesNamesLabelsAndAllOfSeveralWords) {
  for (const char* words : {"board", "board/cpu", "rpi4", "rpi4=", "room", "room=lab", "rpi4,room=lab", "board,rpi4"}) {
    EXPECT_TRUE(MatchesWords(words, "board", Board())) << words;
  }
  for (const char* words : {"", ",", "rpi4,", ",rpi4", "boar", "cpu", "board/gpu", "lab", "room=hall", "rpi4=lab",
                            "rpi4,room=hall", "rpi4,rpi5", "RPI4"}) {
    EXPECT_FALSE(MatchesWords(words, "board", Board())) << words;
  }
}

TEST(Matches, AnyOfTheListedDevicesMatches) {
  v1::Requirements requirements;
  EXPECT_TRUE(Matches(requirements, "board", Board()));
  requirements.add_devices("jetson");
  EXPECT_FALSE(Matches(requirements, "board", Board()));
  requirements.add_devices("rpi4");
  EXPECT_TRUE(Matches(requirements, "board", Board()));
  EXPECT_EQ(Describe(requirements), "jetson or rpi4");
  (*requirements.mutable_labels())["room"] = "hall";
  EXPECT_FALSE(Matches(requirements, "board", Board())) << "labels are required beside them";
}

TEST(Describe, WritesALabelAsUsersDo) {
  v1::Requirements requirements;
  (*requirements.mutable_labels())["rpi4"] = "";
  EXPECT_EQ(Describe(requirements), "label rpi4");
  EXPECT_EQ(LabelText("rpi4", ""), "rpi4");
  EXPECT_EQ(LabelText("room", "lab"), "room=lab");
}

}  // namespace
}  // namespace hone::tracker
