#include "device_agent/sync_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hone::agent {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience(30);

// A tracker in this process: gives each device the leases that wait for it, acknowledges at once, and holds a call for
// as long as it asks when there is nothing to say.
class PretendedTracker {
 public:
  absl::StatusOr<v1::SynchronizeResponse> Synchronize(const v1::SynchronizeRequest& request) {
    std::unique_lock lock(mutex_);
    last_ = request;
    running_.clear();
    for (const auto& running : request.running()) running_.insert(running.lease_id());
    v1::SynchronizeResponse response;
    response.set_epoch(1);
    response.mutable_next_sync()->set_seconds(1);
    for (const v1::LeaseResult& result : request.finished()) {
      results_[result.lease().lease_id()] = result.result();
      response.add_acked_lease_ids(result.lease().lease_id());
    }
    const auto give = [&] {
      for (const v1::Lease& lease : waiting_) *response.add_leases() = lease;
      for (const std::string& id : cancelled_) response.add_cancelled_lease_ids(id);
      waiting_.clear();
      cancelled_.clear();
      return response.leases_size() + response.acked_lease_ids_size() + response.cancelled_lease_ids_size() > 0;
    };
    changed_.notify_all();
    ended_ = false;
    if (!give()) {
      changed_.wait_for(lock, std::chrono::seconds(request.max_wait().seconds()), [&] { return ended_ || give(); });
    }
    if (ended_) return absl::CancelledError("by the agent");
    return response;
  }
  void EndCall() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void Give(const std::string& id, const std::string& device) {
    v1::Lease lease;
    lease.mutable_reference()->set_lease_id(id);
    lease.mutable_reference()->set_epoch(1);
    lease.set_device_id(device);
    lease.mutable_batch()->set_workload(id);
    const std::lock_guard lock(mutex_);
    waiting_.push_back(lease);
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
    return changed_.wait_for(lock, kPatience, condition);
  }
  bool Finished(const std::string& id) {
    return Eventually([&] { return results_.contains(id); });
  }
  v1::BatchResult Result(const std::string& id) {
    const std::lock_guard lock(mutex_);
    return results_.at(id);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  v1::SynchronizeRequest last_;
  std::set<std::string> running_;
  std::vector<v1::Lease> waiting_;
  std::vector<std::string> cancelled_;
  std::map<std::string, v1::BatchResult> results_;
};

// Measures a batch by saying who it is; batches whose workload begins with "long" take until Finish or a cancel.
class PretendedDevice {
 public:
  explicit PretendedDevice(std::string id) : id_(std::move(id)) {}
  ServedDevice Served() {
    ServedDevice device;
    device.state.set_device_id(id_);
    device.measurer = {[this](const v1::Batch& batch) { return Run(batch); }, [this] { Finish(); }};
    device.check.run = [] { return v1::SelfTest(); };
    return device;
  }
  void Finish() {
    const std::lock_guard lock(mutex_);
    finish_ = true;
    changed_.notify_all();
  }

 private:
  v1::BatchResult Run(const v1::Batch& batch) {
    std::unique_lock lock(mutex_);
    if (batch.workload().starts_with("long")) {
      finish_ = false;
      changed_.wait_for(lock, kPatience, [&] { return finish_; });
    }
    v1::BatchResult result;
    result.set_error(batch.workload() + " on " + id_);
    return result;
  }

  const std::string id_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finish_ = false;
};

class SyncLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    thread_ = std::thread([this] { status_ = loop_.Run(); });
  }
  void TearDown() override {
    one_.Finish();
    two_.Finish();
    loop_.Stop();
    thread_.join();
    EXPECT_EQ(status_, absl::OkStatus());
  }

  PretendedTracker tracker_;
  PretendedDevice one_{"one"}, two_{"two"};
  SyncLoop loop_{{"agent", "boot", "1"},
                 {[this](const v1::SynchronizeRequest& request) { return tracker_.Synchronize(request); },
                  [this] { tracker_.EndCall(); }},
                 {one_.Served(), two_.Served()}};
  std::thread thread_;
  absl::Status status_;
};

TEST_F(SyncLoopTest, SpeaksOfAllItsDevices) {
  ASSERT_TRUE(tracker_.Eventually([&] { return tracker_.last_.devices_size() == 2; }));
  const std::lock_guard lock(tracker_.mutex_);
  EXPECT_EQ(tracker_.last_.devices(0).device_id(), "one");
  EXPECT_EQ(tracker_.last_.devices(1).device_id(), "two");
}

TEST_F(SyncLoopTest, EveryDeviceMeasuresItsOwnLeases) {
  tracker_.Give("a", "two");
  tracker_.Give("b", "one");
  ASSERT_TRUE(tracker_.Finished("a") && tracker_.Finished("b"));
  EXPECT_EQ(tracker_.Result("a").error(), "a on two");
  EXPECT_EQ(tracker_.Result("b").error(), "b on one");
}

TEST_F(SyncLoopTest, OneDeviceGoesOnWhileTheOtherIsBusy) {
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

TEST_F(SyncLoopTest, LeaseOfAnUnknownDeviceIsAnsweredWithAnError) {
  tracker_.Give("a", "three");
  ASSERT_TRUE(tracker_.Finished("a"));
  EXPECT_THAT(tracker_.Result("a").error(), HasSubstr("no device 'three'"));
}

}  // namespace
}  // namespace hone::agent
