// SPDX-License-Identifier: Apache-2.0
// The four kinds of failure in the queue: whose fault it is that a measurement failed, and the consequences.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "proto/convert.h"
#include "tests/farm/builders.h"
#include "tests/farm/fake_agent.h"
#include "tracker/queue/farm.h"
#include "tracker/queue/health.h"

namespace hone::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class FailureTest : public FarmFixture {
 protected:
  // Lets the agent ask for work and answer each lease with an error, up to `times` times.
  void FailEverything(FakeAgent& agent, v1::TroubleKind kind, int times) {
    for (int i = 0; i < times; ++i) {
      const Farm::Answer answer = agent.Sync(farm_, now_).value();
      if (answer.response.leases().empty()) return;
      agent.Fail(answer.response.leases(0), "no space", kind);
    }
  }
  void WorkOff(FakeAgent& agent) {
    for (Farm::Answer answer = agent.Sync(farm_, now_).value(); !answer.response.leases().empty();
         answer = agent.Sync(farm_, now_).value()) {
      agent.Finish(answer.response.leases(0));
    }
  }
  // Sends the agent's next call to a restarted tracker.
  Farm::Answer SyncAfterRestart(FakeAgent& agent) {
    Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
    restarted.Restore({}, {}, stored_);
    Farm::Answer answer = agent.Sync(restarted, now_).value();
    for (auto& [name, health] : restarted.TakeChangedHealth()) stored_[name] = std::move(health);
    return answer;
  }
  v1::Device DeviceOfAgent(const std::string& id) { return DeviceOfAgent(farm_, id); }
  v1::Device DeviceOfAgent(Farm& farm, const std::string& id) {
    for (const v1::Device& device : farm.ListDevices(v1::ListDevicesRequest(), now_)) {
      if (device.agent_id() == id) return device;
    }
    ADD_FAILURE() << "no agent " << id;
    return {};
  }

  std::map<std::string, v1::HealthRecord> stored_;  // as earlier trackers stored it
};

// A board that answers errors quickly would attract all work. A working board beside it must still measure every batch.
TEST_F(FailureTest, ABoardThatAnswersErrorsFailsNoBatchAndGoesIntoQuarantine) {
  FakeAgent hole("hole", "1"), good("good", "1");
  ASSERT_TRUE(good.Sync(farm_, now_).ok());
  std::vector<std::string> batches;
  for (int i = 0; i < 6; ++i) batches.push_back(Submit(BatchOf(1), "b" + std::to_string(i)).value());
  FailEverything(hole, v1::TROUBLE_KIND_BATCH, 100);
  WorkOff(good);
  for (const std::string& batch : batches) {
    const v1::WaitBatchResponse finished = Wait(batch).value();
    ASSERT_EQ(finished.finished_size(), 1);
    EXPECT_EQ(finished.finished(0).result().error(), "");
    EXPECT_EQ(finished.finished(0).result().outcomes_size(), 1);
  }
  EXPECT_EQ(DeviceOfAgent("hole").health(), v1::DEVICE_HEALTH_QUARANTINED);
  EXPECT_THAT(DeviceOfAgent("hole").health_reason(),
              HasSubstr("could not measure a batch that good/cpu could: no space"));
  EXPECT_EQ(DeviceOfAgent("hole").batches_done(), 0) << "an error is nothing done";
  EXPECT_EQ(DeviceOfAgent("good").health(), v1::DEVICE_HEALTH_GOOD);
  Submit(BatchOf(1), "next").value();
  EXPECT_EQ(hole.Sync(farm_, now_)->response.leases_size(), 0);
}

TEST_F(FailureTest, ABatchThatNoDeviceCanMeasureFailsAndCountsAgainstNone) {
  std::vector<FakeAgent> agents;
  for (const char* id : {"a", "b", "c", "d"}) agents.emplace_back(id, "1");
  for (FakeAgent& agent : agents) ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  for (int i = 0; i < 5; ++i) {
    const std::string batch = Submit(BatchOf(2), "b" + std::to_string(i)).value();
    int tried = 0;
    for (int round = 0; round < 3 && Wait(batch)->finished().empty(); ++round) {
      for (FakeAgent& agent : agents) {
        const Farm::Answer answer = agent.Sync(farm_, now_).value();
        if (answer.response.leases().empty()) continue;
        EXPECT_EQ(++tried, answer.response.leases(0).attempt());
        agent.Fail(answer.response.leases(0), "the reference crashed on " + agent.state.agent_id(),
                   v1::TROUBLE_KIND_BATCH);
        ASSERT_TRUE(agent.Sync(farm_, now_).ok());
      }
    }
    EXPECT_EQ(tried, 3);
    const v1::BatchResult result = Wait(batch)->finished(0).result();
    EXPECT_EQ(result.outcomes_size(), 0);
    EXPECT_THAT(result.error(), HasSubstr("on 3 devices"));
    for (const char* id : {"a", "b", "c"}) EXPECT_THAT(result.error(), HasSubstr(fmt::format("crashed on {}", id)));
  }
  for (const char* id : {"a", "b", "c", "d"}) EXPECT_EQ(DeviceOfAgent(id).health(), v1::DEVICE_HEALTH_GOOD) << id;
}

