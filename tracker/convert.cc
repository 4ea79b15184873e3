// SPDX-License-Identifier: Apache-2.0
#include "tracker/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "base/status.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"
#include "google/protobuf/timestamp.pb.h"
#include "proto/convert.h"
#include "records/columns.h"
#include "records/winner.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using records::Column;

// Takes the first name off a path of kColumns ("outcome.timing.drift") and finds that field.
const FieldDescriptor* Next(const Message& message, std::string_view& path) {
  const size_t dot = path.find('.');
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
  HONE_CHECK(field != nullptr);  // every path in kColumns names a field of the protocol
  path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  return field;
}

// Reads one value of a record from the message. A missing field leaves the value as it is.
struct Reader {
  const Message& message;
  const FieldDescriptor* field;
  const Column& column;

  const Reflection& reflection() const { return *message.GetReflection(); }
  bool given() const { return reflection().HasField(message, field); }

  void operator()(std::string& value) const {
    if (given()) value = reflection().GetString(message, field);
  }
  void operator()(double& value) const {
    if (given()) value = reflection().GetDouble(message, field);
  }
  // A number out of range (a broken sensor, an untimed reference) counts as unknown; the record is kept.
  void operator()(std::optional<double>& value) const {
    if (!given()) return;
    const double given = reflection().GetDouble(message, field) * column.wire_unit;
    if (InRange(column, given)) value = given;
  }
  void operator()(bool& value) const {
    if (given()) value = reflection().GetBool(message, field);
  }
  void operator()(int64_t& value) const {
    if (!given()) return;
    const bool narrow = field->cpp_type() == FieldDescriptor::CPPTYPE_INT32;
    value = narrow ? reflection().GetInt32(message, field) : reflection().GetInt64(message, field);
  }
  void operator()(uint64_t& value) const {
    if (given()) value = reflection().GetUInt64(message, field);
  }
  void operator()(std::vector<double>& value) const {
    const auto seconds = reflection().GetRepeatedFieldRef<double>(message, field);
    value.assign(seconds.begin(), seconds.end());
  }
  void operator()(records::Instant& value) const {
    if (!given()) return;
    google::protobuf::Timestamp time;
    time.CopyFrom(reflection().GetMessage(message, field));
    value = records::Instant(std::chrono::milliseconds(absl::ToUnixMillis(FromProto(time))));
  }
  void operator()(FailureKind&) const {}  // FromProto converts it, because unknown kinds are errors
};

// Writes one value of a record into the message.
struct Writer {
  Message* message;
  const FieldDescriptor* field;
  const Column& column;

  const Reflection& reflection() const { return *message->GetReflection(); }

  void operator()(const std::string& value) const { reflection().SetString(message, field, value); }
  void operator()(double value) const { reflection().SetDouble(message, field, value); }
  void operator()(const std::optional<double>& value) const {
    if (value.has_value()) reflection().SetDouble(message, field, *value / column.wire_unit);
  }
  void operator()(bool value) const { reflection().SetBool(message, field, value); }
  void operator()(int64_t value) const {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection().SetInt32(message, field, static_cast<int32_t>(value));
    } else {
      reflection().SetInt64(message, field, value);
    }
  }
  void operator()(uint64_t value) const { reflection().SetUInt64(message, field, value); }
  void operator()(const std::vector<double>& value) const {
    for (const double v : value) reflection().AddDouble(message, field, v);
  }
  void operator()(records::Instant value) const {
    reflection()
        .MutableMessage(message, field)
        ->CopyFrom(ToProto(absl::FromUnixMillis(value.time_since_epoch().count())));
  }
  void operator()(FailureKind value) const { reflection().SetEnumValue(message, field, ToProto(value)); }
};

// "name=value ..." for everything that is known about the device except its hardware.
std::string EnvironmentOf(const v1::BatchResult& result) {
  const v1::DeviceFingerprint& device = result.device();
  std::string text;
  const auto add = [&text](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  };
  add("kernel", device.kernel());
  add("governor", device.governor());
  add("boost", device.boost());
  add("smt", device.smt());
  add("huge_pages", device.huge_pages());
  add("memory_bytes", device.memory_bytes() > 0 ? std::to_string(device.memory_bytes()) : "");
  add("agent", result.agent_version());
  // Sorted, so that equal environments give equal texts.
  for (const auto& [name, value] : std::map(result.environment().begin(), result.environment().end())) add(name, value);
  return text;
}

