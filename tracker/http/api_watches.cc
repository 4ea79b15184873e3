// SPDX-License-Identifier: Apache-2.0
// Handlers for fleet watches.
#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <utility>

#include "base/status.h"
#include "tracker/held_call.h"
#include "tracker/http/api.h"
#include "tracker/watch_json.h"
#include "tracker/watch_requests.h"

namespace hone::tracker {
namespace {

NoteChange NoteOf(const ApiContext& context, const ApiCall& call, std::string_view method) {
  return [&context, &call, method](std::string_view object, const absl::Status& result) {
    context.visitors->Note(call.visitor, call.request.peer, method, object, result);
  };
}

}  // namespace

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
  const auto read = google::protobuf::util::JsonStringToMessage(call.request.body, &spec);
  if (!read.ok()) {
    return absl::InvalidArgumentError(fmt::format("the body is no watch: {}", std::string(read.message())));
  }
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

absl::StatusOr<HttpResponse> RemoveWatch(const ApiContext& context, const ApiCall& call) {
  HONE_RETURN_IF_ERROR(RemoveWatchFor(*context.shell, call.visitor.caller(), call.names[0],
                                      NoteOf(context, call, "FleetWatchService/Remove"))
                           .status());
  return JsonResponse({{"name", call.names[0]}});
}

}  // namespace hone::tracker
