// SPDX-License-Identifier: Apache-2.0
// One HTTP POST of JSON to a server outside the farm.
//
// It follows no redirect, uses no proxy, and reads only the head of the answer. Over TLS the server must have a
// certificate for its name from an authority that this system trusts. The call blocks, until its time is over or it is
// told to stop; only the system's name resolution may take longer.
#ifndef HONE_TRACKER_HTTP_POST_H_
#define HONE_TRACKER_HTTP_POST_H_

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tracker/queue/notice_url.h"

namespace hone::tracker {

// OK: the server answered with status 200 to 299. kUnavailable: anything else; the text says what happened.
absl::Status PostJson(const NoticeUrl& url, const std::string& body, absl::Duration timeout,
                      const std::stop_token& stop = {});

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_POST_H_