TEST_F(FailureTest, ASingleDeviceGetsABatchTwice) {
  FakeAgent agent("a", "1");
  const std::string batch = Submit(BatchOf(2), "b1").value();
  FailEverything(agent, v1::TROUBLE_KIND_BATCH, 1);
  ASSERT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1) << "once more";
  EXPECT_TRUE(Wait(batch)->finished().empty());
  FailEverything(agent, v1::TROUBLE_KIND_BATCH, 1);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  EXPECT_THAT(Wait(batch)->finished(0).result().error(), HasSubstr("2 times on 1 device"));
  EXPECT_THAT(Wait(batch)->finished(0).result().error(), HasSubstr("a/cpu: no space"));
}

TEST_F(FailureTest, ACandidateThatKillsDevicesDoesNotCountAgainstThem) {
  std::vector<FakeAgent> agents;
  for (const char* id : {"a", "b", "c"}) agents.emplace_back(id, "1");
  const std::string batch = Submit(BatchOf(1), "b1").value();
  for (FakeAgent& agent : agents) {
    ASSERT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1) << agent.state.agent_id();
    Pass(absl::Seconds(22));
  }
  EXPECT_EQ(Wait(batch)->finished(0).result().outcomes(0).outcome().failure().kind(), v1::FAILURE_KIND_LOST_DEVICE);
  const std::vector<Recordable> given_up = farm_.TakeGivenUp();
  ASSERT_THAT(given_up, SizeIs(1));
  EXPECT_EQ(given_up[0].result.device_name(), "c/cpu");
  EXPECT_EQ(given_up[0].result.device().text(), "x86_64 test") << "where the next job looks for what is known";
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_EQ(DeviceOfAgent(id).losses(), 1) << id;
    EXPECT_EQ(DeviceOfAgent(id).record().troubles(), 0) << id;
  }
}

// Every second batch fails, so there are never two failures in a row. The count survives a restart of the tracker.
TEST_F(FailureTest, ABoardThatFailsEverySecondBatchGoesIntoQuarantine) {
  FakeAgent flaky("flaky", "1"), good("good", "1");
  const auto measure = [&](int number, bool fails) {
    const std::string batch = Submit(BatchOf(1), "b" + std::to_string(number)).value();
    const Farm::Answer answer = flaky.Sync(farm_, now_).value();
    if (answer.response.leases().empty()) return false;
    if (fails) {
      flaky.Fail(answer.response.leases(0), "no space", v1::TROUBLE_KIND_DEVICE);
    } else {
      flaky.Finish(answer.response.leases(0));
    }
    EXPECT_TRUE(flaky.Sync(farm_, now_).ok());
    WorkOff(good);
    return true;
  };
  int batches = 0;
  while (batches < 60 && measure(batches, batches % 2 == 0)) ++batches;
  EXPECT_EQ(batches, 19) << "the tenth trouble";
  EXPECT_EQ(DeviceOfAgent("flaky").health(), v1::DEVICE_HEALTH_QUARANTINED);
  EXPECT_THAT(DeviceOfAgent("flaky").health_reason(),
              HasSubstr("10 failures in its last 19 batches, the last: no space"));
  EXPECT_EQ(DeviceOfAgent("good").health(), v1::DEVICE_HEALTH_GOOD);
}

TEST_F(FailureTest, RecentFailuresSurviveARestartOfTheTracker) {
  const DeviceOptions options;
  v1::HealthRecord health;
  const auto failure_and_batches = [&](int batches) {
    CountFailure(health, "no space", now_, options);
    for (int i = 0; i < batches; ++i) CountMeasured(health, options);
  };
  for (int i = 0; i < 50; ++i) failure_and_batches(3);
  EXPECT_FALSE(IsQuarantined(health)) << "one in four is no illness";
  v1::HealthRecord restored;
  ASSERT_TRUE(restored.ParseFromString(health.SerializeAsString()));
  health = restored;
  for (int i = 0; i < 6; ++i) failure_and_batches(1);
  EXPECT_TRUE(IsQuarantined(health)) << "those before the restart count";
  for (int i = 0; i < options.recent_batches; ++i) CountMeasured(health, options);
  EXPECT_EQ(health.recent_troubles(), 0U);
  CountFailure(health, "no space", now_, options);
  Forgive(health);
  EXPECT_EQ(health.recent_troubles(), 0U) << "it was a candidate's";
}

TEST_F(FailureTest, ABoardThatMeasuresOnlyAtTheSecondTryHasAFailure) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  FailEverything(agent, v1::TROUBLE_KIND_BATCH, 1);
  WorkOff(agent);
  EXPECT_EQ(DeviceOfAgent("a").batches_done(), 1);
  EXPECT_EQ(DeviceOfAgent("a").record().troubles(), 1);
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_GOOD);
}

