#include "device_agent/sync_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kLongestPause = absl::Seconds(10);

absl::Duration FromProto(const google::protobuf::Duration& d) {
  return absl::Seconds(d.seconds()) + absl::Nanoseconds(d.nanos());
}

// Steady: setting the system's clock must neither fence nor keep from fencing.
absl::Time Now() { return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

// Whether calling again, with any delay, could be answered otherwise.
bool Hopeless(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

}  // namespace

SyncLoop::SyncLoop(AgentIdentity identity, TrackerLink tracker, Measurer measurer, SelfCheck check)
    : identity_(std::move(identity)),
      tracker_(std::move(tracker)),
      measurer_(std::move(measurer)),
      check_(std::move(check)),
      last_check_(Now()),
      random_(std::hash<std::string>()(identity_.boot_id)),
      measuring_([this] { MeasureLoop(); }) {}

SyncLoop::~SyncLoop() {
  Stop();
  measuring_.join();
}

void SyncLoop::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  DropRunning();
  tracker_.cancel();
  changed_.notify_all();
}

absl::Status SyncLoop::Run() {
  absl::Duration pause = kFirstPause;
  const auto stopping = [&] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  while (!stopping()) {
    Fence(Now());
    CheckDevice(Now());
    const auto response = tracker_.synchronize(Request(false));
    if (stopping()) break;
    if (!response.ok()) {
      if (Hopeless(response.status())) return response.status();
      spdlog::warn("no answer from the tracker: {}; next try within {}", std::string(response.status().message()),
                   absl::FormatDuration(pause));
      Pause(pause * (0.5 + random_.Uniform() / 2), false);
      pause = std::min(pause * 2, kLongestPause);
      continue;
    }
    pause = kFirstPause;
    Handle(*response);
    bool busy = false;
    {
      const std::lock_guard lock(mutex_);
      busy = running_.has_value() || !queued_.empty();
    }
    if (busy) Pause(next_sync_, true);
  }
  tracker_.synchronize(Request(true)).IgnoreError();
  return absl::OkStatus();
}

// Only while nothing is measured: both would disturb each other.
void SyncLoop::CheckDevice(absl::Time now) {
  if (now - last_check_ < check_.every) return;
  {
    const std::lock_guard lock(mutex_);
    if (running_.has_value() || !queued_.empty()) return;
  }
  last_check_ = now;
  v1::SelfTest test = check_.run();
  if (!test.passed()) spdlog::error("self-test failed: {}", test.reason());
  const std::lock_guard lock(mutex_);
  *identity_.device.mutable_self_test() = std::move(test);
}

// The result is of no use any more. Called with the lock held.
void SyncLoop::DropRunning() {
  if (!running_.has_value()) return;
  drop_running_ = true;
  measurer_.cancel();
}

v1::SynchronizeRequest SyncLoop::Request(bool leaving) {
  const std::lock_guard lock(mutex_);
  v1::SynchronizeRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_agent_id(identity_.agent_id);
  request.set_boot_id(identity_.boot_id);
  request.set_epoch(epoch_);
  request.set_sequence(++sequence_);
  request.set_agent_version(identity_.version);
  *request.add_devices() = identity_.device;
  if (running_.has_value() && !drop_running_) *request.add_running() = *running_;
  for (const Visit& visit : queued_) *request.add_running() = visit.reference;
  for (const auto& [id, result] : finished_) *request.add_finished() = result;
  const bool idle = !running_.has_value() && queued_.empty() && finished_.empty();
  request.mutable_max_wait()->set_seconds(idle && !leaving ? 20 : 0);
  request.set_leaving(leaving);
  return request;
}

void SyncLoop::Handle(const v1::SynchronizeResponse& response) {
  const std::lock_guard lock(mutex_);
  last_answer_ = Now();
  if (response.has_fence_after()) fence_after_ = FromProto(response.fence_after());
  if (response.has_next_sync()) next_sync_ = FromProto(response.next_sync());
  if (response.epoch() != epoch_) {
    // A new registration: leases of the old one are not ours any more, but results may still be accepted.
    epoch_ = response.epoch();
    queued_.clear();
    DropRunning();
  }
  for (const std::string& id : response.acked_lease_ids()) finished_.erase(id);
  for (const std::string& id : response.cancelled_lease_ids()) {
    std::erase_if(queued_, [&](const Visit& v) { return v.reference.lease_id() == id; });
    finished_.erase(id);
    if (running_.has_value() && running_->lease_id() == id) DropRunning();
  }
  for (const v1::Lease& lease : response.leases()) {
    const std::string& id = lease.reference().lease_id();
    const bool known =
        finished_.contains(id) || (running_.has_value() && running_->lease_id() == id) ||
        std::any_of(queued_.begin(), queued_.end(), [&](const Visit& v) { return v.reference.lease_id() == id; });
    if (!known) queued_.push_back({lease.reference(), lease.batch()});
  }
  changed_.notify_all();
}

// Nothing heard for so long that the tracker has given our lease to another by now.
void SyncLoop::Fence(absl::Time now) {
  const std::lock_guard lock(mutex_);
  if (now - last_answer_ < fence_after_ || (!running_.has_value() && queued_.empty())) return;
  spdlog::warn("the tracker has been silent for {}: dropping the running visit",
               absl::FormatDuration(now - last_answer_));
  queued_.clear();
  DropRunning();
}

void SyncLoop::MeasureLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queued_.empty(); });
    if (stopping_) return;
    Visit visit = std::move(queued_.front());
    queued_.pop_front();
    running_ = visit.reference;
    drop_running_ = false;
    lock.unlock();
    v1::BatchResult result = measurer_.run(visit.batch);
    lock.lock();
    if (!drop_running_) {
      v1::LeaseResult& finished = finished_[visit.reference.lease_id()];
      *finished.mutable_lease() = visit.reference;
      *finished.mutable_result() = std::move(result);
    }
    running_.reset();
    changed_.notify_all();
  }
}

// until_finished: ends early when the running visit has.
void SyncLoop::Pause(absl::Duration duration, bool until_finished) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(duration),
                    [&] { return stopping_ || (until_finished && !running_.has_value() && queued_.empty()); });
}

}  // namespace hone::agent
