// SPDX-License-Identifier: Apache-2.0
#include "tracker/services.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "hone/v1/admin.grpc.pb.h"
#include "hone/v1/agent.grpc.pb.h"
#include "hone/v1/job.grpc.pb.h"
#include "hone/v1/tuner.grpc.pb.h"
#include "tracker/access.h"
#include "tracker/callers.h"
#include "tracker/file_service.h"
#include "tracker/fleet_watch_service.h"
#include "tracker/identity_services.h"
#include "tracker/record_service.h"
#include "tracker/submission.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

// A Done that finishes the call with the given answer.
template <typename Response>
Done<Response> Finish(grpc::ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](absl::StatusOr<Response> result) {
    if (result.ok()) *response = *std::move(result);
    reactor->Finish(ToGrpc(result.status()));
  };
}

grpc::ServerUnaryReactor* Refuse(grpc::CallbackServerContext* context, const absl::Status& why) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(why));
  return reactor;
}

template <typename Response>
grpc::Status Reply(absl::StatusOr<Response> result, Response* response) {
  if (result.ok()) *response = *std::move(result);
  return ToGrpc(result.status());
}

class AgentServiceShell final : public v1::AgentService::CallbackService {
 public:
  AgentServiceShell(Shell* shell, const FileRights* rights, Callers callers)
      : shell_(shell), rights_(rights), callers_(callers) {}
  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* context, const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override {
    const std::optional<FarmIdentity> agent = CallerOf(*context->auth_context());
    const absl::Status own = CheckName(agent, request->agent_id());
    if (!own.ok()) return Refuse(context, own);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    Done<v1::SynchronizeResponse> done = Finish(reactor, response);
    if (std::optional<v1::SynchronizeRequest> changed = rights_->WithoutFalseOutputs(agent, *request)) {
      const auto kept = std::make_shared<const v1::SynchronizeRequest>(*std::move(changed));  // until the answer
      shell_->Synchronize(*kept, callers_.PresentIn(context),
                          [kept, done = std::move(done)](auto result) { done(result); });
    } else {
      shell_->Synchronize(*request, callers_.PresentIn(context), std::move(done));
    }
    return reactor;
  }

 private:
  Shell* const shell_;
  const FileRights* const rights_;
  const Callers callers_;
};

class TunerServiceShell final : public v1::TunerService::CallbackService {
 public:
  TunerServiceShell(Shell* shell, const FileRights* rights, Callers callers)
      : shell_(shell), rights_(rights), callers_(callers) {}
  grpc::ServerUnaryReactor* LeaseJob(grpc::CallbackServerContext* context, const v1::LeaseJobRequest* request,
                                     v1::LeaseJobResponse* response) override {
    // A tuner id is NAME/ANYTHING, because several tuners may share one certificate.
    const std::string name = request->tuner_id().substr(0, request->tuner_id().find('/'));
    const absl::Status own = CheckName(CallerOf(*context->auth_context()), name);
    if (!own.ok()) return Refuse(context, own);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    shell_->LeaseJob(*request, callers_.PresentIn(context), Finish(reactor, response));
    return reactor;
  }
  grpc::ServerUnaryReactor* ReportProgress(grpc::CallbackServerContext* context,
                                           const v1::ReportProgressRequest* request,
                                           v1::ReportProgressResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    shell_->ReportProgress(*request, Finish(reactor, response));
    return reactor;
  }
  grpc::ServerUnaryReactor* SubmitBatch(grpc::CallbackServerContext* context, const v1::SubmitBatchRequest* request,
                                        v1::SubmitBatchResponse* response) override {
    const absl::Status allowed = rights_->CheckTask(CallerOf(*context->auth_context()), request->batch().run());
    if (!allowed.ok()) return Refuse(context, allowed);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    shell_->SubmitBatch(*request, Finish(reactor, response));
    return reactor;
  }
  grpc::ServerUnaryReactor* WaitBatch(grpc::CallbackServerContext* context, const v1::WaitBatchRequest* request,
                                      v1::WaitBatchResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    shell_->WaitBatch(*request, callers_.PresentIn(context), Finish(reactor, response));
    return reactor;
  }
  grpc::ServerUnaryReactor* CompleteJob(grpc::CallbackServerContext* context, const v1::CompleteJobRequest* request,
                                        v1::CompleteJobResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    shell_->CompleteJob(*request, Finish(reactor, response));
    return reactor;
  }

 private:
  Shell* const shell_;
  const FileRights* const rights_;
  const Callers callers_;
};

