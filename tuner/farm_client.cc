// SPDX-License-Identifier: Apache-2.0
#include "tuner/farm_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/time/clock.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "proto/convert.h"
#include "transport/transport.h"
#include "tuner/convert.h"

namespace hone::tuner {
namespace {

constexpr absl::Duration kQuotaWaitMax = absl::Minutes(2);  // a call over the quota is given up: it may never fit
constexpr absl::Duration kBatchWaitMax = absl::Seconds(1);  // of WaitBatch; short, so the job's clock is set back soon
constexpr absl::Duration kCallLimit = absl::Seconds(40);    // longer than any call waits at the tracker
constexpr absl::Duration kCallTimeoutMax = absl::Hours(1);
constexpr double kLineBytesPerSecondMin = 64 << 10;           // bytes a second of the slowest line
constexpr absl::Duration kOverdueWaitMax = absl::Seconds(6);  // wait for a result after it has become useless
constexpr absl::Duration kReportIntervalMax =
    absl::Hours(2);  // without a report: the tuner hangs, so its lease is not renewed any more
constexpr absl::Duration kHeartbeatTimeout = absl::Seconds(5);  // limit of RenewLease, which is called again soon
constexpr size_t kReportedScheduleBytesMax = size_t{4} << 20;   // of all schedules in a report; a tracker takes 8 MiB

}  // namespace

FarmClient::FarmClient(Channel channel, v1::JobLease lease, std::string address, JobClock* job_clock)
    : channel_(std::move(channel)),
      lease_(std::move(lease)),
      address_(std::move(address)),
      job_clock_(job_clock),
      report_began_(absl::ToUnixSeconds(SteadyNow())) {}

// Repeats the call while the tracker cannot be reached or can store nothing (UNAVAILABLE, DEADLINE_EXCEEDED), and for
// kQuotaWaitMax while a quota is exhausted. Cancelled: Abandon was called.
absl::Status FarmClient::CallWithRetries(const std::function<grpc::Status(grpc::ClientContext*)>& call,
                                         size_t bytes) const {
  const absl::Time quota_deadline = job_clock_->Now() + kQuotaWaitMax;
  absl::Duration pause = absl::Milliseconds(100);
  absl::Duration limit = kCallLimit + absl::Seconds(static_cast<double>(bytes) / kLineBytesPerSecondMin);
  std::optional<JobClock::Wait> wait;
  while (!abandoned_) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(limit));
    const grpc::Status status = call(&context);
    if (status.ok()) return absl::OkStatus();
    const grpc::StatusCode code = status.error_code();
    const bool away = code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED;
    // The line may be slow; with the same limit the call would then time out forever.
    if (code == grpc::StatusCode::DEADLINE_EXCEEDED) limit = std::min(2 * limit, kCallTimeoutMax);
    const bool quota = code == grpc::StatusCode::RESOURCE_EXHAUSTED && job_clock_->Now() <= quota_deadline;
    if (!away && !quota) return Annotate(FromGrpc(status), "tracker " + address_);
    if (away && !wait.has_value()) wait.emplace(*job_clock_);
    if (away) wait->LogWaiting(address_, status.error_message());
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Seconds(2));
  }
  return absl::CancelledError("the tuning of this job was stopped");
}

// Omits schedules that the last report had, and those beyond kReportedScheduleBytesMax. Otherwise some hundred
// schedules of kilobytes each, sent twice a second, would be most of a tuner's traffic, although few change.
v1::JobProgress FarmClient::WithoutReportedSchedules(const Progress& progress) {
  v1::JobProgress report = ToProto(progress);
  reported_schedules_.resize(progress.workloads.size());
  size_t room = kReportedScheduleBytesMax;
  for (size_t i = 0; i < reported_schedules_.size(); ++i) {
    v1::WorkloadProgress& workload = *report.mutable_workloads(static_cast<int>(i));
    std::string& schedule = *workload.mutable_best_schedule();
    if (schedule.size() > room) schedule.clear();
    room -= schedule.size();
    workload.set_same_schedule(!schedule.empty() && schedule == reported_schedules_[i]);
    if (workload.same_schedule()) {
      schedule.clear();
    } else {
      reported_schedules_[i] = schedule;
    }
  }
  return report;
}

