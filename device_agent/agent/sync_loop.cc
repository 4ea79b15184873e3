// SPDX-License-Identifier: Apache-2.0
#include "device_agent/agent/sync_loop.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/status.h"
#include "base/steady_time.h"
#include "proto/convert.h"

namespace hone::agent {
namespace {

constexpr absl::Duration kRetryPauseMin = absl::Milliseconds(200);
constexpr absl::Duration kRetryPauseMax = absl::Seconds(10);
constexpr absl::Duration kRefusedPause = absl::Seconds(2);
constexpr absl::Duration kPendingPause = absl::Seconds(2);  // between tries of a self-test that waits
constexpr absl::Duration kFirstGoldenMax = absl::Seconds(30);
// Results per call; the rest goes with the next call, because messages are limited (kMessageBytesMax).
constexpr int kResultsPerCallMax = 64;
constexpr size_t kResultBytesPerCallMax = size_t{32} << 20;

// Whether no later call can have another answer.
bool IsPermanentError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool SyncLoop::Worker::Holds(const std::string& lease_id) const {
  return (running.has_value() && running->lease_id() == lease_id) ||
         std::any_of(queued.begin(), queued.end(), [&](const Visit& v) { return v.reference.lease_id() == lease_id; });
}

SyncLoop::SyncLoop(AgentIdentity identity, Synchronize synchronize, std::vector<ServedDevice> devices,
                   std::optional<Outbox> outbox)
    : identity_(std::move(identity)),
      synchronize_(std::move(synchronize)),
      random_(std::hash<std::string>()(identity_.boot_id)),
      outbox_(std::move(outbox)) {
  HONE_CHECK(!devices.empty());
  if (outbox_.has_value()) finished_ = outbox_->Read();
  if (!finished_.empty()) spdlog::info("{} results of an earlier run are sent to the tracker", finished_.size());
  for (ServedDevice& device : devices) workers_.push_back(std::make_unique<Worker>(std::move(device)));
  for (const auto& worker : workers_) {
    worker->last_check = worker->last_golden_check = SteadyNow();
    worker->golden_due = worker->served.golden.run != nullptr && !worker->served.state.self_test().pending();
    worker->thread = std::thread([this, &worker = *worker] { MeasureLoop(worker); });
  }
  fence_ = std::thread([this] { FenceLoop(); });
}

SyncLoop::~SyncLoop() {
  Stop();
  for (const auto& worker : workers_) worker->thread.join();
  fence_.join();
}

void SyncLoop::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& worker : workers_) worker->stop.request_stop();
  call_.request_stop();
  changed_.notify_all();
}

// Waits for the first golden check of each device, so that the agent registers with the results. Another agent of this
// machine may hold the host lock long, so the wait has an end.
void SyncLoop::AwaitFirstGoldenChecks() {
  std::unique_lock lock(mutex_);
  const auto wanted = [](const auto& worker) { return worker->golden_due; };
  changed_.wait_for(lock, absl::ToChronoNanoseconds(kFirstGoldenMax),
                    [&] { return stopping_ || std::none_of(workers_.begin(), workers_.end(), wanted); });
}

absl::Status SyncLoop::Run() {
  AwaitFirstGoldenChecks();
  absl::Duration pause = kRetryPauseMin;
  const auto stopping = [&] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  while (!stopping()) {
    CheckDevices(SteadyNow());
    const auto response = Call(false);
    if (stopping()) break;
    if (!response.ok()) {
      const bool ended = call_.stop_requested();  // by ourselves, to tell what was finished
      if (ended && absl::IsCancelled(response.status())) continue;
      if (IsPermanentError(response.status())) return response.status();
      spdlog::warn("no answer from the tracker: {}; next try within {}", std::string(response.status().message()),
                   absl::FormatDuration(pause));
      Pause(pause * (0.5 + random_.Uniform() / 2), false);
      pause = std::min(pause * 2, kRetryPauseMax);
      continue;
    }
    pause = kRetryPauseMin;
    Handle(*response);
    bool all_busy = true, refused = response->acked_lease_ids().empty();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& worker : workers_) all_busy &= worker->busy();
      refused &= !finished_.empty();
    }
    // A tracker that refuses results, for example because its disk is full, gets fewer calls.
    if (all_busy || refused) Pause(refused ? kRefusedPause : next_sync_, true);
  }
  Call(true).IgnoreError();
  return absl::OkStatus();
}

