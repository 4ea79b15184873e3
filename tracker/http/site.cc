// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/site.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"

namespace hone::tracker {
namespace {

constexpr int kBodyDepthMax = 32;
constexpr uint64_t kJobBytesMax = uint64_t{16} << 20;       // a job of 8 MiB as JSON
constexpr uint64_t kChunkListBytesMax = uint64_t{8} << 20;  // of the largest file that runs may have

// Whether the path matches the route. The segments that match a '*' go to `names`.
bool Fits(std::string_view route, const std::vector<std::string>& path, std::vector<std::string>& names) {
  names.clear();
  size_t at = 0;
  while (!route.empty() && route != "/") {
    const size_t end = std::min(route.find('/', 1), route.size());
    const std::string_view segment = route.substr(1, end - 1);
    if (at == path.size() || (segment != "*" && segment != path[at])) return false;
    if (segment == "*") names.push_back(path[at]);
    ++at;
    route.remove_prefix(end);
  }
  return at == path.size();
}

// Whether arrays and objects are nested deeper than `most` levels. A body of brackets would take far more memory than
// it has bytes.
bool IsNestedDeeper(std::string_view json, int most) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      i += c == '\\' ? 1 : 0;
      in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// The body as an object with a search tree of keys: one that keeps their order takes quadratic time.
absl::StatusOr<nlohmann::json> ParseBody(const Route& route, const HttpRequest& request) {
  const std::string_view type = request.Header("content-type");
  if (request.body.empty() && type.empty()) return nlohmann::json::object();
  // Required even without a body, because a form of another site cannot send this type.
  if (type.substr(0, type.find(';')) != "application/json") {
    return absl::InvalidArgumentError("the request must have the header Content-Type: application/json");
  }
  if (request.body.empty()) return nlohmann::json::object();
  if (IsNestedDeeper(request.body, kBodyDepthMax)) {
    return absl::InvalidArgumentError(fmt::format("the body is nested more than {} levels deep", kBodyDepthMax));
  }
  constexpr char kNoObject[] = "the body is not a JSON object";
  if (route.reads_body_itself) {
    const size_t first = request.body.find_first_not_of(" \t\r\n");
    if (first == std::string::npos || request.body[first] != '{') return absl::InvalidArgumentError(kNoObject);
    return nlohmann::json::object();
  }
  nlohmann::json body = nlohmann::json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (body.is_object()) return body;
  return absl::InvalidArgumentError(kNoObject);
}

absl::StatusOr<HttpResponse> AnswerRoute(const ApiContext& context, const Route& route, ApiCall& call) {
  const HttpRequest& request = call.request;
  if (!route.needs.empty()) {
    HONE_ASSIGN_OR_RETURN(call.visitor, context.visitors->Identify(request));
    HONE_RETURN_IF_ERROR(context.visitors->Check(call.visitor, route.needs, request.peer));
  }
  // Bytes need no type: other sites cannot send a PUT.
  if (route.method != "GET" && route.method != "PUT") {
    HONE_ASSIGN_OR_RETURN(call.body, ParseBody(route, request));
  }
  return route.answer(context, call);
}

absl::StatusOr<HttpResponse> AnswerRequest(const ApiContext& context, const HttpRequest& request) {
  HONE_RETURN_IF_ERROR(context.visitors->CheckOrigin(request));
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target));
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  ApiCall call{.request = request, .target = target};
  std::set<std::string> others;
  for (const Route& route : Routes()) {
    if (!Fits(route.path, target.path, call.names)) continue;
    if (route.method == method) return AnswerRoute(context, route, call);
    others.insert(std::string(route.method));
  }
  if (others.empty() && method == "GET") {
    if (std::optional<HttpResponse> page = context.pages->Find(request, target)) return *std::move(page);
  }
  if (others.empty()) return absl::NotFoundError("there is nothing at this address; docs/API.md lists all addresses");
  HttpResponse refusal =
      ErrorResponse(absl::UnimplementedError(fmt::format("this address allows only {}", fmt::join(others, " and "))));
  refusal.headers.emplace_back("Allow", fmt::format("{}", fmt::join(others, ", ")));
  return refusal;
}

}  // namespace