TEST_F(FailureTest, ADeviceWithoutTheRequiredSandboxGetsNoWork) {
  FarmOptions options;
  options.devices.required_sandbox = v1::SANDBOX_LEVEL_WALL;
  Farm farm(options, 1, CountingIds(), "key");
  FakeAgent open("open", "1"), silent("silent", "1");
  v1::Sandbox& sandbox = *open.state.mutable_devices(0)->mutable_sandbox();
  sandbox.set_level(v1::SANDBOX_LEVEL_FILTER);
  v1::SandboxLayer& layer = *sandbox.add_layers();
  layer.set_name("files");
  layer.set_detail("namespaces are forbidden");
  v1::JobSpec spec = SpecOf("a");
  spec.add_devices("open");
  const std::string job = farm.SubmitJob(spec, now_)->id();
  for (FakeAgent* agent : {&open, &silent}) ASSERT_TRUE(agent->Sync(farm, now_).ok());
  farm.Tick(now_);
  const auto devices = farm.ListDevices(v1::ListDevicesRequest(), now_);
  ASSERT_EQ(devices.size(), 2U);
  for (const v1::Device& device : devices) {
    EXPECT_EQ(device.health(), v1::DEVICE_HEALTH_UNWALLED) << device.agent_id();
  }
  EXPECT_THAT(devices[0].health_reason(),
              HasSubstr("its sandbox level is filter, but the farm requires wall; missing layers: files "
                        "(namespaces are forbidden); docs/SANDBOX.md"));
  EXPECT_THAT(devices[1].health_reason(), HasSubstr("its sandbox level is not known"));
  EXPECT_THAT(farm.GetJob(job, now_)->waiting_for(),
              HasSubstr("open/cpu, which is unhealthy: its sandbox level is filter"));
  sandbox.set_level(v1::SANDBOX_LEVEL_WALL);
  ASSERT_TRUE(open.Sync(farm, now_).ok());
  farm.Tick(now_);
  EXPECT_EQ(farm.ListDevices(v1::ListDevicesRequest(), now_)[0].health(), v1::DEVICE_HEALTH_GOOD);
  EXPECT_EQ(farm.GetJob(job, now_)->waiting_for(), "a tuner, and none is connected: start hone-tuner");
}

TEST_F(FailureTest, AFailureOfTheDeviceDoesNotFailTheBatch) {
  FakeAgent sick("sick", "1"), good("good", "1");
  ASSERT_TRUE(good.Sync(farm_, now_).ok());
  const std::string batch = Submit(BatchOf(2), "b1").value();
  const v1::Lease lease = sick.Sync(farm_, now_)->response.leases(0);
  sick.Golden().set_passed(false);
  sick.Golden().set_reason("it computes nonsense");
  sick.Fail(lease, "the reference crashed", v1::TROUBLE_KIND_DEVICE);
  EXPECT_EQ(sick.Sync(farm_, now_)->response.leases_size(), 0);
  EXPECT_THAT(DeviceOfAgent("sick").health_reason(), HasSubstr("golden kernel fails: it computes nonsense"));
  WorkOff(good);
  EXPECT_EQ(Wait(batch)->finished(0).result().outcomes_size(), 2);
}

TEST_F(FailureTest, AnIncompleteAnswerCountsAgainstTheDeviceAndIsNotRecorded) {
  FakeAgent sloppy("sloppy", "1"), good("good", "1");
  ASSERT_TRUE(good.Sync(farm_, now_).ok());
  const std::string batch = Submit(BatchOf(2), "b1").value();
  sloppy.Finish(sloppy.Sync(farm_, now_)->response.leases(0));
  sloppy.state.mutable_finished(0)->mutable_result()->mutable_outcomes()->RemoveLast();
  sloppy.state.set_sequence(sloppy.state.sequence() + 1);
  EXPECT_TRUE(farm_.AcceptableResults(sloppy.state, now_).empty());
  ASSERT_TRUE(sloppy.Sync(farm_, now_).ok());
  EXPECT_EQ(DeviceOfAgent("sloppy").losses(), 1);
  WorkOff(good);
  EXPECT_EQ(Wait(batch)->finished(0).result().outcomes_size(), 2);
}

TEST_F(FailureTest, AnAgentThatStopsReturnsItsLeases) {
  for (int i = 0; i < 10; ++i) {
    FakeAgent agent("a", "boot" + std::to_string(i));
    Submit(BatchOf(1), "b1").value();
    const Farm::Answer answer = agent.Sync(farm_, now_).value();
    ASSERT_EQ(answer.response.leases_size(), 1) << i;
    EXPECT_EQ(answer.response.leases(0).attempt(), 1);
    agent.state.set_leaving(true);
    EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
    EXPECT_EQ(farm_.batches().queued(), 1);
    Pass(absl::Seconds(30));
  }
  EXPECT_EQ(farm_.Counters(now_).leases_lost(), 0);
  EXPECT_EQ(DeviceOfAgent("a").losses(), 0);
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_GOOD);
}

TEST_F(FailureTest, QuarantineGrowsAndEndsWithAGoldenKernelThatIsRight) {
  FakeAgent agent("a", "1"), good("good", "1");
  agent.Golden().set_passed(true);
  ASSERT_TRUE(good.Sync(farm_, now_).ok());
  const auto fall_ill = [&] {
    for (int i = 0; DeviceOfAgent("a").health() == v1::DEVICE_HEALTH_GOOD && i < 5; ++i) {
      const std::string batch = Submit(BatchOf(1), absl::FormatTime(now_) + std::to_string(i)).value();
      FailEverything(agent, v1::TROUBLE_KIND_BATCH, 2);
      WorkOff(good);
    }
  };
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  absl::Duration before = absl::ZeroDuration();
  for (int i = 0; i < 3; ++i) {
    fall_ill();
    ASSERT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_QUARANTINED) << i;
    const absl::Time ill = now_;
    // The tracker requests no check before the retry time, and an early check does not end the quarantine.
    agent.Check();
    EXPECT_THAT(agent.Sync(farm_, now_)->response.check_device_ids(), ElementsAre());
    EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_QUARANTINED);
    while (agent.Sync(farm_, now_)->response.check_device_ids().empty()) {
      Pass(absl::Minutes(1));
      ASSERT_TRUE(good.Sync(farm_, now_).ok());
      ASSERT_LT(now_ - ill, absl::Hours(2));
    }
    EXPECT_GT(now_ - ill, before * 1.5) << "every time longer";
    before = now_ - ill;
    EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_QUARANTINED) << "asked, and not yet answered";
    agent.Check();
    ASSERT_TRUE(agent.Sync(farm_, now_).ok());
    EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_GOOD);
  }
}

