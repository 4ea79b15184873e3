#include "tracker/services.h"

#include <fmt/format.h>

#include "base/identity.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/agent.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/record.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tracker/access.h"
#include "tracker/callers.h"
#include "tracker/convert.h"
#include "tracker/identity_services.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

template <typename T>
grpc::Status Reply(absl::StatusOr<T> result, T* response) {
  if (result.ok()) *response = *std::move(result);
  return ToGrpc(result.status());
}

class AgentServiceShell final : public v1::AgentService::Service {
 public:
  AgentServiceShell(Shell* shell, Callers callers) : shell_(shell), callers_(callers) {}
  grpc::Status Synchronize(grpc::ServerContext* context, const v1::SynchronizeRequest* request,
                           v1::SynchronizeResponse* response) override {
    const absl::Status own = CheckName(CallerOf(*context->auth_context()), request->agent_id());
    if (!own.ok()) return ToGrpc(own);
    return Reply(shell_->Synchronize(*request, callers_.Present(context)), response);
  }

 private:
  Shell* const shell_;
  const Callers callers_;
};

class TunerServiceShell final : public v1::TunerService::Service {
 public:
  TunerServiceShell(Shell* shell, Callers callers) : shell_(shell), callers_(callers) {}
  grpc::Status LeaseJob(grpc::ServerContext* context, const v1::LeaseJobRequest* request,
                        v1::LeaseJobResponse* response) override {
    // NAME/ANYTHING: several tuners of one certificate.
    const std::string name = request->tuner_id().substr(0, request->tuner_id().find('/'));
    const absl::Status own = CheckName(CallerOf(*context->auth_context()), name);
    if (!own.ok()) return ToGrpc(own);
    return Reply(shell_->LeaseJob(*request, callers_.Present(context)), response);
  }
  grpc::Status ReportProgress(grpc::ServerContext*, const v1::ReportProgressRequest* request,
                              v1::ReportProgressResponse* response) override {
    return Reply(shell_->ReportProgress(*request), response);
  }
  grpc::Status SubmitBatch(grpc::ServerContext*, const v1::SubmitBatchRequest* request,
                           v1::SubmitBatchResponse* response) override {
    return Reply(shell_->SubmitBatch(*request), response);
  }
  grpc::Status WaitBatch(grpc::ServerContext* context, const v1::WaitBatchRequest* request,
                         v1::WaitBatchResponse* response) override {
    return Reply(shell_->WaitBatch(*request, callers_.Present(context)), response);
  }
  grpc::Status CompleteJob(grpc::ServerContext*, const v1::CompleteJobRequest* request,
                           v1::CompleteJobResponse*) override {
    return ToGrpc(shell_->CompleteJob(*request));
  }

 private:
  Shell* const shell_;
  const Callers callers_;
};

class JobServiceShell final : public v1::JobService::Service {
 public:
  JobServiceShell(Shell* shell, Callers callers) : shell_(shell), callers_(callers) {}
  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitJobRequest* request, v1::Job* response) override {
    v1::JobSpec spec = request->spec();
    const std::optional<FarmIdentity> caller = CallerOf(*context->auth_context());
    spec.set_submitted_by(caller.has_value() ? caller->name : UserName());
    const absl::StatusOr<v1::Job> job = shell_->SubmitJob(spec);
    callers_.Note(*context, "JobService/Submit", job.ok() ? job->id() : spec.name(), job.status());
    return Reply(job, response);
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override {
    return Reply(shell_->ListJobs(*request), response);
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* response) override {
    return Reply(shell_->GetJob(request->job_id()), response);
  }
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                     v1::WatchJobResponse* response) override {
    return Reply(shell_->WatchJob(*request, callers_.Present(context)), response);
  }
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelJobRequest* request, v1::Job* response) override {
    const absl::StatusOr<v1::Job> job = shell_->CancelJob(request->job_id());
    callers_.Note(*context, "JobService/Cancel", request->job_id(), job.status());
    return Reply(job, response);
  }

 private:
  Shell* const shell_;
  const Callers callers_;
};

class AdminServiceShell final : public v1::AdminService::Service {
 public:
  AdminServiceShell(Shell* shell, Callers callers) : shell_(shell), callers_(callers) {}
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override {
    *response = shell_->ListDevices(*request);
    return grpc::Status::OK;
  }
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request, v1::DrainResponse*) override {
    const absl::Status drained = shell_->Drain(request->agent_id(), request->reason());
    callers_.Note(*context, "AdminService/Drain", request->agent_id(), drained);
    return ToGrpc(drained);
  }
  grpc::Status Undrain(grpc::ServerContext* context, const v1::UndrainRequest* request, v1::UndrainResponse*) override {
    const absl::Status undrained = shell_->Undrain(request->agent_id());
    callers_.Note(*context, "AdminService/Undrain", request->agent_id(), undrained);
    return ToGrpc(undrained);
  }
  grpc::Status GetFarm(grpc::ServerContext*, const v1::GetFarmRequest*, v1::GetFarmResponse* response) override {
    *response = shell_->Counters();
    return grpc::Status::OK;
  }

 private:
  Shell* const shell_;
  const Callers callers_;
};

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

// The store has a lock of its own: these calls do not wait for the farm.
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
    const records::Filter filter = FromProto(*request);
    const auto rows = store_->Query(filter);
    if (!rows.ok()) return ToGrpc(rows.status());
    for (const records::StoredRecord& row : *rows) *response->add_records() = ToProto(row);
    response->set_more(rows->size() == filter.limit);
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
    const Shell::Present present = callers_.Present(context);
    while (left > 0 && present()) {
      filter.limit = static_cast<size_t>(std::min<int64_t>(left, 1000));
      const auto rows = store_->Query(filter);
      if (!rows.ok()) return ToGrpc(rows.status());
      for (const records::StoredRecord& row : *rows) {
        if (!writer->Write(ToProto(row))) return grpc::Status::CANCELLED;
      }
      if (rows->size() < filter.limit) break;
      filter.after_row = rows->back().row;
      left -= static_cast<int64_t>(rows->size());
    }
    if (!present()) return ToGrpc(absl::CancelledError("the caller went away, or its certificate was revoked"));
    return grpc::Status::OK;
  }

 private:
  records::Store* const store_;
  const Callers callers_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Shell* shell, const Membership* membership) {
  const Callers callers(membership);
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<AgentServiceShell>(shell, callers));
  services.push_back(std::make_unique<TunerServiceShell>(shell, callers));
  services.push_back(std::make_unique<JobServiceShell>(shell, callers));
  services.push_back(std::make_unique<AdminServiceShell>(shell, callers));
  services.push_back(std::make_unique<RecordServiceShell>(shell->store(), callers));
  if (membership != nullptr) AddIdentityServices(membership, services);
  return services;
}

}  // namespace hone::tracker
