#include "tests/unit/tuner/pretended_farm.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/status.h"
#include "records/winner.h"
#include "tuner/task.h"

namespace hone::tuner {

namespace {

// When this thread last asked for the time: what it submits, it submits then.
thread_local absl::Time last_asked = absl::UnixEpoch();

// What a visit takes: two calls of each candidate, and up to three turns of those that take part in the last round.
class SlowDevice {
 public:
  SlowDevice(const v1::Batch& batch, absl::Time now)
      : finalists_(batch.final() ? batch.candidates_size() : 3), now_(now), deadline_(absl::InfiniteFuture()) {
    if (batch.useful_seconds() > 0) deadline_ = last_asked + absl::Seconds(batch.useful_seconds());
    if (batch.policy().visit_seconds() > 0) {
      deadline_ = std::min(deadline_, now + absl::Seconds(batch.policy().visit_seconds()));
    }
  }
  // False: no time for it, or not enough.
  bool Qualify(double seconds) {
    const bool first = times_.empty();
    if (!Fits(first ? 0 : longest_ + Turn())) return false;
    const double call = std::min(seconds, absl::ToDoubleSeconds(deadline_ + absl::Seconds(3) - now_));
    now_ += absl::Seconds(call);
    if (call < seconds) return false;  // killed
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

}  // namespace

absl::Time PretendedFarm::Now() {
  const std::lock_guard guard(mutex);
  return last_asked = now;
}

absl::Status PretendedFarm::Report(const v1::JobProgress& progress) {
  const std::lock_guard guard(mutex);
  reports.push_back(progress);
  return on_report ? on_report() : absl::OkStatus();
}

absl::StatusOr<v1::BatchResult> PretendedFarm::Measure(const v1::Batch& batch) {
  if (on_measure) HONE_RETURN_IF_ERROR(on_measure());
  const std::lock_guard guard(mutex);
  SlowDevice device(batch, now);
  batches.push_back(batch);
  v1::BatchResult result;
  if (batch_error) result.set_error(batch_error(batch));
  if (!result.error().empty()) return result;
  for (const v1::Candidate& candidate : batch.candidates()) {
    const double time = seconds(batch, candidate.decisions());
    if (!device.Qualify(std::max(time, 0.0))) break;
    v1::CandidateOutcome* outcome = result.add_outcomes();
    outcome->set_candidate_id(candidate.id());
    if (time < 0) {
      outcome->mutable_outcome()->mutable_failure()->set_kind(v1::FAILURE_KIND_CRASHED);
    } else {
      v1::Timing* timing = outcome->mutable_outcome()->mutable_timing();
      for (const double factor : {1.3, 1.0, 1.01, 1.0, 1.02}) timing->add_seconds(time * factor);
      timing->set_first_interleaved(1);
    }
    v1::Record record;
    record.mutable_key()->set_workload_digest(batch.workload_digest());
    record.mutable_key()->set_target(batch.target());
    record.mutable_key()->set_device_fingerprint("pretended device");
    record.mutable_key()->set_compiler_version(batch.compiler_version());
    record.set_batch_id(std::to_string(batches.size()));
    record.set_schedule(candidate.schedule());
    record.set_decisions(candidate.decisions());
    record.set_is_default(candidate.is_default());
    *record.mutable_outcome() = outcome->outcome();
    record.set_confirmed(batch.final());
    record.set_verified(time >= 0);
    records.push_back(std::move(record));
  }
  device.Finals();
  now = device.now();
  return result;
}

absl::StatusOr<std::optional<v1::DeviceState>> PretendedFarm::FindDevice(const v1::Requirements&) {
  if (asks_before_device-- > 0) return std::nullopt;
  v1::DeviceState state;
  state.mutable_fingerprint()->set_text("pretended device");
  state.mutable_fingerprint()->set_digest("d1");
  return std::optional(state);
}

absl::StatusOr<std::vector<v1::Record>> PretendedFarm::Records(const v1::RecordKey& key) {
  const std::lock_guard guard(mutex);
  std::vector<v1::Record> found;
  for (const v1::Record& record : records) {
    if (record.key().workload_digest() == key.workload_digest()) found.push_back(record);
  }
  return found;
}

absl::StatusOr<std::optional<v1::BestRecordResponse>> PretendedFarm::Best(const v1::RecordKey& key, v1::RecordMatch) {
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Record> all, Records(key));
  std::vector<records::Contender> contenders;
  for (const v1::Record& record : all) {
    const v1::Timing& timing = record.outcome().timing();
    records::Contender contender{.row = static_cast<int64_t>(contenders.size()),
                                 .schedule = record.schedule(),
                                 .batch = record.batch_id(),
                                 .is_default = record.is_default(),
                                 .verified = record.verified(),
                                 .confirmed = record.confirmed()};
    SetRepeats(contender, {timing.seconds().data(), static_cast<size_t>(timing.seconds_size())},
               timing.first_interleaved());
    contenders.push_back(std::move(contender));
  }
  const std::optional<records::Winner> winner = records::FindWinner(contenders);
  if (!winner.has_value()) return std::nullopt;
  v1::BestRecordResponse best;
  *best.mutable_record() = all[winner->index];
  best.set_match(v1::RECORD_MATCH_EXACT);
  best.set_median_seconds(winner->seconds);
  if (winner->default_seconds.has_value()) best.set_default_seconds(*winner->default_seconds);
  best.set_confirmed(winner->confirmed);
  return std::optional(best);
}

absl::Status PretendedFarm::Append(const std::vector<v1::Record>& added) {
  const std::lock_guard guard(mutex);
  records.insert(records.end(), added.begin(), added.end());
  return absl::OkStatus();
}

}  // namespace hone::tuner
