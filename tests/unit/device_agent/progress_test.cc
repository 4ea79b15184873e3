// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/progress.h"

#include <gtest/gtest.h>

#include <limits>
#include <variant>

#include "device_agent/launcher/plausible.h"
#include "device_agent/sandbox/sandbox.h"
#include "tests/unit/device_agent/hand_made_kernels.h"

namespace hone::agent {
namespace {

VisitMessage Times(double seconds, int count = 1) {
  VisitMessage message{};
  message.type = VisitMessage::Type::kTimes;
  message.calls = 1;
  message.count = count;
  for (int i = 0; i < count && i < kRepeatsMax; ++i) message.seconds[i] = seconds;
  return message;
}

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() { batch_.candidates.resize(2); }
  VisitBatch batch_;
};

TEST_F(ProgressTest, OnlyVerifiedCandidatesHaveTimes) {
  Progress progress(batch_);
  EXPECT_FALSE(progress.AddTimes(Times(0.1), 1));
  progress.MarkVerified(0, 0);
  EXPECT_TRUE(progress.AddTimes(Times(0.1), 1));
  progress.Fail(0, {FailureKind::kCrashed, "x"});
  progress.MarkVerified(0, 0);
  EXPECT_FALSE(progress.AddTimes(Times(0.1), 1)) << "a failure stays one";
}

TEST_F(ProgressTest, ImpossibleTimesAreRefused) {
  Progress progress(batch_);
  progress.MarkVerified(0, 0);
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1.01}) {
    EXPECT_FALSE(progress.AddTimes(Times(seconds), 1)) << seconds;
  }
  EXPECT_FALSE(progress.AddTimes(Times(0.3, 4), 1)) << "together longer than there was time";
  EXPECT_FALSE(progress.AddTimes(Times(0.1, 0), 1));
  EXPECT_FALSE(progress.AddTimes(Times(1e-9, kRepeatsMax + 1), 1));
  VisitMessage other = Times(0.1);
  other.candidate = 7;
  EXPECT_FALSE(progress.AddTimes(other, 1));
}

TEST_F(ProgressTest, ResultSizeIsBounded) {
  Progress progress(batch_);
  progress.MarkVerified(0, 0);
  for (int i = 0; i < 10'000; ++i) (void)progress.AddTimes(Times(1e-9, kRepeatsMax), 1);
  EXPECT_LE(std::get<VisitTiming>(progress.Result().outcomes[0]).seconds.size(), 1000U);
  int taken = 0;
  for (int i = 0; i < 100'000; ++i) taken += progress.AddReference(Times(1e-12)) ? 1 : 0;
  EXPECT_LE(taken, 10'000);
  for (int i = 0; i < 10'000; ++i) progress.AddLoadSeconds(1);
  for (int i = 0; i < 1'000'000; ++i) progress.AddLoadSeconds(2);
  EXPECT_EQ(progress.load_seconds(), 1) << "what comes so late is not kept";
}

TEST(Plausible, NoKernelBeatsTheDevicesPeak) {
  v1::Batch batch = HandMadeBatch({"good"});
  batch.set_flops(1e9);
  EXPECT_EQ(CallSecondsMin(batch, 0), 0) << "the peak is not known";
  const double least = CallSecondsMin(batch, 100);
  EXPECT_GT(least, 1e9 / 100e9 / 20);
  EXPECT_LT(least, 1e9 / 100e9 / 4) << "fast algorithms compute less";
}

// An A100 multiplies eight times as fast where f32 may be rounded to TF32.
TEST(Plausible, Tf32RaisesThePeak) {
  v1::Batch batch = HandMadeBatch({"good"});
  batch.set_flops(1e9);
  batch.set_target("cuda -arch=sm_80 -overlap");
  const double least = CallSecondsMin(batch, 100);
  batch.set_target("cuda -arch=sm_80 -tf32 -overlap");
  EXPECT_LT(CallSecondsMin(batch, 100), least / 8);
  batch.set_target("cuda -arch=sm_80 -tf32");
  EXPECT_LT(CallSecondsMin(batch, 100), least / 8);
}

TEST(Readings, ReadingsOfAVisitAreCombined) {
  Sensors all;
  AddReading({.temperature_c = 50, .clock_mhz = 210}, all);
  AddReading({.temperature_c = 61, .clock_mhz = 1755}, all);
  AddReading({}, all);
  EXPECT_EQ(all.temperature_c, 61);
  EXPECT_EQ(all.clock_mhz, 1755);
  EXPECT_FALSE(all.slowed_down);
  AddReading({.seems_slowed_down = true}, all);
  AddReading({}, all);
  EXPECT_FALSE(all.slowed_down) << "once may be a clock that changes";
  AddReading({.seems_slowed_down = true}, all);
  EXPECT_TRUE(all.slowed_down);
  Sensors other;
  AddReading({.slowed_down = true}, other);
  AddReading({}, other);
  EXPECT_TRUE(other.slowed_down);
}

TEST(Plausible, DisturbedSelfTestDoesNotLowerThePeak) {
  MeasuredPeak peak(50);
  peak.Add(200);
  EXPECT_EQ(peak.gflops(), 200);
  for (const double less : {120.0, 0.0}) peak.Add(less);
  EXPECT_EQ(peak.gflops(), 200);
}

TEST(SandboxLevels, LevelFollowsFromLayers) {
  std::vector<SandboxLayer> layers;
  for (const Layer layer : kAllLayers) layers.push_back({layer, true, ""});
  EXPECT_EQ(LevelOf(layers), SandboxLevel::kWall);
  EXPECT_EQ(MissingLayers(layers, SandboxLevel::kWall), "");
  const auto without = [&](std::initializer_list<Layer> missing) {
    std::vector<SandboxLayer> some = layers;
    for (SandboxLayer& layer : some) {
      for (const Layer one : missing) {
        if (layer.layer == one) layer = {one, false, "it is forbidden"};
      }
    }
    return some;
  };
  EXPECT_EQ(LevelOf(without({Layer::kLandlock})), SandboxLevel::kWall) << "there is the file system of its own";
  EXPECT_EQ(LevelOf(without({Layer::kLandlock, Layer::kFiles})), SandboxLevel::kFilter);
  EXPECT_EQ(LevelOf(without({Layer::kSystemCalls})), SandboxLevel::kNone);
  EXPECT_EQ(MissingLayers(without({Layer::kLandlock, Layer::kFiles}), SandboxLevel::kWall),
            "files (it is forbidden) or landlock (it is forbidden)");
  EXPECT_EQ(LevelOf({}), SandboxLevel::kNone);
}

}  // namespace
}  // namespace hone::agent