absl::Status FarmClient::Report(const Progress& progress) {
  report_began_ = absl::ToUnixSeconds(SteadyNow());
  const std::lock_guard lock(report_mutex_);
  v1::ReportProgressRequest request;
  *request.mutable_lease() = lease_;
  *request.mutable_progress() = WithoutReportedSchedules(progress);
  v1::ReportProgressResponse response;
  HONE_RETURN_IF_ERROR(CallWithRetries(
      [&](auto* context) { return Tuner()->ReportProgress(context, request, &response); }, request.ByteSizeLong()));
  job_clock_->SetWaitedForDevices(hone::FromProto(response.waited()));
  return response.cancelled() ? absl::CancelledError("the job was cancelled") : absl::OkStatus();
}

void FarmClient::RenewLease() {
  const bool stuck = SteadyNow() - absl::FromUnixSeconds(report_began_) > kReportIntervalMax;
  if (abandoned_ || stuck) return;
  v1::ReportProgressRequest request;
  *request.mutable_lease() = lease_;
  v1::ReportProgressResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(kHeartbeatTimeout));
  const grpc::Status status = Tuner()->ReportProgress(&context, request, &response);
  if (response.cancelled() || status.error_code() == grpc::StatusCode::ABORTED) lost_job_ = true;
}

absl::Status FarmClient::RequeueJob(const Requirements& needs) {
  v1::CompleteJobRequest request;
  *request.mutable_lease() = lease_;
  request.set_returned(true);
  *request.mutable_needs() = ToProto(needs);
  v1::CompleteJobResponse response;
  return CallWithRetries([&](auto* context) { return Tuner()->CompleteJob(context, request, &response); });
}

absl::Status FarmClient::Complete(const Progress& progress, const std::string& error,
                                  const v1::ModelConfirmation* confirmation) {
  const std::lock_guard lock(report_mutex_);
  v1::CompleteJobRequest request;
  *request.mutable_lease() = lease_;
  *request.mutable_progress() = WithoutReportedSchedules(progress);
  if (confirmation != nullptr) *request.mutable_progress()->mutable_confirmation() = *confirmation;
  request.set_error(error);
  v1::CompleteJobResponse response;
  return CallWithRetries([&](auto* context) { return Tuner()->CompleteJob(context, request, &response); },
                         request.ByteSizeLong());
}

absl::StatusOr<std::string> FarmClient::Submit(const v1::Batch& batch, const std::string& client_id) {
  v1::SubmitBatchRequest request;
  *request.mutable_lease() = lease_;
  request.set_client_batch_id(client_id);
  *request.mutable_batch() = batch;
  v1::SubmitBatchResponse response;
  HONE_RETURN_IF_ERROR(CallWithRetries([&](auto* context) { return Tuner()->SubmitBatch(context, request, &response); },
                                       request.ByteSizeLong()));
  return response.batch_id();
}

absl::StatusOr<Measured> FarmClient::Measure(const Batch& given) {
  const v1::Batch batch = ToProto(given);
  const absl::Time overdue = batch.useful_seconds() > 0
                                 ? job_clock_->Now() + absl::Seconds(batch.useful_seconds()) + kOverdueWaitMax
                                 : absl::InfiniteFuture();
  HONE_ASSIGN_OR_RETURN(const std::optional<v1::BatchResult> result,
                        Run(batch, [&] { return job_clock_->Now() > overdue; }));
  return result.has_value() ? FromProto(*result) : Measured{{}, "no device measured the batch in time"};
}