records::Instant Now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

}  // namespace

v1::RecordMatch ToProto(records::Closeness closeness) {
  switch (closeness) {
    case records::Closeness::kExact:
      return v1::RECORD_MATCH_EXACT;
    case records::Closeness::kSameDeviceOtherCompiler:
      return v1::RECORD_MATCH_OTHER_COMPILER;
    case records::Closeness::kOtherDevice:
      return v1::RECORD_MATCH_SAME_TARGET;
  }
  return v1::RECORD_MATCH_UNSPECIFIED;
}

v1::RecordKey ToProto(const records::Key& key) {
  v1::RecordKey message;
  message.set_workload_digest(key.workload_digest);
  message.set_target(key.target);
  message.set_device_fingerprint(key.device_fingerprint);
  message.set_compiler_version(key.compiler_version);
  return message;
}

records::Key FromProto(const v1::RecordKey& key) {
  return {key.workload_digest(), key.target(), key.device_fingerprint(), key.compiler_version()};
}

v1::Record ToProto(const records::StoredRecord& stored) {
  v1::Record record;
  record.set_row(stored.row);
  for (const Column& column : records::kColumns) {
    const auto write = [&](const auto& value) {
      std::string_view path = column.wire;
      Message* message = &record;
      const FieldDescriptor* field = Next(*message, path);
      for (; !path.empty(); field = Next(*message, path)) {
        message = message->GetReflection()->MutableMessage(message, field);
      }
      Writer{message, field, column}(value);
    };
    WithValue(stored.record, column, write);
  }
  return record;
}

absl::StatusOr<records::Record> FromProto(const v1::Record& record) {
  records::Record result;
  if (record.outcome().has_failure()) {
    HONE_ASSIGN_OR_RETURN(const FailureKind kind, hone::FromProto(record.outcome().failure().kind()));
    result.outcome = records::Failure{kind, ""};
  } else if (!record.outcome().has_timing()) {
    return absl::InvalidArgumentError("an outcome has neither timing nor failure");
  }
  result.measured_at = Now();
  for (const Column& column : records::kColumns) {
    const auto read = [&](auto& value) {
      std::string_view path = column.wire;
      const Message* message = &record;
      const FieldDescriptor* field = Next(*message, path);
      for (; !path.empty(); field = Next(*message, path)) {
        message = &message->GetReflection()->GetMessage(*message, field);  // a missing message reads as empty
      }
      Reader{*message, field, column}(value);
    };
    WithValue(result, column, read);
  }
  return result;
}

v1::BestRecordResponse ToProto(const records::BestRecord& best) {
  v1::BestRecordResponse response;
  *response.mutable_record() = ToProto(best.stored);
  response.set_median_seconds(best.median_seconds);
  if (best.default_seconds.has_value()) response.set_default_seconds(*best.default_seconds);
  response.set_confirmed(best.confirmed);
  response.set_records(best.records);
  return response;
}

v1::BestRecordResponse ToProto(const records::NearestRecord& nearest) {
  v1::BestRecordResponse response = ToProto(nearest.best);
  response.set_match(ToProto(nearest.closeness));
  response.set_device_similarity(nearest.device_similarity);
  return response;
}

absl::StatusOr<records::BestRecord> FromProto(const v1::BestRecordResponse& response) {
  records::BestRecord best;
  HONE_ASSIGN_OR_RETURN(best.stored.record, FromProto(response.record()));
  best.stored.row = response.record().row();
  best.median_seconds = response.median_seconds();
  if (response.has_default_seconds()) best.default_seconds = response.default_seconds();
  best.confirmed = response.confirmed();
  best.records = response.records();
  return best;
}

v1::QueryRecordsRequest ToProto(const records::Filter& filter) {
  v1::QueryRecordsRequest request;
  const v1::ListBestRequest best = BestRequestOf(filter);
  *request.mutable_key() = best.key();
  request.set_op(best.op());
  request.set_other_target(best.other_target());
  request.set_only_timed(filter.outcomes == records::Filter::Outcomes::kTimed);
  request.set_only_failed(filter.outcomes == records::Filter::Outcomes::kFailed);
  if (filter.failure.has_value()) request.set_failure(ToProto(*filter.failure));
  request.set_only_confirmed(filter.confirmed_only);
  request.set_model(filter.model);
  request.set_after_row(filter.after_row);
  if (filter.limit < INT32_MAX) request.set_limit(static_cast<int32_t>(filter.limit));
  request.set_with_workload(filter.with_workload_text);
  return request;
}

