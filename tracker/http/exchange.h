// SPDX-License-Identifier: Apache-2.0
// A request of the tracker's HTTP side and its answer, as plain values: what the socket (server.h) and those who answer
// (site.h) exchange.
#ifndef HONE_TRACKER_HTTP_EXCHANGE_H_
#define HONE_TRACKER_HTTP_EXCHANGE_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace hone::tracker {

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // as it was sent: "/api/v1/jobs?limit=10"; parse.h takes it apart
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case; of equal ones the values after ", "
  std::string body;
  std::string peer;             // "127.0.0.1:40312"
  std::string certificate_pem;  // that TLS has verified; empty where none was shown

  // "" where there is no such header. name: in lower case.
  std::string_view Header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

// A piece of a stream, built once for all who get it; null ends the stream.
using Chunk = std::shared_ptr<const std::string>;

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Set: what follows is a stream. It is called once, with where pieces go, which may be called by any thread; they
  // come until what it returns is let go, and none after.
  std::function<std::shared_ptr<void>(std::function<void(Chunk)> send)> stream = nullptr;
};

// {"error": {"code": "not_found", "message": "..."}}, with the HTTP status that is nearest to that of the call.
HttpResponse ErrorResponse(const absl::Status& why);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_EXCHANGE_H_
