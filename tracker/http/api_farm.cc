// SPDX-License-Identifier: Apache-2.0
// Handlers for the tracker as a whole: health, metrics, and the stream of events.
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "tracker/http/api.h"
#include "tracker/http/health.h"
#include "tracker/http/metrics.h"

namespace hone::tracker {

// Every caller learns whether the tracker is healthy. The reasons are only for callers who may read the farm.
absl::StatusOr<HttpResponse> ShowHealth(const ApiContext& context, const ApiCall& call) {
  std::string failure;
  context.shell->WithFarm([&failure](const Farm& farm, absl::Time) { failure = farm.storage_failure(); });
  const HealthFacts facts{.storage_failure = std::move(failure),
                          .disk_free_bytes = DiskUseOf(context.store->path()).free_bytes,
                          .now = absl::Now(),
                          .not_before = context.not_before};
  const absl::StatusOr<Visitor> visitor = context.visitors->Identify(call.request);
  const bool tells = visitor.ok() && context.visitors->IsAllowed(*visitor, "/hone.v1.AdminService/GetFarm");
  bool well = true;
  Json checks = Json::object();
  for (const HealthCheck& check : CheckHealth(facts)) {
    well = well && check.why.empty();
    checks[check.name] = check.why.empty() ? "ok" : tells ? check.why : "failing";
  }
  HttpResponse response = JsonResponse({{"status", well ? "ok" : "failing"}, {"checks", checks}});
  response.status = well ? 200 : 503;
  return response;
}

absl::StatusOr<HttpResponse> ShowMetrics(const ApiContext& context, const ApiCall&) {
  return HttpResponse{.type = "text/plain; version=0.0.4; charset=utf-8",
                      .body = PrintMetrics(CollectMetrics(*context.shell, context.store->path()))};
}

absl::StatusOr<HttpResponse> StreamEvents(const ApiContext& context, const ApiCall& call) {
  HttpResponse response{.type = "text/event-stream"};
  response.headers.emplace_back("X-Accel-Buffering", "no");
  const bool is_somebody = call.visitor.shown.has_value();  // false on loopback, where all callers are one user
  response.stream = [feed = context.events, who = is_somebody ? call.visitor.identity.name : "",
                     last = std::string(call.request.Header("last-event-id")),
                     allowed = context.visitors->WhileAllowed(call.visitor)](std::function<void(Chunk)> send) {
    std::shared_ptr<void> subscription = feed->Subscribe(who, last, allowed, send);
    if (subscription == nullptr) send(nullptr);  // too many subscribers: the stream ends and the browser tries again
    return subscription;
  };
  return response;
}

}  // namespace hone::tracker
