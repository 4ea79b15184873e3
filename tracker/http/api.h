// SPDX-License-Identifier: Apache-2.0
// The handlers of the HTTP API: one function for each route (site.h), which takes a parsed request and returns the
// answer. docs/API.md describes every address and every field for users.
//
// Each function may wait for a disk and is safe from any thread. Changes are written into the audit log, as the same
// gRPC calls are. Lists have a limited size; no handler holds the farm's lock for longer than a gRPC call does.
#ifndef HONE_TRACKER_HTTP_API_H_
#define HONE_TRACKER_HTTP_API_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "files/file_store.h"
#include "google/protobuf/message.h"
#include "records/store.h"
#include "tracker/file_rights.h"
#include "tracker/http/events.h"
#include "tracker/http/exchange.h"
#include "tracker/http/json.h"
#include "tracker/http/pages.h"
#include "tracker/http/parse.h"
#include "tracker/http/visitors.h"
#include "tracker/shell.h"
#include "tracker/submission.h"

namespace hone::tracker {

// The objects that handlers read and change. They must outlive the handlers.
struct ApiContext {
  Shell* shell = nullptr;
  const records::Store* store = nullptr;
  const Visitors* visitors = nullptr;
  EventFeed* events = nullptr;
  const Pages* pages = nullptr;
  files::FileStore* file_store = nullptr;
  const FileRights* file_rights = nullptr;
  absl::Time not_before = absl::InfinitePast();  // as HealthFacts::not_before
  std::string tracker = {};                      // what commands are given as --tracker; "" = unknown
};

// A request to the API, parsed and with its caller identified.
struct ApiCall {
  const HttpRequest& request;
  const Target& target;
  std::vector<std::string> names;  // the path segments that the '*'s of the route matched
  nlohmann::json body;             // of routes that take JSON: an object, empty where the request has no body
  Visitor visitor;                 // not set for routes that need no role

  // A query parameter of the URL; "" where it is missing.
  std::string Parameter(std::string_view name) const;
  // A query parameter that is a whole number; `fallback` where it is missing. kInvalidArgument: it is no number, or not
  // in [min, max].
  absl::StatusOr<int64_t> Number(std::string_view name, int64_t fallback, int64_t min, int64_t max) const;
  // A text in the body; "" where it is missing. kInvalidArgument: the value is no text.
  absl::StatusOr<std::string> Text(const std::string& name) const;
};

HttpResponse JsonResponse(const Json& document);

// Reads the body as a message in JSON. what: the message in words, for the error (kInvalidArgument).
absl::Status ReadBody(const ApiCall& call, std::string_view what, google::protobuf::Message* message);

// Writes a change of the caller into the audit log, under the name of the gRPC method that makes the same change. Must
// not outlive the context and the call.
NoteChange NoteOf(const ApiContext& context, const ApiCall& call, std::string_view method);

// Sessions: begin one with a token, show the caller, end one.
absl::StatusOr<HttpResponse> BeginSession(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowSession(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> EndSession(const ApiContext& context, const ApiCall& call);

// The tracker as a whole.
absl::StatusOr<HttpResponse> ShowHealth(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowMetrics(const ApiContext& context, const ApiCall& call);

absl::StatusOr<HttpResponse> ShowOverview(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> StreamEvents(const ApiContext& context, const ApiCall& call);

// Jobs and devices.
absl::StatusOr<HttpResponse> ListJobs(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ListModels(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowJob(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ListTuners(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ListDevices(const ApiContext& context, const ApiCall& call);

// Fleet watches.
absl::StatusOr<HttpResponse> ListWatches(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowWatch(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> AddWatch(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> RunWatch(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> AcceptWatch(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> RemoveWatch(const ApiContext& context, const ApiCall& call);

// Records. ShowDrift: a sample of timed records with what tells the device's speed (DriftToJson), for a plot over time.
absl::StatusOr<HttpResponse> SearchRecords(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ListBestRecords(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ExportRecords(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> CountRecords(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowWorkload(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowImportance(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowDrift(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowCandidate(const ApiContext& context, const ApiCall& call);

// The longest file that PutFile and GetFile take as a whole.
inline constexpr uint64_t kWholeFileBytesMax = uint64_t{32} << 20;
// Files of runs, by their digests. OfferFile names the chunks of a file and learns which are missing; PutChunk brings
// one; PutFile brings a whole file that is not large.
absl::StatusOr<HttpResponse> OfferFile(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> PutChunk(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> PutFile(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ShowFile(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> GetChunk(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> GetFile(const ApiContext& context, const ApiCall& call);

// Changes. ReleaseAgent: Shell::Undrain.
absl::StatusOr<HttpResponse> SubmitJob(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> CancelJob(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> DrainAgent(const ApiContext& context, const ApiCall& call);
absl::StatusOr<HttpResponse> ReleaseAgent(const ApiContext& context, const ApiCall& call);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_API_H_
