// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/sync_loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/temporary_folder.h"
#include "transport/transport.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kCancelPatience(30);

// A tracker in this process: gives each device the leases that wait for it, acknowledges at once, and holds a call for
// as long as it asks when there is nothing to say.
class PretendedTracker {
 public:
  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request,
                                                      const std::stop_token& stop) {
    if (request.ByteSizeLong() > size_t{kMessageBytesMax}) return absl::ResourceExhaustedError("as gRPC does");
    std::unique_lock lock(mutex_);
    if (away_ && !request.leaving()) return absl::UnavailableError("the tracker is away");
    last_ = request;
    running_.clear();
    for (const auto& running : request.running()) running_.insert(running.lease_id());
    v1::SynchronizeResponse response;
    response.set_epoch(epoch_);
    response.mutable_next_sync()->set_seconds(1);
    if (!barred_.empty()) (*response.mutable_barred())["two"] = barred_;
    if (fence_seconds_ > 0) response.mutable_fence_after()->set_seconds(fence_seconds_);
    if (hangs_ && !request.leaving()) {
      changed_.wait_for(lock, stop, kCancelPatience, [] { return false; });
      return absl::CancelledError("by the agent");
    }
    for (const v1::LeaseResult& result : request.finished()) {
      results_[result.lease().lease_id()] = result.result();
      sent_[result.lease().lease_id()] = result;
      if (!acknowledges_) continue;
      response.add_acked_lease_ids(result.lease().lease_id());
      acknowledged_.insert(result.lease().lease_id());
    }
    const auto give = [&] {
      for (const v1::Lease& lease : waiting_) *response.add_leases() = lease;
      for (const std::string& id : cancelled_) response.add_cancelled_lease_ids(id);
      for (const std::string& id : to_check_) response.add_check_device_ids(id);
      waiting_.clear();
      cancelled_.clear();
      to_check_.clear();
      return response.leases_size() + response.acked_lease_ids_size() + response.cancelled_lease_ids_size() +
                 response.check_device_ids_size() >
             0;
    };
    changed_.notify_all();
    if (!give()) changed_.wait_for(lock, stop, std::chrono::seconds(request.max_wait().seconds()), give);
    if (stop.stop_requested() && !give()) return absl::CancelledError("by the agent");
    return response;
  }
  void Give(const std::string& id, const std::string& device) {
    v1::Lease lease;
    lease.mutable_reference()->set_lease_id(id);
    lease.mutable_reference()->set_epoch(epoch_);
    lease.set_device_id(device);
    lease.mutable_batch()->set_workload(id);
    lease.mutable_batch()->set_artifact("code");
    lease.mutable_receipt()->set_signature("of " + id);
    const std::lock_guard lock(mutex_);
    waiting_.push_back(lease);
    changed_.notify_all();
  }
  void Check(const std::string& device) {
    const std::lock_guard lock(mutex_);
    to_check_.push_back(device);
    changed_.notify_all();
  }
  void Cancel(const std::string& id) {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
    changed_.notify_all();
  }
  template <typename Condition>
  bool Eventually(Condition&& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kCancelPatience, condition);
  }
  bool Finished(const std::string& id) {
    return Eventually([&] { return results_.contains(id); });
  }
  v1::BatchResult Result(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return results_.at(id);
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  v1::SynchronizeRequest last_;
  std::set<std::string> running_, acknowledged_;
  std::vector<v1::Lease> waiting_;
  std::vector<std::string> cancelled_, to_check_;
  std::string barred_;  // why device "two" is
  std::map<std::string, v1::LeaseResult> sent_;
  bool away_ = false, acknowledges_ = true, hangs_ = false;
  int fence_seconds_ = 0;
  uint64_t epoch_ = 1;
  std::map<std::string, v1::BatchResult> results_;
};

