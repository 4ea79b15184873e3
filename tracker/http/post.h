// SPDX-License-Identifier: Apache-2.0
// One HTTP POST to somebody else's server: JSON out, and whether it was taken.
//
// Follows no redirect, knows no proxy, reads nothing of the answer but its head, and ends when its time is over or it
// is told to stop. Over TLS the server must have a certificate for its name, of an authority that this system trusts.
// Blocks; only the system's search for an address may take longer.
#ifndef HONE_TRACKER_HTTP_POST_H_
#define HONE_TRACKER_HTTP_POST_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tracker/queue/notice_url.h"

namespace hone::tracker {

// OK: it answered with 200 to 299. kUnavailable: what else it did.
absl::Status PostJson(const NoticeUrl& url, const std::string& body, absl::Duration patience,
                      const std::stop_token& stop = {});

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_POST_H_