TEST_F(FailureTest, QuarantineEndsByHandAndOutlivesTheTracker) {
  FakeAgent hole("hole", "1"), good("good", "1");
  ASSERT_TRUE(good.Sync(farm_, now_).ok());
  for (int i = 0; i < 3; ++i) Submit(BatchOf(1), "b" + std::to_string(i)).value();
  FailEverything(hole, v1::TROUBLE_KIND_BATCH, 10);
  WorkOff(good);
  ASSERT_EQ(DeviceOfAgent("hole").health(), v1::DEVICE_HEALTH_QUARANTINED);
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  restarted.Restore({}, {}, farm_.TakeChangedHealth());
  ASSERT_TRUE(FakeAgent("hole", "1").Sync(restarted, now_).ok());
  EXPECT_EQ(DeviceOfAgent(restarted, "hole").health(), v1::DEVICE_HEALTH_QUARANTINED);
  restarted.Undrain("hole");
  EXPECT_EQ(DeviceOfAgent(restarted, "hole").health(), v1::DEVICE_HEALTH_GOOD);
  EXPECT_EQ(restarted.TakeChangedHealth().count("hole/cpu"), 1u) << "to be stored";
}

TEST_F(FailureTest, DriftTwiceInARowIsAQuarantineAndOnceIsNot) {
  FakeAgent agent("a", "1");
  for (int i = 0; i < 5; ++i) {
    agent.Check(100e-6 + i * 1e-6);
    ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  }
  EXPECT_DOUBLE_EQ(DeviceOfAgent("a").golden_baseline_seconds(), 102e-6);
  EXPECT_NEAR(DeviceOfAgent("a").golden_baseline_mad_seconds(), 1e-6, 1e-9);
  for (const double seconds : {200e-6, 101e-6, 200e-6, 101e-6}) {
    agent.Check(seconds);
    ASSERT_TRUE(agent.Sync(farm_, now_).ok());
    EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_GOOD) << seconds;
  }
  for (int i = 0; i < 2; ++i) {
    agent.Check(200e-6);
    ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  }
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_QUARANTINED);
  EXPECT_THAT(DeviceOfAgent("a").health_reason(),
              HasSubstr("takes 200.0 us, +98% of its baseline of 101.0 us, 2 times"));
  farm_.Undrain("a");
  agent.Check(200e-6);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  EXPECT_DOUBLE_EQ(DeviceOfAgent("a").golden_baseline_seconds(), 200e-6) << "what it is like from now on";
}

TEST_F(FailureTest, AHotDeviceCoolsDownWithoutAFailure) {
  FakeAgent agent("a", "1");
  for (int i = 0; i < 5; ++i) {
    agent.Check(100e-6);
    ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  }
  Submit(BatchOf(1), "b1").value();
  agent.Check(300e-6);
  agent.Golden().set_temperature_c(97);
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_COOLING);
  EXPECT_THAT(DeviceOfAgent("a").health_reason(), HasSubstr("97 C"));
  EXPECT_THAT(farm_.GetJob(job_id_, now_)->waiting_for(), HasSubstr("97 C"));
  for (const double celsius : {92.0, 85.0}) {  // below the limit is not cool enough
    Pass(absl::Minutes(1));
    EXPECT_THAT(agent.Sync(farm_, now_)->response.check_device_ids(), ElementsAre("cpu"));
    agent.Check(300e-6);
    agent.Golden().set_temperature_c(celsius);
    EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
  }
  agent.Check(100e-6);
  agent.Golden().set_temperature_c(70);
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1);
  EXPECT_EQ(DeviceOfAgent("a").record().quarantines(), 0);
}

TEST_F(FailureTest, AThrottledDeviceGetsNoWork) {
  FakeAgent agent("a", "1");
  agent.Check(100e-6);
  agent.Golden().set_throttled(true);
  Submit(BatchOf(1), "b1").value();
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 0);
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_COOLING);
  agent.Check(100e-6);
  agent.Golden().set_throttled(false);
  EXPECT_EQ(agent.Sync(farm_, now_)->response.leases_size(), 1);
}

// A device that stays too hot goes into quarantine: it is checked rarely, the reason is shown, and it returns as from
// other quarantines.
TEST_F(FailureTest, ADeviceThatDoesNotCoolDownGoesIntoQuarantine) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  const auto check = [&](bool throttled) {
    agent.Check(100e-6);
    agent.Golden().set_throttled(throttled);
    return agent.Sync(farm_, now_)->response.leases_size();
  };
  for (int minute = 0; minute < 60; ++minute) {
    EXPECT_EQ(check(true), 0);
    ASSERT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_COOLING) << minute;
    Pass(absl::Minutes(1));
  }
  EXPECT_EQ(check(true), 0);
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_QUARANTINED);
  EXPECT_THAT(DeviceOfAgent("a").health_reason(),
              AllOf(HasSubstr("not cooled down in 1h"), HasSubstr("slows itself down"), HasSubstr("in 10m")));
  Pass(absl::Minutes(9));
  EXPECT_THAT(agent.Sync(farm_, now_)->response.check_device_ids(), testing::IsEmpty());
  EXPECT_EQ(check(false), 0) << "before its time";
  EXPECT_EQ(check(true), 0);
  Pass(absl::Minutes(2));
  EXPECT_THAT(agent.Sync(farm_, now_)->response.check_device_ids(), ElementsAre("cpu"));
  EXPECT_EQ(check(false), 1);
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_GOOD);
  EXPECT_FALSE(DeviceOfAgent("a").record().has_cooling_since());
}

