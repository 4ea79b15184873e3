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
absl::StatusOr<HttpResponse> ShowHealth(const Sources& sources, const Question& question) {
  std::string trouble;
  sources.shell->Look([&trouble](const Farm& farm, absl::Time) { trouble = farm.storage_failure(); });
  const HealthFacts facts{.storage_failure = std::move(trouble),
                          .disk_free_bytes = DiskUseOf(sources.store->path()).free_bytes,
                          .now = absl::Now(),
                          .not_before = sources.not_before};
  const absl::StatusOr<Visitor> visitor = sources.visitors->Identify(question.request);
  const bool tells = visitor.ok() && sources.visitors->May(*visitor, "/hone.v1.AdminService/GetFarm");
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

absl::StatusOr<HttpResponse> ShowMetrics(const Sources& sources, const Question&) {
  return HttpResponse{.type = "text/plain; version=0.0.4; charset=utf-8",
                      .body = PrintMetrics(CollectFigures(*sources.shell, sources.store->path()))};
}

absl::StatusOr<HttpResponse> StreamEvents(const Sources& sources, const Question& question) {
  HttpResponse response{.type = "text/event-stream"};
  response.headers.emplace_back("X-Accel-Buffering", "no");
  const bool is_somebody = question.visitor.shown.has_value();  // false on loopback, where all callers are one user
  response.stream = [feed = sources.events, who = is_somebody ? question.visitor.identity.name : "",
                     last = std::string(question.request.Header("last-event-id")),
                     welcome = sources.visitors->WhileWelcome(question.visitor)](std::function<void(Chunk)> send) {
    std::shared_ptr<void> subscription = feed->Subscribe(who, last, welcome, send);
    if (subscription == nullptr) send(nullptr);  // too many subscribers: the stream ends and the browser tries again
    return subscription;
  };
  return response;
}

}  // namespace hone::tracker