// Measures a batch by saying who it is, which is an error; one that begins with "good" brings an outcome. Batches whose
// workload begins with "long" take until Finish or a stop; one that begins with "late" looks at nothing before Begin.
class PretendedDevice {
 public:
  explicit PretendedDevice(std::string id) : id_(std::move(id)) {}
  ServedDevice Served() {
    ServedDevice device;
    device.state.set_device_id(id_);
    device.measure = [this](const v1::Batch& batch, const std::stop_token& stop) { return Run(batch, stop); };
    device.check.run = [] { return v1::SelfTest(); };
    return device;
  }
  // The same with a golden kernel, right or not.
  ServedDevice WithGolden(bool right) {
    ServedDevice device = Served();
    device.golden.run = [this, right](uint64_t number, const std::stop_token&) {
      ++goldens_;
      v1::GoldenCheck check;
      check.set_number(number);
      check.set_passed(right);
      return check;
    };
    device.golden.interval = absl::Hours(1);
    return device;
  }
  std::atomic<int> goldens_{0}, stopped_{0};
  void Begin() { Set(begin_); }
  void Finish() { Set(finish_); }

 private:
  void Set(bool& flag) {
    const std::lock_guard lock(mutex_);
    flag = true;
    changed_.notify_all();
  }
  v1::BatchResult Run(const v1::Batch& batch, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (batch.workload().starts_with("late")) changed_.wait_for(lock, kCancelPatience, [&] { return begin_; });
    if (batch.workload().starts_with("l")) changed_.wait_for(lock, stop, kCancelPatience, [&] { return finish_; });
    if (stop.stop_requested()) ++stopped_;
    v1::BatchResult result;
    if (batch.workload().starts_with("good")) {
      result.add_outcomes()->set_candidate_id("c");
    } else {
      result.set_error(batch.workload() + " on " + id_);
    }
    return result;
  }

  const std::string id_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool begin_ = false, finish_ = false;
};

class SyncLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    thread_ = std::thread([this] { status_ = loop_.Run(); });
  }
  void TearDown() override {
    loop_.Stop();
    thread_.join();
    EXPECT_EQ(status_, absl::OkStatus());
  }

  PretendedTracker tracker_;
  PretendedDevice one_{"one"}, two_{"two"};
  SyncLoop loop_{{"agent", "boot", "1"},
                 [this](const v1::SynchronizeRequest& request, const std::stop_token& stop) {
                   return tracker_.Synchronize(request, stop);
                 },
                 {one_.Served(), two_.Served()}};
  std::thread thread_;
  absl::Status status_;
};

// A tracker that is away comes back; what it refuses for good it refuses again.
TEST(SyncLoopEndTest, PermanentRefusalEndsTheLoop) {
  for (const absl::Status& refusal :
       {absl::UnauthenticatedError("no identity"), absl::PermissionDeniedError("another role"),
        absl::AbortedError("overtaken"), absl::FailedPreconditionError("version"), absl::InvalidArgumentError("bug")}) {
    PretendedDevice device("one");
    int calls = 0;
    const auto refuse = [&](const v1::SynchronizeRequest&,
                            const std::stop_token&) -> absl::StatusOr<v1::SynchronizeResponse> {
      return ++calls == 1 ? absl::UnavailableError("away") : refusal;
    };
    SyncLoop loop({"agent", "boot", "1"}, refuse, {device.Served()});
    EXPECT_EQ(loop.Run(), refusal);
    EXPECT_EQ(calls, 2);
  }
}

TEST_F(SyncLoopTest, ReportsAllDevices) {
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.last_.devices_size() == 2; }));
  const std::lock_guard lock(tracker_.mutex_);
  EXPECT_EQ(tracker_.last_.devices(0).device_id(), "one");
  EXPECT_EQ(tracker_.last_.devices(1).device_id(), "two");
}

