// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/exchange.h"

#include <nlohmann/json.hpp>

namespace hone::tracker {
namespace {

struct Code {
  absl::StatusCode code;
  int http;
  const char* name;
};

constexpr Code kCodes[] = {
    {absl::StatusCode::kInvalidArgument, 400, "invalid_argument"},
    {absl::StatusCode::kUnauthenticated, 401, "unauthenticated"},
    {absl::StatusCode::kPermissionDenied, 403, "permission_denied"},
    {absl::StatusCode::kNotFound, 404, "not_found"},
    {absl::StatusCode::kUnimplemented, 405, "method_not_allowed"},
    {absl::StatusCode::kAlreadyExists, 409, "already_exists"},
    {absl::StatusCode::kFailedPrecondition, 409, "failed_precondition"},
    {absl::StatusCode::kResourceExhausted, 429, "resource_exhausted"},
    {absl::StatusCode::kUnavailable, 503, "unavailable"},
};

}  // namespace

HttpResponse ErrorResponse(const absl::Status& why) {
  Code code = {absl::StatusCode::kInternal, 500, "internal"};
  for (const Code& known : kCodes) {
    if (known.code == why.code()) code = known;
  }
  const nlohmann::json body = {{"error", {{"code", code.name}, {"message", std::string(why.message())}}}};
  return {.status = code.http, .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace hone::tracker