TEST_F(FailureTest, ADeviceThatIsHotAfterItsQuarantineWaitsTwiceAsLong) {
  v1::HealthRecord health;
  v1::GoldenCheck hot;
  hot.set_passed(true);
  hot.set_temperature_c(97);
  const DeviceOptions options;
  ApplyCheck(health, hot, now_, options);
  ApplyCheck(health, hot, now_ + options.cooling_max - absl::Seconds(1), options);
  EXPECT_FALSE(IsQuarantined(health));
  const absl::Time begun = now_ + options.cooling_max;
  ApplyCheck(health, hot, begun, options);
  ASSERT_TRUE(IsQuarantined(health));
  EXPECT_EQ(FromProto(health.retry_at()), begun + options.first_quarantine);
  ApplyCheck(health, hot, begun + absl::Seconds(30), options);
  EXPECT_EQ(health.quarantines(), 1) << "once for each time it is tried";
  const absl::Time again = FromProto(health.retry_at());
  ApplyCheck(health, hot, again, options);
  EXPECT_EQ(FromProto(health.retry_at()), again + 2 * options.first_quarantine);
  ResetHealth(health);
  ApplyCheck(health, hot, again, options);
  EXPECT_FALSE(IsQuarantined(health)) << "a person looked at it: it has its hour again";
}

TEST_F(FailureTest, WhileTheTrackerWasAwayNothingCooledDown) {
  FakeAgent agent("a", "1");
  agent.Check(100e-6);
  agent.Golden().set_throttled(true);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  Farm restarted(FarmOptions{}, 2, CountingIds(), "key");
  restarted.Restore({}, {}, farm_.TakeChangedHealth());
  now_ += absl::Hours(2);
  agent.Check(100e-6);
  agent.Golden().set_throttled(true);
  ASSERT_TRUE(agent.Sync(restarted, now_).ok());
  EXPECT_EQ(restarted.ListDevices(v1::ListDevicesRequest(), now_).at(0).health(), v1::DEVICE_HEALTH_COOLING);
}

// Agents send their newest check with every call, and to every tracker.
TEST_F(FailureTest, ARestartedTrackerCountsNoCheckAgain) {
  FakeAgent well("a", "1"), sick("b", "1");
  sick.Golden().set_reason("wrong output");
  well.Check(100e-6);
  for (int i = 0; i < 5; ++i) {
    SyncAfterRestart(well);
    SyncAfterRestart(sick);
  }
  EXPECT_THAT(stored_["a/cpu"].golden_seconds(), ElementsAre(100e-6));
  EXPECT_EQ(stored_["b/cpu"].troubles(), 1);
  for (const double seconds : {101e-6, 102e-6, 103e-6, 104e-6, 200e-6}) {
    well.Check(seconds);  // the tracker is not running meanwhile
    SyncAfterRestart(well);
  }
  for (int i = 0; i < 5; ++i) SyncAfterRestart(well);
  EXPECT_EQ(stored_["a/cpu"].golden_seconds_size(), 5);
  EXPECT_EQ(stored_["a/cpu"].drifts(), 1);
  EXPECT_FALSE(IsQuarantined(stored_["a/cpu"]));
}

TEST_F(FailureTest, ACheckIsOfOneProcessOfTheAgent) {
  FakeAgent first("a", "1"), second("a", "2");
  first.Check(100e-6);
  SyncAfterRestart(first);
  second.Check(101e-6);
  ASSERT_EQ(first.Golden().number(), second.Golden().number());
  SyncAfterRestart(second);
  SyncAfterRestart(first);  // a late call
  SyncAfterRestart(second);
  EXPECT_THAT(stored_["a/cpu"].golden_seconds(), ElementsAre(100e-6, 101e-6));
  v1::GoldenCheck check;
  check.set_number(1);
  for (int boot = 0; boot < 100; ++boot)
    EXPECT_TRUE(RememberCheck(stored_["a/cpu"], fmt::format("boot {}", boot), check));
  EXPECT_EQ(stored_["a/cpu"].counted_size(), 8) << "it does not grow for ever";
}

// Only a check made after the restart shows that the device is well again.
TEST_F(FailureTest, AnOldCheckEndsNoQuarantineWhenTheTrackerIsRestarted) {
  FakeAgent agent("a", "1");
  agent.Check();
  SyncAfterRestart(agent);
  v1::HealthRecord& health = stored_["a/cpu"];
  for (int i = 0; i < DeviceOptions().failures_to_quarantine; ++i) CountFailure(health, "no space", now_, {});
  now_ = FromProto(health.retry_at());
  EXPECT_THAT(SyncAfterRestart(agent).response.check_device_ids(), ElementsAre("cpu"));
  EXPECT_TRUE(IsQuarantined(stored_["a/cpu"]));
  agent.Check();
  SyncAfterRestart(agent);
  EXPECT_FALSE(IsQuarantined(stored_["a/cpu"]));
}

