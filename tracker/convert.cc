#include "tracker/convert.h"

#include <fmt/format.h>

#include <chrono>

#include "base/status.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

constexpr std::pair<records::FailureKind, v1::FailureKind> kKinds[] = {
    {records::FailureKind::kScheduleIllegal, v1::FAILURE_KIND_SCHEDULE_ILLEGAL},
    {records::FailureKind::kCompileError, v1::FAILURE_KIND_COMPILE_ERROR},
    {records::FailureKind::kCompileTimeout, v1::FAILURE_KIND_COMPILE_TIMEOUT},
    {records::FailureKind::kCrashed, v1::FAILURE_KIND_CRASHED},
    {records::FailureKind::kRunTimeout, v1::FAILURE_KIND_RUN_TIMEOUT},
    {records::FailureKind::kWrongOutput, v1::FAILURE_KIND_WRONG_OUTPUT},
    {records::FailureKind::kOutOfBoundsWrite, v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE},
    {records::FailureKind::kLostDevice, v1::FAILURE_KIND_LOST_DEVICE},
};

absl::StatusOr<records::FailureKind> KindFromProto(v1::FailureKind kind) {
  for (const auto& [ours, theirs] : kKinds) {
    if (theirs == kind) return ours;
  }
  return absl::InvalidArgumentError(fmt::format("unknown failure kind {}", static_cast<int>(kind)));
}

absl::StatusOr<records::Outcome> OutcomeFromProto(const v1::Outcome& outcome, bool confirmed, bool verified) {
  if (outcome.has_failure()) {
    HONE_ASSIGN_OR_RETURN(const records::FailureKind kind, KindFromProto(outcome.failure().kind()));
    return records::Failure{kind, records::CleanText(outcome.failure().text(), 16 << 10)};
  }
  if (!outcome.has_timing()) return absl::InvalidArgumentError("an outcome has neither timing nor failure");
  records::Timing timing;
  timing.seconds.assign(outcome.timing().seconds().begin(), outcome.timing().seconds().end());
  timing.confirmed = confirmed;
  timing.verified = verified;
  if (outcome.timing().reference_seconds() > 0) timing.reference_seconds = outcome.timing().reference_seconds();
  return timing;
}

v1::Outcome OutcomeToProto(const records::Outcome& outcome) {
  v1::Outcome result;
  if (const auto* failure = std::get_if<records::Failure>(&outcome)) {
    result.mutable_failure()->set_kind(ToProto(failure->kind));
    result.mutable_failure()->set_text(failure->text);
    return result;
  }
  const auto& timing = std::get<records::Timing>(outcome);
  result.mutable_timing()->mutable_seconds()->Assign(timing.seconds.begin(), timing.seconds.end());
  result.mutable_timing()->set_calls_per_repeat(1);
  result.mutable_timing()->set_reference_seconds(timing.reference_seconds.value_or(0));
  return result;
}

records::Instant Now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

v1::FailureKind ToProto(records::FailureKind kind) {
  for (const auto& [ours, theirs] : kKinds) {
    if (ours == kind) return theirs;
  }
  return v1::FAILURE_KIND_UNSPECIFIED;
}

records::Key FromProto(const v1::RecordKey& key) {
  return {key.workload_digest(), key.target(), key.device_fingerprint(), key.compiler_version()};
}

v1::Record ToProto(const records::StoredRecord& stored) {
  const records::Record& r = stored.record;
  v1::Record record;
  record.set_id(r.measurement_id);
  record.set_row(stored.row);
  record.mutable_key()->set_workload_digest(r.key.workload_digest);
  record.mutable_key()->set_target(r.key.target);
  record.mutable_key()->set_device_fingerprint(r.key.device_fingerprint);
  record.mutable_key()->set_compiler_version(r.key.compiler_version);
  record.set_batch_id(r.batch_id);
  record.set_schedule(r.schedule);
  record.set_decisions(r.decisions);
  *record.mutable_outcome() = OutcomeToProto(r.outcome);
  if (const auto* timing = std::get_if<records::Timing>(&r.outcome)) {
    record.set_confirmed(timing->confirmed);
    record.set_verified(timing->verified);
    if (r.temperature_celsius.has_value())
      record.mutable_outcome()->mutable_timing()->set_temperature_c(*r.temperature_celsius);
    if (r.clock_hertz.has_value()) record.mutable_outcome()->mutable_timing()->set_clock_mhz(*r.clock_hertz / 1e6);
  }
  record.set_workload(r.workload_text);
  record.set_op(r.operator_label);
  record.set_flops(r.flops);
  record.set_measured_by(r.measured_by);
  record.set_seed(r.seed);
  *record.mutable_time() = ToProto(absl::FromUnixMillis(r.measured_at.time_since_epoch().count()));
  return record;
}

