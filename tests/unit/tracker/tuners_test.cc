// SPDX-License-Identifier: Apache-2.0
// The list of tuners that people see.
#include "tracker/queue/tuners.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/farm/fake_agent.h"

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using TunersTest = FarmFixture;

TEST_F(TunersTest, ATunerIsListedWithItsJobsUntilItLeaves) {
  std::vector<v1::Tuner> tuners = farm_.ListTuners(now_);
  ASSERT_THAT(tuners, SizeIs(1));
  EXPECT_EQ(tuners[0].tuner_id(), "tuner");
  EXPECT_TRUE(tuners[0].online());
  EXPECT_THAT(tuners[0].job_ids(), ElementsAre(job_id_));
  Pass(absl::Minutes(2));  // it reports progress, and asks for no other job
  EXPECT_TRUE(farm_.ListTuners(now_).at(0).online());
  v1::LeaseJobRequest leaving;
  leaving.set_protocol_version(v1::PROTOCOL_VERSION_1);
  leaving.set_tuner_id("tuner");
  leaving.set_leaving(true);
  ASSERT_TRUE(farm_.LeaseJob(leaving, now_).ok());
  EXPECT_THAT(farm_.ListTuners(now_), IsEmpty());
}

TEST_F(TunersTest, ASilentTunerIsOfflineThenForgotten) {
  // In steps, because a longer one would be a standstill of the tracker.
  for (const absl::Time end = now_ + TunerRegistry::kOfflineAfter; now_ <= end;) farm_.Tick(now_ += absl::Seconds(1));
  const std::vector<v1::Tuner> tuners = farm_.ListTuners(now_);
  ASSERT_THAT(tuners, SizeIs(1));
  EXPECT_FALSE(tuners[0].online());
  EXPECT_THAT(tuners[0].job_ids(), IsEmpty()) << "another tuner may take them";
  TunerRegistry registry;
  registry.Note("a", now_);
  EXPECT_THAT(registry.List(now_ + TunerRegistry::kForgetAfter + absl::Seconds(1)), IsEmpty());
}

TEST(TunerRegistryTest, TheOneThatIsSilentForLongestMakesRoom) {
  TunerRegistry registry;
  const absl::Time start = absl::FromUnixSeconds(1'000'000);
  for (size_t i = 0; i <= TunerRegistry::kTunersMax; ++i) {
    registry.Note(fmt::format("t{:04}", TunerRegistry::kTunersMax - i), start + absl::Milliseconds(i));
  }
  const std::vector<KnownTuner> tuners = registry.List(start + absl::Seconds(2));
  ASSERT_THAT(tuners, SizeIs(TunerRegistry::kTunersMax));
  EXPECT_EQ(tuners.back().id, "t0999") << "t1000 called first";
}

}  // namespace
}  // namespace hone::tracker
