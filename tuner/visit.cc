#include "tuner/visit.h"

#include <fmt/format.h>

#include <utility>

#include "absl/time/clock.h"
#include "base/status.h"
#include "tuner/convert.h"

namespace hone::tuner {
namespace {

// A candidate that does not compile never reaches a device, but it is a result all the same.
v1::Record FailureRecord(const Visit& visit, const v1::Candidate& candidate, const v1::Outcome& outcome) {
  v1::Record record;
  *record.mutable_key() = visit.key;
  record.set_id(fmt::format("build-{}-{}-{}", visit.key.workload_digest().substr(0, 16), absl::GetCurrentTimeNanos(),
                            candidate.id()));
  record.set_schedule(candidate.schedule());
  record.set_decisions(candidate.decisions());
  record.set_is_default(candidate.is_default());
  *record.mutable_outcome() = outcome;
  record.set_workload(visit.batch.workload());
  record.set_op(visit.batch.op());
  record.set_flops(visit.batch.flops());
  record.set_measured_by("tuner");
  record.set_seed(visit.batch.search_seed());
  const absl::Time now = absl::Now();
  record.mutable_time()->set_seconds(absl::ToUnixSeconds(now));
  record.mutable_time()->set_nanos(static_cast<int32_t>(absl::ToUnixNanos(now) % 1'000'000'000));
  return record;
}

}  // namespace

Visits::~Visits() {
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
  if ((*clock_)() >= visit.deadline) return;
  BuildJob job{visit.batch.workload(), visit.batch.target(), {}};
  for (const v1::Candidate& candidate : visit.batch.candidates()) job.schedules.push_back(candidate.schedule());
  absl::StatusOr<BuiltBatch> built = builders_->Build(job);
  if (!built.ok()) {
    visit.error = std::string(built.status().message());
    return;
  }
  v1::Batch ready = visit.batch;
  ready.clear_candidates();
  ready.set_artifact(std::move(built->artifact));
  *ready.mutable_reference() = ToProto(built->reference, built->reference_code);
  std::vector<v1::Record> failures;
  for (int i = 0; i < visit.batch.candidates_size(); ++i) {
    const v1::Candidate& candidate = visit.batch.candidates(i);
    const BuiltCandidate& result = built->candidates[static_cast<size_t>(i)];
    if (result.ok) {
      v1::Candidate* added = ready.add_candidates();
      *added = candidate;
      *added->mutable_kernel() = ToProto(result.kernel, result.code);
      continue;
    }
    v1::Outcome& outcome = visit.outcomes[candidate.id()];
    *outcome.mutable_failure() = ToProto(result);
    failures.push_back(FailureRecord(visit, candidate, outcome));
  }
  visit.status = farm_->Append(failures);
  if (!visit.status.ok() || ready.candidates().empty()) return;
  if (visit.deadline != absl::InfiniteFuture()) {
    const absl::Duration left = visit.deadline - (*clock_)();
    if (left <= absl::ZeroDuration()) return;
    ready.set_useful_seconds(absl::ToDoubleSeconds(left));
  }
  absl::StatusOr<v1::BatchResult> measured = farm_->Measure(ready);
  if (absl::IsInvalidArgument(measured.status())) {  // of this batch, not of the farm
    visit.error = std::string(measured.status().message());
    return;
  }
  visit.status = measured.status();
  if (!measured.ok()) return;
  visit.error = measured->error();
  for (const v1::CandidateOutcome& outcome : measured->outcomes()) {
    visit.outcomes[outcome.candidate_id()] = outcome.outcome();
  }
}

}  // namespace hone::tuner