TEST_F(FailureTest, ACheckFromBeforeAReleaseIsNotCountedAgain) {
  FakeAgent agent("a", "1");
  agent.Golden().set_reason("wrong output");
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  EXPECT_EQ(DeviceOfAgent("a").record().troubles(), 1);
  EXPECT_TRUE(DeviceOfAgent("a").record().counted().empty()) << "the tracker's alone";
  farm_.Undrain("a");
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  stored_ = farm_.TakeChangedHealth();
  SyncAfterRestart(agent);
  EXPECT_EQ(stored_["a/cpu"].troubles(), 0);
}

// An old state file does not say which check was counted last. That check is counted once more, and only once.
TEST_F(FailureTest, HealthOfAnOldStateFileIsKept) {
  FakeAgent agent("a", "1");
  agent.Check(101e-6);
  stored_["a/cpu"].set_golden_kernel("golden");
  stored_["a/cpu"].add_golden_seconds(100e-6);
  for (int i = 0; i < 3; ++i) SyncAfterRestart(agent);
  EXPECT_THAT(stored_["a/cpu"].golden_seconds(), ElementsAre(100e-6, 101e-6));
}

TEST_F(FailureTest, AStandstillOfTheTrackerIsNoCoolingTime) {
  FakeAgent agent("a", "1");
  agent.Check(100e-6);
  agent.Golden().set_throttled(true);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  Pass(absl::Seconds(10));
  now_ += absl::Hours(2);  // the tracker stalls
  Pass(absl::Seconds(5));
  agent.Check(100e-6);
  agent.Golden().set_throttled(true);
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  EXPECT_EQ(DeviceOfAgent("a").health(), v1::DEVICE_HEALTH_COOLING);
}

// The tracker was stopped, or held up by its disk, for longer than any lease lives.
TEST_F(FailureTest, AStandstillOfTheTrackerCountsAgainstNothing) {
  std::vector<FakeAgent> agents;
  for (int i = 0; i < 20; ++i) {
    agents.emplace_back("a" + std::to_string(i), "1");
    Submit(BatchOf(1), "b" + std::to_string(i)).value();
    const v1::Lease lease = agents.back().Sync(farm_, now_)->response.leases(0);
    *agents.back().state.add_running() = lease.reference();
  }
  Pass(absl::Seconds(10));
  for (const absl::Duration stall : {absl::Seconds(21), absl::Seconds(90), absl::Hours(1)}) {
    now_ += stall;  // the tracker stalls
    Pass(absl::Seconds(5));
    for (FakeAgent& agent : agents) EXPECT_TRUE(agent.Sync(farm_, now_)->response.cancelled_lease_ids().empty());
  }
  EXPECT_EQ(farm_.Counters(now_).leases_lost(), 0);
  EXPECT_EQ(farm_.GetJob(job_id_, now_)->state(), v1::JOB_STATE_RUNNING);
  EXPECT_LT(farm_.batches().fair_share().UsedBy(""), 20 * 60) << "nobody pays for it";
  for (const v1::Device& device : farm_.ListDevices(v1::ListDevicesRequest(), now_)) {
    EXPECT_EQ(device.health(), v1::DEVICE_HEALTH_GOOD);
  }
  // An agent that is silent while the tracker runs still loses its leases.
  Pass(absl::Seconds(21));
  EXPECT_EQ(farm_.Counters(now_).leases_lost(), 20);
}

// An agent that kept results over its restart delivers them under the lease that they were measured under.
TEST_F(FailureTest, ARestartedAgentDeliversItsResults) {
  FakeAgent agent("a", "1"), restarted("a", "2");
  const std::string batch = Submit(BatchOf(2), "b1").value();
  restarted.Finish(agent.Sync(farm_, now_)->response.leases(0));
  restarted.state.set_sequence(1);
  EXPECT_EQ(farm_.AcceptableResults(restarted.state, now_).size(), 0u) << "it may be a late call of a dead one";
  restarted.state.set_epoch(farm_.Synchronize(restarted.state, now_)->response.epoch());
  restarted.state.set_sequence(2);
  EXPECT_EQ(farm_.AcceptableResults(restarted.state, now_).size(), 1u);
  ASSERT_TRUE(restarted.Sync(farm_, now_).ok());
  EXPECT_EQ(Wait(batch)->finished(0).result().outcomes_size(), 2);
  EXPECT_EQ(farm_.Counters(now_).leases_lost(), 0);
}

