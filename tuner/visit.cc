// SPDX-License-Identifier: Apache-2.0
#include "tuner/visit.h"

#include <algorithm>
#include <utility>

namespace hone::tuner {
namespace {

// Whether the candidate is measured even if compiling found a drawback. Others are compared with it: it is the default
// schedule, the incumbent or a finalist.
bool MustRace(const BatchCandidate& candidate, const Batch& batch) {
  return candidate.is_default || candidate.id == batch.incumbent_id || batch.final;
}

}  // namespace

Visits::~Visits() {
  stopping_ = true;
  for (auto& [serial, thread] : threads_) thread.join();
}

void Visits::Start(Visit visit) {
  const int64_t serial = next_++;
  threads_[serial] = std::thread([this, serial, visit = std::move(visit)]() mutable {
    Run(visit);
    const std::lock_guard guard(mutex_);
    finished_.emplace_back(serial, std::move(visit));
    over_.notify_one();
  });
}

std::optional<Visit> Visits::Finished(absl::Duration wait) {
  std::unique_lock lock(mutex_);
  over_.wait_for(lock, absl::ToChronoNanoseconds(wait), [&] { return !finished_.empty(); });
  if (finished_.empty()) return std::nullopt;
  auto [serial, visit] = std::move(finished_.front());
  finished_.pop_front();
  lock.unlock();
  const auto thread = threads_.find(serial);
  thread->second.join();
  threads_.erase(thread);
  return std::move(visit);
}

void Visits::Run(Visit& visit) {
  const auto over = [this, &visit] { return stopping_ || (*clock_)() >= visit.deadline; };
  if (over()) return;
  BuildJob job{visit.batch.workload, visit.batch.target, {}, {farm_, visit.batch.priority}, over};
  for (const BatchCandidate& candidate : visit.batch.candidates) job.schedules.push_back(candidate.schedule);
  absl::StatusOr<BuiltBatch> built = builders_->Build(job);
  if (absl::IsCancelled(built.status())) return;
  if (!built.ok()) {
    visit.error = std::string(built.status().message());
    return;
  }
  visit.building_seconds = built->seconds;
  Batch ready = visit.batch;
  ready.candidates.clear();
  ready.artifact = std::move(built->artifact);
  ready.reference = {std::move(built->reference), built->reference_code};
  std::vector<BuildFailed> failures;
  for (size_t i = 0; i < visit.batch.candidates.size(); ++i) {
    BatchCandidate candidate = visit.batch.candidates[i];
    BuiltCandidate& result = built->candidates[i];
    if (!result.tried) continue;  // no outcome, as if the time had been up
    if (result.ok && !(result.drawback.empty() || MustRace(candidate, visit.batch))) {
      result.ok = false;
      result.failure = FailureKind::kScheduleIllegal;
      result.text = result.drawback;
    }
    if (result.ok) {
      candidate.kernel = {std::move(result.kernel), result.code};
      ready.candidates.push_back(std::move(candidate));
    } else {
      const Failure failure{result.failure, result.text};
      visit.outcomes[candidate.id].failure = failure;
      failures.push_back({std::move(candidate), failure});
    }
  }
  visit.status = farm_->RecordFailures(visit.key, visit.batch, failures);
  if (!visit.status.ok() || ready.candidates.empty()) return;
  if (visit.deadline != absl::InfiniteFuture()) {
    const absl::Duration left = visit.deadline - (*clock_)();
    if (left <= absl::ZeroDuration()) return;
    ready.useful_seconds = absl::ToDoubleSeconds(left);
  }
  const absl::Time submitted = (*clock_)();
  absl::StatusOr<Measured> measured = farm_->Measure(ready);
  if (absl::IsInvalidArgument(measured.status())) {  // a failure of this batch, not of the farm
    visit.error = std::string(measured.status().message());
    return;
  }
  visit.status = measured.status();
  if (!measured.ok()) return;
  visit.measuring_seconds = measured->seconds;
  visit.waiting_seconds = std::max(0.0, absl::ToDoubleSeconds((*clock_)() - submitted) - measured->seconds);
  visit.error = std::move(measured->error);
  visit.outcomes.merge(measured->outcomes);
}

}  // namespace hone::tuner
