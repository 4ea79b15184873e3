// SPDX-License-Identifier: Apache-2.0
// Parses the untrusted parts of a request: the target, cookies, hosts. Pure.
#ifndef HONE_TRACKER_HTTP_PARSE_H_
#define HONE_TRACKER_HTTP_PARSE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::tracker {

// The parsed path and query of a request.
struct Target {
  std::vector<std::string> path;  // the segments, decoded: "/api/v1/jobs/j%201" is api, v1, jobs, "j 1"; "/" has none
  std::map<std::string, std::string, std::less<>> query;
};

// kInvalidArgument: no path, or one that two parsers might read differently: "." and "..", empty segments except the
// last, escaped separators, escaped control characters, escapes that are not UTF-8, a query name given twice.
absl::StatusOr<Target> ParseTarget(std::string_view target);

// The value of a cookie in a Cookie header; "" where it is missing.
std::string_view CookieIn(std::string_view header, std::string_view name);

// The host in an authority (the value of Host, or an origin without its scheme), in lower case, without port and
// brackets: "::1" for "[::1]:80". "" where there is no valid host.
std::string HostIn(std::string_view authority);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_PARSE_H_
