// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tuner/pretended_farm.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "compiler/ir/workload.h"
#include "records/winner.h"
#include "tuner/task.h"

namespace hone::tuner {

namespace {

// Time of this thread's last call of Now; a batch that it submits counts as submitted then.
thread_local absl::Time last_asked = absl::UnixEpoch();

// The duration of a visit: two calls of each candidate, and up to three interleaved rounds among the finalists.
class SlowDevice {
 public:
  SlowDevice(const Batch& batch, absl::Time now)
      : finalists_(batch.final ? static_cast<int>(batch.candidates.size()) : 3),
        now_(now),
        deadline_(absl::InfiniteFuture()) {
    if (batch.useful_seconds > 0) deadline_ = last_asked + absl::Seconds(batch.useful_seconds);
    if (batch.visit_seconds > 0) deadline_ = std::min(deadline_, now + absl::Seconds(batch.visit_seconds));
  }
  // Returns false if there is too little time for the candidate.
  bool Qualify(double seconds) {
    const bool first = times_.empty();
    if (!Fits(first ? 0 : longest_ + Turn())) return false;
    const double call = std::min(seconds, absl::ToDoubleSeconds(deadline_ + absl::Seconds(3) - now_));
    now_ += absl::Seconds(call);
    if (call < seconds) return false;  // the time limit stops the call
    if (Fits(seconds)) now_ += absl::Seconds(seconds);
    longest_ = std::max(longest_, 2 * seconds);
    times_.insert(seconds);
    return true;
  }
  void Finals() {
    for (int turn = 0; turn < 3 && Fits(Turn()); ++turn) now_ += absl::Seconds(Turn());
  }
  absl::Time now() const { return now_; }

 private:
  bool Fits(double seconds) const { return now_ + absl::Seconds(seconds) < deadline_; }
  double Turn() const {
    double turn = 0;
    int left = finalists_;
    for (auto time = times_.begin(); time != times_.end() && left > 0; ++time, --left) turn += *time;
    return turn;
  }