// Once for each reason, not with every answer.
TEST_F(SyncLoopTest, TheLogSaysWhyADeviceGetsNoWork) {
  const auto lines = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  spdlog::default_logger()->sinks().push_back(lines);
  const auto said = [&](const std::string& text) {
    const std::vector<std::string> all = lines->last_formatted();
    return std::count_if(all.begin(), all.end(),
                         [&](const auto& line) { return line.find(text) != std::string::npos; });
  };
  const auto answers = [&](const std::string& barred) {
    {
      const std::lock_guard lock(tracker_.mutex_);
      tracker_.barred_ = barred;
    }
    for (int i = 0; i < 3; ++i) {  // what is measured comes with a call, whose answer is handled before the next one
      const std::string id = fmt::format("{} {}", barred, i);
      tracker_.Give(id, "one");
      ASSERT_TRUE(tracker_.Finished(id));
    }
  };
  for (const char* barred : {"quarantined: drift", "drained", ""}) ASSERT_NO_FATAL_FAILURE(answers(barred));
  EXPECT_EQ(said("two gets no work from the tracker: quarantined: drift"), 1);
  EXPECT_EQ(said("two gets no work from the tracker: drained"), 1);
  EXPECT_EQ(said("two gets work again"), 1);
  EXPECT_EQ(said("one gets no work"), 0) << "all is well with it";
  spdlog::default_logger()->sinks().pop_back();
}

TEST_F(SyncLoopTest, EveryDeviceMeasuresItsOwnLeases) {
  tracker_.Give("a", "two");
  tracker_.Give("b", "one");
  ASSERT_TRUE(tracker_.Finished("a") && tracker_.Finished("b"));
  EXPECT_EQ(tracker_.Result("a").error(), "a on two");
  EXPECT_EQ(tracker_.Result("b").error(), "b on one");
}

TEST_F(SyncLoopTest, DevicesMeasureIndependently) {
  tracker_.Give("long", "one");
  for (const char* id : {"a", "b", "c"}) tracker_.Give(id, "two");
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(tracker_.Finished(id)) << id;
  tracker_.Give("d", "one");  // waits behind the long one
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_ == std::set<std::string>{"long", "d"}; }));
  one_.Finish();
  ASSERT_TRUE(tracker_.Finished("long") && tracker_.Finished("d"));
  EXPECT_EQ(tracker_.Result("d").error(), "d on one");
}

TEST_F(SyncLoopTest, CancelEndsTheLeaseOfItsDeviceOnly) {
  tracker_.Give("long 1", "one");
  tracker_.Give("long 2", "two");
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_ == std::set<std::string>{"long 1", "long 2"}; }));
  tracker_.Cancel("long 1");
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_ == std::set<std::string>{"long 2"}; }));
  two_.Finish();
  ASSERT_TRUE(tracker_.Finished("long 2"));
  const std::lock_guard lock(tracker_.mutex_);
  EXPECT_FALSE(tracker_.results_.contains("long 1")) << "nothing is reported for it";
}

TEST_F(SyncLoopTest, CancelBeforeMeasurementPreventsIt) {
  tracker_.Give("late", "one");
  tracker_.Give("next", "one");
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_ == std::set<std::string>{"late", "next"}; }));
  tracker_.Cancel("late");
  ASSERT_TRUE(tracker_.Eventually([&] { return !tracker_.running_.contains("late"); }));
  one_.Begin();
  EXPECT_TRUE(tracker_.Finished("next")) << "the late one measures on";
}

// By then another has its lease, whatever becomes of the call.
TEST_F(SyncLoopTest, FenceCancelsMeasurementsDuringAHangingCall) {
  {
    const std::lock_guard lock(tracker_.mutex_);
    tracker_.fence_seconds_ = 2;
  }
  tracker_.Give("long", "one");
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_ == std::set<std::string>{"long"}; }));
  {
    const std::lock_guard lock(tracker_.mutex_);
    tracker_.hangs_ = true;
  }
  const auto fenced = std::chrono::steady_clock::now() + kCancelPatience / 2;
  while (one_.stopped_ == 0 && std::chrono::steady_clock::now() < fenced) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(one_.stopped_, 1);
}

TEST_F(SyncLoopTest, LeaseOfAnUnknownDeviceIsAnsweredWithAnError) {
  tracker_.Give("a", "three");
  ASSERT_TRUE(tracker_.Finished("a"));
  EXPECT_THAT(tracker_.Result("a").error(), HasSubstr("no device 'three'"));
}

// One loop with one device, started and stopped by the test.
class OneDevice {
 public:
  OneDevice(PretendedTracker& tracker, ServedDevice device, std::optional<Outbox> outbox, const std::string& boot)
      : loop_(
            {"agent", boot, "1"},
            [&tracker](const v1::SynchronizeRequest& request, const std::stop_token& stop) {
              return tracker.Synchronize(request, stop);
            },
            {std::move(device)}, std::move(outbox)),
        thread_([this] { (void)loop_.Run(); }) {}
  ~OneDevice() {
    loop_.Stop();
    thread_.join();
  }
  void Stop() { loop_.Stop(); }

