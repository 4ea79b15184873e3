// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <variant>

#include "base/status.h"
#include "device_agent/devices/cpu/cpu_device.h"
#include "device_agent/devices/cpu/reference_loop.h"
#include "device_agent/launcher/child_supervisor.h"
#include "device_agent/visit/child_channel.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

VisitBatch TwoCandidates() {
  KernelInterface interface;
  interface.buffers = {{BufferRole::kOutput, "f32", {4}}};
  VisitBatch batch;
  batch.buffers = {{"y", BufferRole::kOutput, "f32", 4, 16}};
  batch.candidates = {{"a", {interface}}, {"b", {interface}}};
  batch.least_seconds = 1e-8;
  return batch;
}

class WatchTest : public testing::Test {
 protected:
  // What comes of a child that does so much, once it is set up, and ends.
  ChildEnd Follow(const std::function<void(Voice&)>& work) {
    return FollowFromTheStart([&](Voice& voice) {
      voice.Ready();
      work(voice);
    });
  }
  ChildEnd FollowFromTheStart(const std::function<void(Voice&)>& work) {
    absl::StatusOr<WatchedChild> child = WatchedChild::Start([&](int channel) {
      Voice voice(channel);
      work(voice);
      _exit(0);
    });
    HONE_CHECK(child.ok());
    Watch::Options options;
    options.kill_at = SecondsNow() + 20;
    options.deadline = std::numeric_limits<double>::infinity();
    options.evidence = &evidence_;
    options.expected = expected_;
    return Watch(progress_, batch_, device_, options).Follow(*child);
  }

  // In a child: that the first candidate has computed what was expected, and left all else alone.
  void Prove(Voice& voice) {
    const std::string zone(64, kGuardPattern);
    voice.Calling(0, 1);
    evidence_.Begin();
    std::memcpy(evidence_.PlaceOf(0).data(), expected_, sizeof expected_);
    evidence_.ShowGuards("output 'y'", {zone, zone});
    voice.Shown(0);
    HONE_CHECK(voice.Answer() == VisitAnswer::kGood);
  }

  void ExpectFailure(size_t candidate, FailureKind kind, const std::string& text) const {
    const VisitResult result = progress_.Result();
    const auto* const failure = std::get_if<VisitFailure>(&result.outcomes[candidate]);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, kind) << failure->text;
    EXPECT_THAT(failure->text, HasSubstr(text));
  }

  const CpuDevice device_;
  const VisitBatch batch_ = TwoCandidates();
  Evidence evidence_ = Evidence::Create(batch_).value();
  Progress progress_{batch_};
  const char expected_[16] = {};
};

TEST_F(WatchTest, NobodyIsReplacedForAFailureThatIsKnown) {
  progress_.Fail(0, {FailureKind::kWrongOutput, "known"});
  EXPECT_TRUE(Follow([](Voice& voice) { voice.Calling(0, 1); }).what == ChildEnd::kGiveUp);
  const ChildEnd end = Follow([](Voice& voice) {
    voice.Calling(1, 1);
    voice.Calling(0, 1);
  });
  EXPECT_TRUE(end.what == ChildEnd::kReplace);
  ExpectFailure(0, FailureKind::kWrongOutput, "known");
  ExpectFailure(1, FailureKind::kCrashed, "makes no sense");
}

// Until it is set up, more system calls are allowed.
TEST_F(WatchTest, NobodyWorksOnACandidateBeforeAllIsSetUp) {
  const ChildEnd end = FollowFromTheStart([](Voice& voice) { voice.Calling(0, 1); });
  EXPECT_TRUE(end.what == ChildEnd::kGiveUp);
  EXPECT_THAT(end.error, HasSubstr("makes no sense"));
  EXPECT_THAT(FollowFromTheStart([](Voice& voice) { voice.Shown(-1); }).error, HasSubstr("makes no sense"));
}

TEST_F(WatchTest, AnImpossibleTimeIsKnownToNoOtherChild) {
  const ChildEnd end = Follow([this](Voice& voice) {
    Prove(voice);
    voice.Times(0, 1, false, {1e-7, 1e-9});
    (void)voice.Answer();
  });
  EXPECT_TRUE(end.what == ChildEnd::kReplace);
  EXPECT_TRUE(progress_.VerifiedOnes().empty());
  ExpectFailure(0, FailureKind::kImpossibleTime, "claims 1e-09 s for one call");
}

TEST_F(WatchTest, WhoIsKilledByTheSystemHasDoneNoWrong) {
  const ChildEnd end = Follow([](Voice& voice) {
    voice.Calling(1, 1);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(end.what == ChildEnd::kReplace);
  ExpectFailure(1, FailureKind::kLostDevice, "was killed by SIGKILL");
}

TEST_F(WatchTest, WhoIsKilledForItsSilenceHas) {
  Follow([](Voice& voice) {
    voice.Calling(1, 0.01);
    for (;;) pause();
  });
  ExpectFailure(1, FailureKind::kRunTimeout, "longer than");
}

}  // namespace
}  // namespace hone::agent