// Tests each idle device. A test and a measurement would disturb each other.
void SyncLoop::CheckDevices(absl::Time now) {
  for (const auto& worker : workers_) {
    {
      const std::lock_guard lock(mutex_);
      const bool pending = worker->served.state.self_test().pending();
      if (now - worker->last_check < (pending ? kPendingPause : worker->served.check.interval)) continue;
      if (worker->busy()) continue;
      worker->last_check = now;
    }
    v1::SelfTest test = worker->served.check.run();
    const std::lock_guard lock(mutex_);
    v1::DeviceState& state = worker->served.state;
    const bool made = !test.pending();
    if (made && !test.passed()) spdlog::error("self-test of {} failed: {}", state.device_id(), test.reason());
    *state.mutable_self_test() = std::move(test);
    if (!made) continue;
    worker->golden_due = worker->served.golden.run != nullptr;
    changed_.notify_all();
  }
}

// Drops the leases of the worker, which the agent does not hold any more. Called with the lock held.
void SyncLoop::Forget(Worker& worker) {
  worker.queued.clear();
  worker.stop.request_stop();
}

// Called with the lock held.
bool SyncLoop::AnyBusy() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->busy(); });
}

absl::StatusOr<v1::SynchronizeResponse> SyncLoop::Call(bool leaving) {
  std::unique_lock lock(mutex_);
  if (stopping_ && !leaving) return absl::CancelledError("stopping");
  call_ = std::stop_source();
  const std::stop_token ended = call_.get_token();
  const v1::SynchronizeRequest request = Request(leaving);
  sent_ = SteadyNow();
  lock.unlock();
  auto response = synchronize_(request, ended);
  lock.lock();
  poll_held_ = false;
  return response;
}

// Called with the lock held.
v1::SynchronizeRequest SyncLoop::Request(bool leaving) {
  v1::SynchronizeRequest request;
  request.set_protocol_version(v1::PROTOCOL_VERSION_1);
  request.set_agent_id(identity_.agent_id);
  request.set_boot_id(identity_.boot_id);
  request.set_epoch(epoch_);
  request.set_sequence(++sequence_);
  request.set_agent_version(identity_.version);
  bool idle = false;
  for (const auto& worker : workers_) {
    *request.add_devices() = worker->served.state;
    if (worker->running.has_value() && !worker->stop.stop_requested()) *request.add_running() = *worker->running;
    // An agent that leaves returns the leases that it has not begun.
    for (const Visit& visit : worker->queued) {
      if (!leaving) *request.add_running() = visit.reference;
    }
    idle |= !worker->busy();
  }
  size_t bytes = 0;
  for (const auto& [id, result] : finished_) {
    v1::LeaseResult finished = result;
    if (result.lease().epoch() == epoch_) {  // else the tracker may know its lease no more
      finished.clear_batch();
      finished.clear_receipt();
    }
    bytes += finished.ByteSizeLong();
    const int before = request.finished_size();
    if (before == kResultsPerCallMax || (before > 0 && bytes > kResultBytesPerCallMax)) break;
    *request.add_finished() = std::move(finished);
  }
  has_new_result_ = false;
  poll_held_ = idle && finished_.empty() && !leaving;
  // A finished measurement ends a held call. The wait is short while devices are busy, because a measurement may finish
  // just before there is a call to end, and while a self-test waits, because it is tried between calls.
  const bool soon = AnyBusy() || std::ranges::any_of(workers_, [](const auto& worker) {
                      return worker->served.state.self_test().pending();
                    });
  if (poll_held_) request.mutable_max_wait()->set_seconds(soon ? 1 : 20);
  request.set_leaving(leaving);
  return request;
}

