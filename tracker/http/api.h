// SPDX-License-Identifier: Apache-2.0
// What is behind the addresses of the tracker's HTTP side: a question and its sources in, an answer out. docs/API.md
// describes every address and every field for those who ask.
//
// Each function may wait for a disk and is safe from any thread. What changes something is written into the audit log,
// as the same call over gRPC is. Pages are limited; nothing here holds the farm's lock for longer than a call does.
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

struct Sources {
  Shell* shell = nullptr;
  const records::Store* store = nullptr;
  const Visitors* visitors = nullptr;
  EventFeed* events = nullptr;
  const Pages* pages = nullptr;
  absl::Time not_before = absl::InfinitePast();  // as HealthFacts has it
};

struct Question {
  const HttpRequest& request;
  const Target& target;
  std::vector<std::string> names;  // what stands for the '*' of the address
  Json body;                       // of a POST: an object, empty where nothing was sent
  Visitor visitor;                 // not known where anybody may ask

  // A parameter of the address, "" where there is none.
  std::string Parameter(std::string_view name) const;
  // A whole number; kInvalidArgument where it is none, or not between `least` and `most`.
  absl::StatusOr<int64_t> Number(std::string_view name, int64_t usual, int64_t least, int64_t most) const;
  // A text in the body, "" where there is none. kInvalidArgument: it is something else.
  absl::StatusOr<std::string> Text(const std::string& name) const;
};

HttpResponse JsonResponse(const Json& document);

// Sessions: begins one with a token, says who asks, ends one.
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
