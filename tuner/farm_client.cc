#include "tuner/farm_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "absl/time/clock.h"
#include "base/status.h"
#include "tuner/channel.h"

namespace hone::tuner {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);

// Calls again while the tracker cannot be reached.
template <typename Call>
absl::Status Persist(const std::string& address, const Call& call) {
  const absl::Time deadline = absl::Now() + kPatience;
  absl::Duration pause = absl::Milliseconds(100);
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
    const grpc::Status status = call(&context);
    if (status.ok()) return absl::OkStatus();
    const bool transient = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                           status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!transient || absl::Now() > deadline) return FromGrpc(status, address);
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Seconds(2));
  }
}

bool Fits(const v1::Device& device, const v1::Requirements& wanted) {
  if (device.activity() == v1::DEVICE_ACTIVITY_OFFLINE || device.health() != v1::DEVICE_HEALTH_GOOD || device.drained())
    return false;
  const v1::DeviceState& state = device.state();
  if (state.threads() < wanted.threads()) return false;
  if (!wanted.target().empty() && wanted.target() != state.target()) return false;
  if (!wanted.architecture().empty() && wanted.architecture() != state.fingerprint().architecture()) return false;
  const auto& features = state.fingerprint().cpu_features();
  for (const std::string& feature : wanted.cpu_features()) {
    if (std::find(features.begin(), features.end(), feature) == features.end()) return false;
  }
  for (const auto& [name, value] : wanted.labels()) {
    const auto it = state.labels().find(name);
    if (it == state.labels().end() || it->second != value) return false;
  }
  return true;
}

}  // namespace

FarmClient::FarmClient(const std::shared_ptr<grpc::Channel>& channel, v1::JobLease lease, std::string address)
    : tuner_(v1::TunerService::NewStub(channel)),
      records_(v1::RecordService::NewStub(channel)),
      admin_(v1::AdminService::NewStub(channel)),
      lease_(std::move(lease)),
      address_(std::move(address)) {}

absl::Status FarmClient::Report(const v1::JobProgress& progress) {
  v1::ReportProgressRequest request;
  *request.mutable_lease() = lease_;
  *request.mutable_progress() = progress;
  v1::ReportProgressResponse response;
  HONE_RETURN_IF_ERROR(
      Persist(address_, [&](auto* context) { return tuner_->ReportProgress(context, request, &response); }));
  return response.cancelled() ? absl::CancelledError("the job was cancelled") : absl::OkStatus();
}

absl::Status FarmClient::Complete(const v1::JobProgress& progress, const std::string& error) {
  v1::CompleteJobRequest request;
  *request.mutable_lease() = lease_;
  *request.mutable_progress() = progress;
  request.set_error(error);
  v1::CompleteJobResponse response;
  return Persist(address_, [&](auto* context) { return tuner_->CompleteJob(context, request, &response); });
}

absl::StatusOr<std::string> FarmClient::Submit(const v1::Batch& batch, const std::string& client_id) {
  v1::SubmitBatchRequest request;
  *request.mutable_lease() = lease_;
  request.set_client_batch_id(client_id);
  *request.mutable_batch() = batch;
  v1::SubmitBatchResponse response;
  HONE_RETURN_IF_ERROR(
      Persist(address_, [&](auto* context) { return tuner_->SubmitBatch(context, request, &response); }));
  return response.batch_id();
}

absl::StatusOr<std::vector<v1::BatchResult>> FarmClient::Measure(const std::vector<v1::Batch>& batches,
                                                                 const v1::JobProgress& progress) {
  std::map<std::string, size_t> open;  // batch id to place
  for (size_t i = 0; i < batches.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const std::string id,
                          Submit(batches[i], fmt::format("{}-{}", lease_.lease_id(), next_batch_++)));
    open[id] = i;
  }
  HONE_RETURN_IF_ERROR(Report(progress));
  std::vector<v1::BatchResult> results(batches.size());
  v1::WaitBatchRequest request;
  *request.mutable_lease() = lease_;
  request.mutable_max_wait()->set_seconds(5);
  while (!open.empty()) {
    request.clear_batch_ids();
    for (const auto& [id, place] : open) request.add_batch_ids(id);
    v1::WaitBatchResponse response;
    HONE_RETURN_IF_ERROR(
        Persist(address_, [&](auto* context) { return tuner_->WaitBatch(context, request, &response); }));
    if (response.cancelled()) return absl::CancelledError("the job was cancelled");
    request.clear_acked_batch_ids();
    for (const v1::FinishedBatch& finished : response.finished()) {
      const auto it = open.find(finished.batch_id());
      if (it == open.end()) continue;
      results[it->second] = finished.result();
      open.erase(it);
      request.add_acked_batch_ids(finished.batch_id());
    }
  }
  return results;
}

absl::StatusOr<std::optional<v1::DeviceFingerprint>> FarmClient::FindDevice(const v1::Requirements& requirements) {
  v1::ListDevicesResponse response;
  HONE_RETURN_IF_ERROR(Persist(
      address_, [&](auto* context) { return admin_->ListDevices(context, v1::ListDevicesRequest(), &response); }));
  for (const v1::Device& device : response.devices()) {
    if (Fits(device, requirements)) return std::optional(device.state().fingerprint());
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<v1::Record>> FarmClient::Records(const v1::RecordKey& key, bool only_timed, int limit) {
  v1::QueryRecordsRequest request;
  *request.mutable_key() = key;
  request.set_only_timed(only_timed);
  request.set_limit(limit);
  v1::QueryRecordsResponse response;
  HONE_RETURN_IF_ERROR(Persist(address_, [&](auto* context) { return records_->Query(context, request, &response); }));
  return std::vector<v1::Record>(response.records().begin(), response.records().end());
}

absl::StatusOr<std::optional<v1::BestRecordResponse>> FarmClient::Best(const v1::RecordKey& key,
                                                                       v1::RecordMatch widest) {
  v1::BestRecordRequest request;
  *request.mutable_key() = key;
  request.set_widest(widest);
  v1::BestRecordResponse response;
  const absl::Status status =
      Persist(address_, [&](auto* context) { return records_->Best(context, request, &response); });
  if (status.code() == absl::StatusCode::kNotFound || (status.ok() && !response.has_record())) return std::nullopt;
  HONE_RETURN_IF_ERROR(status);
  return std::optional(response);
}

absl::Status FarmClient::Append(const std::vector<v1::Record>& records) {
  if (records.empty()) return absl::OkStatus();
  v1::AppendRecordsRequest request;
  for (const v1::Record& record : records) *request.add_records() = record;
  v1::AppendRecordsResponse response;
  return Persist(address_, [&](auto* context) { return records_->Append(context, request, &response); });
}

}  // namespace hone::tuner