void SyncLoop::Handle(const v1::SynchronizeResponse& response) {
  std::unique_lock lock(mutex_);
  // The time of the answer's arrival would be wrong: the tracker counts from when it sent the answer, which may travel
  // long.
  last_heard_ = sent_ + hone::FromProto(response.held());
  if (response.has_fence_after()) fence_after_ = hone::FromProto(response.fence_after());
  if (response.has_next_sync()) next_sync_ = hone::FromProto(response.next_sync());
  if (response.epoch() != epoch_) {
    // A new registration: the leases of the old one are lost, but the tracker may still accept their results.
    epoch_ = response.epoch();
    for (const auto& worker : workers_) Forget(*worker);
  }
  for (const std::string& id : response.acked_lease_ids()) finished_.erase(id);
  for (const std::string& id : response.cancelled_lease_ids()) Cancel(id);
  for (const std::string& id : response.check_device_ids()) {
    for (const auto& worker : workers_) {
      if (worker->served.state.device_id() != id) continue;
      worker->golden_due = worker->served.golden.run != nullptr;
    }
  }
  LogNoWorkReasons(response);
  for (const v1::Lease& lease : response.leases()) Take(lease);
  changed_.notify_all();
  lock.unlock();
  for (const std::string& id : response.acked_lease_ids()) RemoveResult(id);
  for (const std::string& id : response.cancelled_lease_ids()) RemoveResult(id);
}

// Logs once why the tracker gives a device no work, for an operator at the board. Called with the lock held.
void SyncLoop::LogNoWorkReasons(const v1::SynchronizeResponse& response) {
  for (const auto& worker : workers_) {
    const std::string& id = worker->served.state.device_id();
    const auto found = response.barred().find(id);
    const std::string why = found == response.barred().end() ? "" : found->second;
    if (why == worker->barred) continue;
    worker->barred = why;
    if (why.empty()) {
      spdlog::info("{} gets work again", id);
    } else {
      spdlog::warn("{} gets no work from the tracker: {}", id, why);
    }
  }
}

// Called without the lock, as StoreResult.
void SyncLoop::RemoveResult(const std::string& lease_id) {
  const std::lock_guard guard(outbox_mutex_);
  if (outbox_.has_value()) outbox_->Forget(lease_id);
}

// Called with the lock held.
void SyncLoop::Cancel(const std::string& lease_id) {
  finished_.erase(lease_id);
  for (const auto& worker : workers_) {
    std::erase_if(worker->queued, [&](const Visit& v) { return v.reference.lease_id() == lease_id; });
    if (worker->running.has_value() && worker->running->lease_id() == lease_id) worker->stop.request_stop();
  }
}

// Called with the lock held.
void SyncLoop::Take(const v1::Lease& lease) {
  const std::string& id = lease.reference().lease_id();
  const auto of_device = [&](const auto& worker) { return worker->served.state.device_id() == lease.device_id(); };
  const auto worker = std::find_if(workers_.begin(), workers_.end(), of_device);
  if (worker == workers_.end()) {
    v1::LeaseResult& finished = finished_[id];
    *finished.mutable_lease() = lease.reference();
    finished.mutable_result()->set_error("this agent has no device '" + lease.device_id() + "'");
    finished.mutable_result()->set_trouble(v1::TROUBLE_KIND_DEVICE);
    return;
  }
  if (finished_.contains(id) || (*worker)->Holds(id)) return;
  (*worker)->queued.push_back({lease.reference(), lease.receipt(), lease.batch()});
}

// Cancels all measurements when the tracker has been silent for fence_after_, because it has given their leases to
// other agents by then. Runs in its own thread, because the calling thread may hang in a call.
void SyncLoop::FenceLoop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const absl::Time heard = last_heard_;
    const auto news = [&] { return stopping_ || last_heard_ != heard; };
    const absl::Duration left = heard + fence_after_ - SteadyNow();
    if (left > absl::ZeroDuration()) {
      changed_.wait_for(lock, absl::ToChronoMilliseconds(std::min(left, absl::Hours(1)) + absl::Milliseconds(1)), news);
      continue;
    }
    if (AnyBusy()) {
      spdlog::warn(
          "the tracker has been silent for {}; its leases have expired, so the running measurements are dropped",
          absl::FormatDuration(SteadyNow() - heard));
      for (const auto& worker : workers_) Forget(*worker);
    }
    changed_.wait(lock, news);
  }
}