 private:
  SyncLoop loop_;
  std::thread thread_;
};

TEST(SyncLoopGoldenTest, ADeviceJoinsWithItsGoldenKernelMeasured) {
  PretendedTracker tracker;
  PretendedDevice device("one");
  const OneDevice loop(tracker, device.WithGolden(true), std::nullopt, "boot");
  ASSERT_TRUE(tracker.Eventually([&] { return tracker.last_.devices_size() == 1; }));
  const std::lock_guard lock(tracker.mutex_);
  EXPECT_EQ(tracker.last_.sequence(), 1u);
  EXPECT_EQ(tracker.last_.devices(0).golden().number(), 1u);
}

// The host lock is held: the device is known to the tracker with the reason, is tested as soon as it can be, and only
// then measures the golden kernel.
TEST(SyncLoopGoldenTest, ADeviceWhoseSelfTestWaitsJoinsAtOnce) {
  PretendedTracker tracker;
  PretendedDevice device("one");
  ServedDevice served = device.WithGolden(true);
  served.state.mutable_self_test()->set_pending(true);
  served.state.mutable_self_test()->set_reason("the lock is held");
  std::atomic<bool> is_free = false;
  served.check.run = [&, waiting = served.state.self_test()] {
    v1::SelfTest passed;
    passed.set_passed(true);
    return is_free ? passed : waiting;
  };
  const OneDevice loop(tracker, std::move(served), std::nullopt, "boot");
  ASSERT_TRUE(tracker.Eventually([&] { return tracker.last_.sequence() >= 3; })) << "calls must not wait for the lock";
  {
    const std::lock_guard lock(tracker.mutex_);
    EXPECT_EQ(tracker.last_.devices(0).self_test().reason(), "the lock is held");
    EXPECT_EQ(device.goldens_, 0);
  }
  is_free = true;
  ASSERT_TRUE(tracker.Eventually([&] { return tracker.last_.devices(0).golden().passed(); }));
  const std::lock_guard lock(tracker.mutex_);
  EXPECT_TRUE(tracker.last_.devices(0).self_test().passed());
}

TEST(SyncLoopGoldenTest, GoldenCheckDistinguishesBatchFromDeviceFailure) {
  for (const bool right : {true, false}) {
    PretendedTracker tracker;
    PretendedDevice device("one");
    const OneDevice loop(tracker, device.WithGolden(right), std::nullopt, "boot");
    tracker.Give("a", "one");
    ASSERT_TRUE(tracker.Finished("a"));
    EXPECT_EQ(tracker.Result("a").trouble(), right ? v1::TROUBLE_KIND_BATCH : v1::TROUBLE_KIND_DEVICE);
    EXPECT_THAT(tracker.Result("a").error(), HasSubstr(right ? "a on one" : "golden kernel fails too"));
    const std::lock_guard lock(tracker.mutex_);
    EXPECT_EQ(tracker.last_.devices(0).golden().number(), 2u) << "once at the beginning, once after the failure";
  }
}

TEST(SyncLoopGoldenTest, IsMeasuredWhenTheTrackerAsksAndBetweenBatches) {
  PretendedTracker tracker;
  PretendedDevice device("one");
  ServedDevice served = device.WithGolden(true);
  served.golden.interval = absl::ZeroDuration();
  const OneDevice loop(tracker, std::move(served), std::nullopt, "boot");
  tracker.Check("one");
  ASSERT_TRUE(tracker.Eventually([&] { return device.goldens_ >= 2; }));
  for (const char* id : {"good1", "good2"}) tracker.Give(id, "one");
  ASSERT_TRUE(tracker.Finished("good1") && tracker.Finished("good2"));
  EXPECT_GE(device.goldens_, 3) << "at the beginning, when asked, and between the two";
}

