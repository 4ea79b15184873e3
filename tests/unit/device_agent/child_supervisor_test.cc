// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/child_supervisor.h"

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
#include "device_agent/visit/child_channel.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

VisitBatch TwoCandidates() {
  KernelInterface interface;
  interface.buffers = {{BufferRole::kOutput, "f32", {4}}};
  VisitBatch batch;
  batch.buffers = {{"y", BufferRole::kOutput, "f32", 4, 16}};
  batch.candidates = {{"a", {interface}}, {"b", {interface}}};
  batch.call_seconds_min = 1e-8;
  return batch;
}

class ChildSupervisorTest : public testing::Test {
 protected:
  // What comes of a child that does so much, once it is set up, and ends.
  ChildEnd Supervise(const std::function<void(ChildChannel&)>& work) {
    return FollowFromTheStart([&](ChildChannel& channel_to_launcher) {
      channel_to_launcher.SendReady();
      work(channel_to_launcher);
    });
  }
  ChildEnd FollowFromTheStart(const std::function<void(ChildChannel&)>& work) {
    absl::StatusOr<ChildProcess> child = ChildProcess::Start([&](int channel) {
      ChildChannel channel_to_launcher(channel);
      work(channel_to_launcher);
      _exit(0);
    });
    HONE_CHECK(child.ok());
    ChildSupervisor::Options options;
    options.kill_at = SecondsNow() + 20;
    options.deadline = std::numeric_limits<double>::infinity();
    options.result_memory = &result_memory_;
    options.expected = expected_;
    return ChildSupervisor(progress_, batch_, device_, options).Supervise(*child);
  }

  // In a child: that the first candidate has computed what was expected, and left all else alone.
  void Prove(ChildChannel& channel_to_launcher) {
    const std::string zone(64, kGuardPattern);
    channel_to_launcher.BeginCalling(0, 1);
    result_memory_.ClearGuards();
    std::memcpy(result_memory_.OutputBytes(0).data(), expected_, 16);
    result_memory_.StoreGuards("output 'y'", {zone, zone});
    channel_to_launcher.SendResultsStored(0);
    HONE_CHECK(channel_to_launcher.ReceiveAnswer() == VisitAnswer::kGood);
  }

  void ExpectFailure(size_t candidate, FailureKind kind, const std::string& text) const {
    const VisitResult result = progress_.Result();
    const auto* const failure = std::get_if<VisitFailure>(&result.outcomes[candidate]);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->kind, kind) << failure->text;
    EXPECT_THAT(failure->text, HasSubstr(text));
  }

  const CpuDevice device_;
  VisitBatch batch_ = TwoCandidates();
  ResultMemory result_memory_ = ResultMemory::Create(batch_).value();
  Progress progress_{batch_};
  const char expected_[1024] = {};  // at every point
};

TEST_F(ChildSupervisorTest, AReportedFailureIsKept) {
  progress_.Fail(0, {FailureKind::kWrongOutput, "known"});
  EXPECT_TRUE(Supervise([](ChildChannel& channel_to_launcher) { channel_to_launcher.BeginCalling(0, 1); }).what ==
              ChildEnd::kBatchFailed);
  const ChildEnd end = Supervise([](ChildChannel& channel_to_launcher) {
    channel_to_launcher.BeginCalling(1, 1);
    channel_to_launcher.BeginCalling(0, 1);
  });
  EXPECT_TRUE(end.what == ChildEnd::kReplace);
  ExpectFailure(0, FailureKind::kWrongOutput, "known");
  ExpectFailure(1, FailureKind::kCrashed, "sent an invalid message");
}

// Until it is set up, more system calls are allowed.
TEST_F(ChildSupervisorTest, NoCandidateBeginsBeforeSetupIsOver) {
  const ChildEnd end =
      FollowFromTheStart([](ChildChannel& channel_to_launcher) { channel_to_launcher.BeginCalling(0, 1); });
  EXPECT_TRUE(end.what == ChildEnd::kBatchFailed);
  EXPECT_THAT(end.error, HasSubstr("sent an invalid message"));
  EXPECT_THAT(
      FollowFromTheStart([](ChildChannel& channel_to_launcher) { channel_to_launcher.SendResultsStored(-1); }).error,
      HasSubstr("sent an invalid message"));
}

TEST_F(ChildSupervisorTest, TimesCountOnlyAfterTheResultsOfEveryPoint) {
  batch_.points = {{1}, {2}};
  Supervise([this](ChildChannel& channel_to_launcher) {
    Prove(channel_to_launcher);
    channel_to_launcher.SendTimes(0, 1, false, {1e-4});
    (void)channel_to_launcher.ReceiveAnswer();
  });
  ExpectFailure(0, FailureKind::kImpossibleTime, "impossible times");
}

TEST_F(ChildSupervisorTest, EveryPointHasItsResultsOnce) {
  batch_.points = {{1}, {2}};
  Supervise([this](ChildChannel& channel_to_launcher) {
    for (int point = 0; point < 3; ++point) Prove(channel_to_launcher);
  });
  ExpectFailure(0, FailureKind::kCrashed, "results that were not requested");
}

TEST_F(ChildSupervisorTest, LaterChildrenDoNotSeeAnImpossibleTime) {
  const ChildEnd end = Supervise([this](ChildChannel& channel_to_launcher) {
    Prove(channel_to_launcher);
    channel_to_launcher.SendTimes(0, 1, false, {1e-7, 1e-9});
    (void)channel_to_launcher.ReceiveAnswer();
  });
  EXPECT_TRUE(end.what == ChildEnd::kReplace);
  EXPECT_TRUE(progress_.VerifiedCandidates().empty());
  ExpectFailure(0, FailureKind::kImpossibleTime, "reported 1e-09 s for one call");
}

TEST_F(ChildSupervisorTest, AChildKilledByTheSystemIsNotBlamed) {
  const ChildEnd end = Supervise([](ChildChannel& channel_to_launcher) {
    channel_to_launcher.BeginCalling(1, 1);
    kill(getpid(), SIGKILL);
  });
  EXPECT_TRUE(end.what == ChildEnd::kReplace);
  ExpectFailure(1, FailureKind::kLostDevice, "was killed by SIGKILL");
}

TEST_F(ChildSupervisorTest, AChildKilledForSilenceIsBlamed) {
  Supervise([](ChildChannel& channel_to_launcher) {
    channel_to_launcher.BeginCalling(1, 0.01);
    for (;;) pause();
  });
  ExpectFailure(1, FailureKind::kRunTimeout, "longer than");
}

}  // namespace
}  // namespace hone::agent