void SyncLoop::MeasureLoop(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || worker.golden_due || !worker.queued.empty(); });
    if (stopping_) return;
    if (IsGoldenCheckDue(worker)) {
      RunGoldenCheck(worker, lock);
    } else {
      RunVisit(worker, lock);
    }
    has_new_result_ = true;
    if (poll_held_) call_.request_stop();
    changed_.notify_all();
  }
}

// Called with the lock held.
bool SyncLoop::IsGoldenCheckDue(const Worker& worker) const {
  const GoldenCheck& golden = worker.served.golden;
  if (worker.golden_due) return true;
  return golden.run != nullptr && worker.measured && SteadyNow() - worker.last_golden_check >= golden.interval;
}

// Called with the lock held; unlocks it during the measurement, as RunVisit does.
void SyncLoop::RunGoldenCheck(Worker& worker, std::unique_lock<std::mutex>& lock) {
  worker.stop = std::stop_source();
  const std::stop_token dropped = worker.stop.get_token();
  const uint64_t number = ++worker.golden_checks;
  lock.unlock();
  v1::GoldenCheck check = worker.served.golden.run(number, dropped);
  lock.lock();
  if (dropped.stop_requested()) return;  // it says nothing then, and is done again
  worker.golden_due = worker.measured = false;
  worker.last_golden_check = SteadyNow();
  v1::DeviceState& state = worker.served.state;
  if (!check.passed()) spdlog::error("the golden kernel fails on {}: {}", state.device_id(), check.reason());
  *state.mutable_golden() = std::move(check);
}

void SyncLoop::RunVisit(Worker& worker, std::unique_lock<std::mutex>& lock) {
  Visit visit = std::move(worker.queued.front());
  worker.queued.pop_front();
  worker.running = visit.reference;
  worker.measured = true;
  worker.stop = std::stop_source();
  const std::stop_token dropped = worker.stop.get_token();
  lock.unlock();
  v1::LeaseResult finished;
  *finished.mutable_lease() = visit.reference;
  *finished.mutable_result() = worker.served.measure(visit.batch, dropped);
  v1::BatchResult& result = *finished.mutable_result();
  const bool failed = !result.error().empty();
  if (!failed && !dropped.stop_requested()) {
    *finished.mutable_receipt() = std::move(visit.receipt);
    *finished.mutable_batch() = std::move(visit.batch);
    finished.mutable_batch()->clear_artifact();
    StoreResult(finished);
  }
  lock.lock();
  // The golden kernel tells whether the batch or the device is at fault.
  if (failed && !dropped.stop_requested() && worker.served.golden.run != nullptr) RunGoldenCheck(worker, lock);
  const bool sick = worker.served.state.has_golden() && !worker.served.state.golden().passed();
  if (failed) result.set_trouble(sick ? v1::TROUBLE_KIND_DEVICE : v1::TROUBLE_KIND_BATCH);
  if (sick && failed) result.set_error(result.error() + "; its golden kernel fails too");
  if (!dropped.stop_requested()) {
    finished_[visit.reference.lease_id()] = std::move(finished);
  } else if (!stopping_) {  // who stops finds it on the disk when it comes back
    lock.unlock();
    RemoveResult(visit.reference.lease_id());
    lock.lock();
  }
  worker.running.reset();
}

// Called without the lock, because a disk may be slow.
void SyncLoop::StoreResult(const v1::LeaseResult& result) {
  const std::lock_guard guard(outbox_mutex_);
  if (!outbox_.has_value()) return;
  if (const absl::Status kept = outbox_->StoreResult(result); !kept.ok()) {
    spdlog::error("a result is kept only in memory, because it could not be stored: {}", std::string(kept.message()));
  }
}

// until_new_result: the pause ends early when a measurement finishes.
void SyncLoop::Pause(absl::Duration duration, bool until_new_result) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoMilliseconds(duration),
                    [&] { return stopping_ || (until_new_result && has_new_result_); });
}

}  // namespace hone::agent
