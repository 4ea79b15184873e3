// SPDX-License-Identifier: Apache-2.0
// Handlers for fleet watches.
#include <utility>

#include "base/status.h"
#include "tracker/held_call.h"
#include "tracker/http/api.h"
#include "tracker/watch_json.h"
#include "tracker/watch_requests.h"

namespace hone::tracker {

absl::StatusOr<HttpResponse> ListWatches(const ApiContext& context, const ApiCall&) {
  HONE_ASSIGN_OR_RETURN(const v1::ListFleetWatchesResponse response,
                        Await<v1::ListFleetWatchesResponse>([&](Done<v1::ListFleetWatchesResponse> done) {
                          context.shell->ListWatches(std::move(done));
                        }));
  Json watches = Json::array();
  for (const v1::FleetWatch& watch : response.watches()) watches.push_back(FleetWatchToJson(watch));
  return JsonResponse({{"watches", watches}});
}

absl::StatusOr<HttpResponse> ShowWatch(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch, Await<v1::FleetWatch>([&](Done<v1::FleetWatch> done) {
                          context.shell->GetWatch(call.names[0], std::move(done));
                        }));
  return JsonResponse(FleetWatchToJson(watch));
}

absl::StatusOr<HttpResponse> AddWatch(const ApiContext& context, const ApiCall& call) {
  v1::FleetWatchSpec spec;
  HONE_RETURN_IF_ERROR(ReadBody(call, "watch", &spec));
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch,
                        AddWatchFor(*context.shell, *context.file_rights, call.visitor.caller(), std::move(spec),
                                    NoteOf(context, call, "FleetWatchService/Add")));
  return JsonResponse(FleetWatchToJson(watch));
}

absl::StatusOr<HttpResponse> RunWatch(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch, RunWatchFor(*context.shell, call.visitor.caller(), call.names[0],
                                                                NoteOf(context, call, "FleetWatchService/Run")));
  return JsonResponse(FleetWatchToJson(watch));
}

absl::StatusOr<HttpResponse> AcceptWatch(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const std::string device, call.Text("device"));
  HONE_ASSIGN_OR_RETURN(const v1::FleetWatch watch,
                        AcceptNightFor(*context.shell, call.visitor.caller(), call.names[0], device,
                                       NoteOf(context, call, "FleetWatchService/Accept")));
  return JsonResponse(FleetWatchToJson(watch));
}

absl::StatusOr<HttpResponse> RemoveWatch(const ApiContext& context, const ApiCall& call) {
  HONE_RETURN_IF_ERROR(RemoveWatchFor(*context.shell, call.visitor.caller(), call.names[0],
                                      NoteOf(context, call, "FleetWatchService/Remove"))
                           .status());
  return JsonResponse({{"name", call.names[0]}});
}

}  // namespace hone::tracker