  const int finalists_;
  absl::Time now_, deadline_;
  double longest_ = 0;
  std::multiset<double> times_;
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

double SlowestFinalist(std::vector<double> times, int finalists) {
  std::erase_if(times, [](double time) { return time < 0; });
  const auto count = static_cast<size_t>(finalists);
  if (count == 0 || times.size() <= count) return kNoLimit;
  std::sort(times.begin(), times.end());
  return times[count - 1];
}

Outcome Timed(double first, double time, bool interleaved) {
  Outcome outcome;
  if (time < 0) {
    outcome.failure = {FailureKind::kCrashed, "it crashed"};
  } else {
    outcome.seconds = {first * 1.3, time, time * 1.01, time, time * 1.02};
    outcome.first_interleaved = interleaved ? 1 : static_cast<int64_t>(outcome.seconds.size());
  }
  return outcome;
}

}  // namespace

absl::Time PretendedFarm::Now() {
  const std::lock_guard guard(mutex);
  return last_asked = now;
}

absl::Status PretendedFarm::Report(const Progress& progress) {
  const std::lock_guard guard(mutex);
  reports.push_back(progress);
  return on_report ? on_report() : absl::OkStatus();
}

absl::StatusOr<Measured> PretendedFarm::Measure(const Batch& batch) {
  if (on_measure) HONE_RETURN_IF_ERROR(on_measure());
  const std::lock_guard guard(mutex);
  SlowDevice device(batch, now);
  batches.push_back(batch);
  Measured result;
  if (batch_error) result.error = batch_error(batch);
  if (!result.error.empty()) return result;
  std::vector<double> times;
  for (const BatchCandidate& candidate : batch.candidates) {
    const double time = seconds(batch, candidate.decisions);
    if (!device.Qualify(std::max(time, 0.0))) break;
    times.push_back(time);
  }
  const double slowest = batch.final ? kNoLimit : SlowestFinalist(times, finalists);
  for (size_t i = 0; i < times.size(); ++i) {
    const BatchCandidate& candidate = batch.candidates[i];
    const bool interleaved = times[i] <= slowest || candidate.id == batch.incumbent_id;
    const double time = finalists > 0 && interleaved ? seconds(batch, candidate.decisions) : times[i];
    const Outcome outcome = Timed(times[i], time, interleaved);
    result.outcomes[candidate.id] = outcome;
    records.push_back(
        {batch.workload_digest,
         candidate.is_default,
         time >= 0,
         {candidate.schedule, candidate.decisions, batch.final, outcome, std::to_string(batches.size()), now}});
  }
  device.Finals();
  result.seconds = absl::ToDoubleSeconds(device.now() - now);
  now = device.now();
  return result;
}

absl::StatusOr<std::optional<FarmDevice>> PretendedFarm::FindDevice(const Requirements&) {
  if (asks_before_device-- > 0) return std::nullopt;
  return FarmDevice{"pretended device", "d1", 0};
}

absl::StatusOr<std::vector<PastTrial>> PretendedFarm::Records(const RecordKey& key) {
  if (on_records) on_records();
  const std::lock_guard guard(mutex);
  std::vector<PastTrial> found;
  for (const Record& record : records) {
    if (record.workload_digest == key.workload_digest) found.push_back(record.trial);
  }
  return found;
}

absl::StatusOr<std::optional<PastWinner>> PretendedFarm::Best(const RecordKey& key) {
  const std::lock_guard guard(mutex);
  std::vector<records::Contender> contenders;
  std::vector<const PastTrial*> trials;
  for (const Record& record : records) {
    if (record.workload_digest != key.workload_digest) continue;
    records::Contender contender{
        .row = static_cast<int64_t>(contenders.size()),
        .schedule = record.trial.schedule,
        .batch = record.trial.batch,
        .measured_at = std::chrono::floor<std::chrono::milliseconds>(absl::ToChronoTime(record.trial.measured_at)),
        .is_default = record.is_default,
        .verified = record.verified,
        .confirmed = record.trial.confirmed};
    const std::optional<Failure>& failure = record.trial.outcome.failure;
    contender.rules_out_schedule = failure.has_value() && records::RulesOutSchedule(failure->kind);
    SetRepeats(contender, record.trial.outcome.seconds, record.trial.outcome.first_interleaved);
    contenders.push_back(std::move(contender));
    trials.push_back(&record.trial);
  }
  const std::optional<records::Winner> winner = records::FindWinner(contenders);
  if (!winner.has_value()) return std::nullopt;
  const PastTrial& best = *trials[winner->index];
  return PastWinner{best.schedule, best.decisions, true, winner->seconds, winner->default_seconds, winner->confirmed};
}

absl::Status PretendedFarm::RequeueJob(const Requirements& needs) {
  given_back = needs;
  return absl::OkStatus();
}

absl::Status PretendedFarm::RecordFailures(const RecordKey& key, const Batch&,
                                           const std::vector<BuildFailed>& failures) {
  const std::lock_guard guard(mutex);
  for (const BuildFailed& failed : failures) {
    const BatchCandidate& candidate = failed.candidate;
    records.push_back({key.workload_digest,
                       candidate.is_default,
                       false,
                       {candidate.schedule, candidate.decisions, false, {{}, 0, failed.failure}, "", now}});
  }
  return absl::OkStatus();
}

JobWorkload MatMul(int m, int n, int k) {
  const ir::Workload workload =
      ir::ParseWorkload(
          fmt::format("workload \"matmul\"\ninput x: f32[{0},{2}] in [-1, 1]\nconst w: f32[{2},{1}] in [-1, 1]\n"
                      "t: f32[{0},{1}] over i:{0}, j:{1} = sum k:{2} of x[i, k] * w[k, j]\noutput t\n",
                      m, n, k))
          .value();
  const std::string text = ir::Print(ir::Canonicalize(workload));
  return {.digest = Sha256Hex(text), .text = text, .op = "matmul"};
}

}  // namespace hone::tuner
