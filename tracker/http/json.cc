// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/json.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/median.h"
#include "base/split.h"
#include "proto/convert.h"
#include "records/jsonl.h"
#include "records/winner.h"
#include "tracker/end_reason.h"
#include "tracker/http/names.h"
#include "tracker/job_json.h"
#include "tracker/queue/devices.h"

namespace hone::tracker {
namespace {

constexpr double kUs = 1e6;

Json MaybeTime(bool has, const google::protobuf::Timestamp& time) {
  return has ? TimeToJson(FromProto(time)) : Json(nullptr);
}

Json InstantToJson(records::Instant time) { return TimeToJson(absl::FromUnixMillis(time.time_since_epoch().count())); }

Json FailedToJson(const v1::JobProgress& progress) {
  Json failed = Json::object();
  for (const v1::FailureCount& count : progress.failed()) failed[OutcomeName(count.kind())] = count.count();
  return failed;
}

// The time of a workload's kernels in one run of the model; 0 while it is unknown.
double Total(const v1::WorkloadSpec& spec, double seconds) { return static_cast<double>(spec.count()) * seconds; }

Json WorkloadToJson(const v1::WorkloadSpec& spec, const v1::WorkloadProgress& progress, double before, double after) {
  const double best = progress.best_seconds(), usual = progress.default_seconds();
  const bool has_best = progress.has_best_seconds() && best > 0;
  const bool has_roofline = has_best && progress.roofline_share() > 0;
  return {{"digest", spec.digest()},
          {"operator", spec.op()},
          {"title", TitleOf(spec)},
          {"count", spec.count()},
          {"flops", spec.flops()},
          {"sizes", spec.sizes()},
          {"trials", progress.trials()},
          {"default_ms", ValueOrNull(progress.has_default_seconds(), usual * kMillisecondsPerSecond)},
          {"best_ms", ValueOrNull(has_best, best * kMillisecondsPerSecond)},
          {"roofline_ms", ValueOrNull(has_roofline, best * progress.roofline_share() * kMillisecondsPerSecond)},
          {"roofline_share", ValueOrNull(has_roofline, progress.roofline_share())},
          {"gflops", ValueOrNull(has_best, has_best ? spec.flops() / best * 1e-9 : 0)},
          {"share_before", ValueOrNull(before > 0 && progress.has_default_seconds(), Total(spec, usual) / before)},
          {"share_after", ValueOrNull(after > 0 && has_best, Total(spec, best) / after)},
          {"schedule", progress.best_schedule()},
          {"trouble", progress.trouble()}};
}

Json WorkloadsToJson(const v1::Job& job) {
  const auto progress = [&job](int i) {
    return i < job.progress().workloads_size() ? job.progress().workloads(i) : v1::WorkloadProgress();
  };
  double before = 0, after = 0;
  for (int i = 0; i < job.spec().workloads_size(); ++i) {
    before += Total(job.spec().workloads(i), progress(i).default_seconds());
    after += Total(job.spec().workloads(i), progress(i).best_seconds());
  }
  Json workloads = Json::array();
  for (int i = 0; i < job.spec().workloads_size(); ++i) {
    workloads.push_back(WorkloadToJson(job.spec().workloads(i), progress(i), before, after));
  }
  return workloads;
}

Json LatencyToJson(const std::vector<LatencyHistory::Point>& points) {
  Json list = Json::array();
  for (const LatencyHistory::Point& point : points) {
    list.push_back({{"at", TimeToJson(point.at)},
                    {"seconds", point.tuned_seconds},
                    {"trials", point.trials},
                    {"latency_ms", point.latency_seconds * kMillisecondsPerSecond}});
  }
  return list;
}

template <typename Map>
Json MapToJson(const Map& map) {
  Json object = Json::object();
  for (const auto& [name, value] : std::map(map.begin(), map.end())) object[name] = value;
  return object;
}

template <typename List>
Json ListToJson(const List& list) {
  Json array = Json::array();
  for (const auto& value : list) array.push_back(value);
  return array;
}

Json GoldenToJson(const v1::Device& device) {
  if (!device.state().has_golden()) return nullptr;
  const v1::GoldenCheck& golden = device.state().golden();
  Json history = Json::array();
  for (const double seconds : device.record().golden_seconds()) history.push_back(seconds * kUs);
  return {{"passed", golden.passed()},
          {"reason", golden.reason()},
          {"us", golden.median_seconds() * kUs},
          {"mad_us", golden.mad_seconds() * kUs},
          {"baseline_us", device.golden_baseline_seconds() * kUs},
          {"baseline_mad_us", device.golden_baseline_mad_seconds() * kUs},
          {"drifts", device.record().drifts()},
          {"history_us", history},
          {"temperature_c", ValueOrNull(golden.has_temperature_c(), golden.temperature_c())},
          {"throttled", golden.throttled()}};
}

Json SandboxToJson(const v1::Sandbox& sandbox) {
  Json missing = Json::object();
  for (const v1::SandboxLayer& layer : sandbox.layers()) {
    if (!layer.holds()) missing[layer.name()] = layer.detail();
  }
  return {{"level", NameOf(sandbox.level())}, {"missing", missing}};
}

// The number of a word "name=number"; nullopt where there is none.
std::optional<double> NumberIn(std::string_view words, std::string_view name) {
  for (std::string_view word : SplitAt(words, ' ')) {
    if (!RemovePrefix(word, name) || !RemovePrefix(word, "=")) continue;
    double value = 0;
    const char* last = word.data() + word.size();
    const auto [stopped, error] = std::from_chars(word.data(), last, value);
    if (error == std::errc() && stopped == last) return value;
  }
  return std::nullopt;
}

}  // namespace

const std::string& TitleOf(const v1::WorkloadSpec& workload) {
  return workload.title().empty() ? workload.op() : workload.title();
}

Json JobToJson(const v1::Job& job, absl::Time now) {
  const v1::JobSpec& spec = job.spec();
  const v1::JobProgress& progress = job.progress();
  const std::optional<absl::Duration> left = TimeLeft(job, now);
  return {{"job", job.id()},
          {"model", spec.name()},
          {"models", ModelsOf(spec)},
          {"target", spec.target()},
          {"group", spec.group()},
          {"devices", ListToJson(spec.devices())},
          {"run", RunToJson(job)},
          {"state", StateName(job.state())},
          {"waiting_for", job.waiting_for()},
          {"notice", NoticeToJson(job)},
          {"activity", progress.activity()},
          {"error", job.error()},
          {"submitted_by", spec.submitted_by()},
          {"priority", spec.priority()},
          {"created", MaybeTime(job.has_created(), job.created())},
          {"started", MaybeTime(job.has_started(), job.started())},
          {"ended", MaybeTime(job.has_ended(), job.ended())},
          {"until", MaybeTime(spec.has_until(), spec.until())},
          {"trials", progress.trials()},
          {"trials_limit", ValueOrNull(spec.trials() > 0, static_cast<double>(spec.trials()))},
          {"seconds", progress.seconds()},
          {"seconds_limit", ValueOrNull(spec.has_time_budget(), absl::ToDoubleSeconds(FromProto(spec.time_budget())))},
          {"seconds_left", ValueOrNull(left.has_value(), absl::ToDoubleSeconds(left.value_or(absl::ZeroDuration())))},
          {"trials_per_second", progress.trials_per_second()},
          {"failed", FailedToJson(progress)},
          {"latency_ms_before", ValueOrNull(progress.has_latency_before_seconds(),
                                            progress.latency_before_seconds() * kMillisecondsPerSecond)},
          {"latency_ms_after", ValueOrNull(progress.has_latency_after_seconds(),
                                           progress.latency_after_seconds() * kMillisecondsPerSecond)},
          {"confirmation", ConfirmationToJson(job)}};
}

Json JobDetailToJson(const v1::Job& job, const std::vector<LatencyHistory::Point>& latency, absl::Time now) {
  Json json = JobToJson(job, now);
  json["model_digest"] = job.spec().model_digest();
  json["threads"] = job.spec().threads();
  json["seed"] = job.spec().seed();
  json["seed_text"] = std::to_string(job.spec().seed());
  json["options"] = MapToJson(job.spec().options());
  json["labels"] = MapToJson(job.spec().labels());
  json["device_kind"] = job.spec().device_kind();
  json["attempts"] = job.attempts();
  json["ended_because"] = EndReason(job);
  json["spent"] = SpentToJson(job.progress().spent());
  json["workloads"] = WorkloadsToJson(job);
  json["latency"] = LatencyToJson(latency);
  return json;
}

Json DeviceToJson(const v1::Device& device, const Running* running) {
  const v1::DeviceState& state = device.state();
  const v1::HealthRecord& record = device.record();
  Json work = nullptr;
  if (running != nullptr) {
    work = {{"job", running->job},     {"model", running->model},     {"workload", running->workload},
            {"title", running->title}, {"attempt", running->attempt}, {"since", TimeToJson(running->since)}};
  }
  return {{"device", NameOf(device.agent_id(), state.device_id())},
          {"agent", device.agent_id()},
          {"agent_version", device.agent_version()},
          {"target", state.target()},
          {"fingerprint", state.fingerprint().text()},
          {"kind", state.fingerprint().digest()},
          {"model", state.fingerprint().cpu_model()},
          {"threads", state.threads()},
          {"labels", MapToJson(state.labels())},
          {"activity", ActivityName(device.activity())},
          {"health", HealthName(device)},
          {"reason", device.health_reason()},
          {"drained", device.drained()},
          {"last_seen", MaybeTime(device.has_last_seen(), device.last_seen())},
          {"running", work},
          {"batches", device.batches_done()},
          {"candidates", device.candidates_done()},
          {"losses", device.losses()},
          {"quarantines", record.quarantines()},
          {"quarantined_since", MaybeTime(record.has_quarantined_since(), record.quarantined_since())},
          {"retry_at", MaybeTime(record.has_retry_at(), record.retry_at())},
          {"governor", state.fingerprint().governor()},
          {"golden", GoldenToJson(device)},
          {"sandbox", SandboxToJson(state.sandbox())}};
}

Json MedianToJson(const records::Record& record) {
  const auto* timing = std::get_if<records::Timing>(&record.outcome);
  if (timing == nullptr) return nullptr;
  const auto repeats = records::DecidingRepeats(timing->seconds, timing->first_interleaved);
  return Median({repeats.begin(), repeats.end()}) * kMillisecondsPerSecond;
}

Json PointToJson(const records::StoredRecord& stored, size_t device) {
  const records::Record& record = stored.record;
  const auto* timing = std::get_if<records::Timing>(&record.outcome);
  const auto* failure = std::get_if<records::Failure>(&record.outcome);
  const std::optional<double> predicted = timing == nullptr ? std::nullopt : timing->predicted_seconds;
  return {{"row", stored.row},
          {"at", InstantToJson(record.measured_at)},
          {"kind", failure == nullptr ? "timed" : std::string(FailureKindName(failure->kind))},
          {"median_ms", MedianToJson(record)},
          {"predicted_ms", ValueOrNull(predicted.has_value(), predicted.value_or(0) * kMillisecondsPerSecond)},
          {"is_default", record.is_default},
          {"confirmed", timing != nullptr && timing->confirmed},
          {"verified", timing != nullptr && timing->verified},
          {"device", device},
          {"measured_by", record.measured_by}};
}

Json DriftToJson(const records::StoredRecord& stored) {
  const records::Record& record = stored.record;
  const auto& timing = std::get<records::Timing>(record.outcome);
  const std::optional<double> golden = NumberIn(record.environment, "golden_us");
  return {
      {"row", stored.row},
      {"at", InstantToJson(record.measured_at)},
      {"measured_by", record.measured_by},
      {"golden_us", ValueOrNull(golden.has_value(), golden.value_or(0))},
      {"reference_us", ValueOrNull(timing.reference_seconds.has_value(), timing.reference_seconds.value_or(0) * kUs)},
      {"drift", ValueOrNull(timing.drift.has_value(), timing.drift.value_or(0))},
      {"temperature_c", ValueOrNull(timing.temperature_celsius.has_value(), timing.temperature_celsius.value_or(0))},
      {"clock_hz", ValueOrNull(timing.clock_hertz.has_value(), timing.clock_hertz.value_or(0))}};
}

Json RecordToJson(const records::StoredRecord& stored) {
  Json json = {{"row", stored.row}, {"median_ms", MedianToJson(stored.record)}};
  json.update(Json::parse(records::RecordToJson(stored.record)));
  json["seed_text"] = std::to_string(stored.record.seed);  // as text, because JavaScript rounds 64-bit numbers
  return json;
}

Json BestToJson(const records::BestRecord& best) {
  const records::Record& record = best.stored.record;
  return {{"row", best.stored.row},
          {"workload", record.key.workload_digest},
          {"operator", record.operator_label},
          {"title", TitleOf(record)},
          {"model", record.model},
          {"nodes", record.nodes},
          {"target", record.key.target},
          {"device", record.key.device_fingerprint},
          {"compiler", record.key.compiler_version},
          {"schedule", record.schedule},
          {"median_ms", best.median_seconds * kMillisecondsPerSecond},
          {"gflops", ValueOrNull(record.sizes.empty(), record.flops / best.median_seconds * 1e-9)},
          {"sizes", record.sizes},
          {"default_ms",
           ValueOrNull(best.default_seconds.has_value(), best.default_seconds.value_or(0) * kMillisecondsPerSecond)},
          {"confirmed", best.confirmed},
          {"records", best.records},
          {"measured_at", InstantToJson(record.measured_at)},
          {"measured_by", record.measured_by},
          {"measurement", record.measurement_id}};
}

}  // namespace hone::tracker