class SyncLoopOutboxTest : public testing::Test {
 protected:
  std::optional<Outbox> Open() { return Outbox::Open(folder_ / "outbox").value(); }
  TemporaryFolder folder_ = TemporaryFolder::Create().value();
  PretendedTracker tracker_;
  PretendedDevice device_{"one"};
};

TEST_F(SyncLoopOutboxTest, UnacknowledgedResultIsResentAfterRestartWithItsReceipt) {
  tracker_.acknowledges_ = false;
  {
    const OneDevice loop(tracker_, device_.Served(), Open(), "first");
    tracker_.Give("good1", "one");
    ASSERT_TRUE(tracker_.Finished("good1"));
    const std::lock_guard lock(tracker_.mutex_);
    EXPECT_FALSE(tracker_.sent_.at("good1").has_batch()) << "the tracker knows its lease";
  }
  tracker_.sent_.clear();
  tracker_.results_.clear();
  tracker_.epoch_ = 2;
  ASSERT_EQ(Open()->Read().size(), 1u);
  const OneDevice loop(tracker_, device_.Served(), Open(), "second");
  ASSERT_TRUE(tracker_.Finished("good1"));
  {
    const std::lock_guard lock(tracker_.mutex_);
    EXPECT_EQ(tracker_.sent_.at("good1").receipt().signature(), "of good1");
    EXPECT_EQ(tracker_.sent_.at("good1").batch().workload(), "good1");
    EXPECT_EQ(tracker_.sent_.at("good1").batch().artifact(), "") << "code is of no use any more";
    tracker_.acknowledges_ = true;
  }
  ASSERT_TRUE(tracker_.Eventually([&] { return Open()->Read().empty(); }));
}

TEST_F(SyncLoopOutboxTest, LargeResultsAreSplitOverCalls) {
  for (const char* id : {"good1", "good2"}) {
    v1::LeaseResult result;
    result.mutable_lease()->set_lease_id(id);
    result.mutable_result()->add_outcomes()->set_candidate_id(std::string(40 << 20, 'c'));
    ASSERT_TRUE(Open()->StoreResult(result).ok());
  }
  const OneDevice loop(tracker_, device_.Served(), Open(), "first");
  EXPECT_TRUE(tracker_.Finished("good1") && tracker_.Finished("good2"));
}

TEST_F(SyncLoopOutboxTest, ErrorsAreNotKept) {
  tracker_.acknowledges_ = false;
  const OneDevice loop(tracker_, device_.Served(), Open(), "first");
  tracker_.Give("bad", "one");
  ASSERT_TRUE(tracker_.Finished("bad"));
  EXPECT_TRUE(Open()->Read().empty());
}

TEST_F(SyncLoopOutboxTest, ASlowDiskDelaysNoCall) {
  tracker_.acknowledges_ = false;
  const std::string file = folder_ / "outbox" / "good2.result.new";
  int reader = -1;
  const auto end = absl::MakeCleanup([&] { close(reader); });  // after the loop, which writes there
  OneDevice loop(tracker_, device_.Served(), Open(), "first");
  const auto release = absl::MakeCleanup([&] { reader = open(file.c_str(), O_RDWR | O_NONBLOCK); });
  tracker_.Give("good1", "one");
  ASSERT_TRUE(tracker_.Finished("good1"));
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // who writes there waits for a reader
  tracker_.Give("good2", "one");
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_ == std::set<std::string>{"good2"}; }));
  {
    const std::lock_guard lock(tracker_.mutex_);
    tracker_.acknowledges_ = true;
  }
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.acknowledged_.contains("good1"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that it is handled by then
  const std::future<void> stopped = std::async(std::launch::async, [&] { loop.Stop(); });
  EXPECT_EQ(stopped.wait_for(kCancelPatience), std::future_status::ready);
}

TEST_F(SyncLoopOutboxTest, AnAgentThatStopsNamesNothingAsRunning) {
  {
    const OneDevice loop(tracker_, device_.Served(), Open(), "first");
    tracker_.Give("long", "one");
    tracker_.Give("next", "one");
    ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.running_.size() == 2; }));
  }
  EXPECT_TRUE(tracker_.last_.leaving());
  EXPECT_TRUE(tracker_.running_.empty());
}

}  // namespace
}  // namespace hone::agent
