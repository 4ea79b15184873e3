// SPDX-License-Identifier: Apache-2.0
#include "tracker/record_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/record.grpc.pb.h"
#include "proto/convert.h"
#include "tracker/access.h"
#include "tracker/convert.h"
#include "tracker/streams.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

constexpr size_t kPageRows = 1000;
constexpr absl::Duration kStreamWaitMax =
    absl::Seconds(30);  // to wait for a stream; compiling asks for all kernels at once

// Whether the record says that a candidate could not be built, which a tuner observes itself. Only agents observe how
// kernels run.
bool NotBuilt(const v1::Outcome& outcome) {
  if (!outcome.has_failure()) return false;
  const v1::FailureKind kind = outcome.failure().kind();
  return kind == v1::FAILURE_KIND_SCHEDULE_ILLEGAL || kind == v1::FAILURE_KIND_COMPILE_ERROR ||
         kind == v1::FAILURE_KIND_COMPILE_TIMEOUT;
}

absl::StatusOr<records::Record> RecordToKeep(const v1::Record& record, const std::optional<FarmIdentity>& caller) {
  const bool of_tuner = caller.has_value() && caller->role == Role::kTuner;
  if (of_tuner && !NotBuilt(record.outcome())) {
    return absl::PermissionDeniedError("a tuner may add only records of candidates that could not be built");
  }
  if (of_tuner && !record.workload().empty() && Sha256Hex(record.workload()) != record.key().workload_digest()) {
    return absl::InvalidArgumentError(
        fmt::format("the digest of workload '{}' does not match its text", record.key().workload_digest()));
  }
  HONE_ASSIGN_OR_RETURN(records::Record row, FromProto(record));
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  if (of_tuner) {
    row.measured_by = caller->name;
    row.measured_at = now;
  }
  row.measured_at = std::min(row.measured_at, records::MeasuredAtMax(now));
  return row;
}

class RecordServiceShell final : public v1::RecordService::Service {
 public:
  RecordServiceShell(records::Store* store, Callers callers) : store_(store), callers_(callers) { streams_.Start(); }

  grpc::Status Append(grpc::ServerContext* context, const v1::AppendRecordsRequest* request,
                      v1::AppendRecordsResponse* response) override {
    const std::optional<FarmIdentity> caller = CallerOf(*context->auth_context());
    std::vector<records::Record> rows;
    for (const v1::Record& record : request->records()) {
      auto row = RecordToKeep(record, caller);
      if (!row.ok()) return ToGrpc(row.status());
      rows.push_back(*std::move(row));
    }
    const auto report = store_->Append(rows);
    if (caller.has_value() && caller->role != Role::kTuner) {
      callers_.Note(*context, "RecordService/Append", fmt::format("{} records", rows.size()), report.status());
    }
    if (!report.ok()) return ToGrpc(report.status());
    response->set_appended(static_cast<int64_t>(report->appended));
    response->set_known(static_cast<int64_t>(report->duplicates));
    for (const records::Rejected& row : report->rejected) {
      v1::RejectedRecord* rejected = response->add_rejected();
      rejected->set_index(static_cast<int64_t>(row.index));
      rejected->set_why(std::string(row.why.message()));
    }
    return grpc::Status::OK;
  }

  grpc::Status Best(grpc::ServerContext*, const v1::BestRecordRequest* request,
                    v1::BestRecordResponse* response) override {
    const auto nearest = store_->BestAnyDevice(FromProto(request->key()));
    if (!nearest.ok()) return ToGrpc(nearest.status());
    const v1::RecordMatch widest =
        request->widest() == v1::RECORD_MATCH_UNSPECIFIED ? v1::RECORD_MATCH_EXACT : request->widest();
    if (!nearest->has_value() || ToProto((*nearest)->closeness) > widest) return grpc::Status::OK;
    *response = ToProto(**nearest);
    return grpc::Status::OK;
  }

  grpc::Status ListBest(grpc::ServerContext* context, const v1::ListBestRequest* request,
                        grpc::ServerWriter<v1::BestRecordResponse>* writer) override {
    const records::Filter filter = FromProto(*request);
    const auto stream = OpenStream(context);
    if (!stream.ok()) return ToGrpc(stream.status());
    std::optional<records::KeyNumbers> next = records::KeyNumbers();
    while (next.has_value() && !context->IsCancelled()) {
      const auto page = store_->BestPageAfter(filter, *next);
      if (!page.ok()) return ToGrpc(page.status());
      for (const records::BestRecord& best : page->best) {
        if (!writer->Write(ToProto(best))) return grpc::Status::CANCELLED;
        (*stream)->Progress();
      }
      (*stream)->Progress();
      next = page->next;
    }
    return StillThere(callers_.PresentIn(context));
  }

  grpc::Status Query(grpc::ServerContext*, const v1::QueryRecordsRequest* request,
                     v1::QueryRecordsResponse* response) override {
    auto filter = FromProto(*request);
    if (!filter.ok()) return ToGrpc(filter.status());
    if (request->limit() == 0) filter->limit = kPageRows;
    const auto page = store_->Query(*filter);
    if (!page.ok()) return ToGrpc(page.status());
    for (const records::StoredRecord& row : page->rows) *response->add_records() = ToProto(row);
    response->set_more(page->more);
    return grpc::Status::OK;
  }

  grpc::Status Stats(grpc::ServerContext*, const v1::RecordStatsRequest*, v1::RecordStatsResponse* response) override {
    const auto stats = store_->Summarize();
    if (!stats.ok()) return ToGrpc(stats.status());
    response->set_records(stats->records);
    response->set_workloads(stats->workloads);
    response->set_devices(stats->devices);
    for (const auto& [kind, count] : stats->failed) {
      v1::FailureCount* failed = response->add_failed();
      failed->set_kind(ToProto(kind));
      failed->set_count(count);
    }
    return grpc::Status::OK;
  }

  grpc::Status Export(grpc::ServerContext* context, const v1::QueryRecordsRequest* request,
                      grpc::ServerWriter<v1::Record>* writer) override {
    const auto filter = FromProto(*request);
    if (!filter.ok()) return ToGrpc(filter.status());
    const auto stream = OpenStream(context);
    if (!stream.ok()) return ToGrpc(stream.status());
    const absl::Status status = store_->ForEach(*filter, [&](const records::StoredRecord& row) {
      if (!writer->Write(ToProto(row))) return absl::CancelledError("");
      (*stream)->Progress();
      return absl::OkStatus();
    });
    return status.ok() || absl::IsCancelled(status) ? StillThere(callers_.PresentIn(context)) : ToGrpc(status);
  }

 private:
  absl::StatusOr<std::unique_ptr<Streams::Stream>> OpenStream(grpc::ServerContext* context) {
    return streams_.Begin(
        Callers::IdentityIn(*context), callers_.PresentIn(context), [context] { context->TryCancel(); },
        kStreamWaitMax);
  }
  static grpc::Status StillThere(const Present& present) {
    return present() ? grpc::Status::OK
                     : ToGrpc(absl::CancelledError("the caller is gone, or its certificate was revoked"));
  }

  records::Store* const store_;
  const Callers callers_;
  Streams streams_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRecordService(records::Store* store, Callers callers) {
  return std::make_unique<RecordServiceShell>(store, callers);
}

}  // namespace hone::tracker
