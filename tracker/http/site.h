// SPDX-License-Identifier: Apache-2.0
// What the tracker answers over HTTP: who may ask, the table of addresses, and what is behind each (docs/API.md).
//
// Pure but for what it asks of the farm, the records and the register: no sockets. Safe from any thread; an answer may
// wait for a disk. Start at Answer; api.h has what is behind the addresses.
#ifndef HONE_TRACKER_HTTP_SITE_H_
#define HONE_TRACKER_HTTP_SITE_H_

#include <string_view>
#include <vector>

#include "tracker/http/api.h"
#include "tracker/http/exchange.h"

namespace hone::tracker {

class Site {
 public:
  explicit Site(const Sources& sources) : sources_(sources) {}

  HttpResponse Answer(const HttpRequest& request) const;

 private:
  const Sources sources_;
};

// One address: "/api/v1/jobs/*/cancel", a '*' standing for any name.
struct Route {
  std::string_view method, path;
  // The method of a gRPC service that whoever asks must be allowed to call; "": anybody may ask.
  std::string_view needs;
  absl::StatusOr<HttpResponse> (*answer)(const Sources& sources, const Question& question);
};
const std::vector<Route>& Routes();

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_SITE_H_
