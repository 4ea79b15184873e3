#include "tracker/record_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/record.grpc.pb.h"
#include "tracker/access.h"
#include "tracker/convert.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

v1::RecordMatch MatchOf(records::Closeness closeness) {
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

class RecordServiceShell final : public v1::RecordService::Service {
 public:
  RecordServiceShell(records::Store* store, Callers callers) : store_(store), callers_(callers) {}

  grpc::Status Append(grpc::ServerContext* context, const v1::AppendRecordsRequest* request,
                      v1::AppendRecordsResponse* response) override {
    const std::optional<FarmIdentity> caller = CallerOf(*context->auth_context());
    std::vector<records::Record> rows;
    for (const v1::Record& record : request->records()) {
      // What runs how fast is for agents to say.
      if (caller.has_value() && caller->role == Role::kTuner && !record.outcome().has_failure()) {
        return ToGrpc(absl::PermissionDeniedError("a tuner may append failures, and no times"));
      }
      auto row = FromProto(record);
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
    return report->rejected.empty() ? grpc::Status::OK : ToGrpc(report->rejected.front().why);
  }

  grpc::Status Best(grpc::ServerContext*, const v1::BestRecordRequest* request,
                    v1::BestRecordResponse* response) override {
    const auto nearest = store_->BestAnyDevice(FromProto(request->key()));
    if (!nearest.ok()) return ToGrpc(nearest.status());
    const v1::RecordMatch widest =
        request->widest() == v1::RECORD_MATCH_UNSPECIFIED ? v1::RECORD_MATCH_EXACT : request->widest();
    if (!nearest->has_value() || MatchOf((*nearest)->closeness) > widest) return grpc::Status::OK;
    *response = ToProto((*nearest)->best);
    response->set_match(MatchOf((*nearest)->closeness));
    response->set_device_similarity((*nearest)->device_similarity);
    return grpc::Status::OK;
  }

  grpc::Status ListBest(grpc::ServerContext*, const v1::ListBestRequest* request,
                        v1::ListBestResponse* response) override {
    if (request->key().workload_digest().empty()) {
      return ToGrpc(absl::InvalidArgumentError("the winners of which workload? the key has no workload digest"));
    }
    records::Filter filter = FilterOf(request->key());
    filter.limit = SIZE_MAX;
    const auto winners = store_->AllBest(filter);
    if (!winners.ok()) return ToGrpc(winners.status());
    for (const records::BestRecord& best : *winners) *response->add_best() = ToProto(best);
    return grpc::Status::OK;
  }

  grpc::Status Query(grpc::ServerContext*, const v1::QueryRecordsRequest* request,
                     v1::QueryRecordsResponse* response) override {
    if (request->limit() < 0) return ToGrpc(absl::InvalidArgumentError("a limit below 0 of records makes no sense"));
    const auto page = store_->Query(FromProto(*request));
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
    records::Filter filter = FromProto(*request);
    int64_t left = request->limit() > 0 ? request->limit() : INT64_MAX;
    const Present present = callers_.PresentIn(context);
    while (left > 0 && present()) {
      filter.limit = static_cast<size_t>(std::min<int64_t>(left, 1000));
      const auto page = store_->Query(filter);
      if (!page.ok()) return ToGrpc(page.status());
      for (const records::StoredRecord& row : page->rows) {
        if (!writer->Write(ToProto(row))) return grpc::Status::CANCELLED;
      }
      if (!page->more || page->rows.empty()) break;
      filter.after_row = page->rows.back().row;
      left -= static_cast<int64_t>(page->rows.size());
    }
    if (!present()) return ToGrpc(absl::CancelledError("the caller went away, or its certificate was revoked"));
    return grpc::Status::OK;
  }

 private:
  records::Store* const store_;
  const Callers callers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRecordService(records::Store* store, Callers callers) {
  return std::make_unique<RecordServiceShell>(store, callers);
}

}  // namespace hone::tracker
