// SPDX-License-Identifier: Apache-2.0
#include "tracker/fleet_watch_service.h"

#include <string_view>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "hone/v1/fleet_watch.grpc.pb.h"
#include "tracker/access.h"
#include "tracker/held_call.h"
#include "tracker/watch_requests.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

template <typename Response>
grpc::Status AnswerWatchCall(absl::StatusOr<Response> result, Response* response) {
  if (result.ok()) *response = *std::move(result);
  return ToGrpc(result.status());
}

class FleetWatchServiceShell final : public v1::FleetWatchService::Service {
 public:
  FleetWatchServiceShell(Shell* shell, const FileRights* rights, Callers callers)
      : shell_(shell), rights_(rights), callers_(callers) {}
  grpc::Status Add(grpc::ServerContext* context, const v1::AddFleetWatchRequest* request,
                   v1::FleetWatch* response) override {
    const auto caller = CallerOf(*context->auth_context());
    return AnswerWatchCall(
        AddWatchFor(*shell_, *rights_, caller, request->spec(), NoteIn(*context, "FleetWatchService/Add")), response);
  }
  grpc::Status List(grpc::ServerContext*, const v1::ListFleetWatchesRequest*,
                    v1::ListFleetWatchesResponse* response) override {
    return AnswerWatchCall(
        Await<v1::ListFleetWatchesResponse>([&](auto done) { shell_->ListWatches(std::move(done)); }), response);
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetFleetWatchRequest* request, v1::FleetWatch* response) override {
    return AnswerWatchCall(
        Await<v1::FleetWatch>([&](auto done) { shell_->GetWatch(request->name(), std::move(done)); }), response);
  }
  grpc::Status Run(grpc::ServerContext* context, const v1::RunFleetWatchRequest* request,
                   v1::FleetWatch* response) override {
    const auto caller = CallerOf(*context->auth_context());
    return AnswerWatchCall(RunWatchFor(*shell_, caller, request->name(), NoteIn(*context, "FleetWatchService/Run")),
                           response);
  }
  grpc::Status Accept(grpc::ServerContext* context, const v1::AcceptFleetWatchRequest* request,
                      v1::FleetWatch* response) override {
    const auto caller = CallerOf(*context->auth_context());
    return AnswerWatchCall(AcceptNightFor(*shell_, caller, request->name(), request->device(),
                                          NoteIn(*context, "FleetWatchService/Accept")),
                           response);
  }
  grpc::Status Remove(grpc::ServerContext* context, const v1::RemoveFleetWatchRequest* request,
                      v1::RemoveFleetWatchResponse* response) override {
    const auto caller = CallerOf(*context->auth_context());
    return AnswerWatchCall(
        RemoveWatchFor(*shell_, caller, request->name(), NoteIn(*context, "FleetWatchService/Remove")), response);
  }

 private:
  NoteChange NoteIn(const grpc::ServerContext& context, std::string_view method) const {
    return [this, &context, method](std::string_view object, const absl::Status& result) {
      callers_.Note(context, method, object, result);
    };
  }

  Shell* const shell_;
  const FileRights* const rights_;
  const Callers callers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFleetWatchService(Shell* shell, const FileRights* rights, Callers callers) {
  return std::make_unique<FleetWatchServiceShell>(shell, rights, callers);
}

}  // namespace hone::tracker