TEST_F(FailureTest, ARestartedTrackerRecordsOnlyResultsWithAValidReceipt) {
  FakeAgent agent("a", "1"), thief("b", "1");
  const std::string batch = Submit(BatchOf(2), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  agent.Finish(lease);
  v1::LeaseResult& result = *agent.state.mutable_finished(0);
  *result.mutable_batch() = lease.batch();
  result.mutable_batch()->clear_artifact();
  *result.mutable_receipt() = lease.receipt();
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"}, stranger{FarmOptions{}, 2, CountingIds(), "another key"};
  const auto recorded = [&](Farm& farm, const FakeAgent& from) {
    v1::SynchronizeRequest request = from.state;
    request.set_sequence(request.sequence() + 1);
    return farm.AcceptableResults(request, now_);
  };
  const std::vector<Recordable> records = recorded(restarted, agent);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].batch_id, batch) << "the same measurement, under the same id";
  EXPECT_EQ(records[0].result.device().digest(), "f");
  EXPECT_EQ(records[0].result.device_name(), "a/cpu");
  EXPECT_EQ(records[0].batch->candidates_size(), 2);
  EXPECT_TRUE(recorded(stranger, agent).empty());
  *thief.state.add_finished() = result;
  EXPECT_TRUE(recorded(restarted, thief).empty());
  for (const auto& forge : std::vector<void (*)(v1::LeaseResult&)>{
           [](v1::LeaseResult& r) { r.mutable_batch()->mutable_candidates(0)->set_schedule("another"); },
           [](v1::LeaseResult& r) { r.mutable_batch()->set_workload_digest("another"); },
           [](v1::LeaseResult& r) { r.mutable_receipt()->set_batch_id("another"); },
           [](v1::LeaseResult& r) { r.mutable_receipt()->set_device_id("another"); },
           [](v1::LeaseResult& r) { r.mutable_lease()->set_lease_id("another"); },
           [](v1::LeaseResult& r) { r.clear_receipt(); }}) {
    FakeAgent forger = agent;
    forge(*forger.state.mutable_finished(0));
    EXPECT_TRUE(recorded(restarted, forger).empty());
  }
  const Farm::Answer answer = agent.Sync(restarted, now_).value();
  EXPECT_THAT(answer.response.acked_lease_ids(), ElementsAre(lease.reference().lease_id()));
  EXPECT_EQ(restarted.Counters(now_).results_recovered(), 1);
  EXPECT_EQ(restarted.Counters(now_).results_stale(), 0);
}

// An agent that does not know of the tracker's restart sends its result without the receipt. The tracker must not make
// it delete the result.
TEST_F(FailureTest, ARestartedTrackerAsksForTheReceiptFirst) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(2), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  agent.Finish(lease);
  EXPECT_THAT(agent.Sync(restarted, now_)->response.acked_lease_ids(), testing::IsEmpty());
  EXPECT_EQ(restarted.Counters(now_).results_stale(), 0);
  agent.Finish(lease);
  *agent.state.mutable_finished(0)->mutable_batch() = lease.batch();
  *agent.state.mutable_finished(0)->mutable_receipt() = lease.receipt();
  EXPECT_THAT(agent.Sync(restarted, now_)->response.acked_lease_ids(), ElementsAre(lease.reference().lease_id()));
  EXPECT_EQ(restarted.Counters(now_).results_recovered(), 1);
  // An error result has no receipt, so the agent may delete it once the tracker knows of it.
  agent.Finish(lease);
  EXPECT_THAT(agent.Sync(restarted, now_)->response.acked_lease_ids(), ElementsAre(lease.reference().lease_id()));
}

// The tracker was restarted after its machine's clock was set back by hours.
TEST_F(FailureTest, AClockSetBackDoesNotProlongAQuarantine) {
  v1::HealthRecord health;
  health.set_quarantine_reason("three troubles");
  *health.mutable_quarantined_since() = hone::ToProto(now_ + absl::Hours(5));
  *health.mutable_retry_at() = hone::ToProto(now_ + absl::Hours(5) + absl::Minutes(10));
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  restarted.Restore({}, {}, {{"a/cpu", health}});
  restarted.Tick(now_);
  const v1::HealthRecord followed = restarted.TakeChangedHealth()["a/cpu"];
  EXPECT_EQ(hone::FromProto(followed.retry_at()), now_ + absl::Minutes(10));
  EXPECT_EQ(followed.quarantine_reason(), "three troubles");
  restarted.Tick(now_ + absl::Seconds(1));
  EXPECT_TRUE(restarted.TakeChangedHealth().empty());
}

// An answer that tells the agent to keep a result must not also acknowledge it.
TEST_F(FailureTest, AForgottenResultThatCannotBeStoredStaysWithTheAgent) {
  FakeAgent agent("a", "1");
  Submit(BatchOf(1), "b1").value();
  agent.Finish(agent.Sync(farm_, now_)->response.leases(0));
  Farm restarted{FarmOptions{}, 2, CountingIds(), "key"};
  agent.state = restarted.DeferResults(agent.state);
  const Farm::Answer answer = agent.Sync(restarted, now_).value();
  EXPECT_THAT(answer.response.acked_lease_ids(), ElementsAre());
  EXPECT_THAT(answer.response.cancelled_lease_ids(), ElementsAre());
}

