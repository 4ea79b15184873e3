#include "tests/unit/tuner/pretended_farm.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "tuner/task.h"

namespace hone::tuner {

absl::Status PretendedFarm::Report(const v1::JobProgress& progress) {
  const std::lock_guard guard(mutex);
  reports.push_back(progress);
  return on_report ? on_report() : absl::OkStatus();
}

absl::StatusOr<v1::BatchResult> PretendedFarm::Measure(const v1::Batch& batch) {
  if (on_measure) HONE_RETURN_IF_ERROR(on_measure());
  const std::lock_guard guard(mutex);
  batches.push_back(batch);
  v1::BatchResult result;
  if (batch_error) result.set_error(batch_error(batch));
  if (!result.error().empty()) return result;
  for (const v1::Candidate& candidate : batch.candidates()) {
    v1::CandidateOutcome* outcome = result.add_outcomes();
    outcome->set_candidate_id(candidate.id());
    const double time = seconds(batch, candidate.decisions());
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
    *record.mutable_outcome() = outcome->outcome();
    record.set_confirmed(batch.final());
    record.set_verified(time >= 0);
    records.push_back(std::move(record));
  }
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
  std::optional<v1::BestRecordResponse> best;
  for (const v1::Record& record : all) {
    const std::optional<double> time = SecondsOf(record.outcome());
    if (!time.has_value()) continue;
    const bool better = !best.has_value() || (record.confirmed() && !best->record().confirmed()) ||
                        (record.confirmed() == best->record().confirmed() && *time < best->median_seconds());
    if (!better) continue;
    best.emplace();
    *best->mutable_record() = record;
    best->set_match(v1::RECORD_MATCH_EXACT);
    best->set_median_seconds(*time);
  }
  return best;
}

absl::Status PretendedFarm::Append(const std::vector<v1::Record>& added) {
  const std::lock_guard guard(mutex);
  records.insert(records.end(), added.begin(), added.end());
  return absl::OkStatus();
}

}  // namespace hone::tuner