v1::ListBestRequest BestRequestOf(const records::Filter& filter) {
  v1::ListBestRequest request;
  *request.mutable_key() =
      ToProto(records::Key{filter.workload_digest, filter.target, filter.device_fingerprint, filter.compiler_version});
  request.set_op(filter.operator_label);
  request.set_other_target(filter.other_target);
  return request;
}

records::Filter FromProto(const v1::ListBestRequest& request) {
  records::Filter filter;
  filter.workload_digest = request.key().workload_digest();
  filter.target = request.key().target();
  filter.other_target = request.other_target();
  filter.device_fingerprint = request.key().device_fingerprint();
  filter.compiler_version = request.key().compiler_version();
  filter.operator_label = request.op();
  return filter;
}

absl::StatusOr<records::Filter> FromProto(const v1::QueryRecordsRequest& request) {
  if (request.limit() < 0) return absl::InvalidArgumentError("the limit of records is below 0; give 0 for the default");
  v1::ListBestRequest best;
  *best.mutable_key() = request.key();
  best.set_op(request.op());
  best.set_other_target(request.other_target());
  records::Filter filter = FromProto(best);
  if (request.only_timed()) filter.outcomes = records::Filter::Outcomes::kTimed;
  if (request.only_failed()) filter.outcomes = records::Filter::Outcomes::kFailed;
  if (request.failure() != v1::FAILURE_KIND_UNSPECIFIED) {
    HONE_ASSIGN_OR_RETURN(filter.failure, hone::FromProto(request.failure()));
  }
  filter.confirmed_only = request.only_confirmed();
  filter.model = request.model();
  filter.after_row = request.after_row();
  if (request.limit() > 0) filter.limit = static_cast<size_t>(request.limit());
  filter.with_workload_text = request.with_workload();
  return filter;
}

std::vector<records::Record> ToRecords(const std::string& farm_id, const Recordable& recordable) {
  std::vector<records::Record> result;
  if (recordable.batch == nullptr) return result;
  const v1::Batch& batch = *recordable.batch;
  const std::string& device = recordable.result.device().text();
  v1::Record record;
  record.mutable_key()->set_workload_digest(batch.workload_digest());
  record.mutable_key()->set_target(batch.target());
  record.mutable_key()->set_device_fingerprint(device.empty() ? "unknown device" : device);
  record.mutable_key()->set_compiler_version(batch.compiler_version());
  record.set_batch_id(farm_id + "/" + recordable.visit_id);
  record.set_verified(true);  // an agent reports a timing only after the outputs matched the reference
  record.set_tolerance(batch.tolerance().rtol());  // atol follows from workload and target
  record.set_op(batch.op());
  record.set_workload(batch.workload());
  record.set_flops(batch.flops());
  record.set_sizes(batch.sizes());
  record.set_environment(EnvironmentOf(recordable.result));
  record.set_measured_by(recordable.result.device_name());
  record.set_seed(batch.search_seed());
  record.set_job_id(recordable.job_id);
  record.set_model(recordable.model);
  record.set_title(recordable.title);
  record.set_nodes(recordable.nodes);
  for (const v1::CandidateOutcome& outcome : recordable.result.outcomes()) {
    const auto candidate = std::find_if(batch.candidates().begin(), batch.candidates().end(),
                                        [&](const v1::Candidate& c) { return c.id() == outcome.candidate_id(); });
    if (candidate == batch.candidates().end()) continue;
    record.set_id(fmt::format("{}/{}/{}", farm_id, recordable.batch_id, candidate->id()));
    record.set_schedule(candidate->schedule());
    record.set_decisions(candidate->decisions());
    record.set_is_default(candidate->is_default());
    const v1::Timing& timing = outcome.outcome().timing();  // empty for a failure
    const auto repeats = static_cast<size_t>(timing.seconds_size());
    record.set_confirmed(batch.final() && records::HasInterleavedRounds(repeats, timing.first_interleaved()));
    record.clear_predicted_seconds();
    if (candidate->has_predicted_seconds()) record.set_predicted_seconds(candidate->predicted_seconds());
    *record.mutable_outcome() = outcome.outcome();
    absl::StatusOr<records::Record> row = FromProto(record);
    if (row.ok()) result.push_back(*std::move(row));
  }
  return result;
}

}  // namespace hone::tracker