// Watch is asynchronous and holds no thread. The other calls are synchronous, because they may wait for the disk.
class JobServiceShell final : public v1::JobService::WithCallbackMethod_Watch<v1::JobService::Service> {
 public:
  JobServiceShell(Shell* shell, const FileRights* rights, Callers callers)
      : shell_(shell), rights_(rights), callers_(callers) {}
  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitJobRequest* request, v1::Job* response) override {
    const auto note = [&](std::string_view object, const absl::Status& result) {
      callers_.Note(*context, "JobService/Submit", object, result);
    };
    return Reply(SubmitFor(*shell_, *rights_, CallerOf(*context->auth_context()), request->spec(), note), response);
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListJobsRequest* request, v1::ListJobsResponse* response) override {
    return Reply(Await<v1::ListJobsResponse>([&](auto done) { shell_->ListJobs(*request, std::move(done)); }),
                 response);
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetJobRequest* request, v1::Job* response) override {
    return Reply(Await<v1::Job>([&](auto done) { shell_->GetJob(request->job_id(), std::move(done)); }), response);
  }
  grpc::ServerUnaryReactor* Watch(grpc::CallbackServerContext* context, const v1::WatchJobRequest* request,
                                  v1::WatchJobResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    shell_->WatchJob(*request, Callers::IdentityIn(*context), callers_.PresentIn(context), Finish(reactor, response));
    return reactor;
  }
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelJobRequest* request, v1::Job* response) override {
    bool changed = false;
    const std::string& id = request->job_id();
    const auto job = Await<v1::Job>([&](auto done) { changed = shell_->CancelJob(id, std::move(done)); });
    if (changed || !job.ok()) callers_.Note(*context, "JobService/Cancel", id, job.status());
    return Reply(job, response);
  }

 private:
  Shell* const shell_;
  const FileRights* const rights_;
  const Callers callers_;
};

class AdminServiceShell final : public v1::AdminService::Service {
 public:
  AdminServiceShell(Shell* shell, Callers callers) : shell_(shell), callers_(callers) {}
  grpc::Status ListDevices(grpc::ServerContext* context, const v1::ListDevicesRequest* request,
                           v1::ListDevicesResponse* response) override {
    v1::ListDevicesRequest asked = *request;
    // A caller that is not the job's tuner must not choose a kind of device for it.
    const std::optional<FarmIdentity> caller = CallerOf(*context->auth_context());
    if (caller.has_value() && caller->role != Role::kTuner) asked.clear_for_job_id();
    *response = shell_->ListDevices(asked);
    return grpc::Status::OK;
  }
  grpc::Status ListTuners(grpc::ServerContext*, const v1::ListTunersRequest*,
                          v1::ListTunersResponse* response) override {
    *response = shell_->ListTuners();
    return grpc::Status::OK;
  }
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                     v1::DrainResponse* response) override {
    const auto drained = Await<v1::DrainResponse>(
        [&](auto done) { shell_->Drain(request->agent_id(), request->reason(), std::move(done)); });
    callers_.Note(*context, "AdminService/Drain", request->agent_id(), drained.status());
    return Reply(drained, response);
  }
  grpc::Status Undrain(grpc::ServerContext* context, const v1::UndrainRequest* request,
                       v1::UndrainResponse* response) override {
    const auto undrained =
        Await<v1::UndrainResponse>([&](auto done) { shell_->Undrain(request->agent_id(), std::move(done)); });
    callers_.Note(*context, "AdminService/Undrain", request->agent_id(), undrained.status());
    return Reply(undrained, response);
  }
  grpc::Status GetFarm(grpc::ServerContext*, const v1::GetFarmRequest*, v1::GetFarmResponse* response) override {
    *response = shell_->Counters();
    return grpc::Status::OK;
  }

 private:
  Shell* const shell_;
  const Callers callers_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeServices(Shell* shell, records::Store* store, files::FileStore* files,
                                                         const FileRights* rights, const Membership* membership) {
  const Callers callers(membership);
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<AgentServiceShell>(shell, rights, callers));
  services.push_back(std::make_unique<TunerServiceShell>(shell, rights, callers));
  services.push_back(std::make_unique<JobServiceShell>(shell, rights, callers));
  services.push_back(std::make_unique<AdminServiceShell>(shell, callers));
  services.push_back(MakeFleetWatchService(shell, rights, callers));
  services.push_back(MakeRecordService(store, callers));
  services.push_back(MakeFileService(files, rights, callers));
  if (membership != nullptr) AddIdentityServices(membership, services);
  return services;
}

}  // namespace hone::tracker
