// SPDX-License-Identifier: Apache-2.0
// The parts of a request that a stranger writes, taken apart: the target, cookies, hosts. Pure.
#ifndef HONE_TRACKER_HTTP_PARSE_H_
#define HONE_TRACKER_HTTP_PARSE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::tracker {

struct Target {
  std::vector<std::string> path;  // the segments, decoded: "/api/v1/jobs/j%201" is api, v1, jobs, "j 1"; "/" has none
  std::map<std::string, std::string, std::less<>> query;
};

// kInvalidArgument: not a path of this server, or one that two readers might read differently: "." and "..", empty
// segments but the last, separators, control characters or text that is not UTF-8 behind a '%', a name given twice.
absl::StatusOr<Target> ParseTarget(std::string_view target);

// The value of a cookie; "" where there is none.
std::string_view CookieIn(std::string_view header, std::string_view name);

// The host in the value of Host, or in an origin after its scheme, in lower case, without port and brackets: "::1" in
// "[::1]:80". "" where it is no host.
std::string HostIn(std::string_view authority);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_PARSE_H_
