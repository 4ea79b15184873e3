// SPDX-License-Identifier: Apache-2.0
// The tracker's HTTP site: finds the route of a request, checks the role of the caller, and calls the handler (api.h).
//
// It has no sockets; it reads the farm, the records and the register. Safe from any thread; an answer may wait for a
// disk. docs/API.md describes the routes. Start at Site::Answer.
#ifndef HONE_TRACKER_HTTP_SITE_H_
#define HONE_TRACKER_HTTP_SITE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "tracker/http/api.h"
#include "tracker/http/exchange.h"

namespace hone::tracker {

class Site {
 public:
  explicit Site(const ApiContext& context) : context_(context) {}

  HttpResponse Answer(const HttpRequest& request) const;
  // As HttpServer::BodyLimit. 0: the address takes no long bodies. Errors as Visitors::CheckOrigin and Identify.
  absl::StatusOr<uint64_t> BodyLimit(const HttpRequest& head) const;

 private:
  const ApiContext context_;
};

// One route. A '*' in its path matches any segment: "/api/v1/jobs/*/cancel".
struct Route {
  std::string_view method, path;
  // The gRPC method that the caller's role must be allowed to call; "": the route needs no role.
  std::string_view needs;
  absl::StatusOr<HttpResponse> (*answer)(const ApiContext& context, const ApiCall& call);
  uint64_t body_bytes_max = 0;     // 0: as HttpLimits::body_bytes
  bool reads_body_itself = false;  // the handler reads the JSON in HttpRequest::body; ApiCall::body stays empty
};
const std::vector<Route>& Routes();

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_SITE_H_