absl::StatusOr<records::Record> FromProto(const v1::Record& record) {
  records::Record r;
  r.key = FromProto(record.key());
  r.measurement_id = record.id();
  r.batch_id = record.batch_id();
  r.schedule = record.schedule();
  r.decisions = record.decisions();
  HONE_ASSIGN_OR_RETURN(r.outcome, OutcomeFromProto(record.outcome(), record.confirmed(), record.verified()));
  r.operator_label = record.op();
  r.workload_text = record.workload();
  r.flops = record.flops();
  if (record.outcome().has_timing()) {
    const v1::Timing& timing = record.outcome().timing();
    if (timing.has_temperature_c()) r.temperature_celsius = timing.temperature_c();
    if (timing.has_clock_mhz()) r.clock_hertz = timing.clock_mhz() * 1e6;
  }
  r.measured_by = record.measured_by();
  r.measured_at = record.has_time() ? records::Instant(std::chrono::milliseconds(record.time().seconds() * 1000 +
                                                                                 record.time().nanos() / 1000000))
                                    : Now();
  r.seed = record.seed();
  return r;
}

records::Filter FromProto(const v1::QueryRecordsRequest& request) {
  records::Filter filter;
  filter.workload_digest = request.key().workload_digest();
  filter.target = request.key().target();
  filter.device_fingerprint = request.key().device_fingerprint();
  filter.compiler_version = request.key().compiler_version();
  if (request.only_timed()) filter.outcomes = records::Filter::Outcomes::kTimed;
  filter.after_row = request.after_row();
  if (request.limit() > 0) filter.limit = static_cast<size_t>(request.limit());
  filter.with_workload_text = request.with_workload();
  return filter;
}

std::vector<records::Record> ToRecords(const std::string& farm_id, const Recordable& recordable) {
  std::vector<records::Record> result;
  if (recordable.batch == nullptr) return result;
  const v1::Batch& batch = *recordable.batch;
  for (const v1::CandidateOutcome& candidate_outcome : recordable.result.outcomes()) {
    const v1::Candidate* candidate = nullptr;
    for (const v1::Candidate& c : batch.candidates()) {
      if (c.id() == candidate_outcome.candidate_id()) candidate = &c;
    }
    // What the agent reports as a timing has passed the comparison with the reference.
    auto outcome = OutcomeFromProto(candidate_outcome.outcome(), batch.final(), true);
    if (candidate == nullptr || !outcome.ok()) continue;
    records::Record r;
    const std::string& device = recordable.result.device().text();
    r.key = {batch.workload_digest(), batch.target(), device.empty() ? "unknown device" : device,
             batch.compiler_version()};
    r.batch_id = farm_id + "/" + recordable.batch_id;
    r.measurement_id = r.batch_id + "/" + candidate->id();
    r.schedule = candidate->schedule();
    r.decisions = candidate->decisions();
    if (auto* timing = std::get_if<records::Timing>(&*outcome)) timing->tolerance = batch.tolerance().rtol();
    r.outcome = *std::move(outcome);
    r.operator_label = batch.op();
    r.workload_text = batch.workload();
    r.flops = batch.flops();
    const v1::Timing& timing = candidate_outcome.outcome().timing();
    if (timing.has_temperature_c()) r.temperature_celsius = timing.temperature_c();
    if (timing.has_clock_mhz()) r.clock_hertz = timing.clock_mhz() * 1e6;
    r.measured_by = recordable.result.device_name();
    r.measured_at = Now();
    r.seed = batch.search_seed();
    result.push_back(std::move(r));
  }
  return result;
}

}  // namespace hone::tracker
