// SPDX-License-Identifier: Apache-2.0
// An HTTP request and its response as plain values. The server (server.h) and the handlers (site.h) exchange them.
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
  std::string target;  // as it was sent: "/api/v1/jobs?limit=10"; parse.h parses it
  std::map<std::string, std::string, std::less<>> headers;  // by name in lower case; repeated ones are joined by ", "
  std::string body;
  std::string peer;             // "127.0.0.1:40312"
  std::string certificate_pem;  // the client certificate, verified by TLS; empty where the client has none

  // The value of a header; "" where it is missing. name: in lower case.
  std::string_view Header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

// A piece of a stream, shared by all receivers; null ends the stream.
using Chunk = std::shared_ptr<const std::string>;

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // If set, the body is a stream. The server calls `stream` once, with a function `send` that takes the chunks and that
  // any thread may call. Chunks come until the returned token is destroyed, and none afterwards.
  std::function<std::shared_ptr<void>(std::function<void(Chunk)> send)> stream = nullptr;
};

// The response for an error: {"error": {"code": "not_found", "message": "..."}}, with the closest HTTP status.
HttpResponse ErrorResponse(const absl::Status& why);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_EXCHANGE_H_
