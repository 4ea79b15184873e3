// SPDX-License-Identifier: Apache-2.0
// Where a tracker may tell somebody that a job has ended: the address that a client gave, taken apart, and held against
// what the farm's owner allows. Pure. Start at CheckNoticeUrl.
//
// The tracker stands where clients may not reach, so an address is refused unless it begins with one that was allowed,
// up to a border: "https://hooks.lab/a" allows ".../a" and ".../a/b?c", not ".../ab", and not another host.
#ifndef HONE_TRACKER_QUEUE_NOTICE_URL_H_
#define HONE_TRACKER_QUEUE_NOTICE_URL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::tracker {

struct NoticeUrl {
  bool tls = false;
  std::string host, port;  // "hooks.lab", "443"
  std::string target;      // "/a?b=c", at least "/"
};

// kInvalidArgument: not http://HOST[:PORT]/... or https://..., or with what could be read in two ways: a user, spaces,
// "..", a backslash, an escaped dot or slash.
absl::StatusOr<NoticeUrl> ParseNoticeUrl(const std::string& url);

// As ParseNoticeUrl; kPermissionDenied: none of `allowed` is its beginning; the text names them.
absl::Status CheckNoticeUrl(const std::string& url, const std::vector<std::string>& allowed);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_NOTICE_URL_H_