absl::StatusOr<std::optional<v1::BatchResult>> FarmClient::Run(const v1::Batch& batch,
                                                               const std::function<bool()>& over) {
  const std::string client_id = fmt::format("{}-{}", lease_.lease_id(), next_batch_++);
  HONE_ASSIGN_OR_RETURN(std::string id, Submit(batch, client_id));
  while (!over()) {
    v1::WaitBatchRequest request;
    *request.mutable_lease() = lease_;
    request.add_batch_ids(id);
    request.mutable_max_wait()->set_seconds(absl::ToInt64Seconds(kBatchWaitMax));
    v1::WaitBatchResponse response;
    const absl::Status status =
        CallWithRetries([&](auto* context) { return Tuner()->WaitBatch(context, request, &response); });
    if (absl::IsNotFound(status)) {  // the tracker was restarted and has lost the batch
      HONE_ASSIGN_OR_RETURN(id, Submit(batch, client_id + "-again"));
      continue;
    }
    HONE_RETURN_IF_ERROR(status);
    if (response.cancelled()) return absl::CancelledError("the job was cancelled");
    job_clock_->SetWaitedForDevices(hone::FromProto(response.waited()));
    if (response.finished().empty()) continue;
    request.clear_batch_ids();
    request.add_acked_batch_ids(id);
    request.clear_max_wait();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::WaitBatchResponse unused;
    Tuner()->WaitBatch(&context, request, &unused);  // errors do not matter: the tracker then keeps the batch longer
    return std::optional(std::move(*response.mutable_finished(0)->mutable_result()));
  }
  return std::optional<v1::BatchResult>();
}

absl::StatusOr<std::optional<FarmDevice>> FarmClient::FindDevice(const Requirements& requirements) {
  v1::ListDevicesRequest request;
  *request.mutable_for_work() = ToProto(requirements);
  request.set_for_job_id(lease_.job_id());
  v1::ListDevicesResponse response;
  HONE_RETURN_IF_ERROR(
      CallWithRetries([&](auto* context) { return Admin()->ListDevices(context, request, &response); }));
  if (response.devices().empty()) return std::nullopt;
  const v1::DeviceState& device = response.devices(0).state();
  return FarmDevice{device.fingerprint().text(), device.fingerprint().digest(), device.self_test().peak_gflops()};
}

absl::StatusOr<std::vector<PastTrial>> FarmClient::Records(const RecordKey& key) {
  std::vector<PastTrial> records;
  v1::QueryRecordsRequest request;
  *request.mutable_key() = ToProto(key);
  while (true) {
    v1::QueryRecordsResponse response;
    HONE_RETURN_IF_ERROR(
        CallWithRetries([&](auto* context) { return RecordsStub()->Query(context, request, &response); }));
    for (const v1::Record& record : response.records()) records.push_back(FromProto(record));
    if (!response.more() || response.records().empty()) return records;
    request.set_after_row(response.records().rbegin()->row());
  }
}

absl::StatusOr<std::optional<PastWinner>> FarmClient::Best(const RecordKey& key) {
  v1::BestRecordRequest request;
  *request.mutable_key() = ToProto(key);
  request.set_widest(v1::RECORD_MATCH_SAME_TARGET);
  v1::BestRecordResponse response;
  const absl::Status status =
      CallWithRetries([&](auto* context) { return RecordsStub()->Best(context, request, &response); });
  if (absl::IsNotFound(status) || (status.ok() && !response.has_record())) return std::nullopt;
  HONE_RETURN_IF_ERROR(status);
  return FromProto(response);
}

absl::Status FarmClient::RecordFailures(const RecordKey& key, const Batch& batch,
                                        const std::vector<BuildFailed>& failures) {
  if (failures.empty()) return absl::OkStatus();
  v1::AppendRecordsRequest request;
  const absl::Time now = absl::Now();
  for (const BuildFailed& failed : failures) {
    v1::Record& record = *request.add_records() = ToProto(key, batch, failed);
    record.set_id(
        fmt::format("build-{}-{}-{}", key.workload_digest.substr(0, 16), absl::ToUnixNanos(now), failed.candidate.id));
    *record.mutable_time() = hone::ToProto(now);
    record.set_job_id(lease_.job_id());
  }
  v1::AppendRecordsResponse response;
  HONE_RETURN_IF_ERROR(
      CallWithRetries([&](auto* context) { return RecordsStub()->Append(context, request, &response); }));
  if (response.rejected_size() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the tracker rejected the record of a failed build: {}", response.rejected(0).why()));
}

}  // namespace hone::tuner
