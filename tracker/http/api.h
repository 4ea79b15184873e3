// SPDX-License-Identifier: Apache-2.0
// The handlers of the HTTP API: one function for each route (site.h), which takes a parsed request and returns the
// answer. docs/API.md describes every address and every field for users.
//
// Each function may wait for a disk and is safe from any thread. Changes are written into the audit log, as the same
// gRPC calls are. Lists have a limited size; no handler holds the farm's lock for longer than a gRPC call does.
#ifndef HONE_TRACKER_HTTP_API_H_
#define HONE_TRACKER_HTTP_API_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "records/store.h"
#include "tracker/http/events.h"
#include "tracker/http/exchange.h"
#include "tracker/http/json.h"
#include "tracker/http/pages.h"
#include "tracker/http/parse.h"
#include "tracker/http/visitors.h"
#include "tracker/shell.h"

namespace hone::tracker {

// The objects that handlers read and change. They must outlive the handlers.
struct Sources {
  Shell* shell = nullptr;
  const records::Store* store = nullptr;
  const Visitors* visitors = nullptr;
  EventFeed* events = nullptr;
  const Pages* pages = nullptr;
  absl::Time not_before = absl::InfinitePast();  // as HealthFacts::not_before
};

// A request to the API, parsed and with its caller identified.
struct Question {
  const HttpRequest& request;
  const Target& target;
  std::vector<std::string> names;  // the path segments that the '*'s of the route matched
  Json body;                       // of a POST: an object, empty where the request has no body
  Visitor visitor;                 // not set for routes that need no role

  // A query parameter of the URL; "" where it is missing.
  std::string Parameter(std::string_view name) const;
  // A query parameter that is a whole number; `usual` where it is missing. kInvalidArgument: it is no number, or not in
  // [least, most].
  absl::StatusOr<int64_t> Number(std::string_view name, int64_t usual, int64_t least, int64_t most) const;
  // A text in the body; "" where it is missing. kInvalidArgument: the value is no text.
  absl::StatusOr<std::string> Text(const std::string& name) const;
};

HttpResponse JsonResponse(const Json& document);

// Sessions: begin one with a token, show the caller, end one.
absl::StatusOr<HttpResponse> BeginSession(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowSession(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> EndSession(const Sources& sources, const Question& question);

// The tracker as a whole.
absl::StatusOr<HttpResponse> ShowHealth(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowMetrics(const Sources& sources, const Question& question);

absl::StatusOr<HttpResponse> ShowOverview(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> StreamEvents(const Sources& sources, const Question& question);

// Jobs and devices.
absl::StatusOr<HttpResponse> ListJobs(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowJob(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ListDevices(const Sources& sources, const Question& question);

// Records.
absl::StatusOr<HttpResponse> SearchRecords(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ListBestRecords(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ExportRecords(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> CountRecords(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowWorkload(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowImportance(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowDrift(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ShowCandidate(const Sources& sources, const Question& question);

// Changes.
absl::StatusOr<HttpResponse> CancelJob(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> DrainAgent(const Sources& sources, const Question& question);
absl::StatusOr<HttpResponse> ReleaseAgent(const Sources& sources, const Question& question);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_API_H_
