// SPDX-License-Identifier: Apache-2.0
// Checks the URL that a client gives for the notice that a job has ended (JobSpec.notify_url). Pure. Start at
// CheckNoticeUrl.
//
// The tracker may reach hosts that its clients must not reach. It therefore refuses every URL that does not begin with
// an allowed prefix. A prefix matches whole path segments: "https://hooks.lab/a" allows ".../a" and ".../a/b?c", but
// neither ".../ab" nor another host.
#ifndef HONE_TRACKER_QUEUE_NOTICE_URL_H_
#define HONE_TRACKER_QUEUE_NOTICE_URL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::tracker {

struct NoticeUrl {
  bool tls = false;
  std::string host, port;  // "hooks.lab", "443"; an IPv6 address keeps its brackets: "[::1]"
  std::string target;      // "/a?b=c", at least "/"
};

// Parses http://HOST[:PORT]/... or https://.... kInvalidArgument: another form, or a part that two parsers could read
// differently: a user name, spaces, "..", a backslash, an escaped dot or slash.
absl::StatusOr<NoticeUrl> ParseNoticeUrl(const std::string& url);

// Errors as ParseNoticeUrl; kPermissionDenied: none of the `allowed` prefixes matches. The text lists them.
absl::Status CheckNoticeUrl(const std::string& url, const std::vector<std::string>& allowed);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_NOTICE_URL_H_