TEST_F(FailureTest, WhileNothingCanBeStoredNoWorkIsGivenOutAndNoLimitRuns) {
  FakeAgent agent("a", "1"), idle("b", "1");
  const std::string batch = Submit(BatchOf(1), "b1").value();
  const v1::Lease lease = agent.Sync(farm_, now_)->response.leases(0);
  ASSERT_TRUE(idle.Sync(farm_, now_).ok());
  farm_.SetStorageFailure("no space left on the disk");
  Submit(BatchOf(1), "b2").value();
  agent.Finish(lease);
  const v1::SynchronizeRequest finished = agent.state;
  for (int i = 0; i < 1000; ++i) {  // more than an hour
    Pass(absl::Seconds(4));
    agent.state = farm_.DeferResults(finished);
    agent.state.set_sequence(finished.sequence() + i);
    const Farm::Answer answer = agent.Sync(farm_, now_).value();
    ASSERT_TRUE(answer.response.cancelled_lease_ids().empty()) << i;
    ASSERT_TRUE(answer.response.acked_lease_ids().empty()) << i;
    ASSERT_EQ(idle.Sync(farm_, now_)->response.leases_size(), 0);
  }
  v1::LeaseJobRequest ask;
  ask.set_protocol_version(v1::PROTOCOL_VERSION_1);
  ask.set_tuner_id("another");
  EXPECT_EQ(farm_.LeaseJob(ask, now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(farm_.SubmitJob(SpecOf("new"), now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(farm_.GetJob(job_id_, now_)->waiting_for(), HasSubstr("no space left"));
  farm_.SetStorageFailure("");
  EXPECT_EQ(idle.Sync(farm_, now_)->response.leases_size(), 1);
  *agent.state.mutable_finished() = finished.finished();
  agent.state.clear_running();
  ASSERT_TRUE(agent.Sync(farm_, now_).ok());
  ASSERT_EQ(Wait(batch)->finished_size(), 1);
  EXPECT_EQ(Wait(batch)->finished(0).result().outcomes_size(), 1);
  EXPECT_EQ(farm_.Counters(now_).leases_lost(), 0);
}

TEST(DeviceRegistryTest, HealthRecordsOfAbsentDevicesAreForgottenUnlessQuarantined) {
  const DeviceOptions options;
  DeviceRegistry registry(options, 1);
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  FakeAgent agent("a", "1");
  const auto call = [&] {
    agent.state.set_sequence(agent.state.sequence() + 1);
    return registry.Register(agent.state, now).status();
  };
  agent.Check();
  ASSERT_TRUE(call().ok());
  EXPECT_THAT(registry.TakeChangedHealth(), SizeIs(1));
  for (int i = 0; i < options.failures_to_quarantine; ++i) registry.CountFailure("gone/ill", "lost", now);
  EXPECT_THAT(registry.TakeChangedHealth(), SizeIs(1));
  agent.state.mutable_devices(0)->set_device_id("renamed");
  ASSERT_TRUE(call().ok());
  registry.Expire(now);
  (void)registry.TakeChangedHealth();
  now += options.forget_after;
  ASSERT_TRUE(call().ok());
  registry.Expire(now);
  EXPECT_FALSE(registry.TakeChangedHealth().contains("a/cpu"));
  now += absl::Minutes(2);
  ASSERT_TRUE(call().ok());
  registry.Expire(now);
  const auto changed = registry.TakeChangedHealth();
  ASSERT_TRUE(changed.contains("a/cpu"));
  EXPECT_EQ(changed.at("a/cpu").SerializeAsString(), "") << "to be forgotten on the disk too";
  EXPECT_FALSE(changed.contains("a/renamed"));
  EXPECT_FALSE(changed.contains("gone/ill"));
}

TEST(DeviceRegistryTest, LimitsDevicesAndHealthRecordsPerAgent) {
  DeviceRegistry registry(DeviceOptions{}, 1);
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  FakeAgent agent("a", "1");
  agent.Check();
  std::set<std::string> known;
  for (int i = 1; i <= 1000; ++i) {
    agent.state.mutable_devices(0)->set_device_id(std::to_string(i));
    agent.state.set_sequence(i);
    ASSERT_TRUE(registry.Register(agent.state, now).ok());
    for (const auto& [name, health] : registry.TakeChangedHealth()) {
      known.insert(name);
      if (health.SerializeAsString().empty()) known.erase(name);
    }
  }
  EXPECT_THAT(known, SizeIs(256));
  EXPECT_TRUE(known.contains("a/1000"));
  agent.state.set_sequence(1001);
  agent.state.mutable_devices(0)->mutable_self_test()->set_reason(std::string(1 << 20, 'x'));
  EXPECT_EQ(registry.Register(agent.state, now).status().code(), absl::StatusCode::kInvalidArgument);
  agent.state.clear_devices();
  for (int i = 0; i < 64; ++i) *agent.state.add_devices() = DeviceOf(std::to_string(i));
  EXPECT_TRUE(registry.Register(agent.state, now).ok());
  agent.state.set_sequence(1002);
  *agent.state.add_devices() = DeviceOf("one more");
  EXPECT_EQ(registry.Register(agent.state, now).status().code(), absl::StatusCode::kInvalidArgument);
}

// A caller that was refused may do something else, so the refused call must have no effect.
TEST_F(FailureTest, ARefusedCallChangesNothingWhileStoringFails) {
  farm_.SetStorageFailure("no space left on the disk");
  v1::ReportProgressRequest report;
  *report.mutable_lease() = job_;
  report.mutable_progress()->set_trials(7);
  EXPECT_EQ(farm_.SubmitJob(SpecOf("new"), now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(farm_.CancelJob(job_id_, now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(farm_.ReportProgress(report, now_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(farm_.CheckStorage().code(), absl::StatusCode::kUnavailable);
  farm_.SetStorageFailure("");
  EXPECT_TRUE(farm_.CheckStorage().ok());
  const std::vector<v1::Job> jobs = farm_.ListJobs(v1::ListJobsRequest(), now_);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(jobs[0].progress().trials(), 0);
}

}  // namespace
}  // namespace hone::tracker