const std::vector<Route>& Routes() {
  static const std::vector<Route> routes = {
      {"GET", "/healthz", "", ShowHealth},
      {"GET", "/metrics", "/hone.v1.AdminService/GetFarm", ShowMetrics},
      {"POST", "/api/v1/session", "", BeginSession},
      {"GET", "/api/v1/session", "/hone.v1.JobService/List", ShowSession},
      {"DELETE", "/api/v1/session", "/hone.v1.JobService/List", EndSession},
      {"GET", "/api/v1/overview", "/hone.v1.AdminService/GetFarm", ShowOverview},
      {"GET", "/api/v1/events", "/hone.v1.JobService/Watch", StreamEvents},
      {"GET", "/api/v1/jobs", "/hone.v1.JobService/List", ListJobs},
      {"POST", "/api/v1/jobs", "/hone.v1.JobService/Submit", SubmitJob, kJobBytesMax, true},
      {"GET", "/api/v1/models", "/hone.v1.JobService/List", ListModels},
      {"GET", "/api/v1/jobs/*", "/hone.v1.JobService/Get", ShowJob},
      {"GET", "/api/v1/watches", "/hone.v1.FleetWatchService/List", ListWatches},
      {"POST", "/api/v1/watches", "/hone.v1.FleetWatchService/Add", AddWatch, 0, true},
      {"GET", "/api/v1/watches/*", "/hone.v1.FleetWatchService/Get", ShowWatch},
      {"DELETE", "/api/v1/watches/*", "/hone.v1.FleetWatchService/Remove", RemoveWatch},
      {"POST", "/api/v1/watches/*/run", "/hone.v1.FleetWatchService/Run", RunWatch},
      {"POST", "/api/v1/watches/*/accept", "/hone.v1.FleetWatchService/Accept", AcceptWatch},
      {"GET", "/api/v1/devices", "/hone.v1.AdminService/ListDevices", ListDevices},
      {"GET", "/api/v1/tuners", "/hone.v1.AdminService/ListTuners", ListTuners},
      {"GET", "/api/v1/workloads/*", "/hone.v1.RecordService/Query", ShowWorkload},
      {"GET", "/api/v1/workloads/*/importance", "/hone.v1.RecordService/Query", ShowImportance},
      {"GET", "/api/v1/candidates/*", "/hone.v1.RecordService/Query", ShowCandidate},
      {"GET", "/api/v1/records", "/hone.v1.RecordService/Query", SearchRecords},
      {"GET", "/api/v1/records/best", "/hone.v1.RecordService/ListBest", ListBestRecords},
      {"GET", "/api/v1/records/export", "/hone.v1.RecordService/Export", ExportRecords},
      {"GET", "/api/v1/records/drift", "/hone.v1.RecordService/Query", ShowDrift},
      {"GET", "/api/v1/records/stats", "/hone.v1.RecordService/Stats", CountRecords},
      {"POST", "/api/v1/jobs/*/cancel", "/hone.v1.JobService/Cancel", CancelJob},
      {"POST", "/api/v1/files", "/hone.v1.FileService/Offer", OfferFile, kChunkListBytesMax},
      {"GET", "/api/v1/files/*", "/hone.v1.FileService/Describe", ShowFile},
      {"GET", "/api/v1/files/*/contents", "/hone.v1.FileService/Get", GetFile},
      {"PUT", "/api/v1/files/*/contents", "/hone.v1.FileService/Put", PutFile, kWholeFileBytesMax},
      {"GET", "/api/v1/files/*/chunks/*", "/hone.v1.FileService/Get", GetChunk},
      {"PUT", "/api/v1/files/*/chunks/*", "/hone.v1.FileService/Put", PutChunk, files::kChunkBytesMax},
      {"POST", "/api/v1/agents/*/drain", "/hone.v1.AdminService/Drain", DrainAgent},
      {"POST", "/api/v1/agents/*/release", "/hone.v1.AdminService/Undrain", ReleaseAgent},
  };
  return routes;
}

absl::StatusOr<uint64_t> Site::BodyLimit(const HttpRequest& head) const {
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(head.target));
  std::vector<std::string> names;
  const auto route = std::ranges::find_if(Routes(), [&](const Route& known) {
    return known.method == head.method && Fits(known.path, target.path, names);
  });
  if (route == Routes().end() || route->body_bytes_max == 0) return 0;
  HONE_RETURN_IF_ERROR(context_.visitors->CheckOrigin(head));
  HONE_ASSIGN_OR_RETURN(const Visitor visitor, context_.visitors->Identify(head));
  if (!context_.visitors->IsAllowed(visitor, route->needs)) {
    return absl::PermissionDeniedError("your role may not make this call");
  }
  return route->body_bytes_max;
}

HttpResponse Site::Answer(const HttpRequest& request) const {
  absl::StatusOr<HttpResponse> response = AnswerRequest(context_, request);
  return response.ok() ? *std::move(response) : ErrorResponse(response.status());
}

}  // namespace hone::tracker
