// SPDX-License-Identifier: Apache-2.0
#include "tuner/convert.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/status.h"
#include "proto/convert.h"

namespace hone::tuner {
namespace {

// A kind that this tuner does not know counts as kCrashed.
FailureKind KindOf(v1::FailureKind kind) { return hone::FromProto(kind).value_or(FailureKind::kCrashed); }

v1::Buffer::Role ToProto(BufferUse use) {
  switch (use) {
    case BufferUse::kInput:
      return v1::Buffer::ROLE_INPUT;
    case BufferUse::kConstant:
      return v1::Buffer::ROLE_CONSTANT;
    case BufferUse::kOutput:
      return v1::Buffer::ROLE_OUTPUT;
  }
  return v1::Buffer::ROLE_UNSPECIFIED;
}

v1::Buffer ToProto(const BatchBuffer& buffer) {
  v1::Buffer result;
  result.set_name(buffer.name);
  result.set_dtype(ToProto(buffer.dtype));
  result.set_elements(buffer.elements);
  result.set_bytes(buffer.bytes);
  result.set_role(ToProto(buffer.use));
  result.set_low(buffer.low);
  result.set_high(buffer.high);
  result.set_rounded(buffer.rounded);
  return result;
}

v1::Kernel ToProto(const BatchKernel& kernel) {
  v1::Kernel result;
  result.set_code_offset(kernel.code.offset);
  result.set_code_bytes(kernel.code.bytes);
  result.set_interface(Print(kernel.interface));
  return result;
}

v1::Candidate ToProto(const BatchCandidate& candidate) {
  v1::Candidate result;
  result.set_id(candidate.id);
  result.set_schedule(candidate.schedule);
  result.set_decisions(candidate.decisions);
  result.set_is_default(candidate.is_default);
  if (candidate.predicted_seconds.has_value()) result.set_predicted_seconds(*candidate.predicted_seconds);
  *result.mutable_kernel() = ToProto(candidate.kernel);
  return result;
}

Outcome FromProto(const v1::Outcome& outcome) {
  Outcome result;
  const v1::Timing& timing = outcome.timing();
  result.seconds.assign(timing.seconds().begin(), timing.seconds().end());
  result.first_interleaved = timing.first_interleaved();
  if (outcome.has_failure()) result.failure = {KindOf(outcome.failure().kind()), outcome.failure().text()};
  return result;
}

v1::TimeSpent ToProto(const TimeSpent& spent) {
  v1::TimeSpent result;
  result.set_proposing_seconds(spent.proposing);
  result.set_learning_seconds(spent.learning);
  result.set_building_seconds(spent.building);
  result.set_waiting_seconds(spent.waiting);
  result.set_measuring_seconds(spent.measuring);
  result.set_drawn(spent.drawn);
  result.set_illegal(spent.illegal);
  result.set_repeated(spent.repeated);
  return result;
}

TimeSpent FromProto(const v1::TimeSpent& spent) {
  return {.proposing = spent.proposing_seconds(),
          .learning = spent.learning_seconds(),
          .building = spent.building_seconds(),
          .waiting = spent.waiting_seconds(),
          .measuring = spent.measuring_seconds(),
          .drawn = spent.drawn(),
          .illegal = spent.illegal(),
          .repeated = spent.repeated()};
}

v1::WorkloadProgress ToProto(const WorkloadProgress& progress) {
  v1::WorkloadProgress result;
  result.set_digest(progress.digest);
  result.set_trials(progress.trials);
  if (progress.default_seconds.has_value()) result.set_default_seconds(*progress.default_seconds);
  if (progress.best_seconds.has_value()) result.set_best_seconds(*progress.best_seconds);
  result.set_best_schedule(progress.best_schedule);
  result.set_roofline_share(progress.roofline_share);
  result.set_trouble(progress.failure_reason);
  return result;
}

}  // namespace

// Job::earlier gets only the spent trials and times of earlier attempts. Their results are in the records.
Job FromProto(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  Job result;
  result.name = spec.name();
  for (const v1::WorkloadSpec& workload : spec.workloads()) {
    result.workloads.push_back({workload.digest(),
                                workload.text(),
                                workload.op(),
                                workload.count(),
                                {workload.hints().begin(), workload.hints().end()},
                                workload.sizes(),
                                workload.title(),
                                fmt::format("{}", fmt::join(workload.nodes(), ", "))});
  }
  result.target = spec.target();
  result.trials = spec.trials();
  if (spec.has_time_budget()) {
    result.seconds = absl::ToDoubleSeconds(hone::FromProto(spec.time_budget()));
  }
  result.seed = spec.seed();
  result.priority = spec.priority();
  result.labels.insert(spec.labels().begin(), spec.labels().end());
  result.devices.assign(spec.devices().begin(), spec.devices().end());
  result.device_digest =
      job.needs().fingerprint_digest().empty() ? spec.device_kind() : job.needs().fingerprint_digest();
  result.options.insert(spec.options().begin(), spec.options().end());
  result.measures_model = spec.has_model();
  result.earlier.search_ended = spec.has_model() && job.progress().search_ended();
  result.earlier.trials = job.progress().trials();
  result.earlier.seconds = job.progress().seconds();
  result.earlier.spent = FromProto(job.progress().spent());
  for (const v1::FailureCount& failed : job.progress().failed()) {
    result.earlier.failed[KindOf(failed.kind())] += failed.count();
  }
  return result;
}

v1::JobProgress ToProto(const Progress& progress) {
  v1::JobProgress result;
  result.set_trials(progress.trials);
  for (const auto& [kind, count] : progress.failed) {
    v1::FailureCount* failed = result.add_failed();
    failed->set_kind(ToProto(kind));
    failed->set_count(count);
  }
  result.set_seconds(progress.seconds);
  if (progress.seconds > 0) result.set_trials_per_second(static_cast<double>(progress.trials) / progress.seconds);
  for (const WorkloadProgress& workload : progress.workloads) *result.add_workloads() = ToProto(workload);
  if (progress.latency_before_seconds) result.set_latency_before_seconds(*progress.latency_before_seconds);
  if (progress.latency_after_seconds) result.set_latency_after_seconds(*progress.latency_after_seconds);
  result.set_activity(progress.activity);
  *result.mutable_spent() = ToProto(progress.spent);
  result.set_search_ended(progress.search_ended);
  return result;
}

v1::Requirements ToProto(const Requirements& requirements) {
  v1::Requirements result;
  result.set_architecture(requirements.architecture);
  result.mutable_cpu_features()->Assign(requirements.cpu_features.begin(), requirements.cpu_features.end());
  result.mutable_labels()->insert(requirements.labels.begin(), requirements.labels.end());
  result.mutable_devices()->Assign(requirements.devices.begin(), requirements.devices.end());
  result.set_fingerprint_digest(requirements.fingerprint_digest);
  result.set_threads(requirements.threads);
  return result;
}

v1::Batch ToProto(const Batch& batch) {
  v1::Batch result;
  result.set_workload_digest(batch.workload_digest);
  result.set_workload(batch.workload);
  result.set_op(batch.op);
  result.set_flops(batch.flops);
  result.set_sizes(batch.sizes);
  for (const BatchBuffer& buffer : batch.buffers) *result.add_buffers() = ToProto(buffer);
  if (batch.rtol > 0 || batch.atol > 0) {
    result.mutable_tolerance()->set_rtol(batch.rtol);
    result.mutable_tolerance()->set_atol(batch.atol);
  }
  result.set_target(batch.target);
  result.set_compiler_version(batch.compiler_version);
  result.set_threads(batch.threads);
  *result.mutable_requirements() = ToProto(batch.requirements);
  result.set_priority(batch.priority);
  result.set_search_seed(batch.search_seed);
  result.set_fill_seed(batch.fill_seed);
  result.set_final(batch.final);
  result.set_useful_seconds(batch.useful_seconds);
  v1::TimingPolicy& policy = *result.mutable_policy();
  policy.set_constant_bytes_between_runs(batch.constant_bytes_between_runs);
  policy.set_final_seconds(batch.final_seconds);
  policy.set_timeout_seconds(batch.timeout_seconds);
  policy.set_visit_seconds(batch.visit_seconds);
  policy.set_incumbent_id(batch.incumbent_id);
  for (const BatchCandidate& candidate : batch.candidates) *result.add_candidates() = ToProto(candidate);
  result.set_artifact(batch.artifact);
  *result.mutable_reference() = ToProto(batch.reference);
  return result;
}

Measured FromProto(const v1::BatchResult& result) {
  Measured measured;
  measured.error = result.error();
  measured.seconds = result.visit_seconds();
  for (const v1::CandidateOutcome& outcome : result.outcomes()) {
    measured.outcomes[outcome.candidate_id()] = FromProto(outcome.outcome());
  }
  return measured;
}

v1::RecordKey ToProto(const RecordKey& key) {
  v1::RecordKey result;
  result.set_workload_digest(key.workload_digest);
  result.set_target(key.target);
  result.set_device_fingerprint(key.device_fingerprint);
  result.set_compiler_version(key.compiler_version);
  return result;
}

PastTrial FromProto(const v1::Record& record) {
  const absl::Time measured_at = hone::FromProto(record.time());
  return {.schedule = record.schedule(),
          .decisions = record.decisions(),
          .confirmed = record.confirmed(),
          .outcome = FromProto(record.outcome()),
          .batch = record.batch_id(),
          .measured_at = measured_at,
          .sizes = record.sizes()};
}

PastWinner FromProto(const v1::BestRecordResponse& best) {
  PastWinner winner = {.schedule = best.record().schedule(),
                       .decisions = best.record().decisions(),
                       .exact = best.match() == v1::RECORD_MATCH_EXACT,
                       .seconds = best.median_seconds(),
                       .confirmed = best.confirmed(),
                       .sizes = best.record().sizes()};
  if (best.has_default_seconds()) winner.default_seconds = best.default_seconds();
  return winner;
}

v1::Record ToProto(const RecordKey& key, const Batch& batch, const BuildFailed& failed) {
  v1::Record record;
  *record.mutable_key() = ToProto(key);
  record.set_schedule(failed.candidate.schedule);
  record.set_decisions(failed.candidate.decisions);
  record.set_is_default(failed.candidate.is_default);
  record.mutable_outcome()->mutable_failure()->set_kind(ToProto(failed.failure.kind));
  record.mutable_outcome()->mutable_failure()->set_text(failed.failure.text);
  record.set_workload(batch.workload);
  record.set_op(batch.op);
  record.set_flops(batch.flops);
  record.set_sizes(batch.sizes);
  record.set_model(batch.model);
  record.set_title(batch.title);
  record.set_nodes(batch.nodes);
  record.set_measured_by("tuner");
  record.set_seed(batch.search_seed);
  return record;
}

}  // namespace hone::tuner
