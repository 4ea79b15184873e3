// SPDX-License-Identifier: Apache-2.0
// Sends the notices of ended jobs (hone submit --notify): one thread that posts each notice to the URL of its job.
//
// The shell stores which notices are sent, so that the notifier resumes after a restart. A failed attempt is repeated
// after waits that double up to an hour, until a day after the job's end. A receiver that hangs delays a round only
// once, however many notices it has. A notice that was accepted just before a kill -9 may be sent twice; it contains
// the job's id. docs/decisions/0158. Start at Notifier::Start.
#ifndef HONE_TRACKER_HTTP_NOTIFIER_H_
#define HONE_TRACKER_HTTP_NOTIFIER_H_

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "hone/v1/job.pb.h"
#include "tracker/shell.h"

namespace hone::tracker {

// The wait after so many failed attempts, from 1.
absl::Duration WaitAfterAttempt(int attempts);

// The body of the notice: how the job ended, without secrets.
std::string NoticeBody(const v1::Job& job);

class Notifier {
 public:
  // Attempts stop this long after the end of the job.
  static constexpr absl::Duration kGiveUpAfter = absl::Hours(24);

  // Makes one attempt, which may take some seconds and ends early at a stop.
  using Post =
      std::function<absl::Status(const std::string& url, const std::string& body, const std::stop_token& stop)>;
  // Starts the thread; the destructor stops it. The shell must outlive it. allowed: URL prefixes (notice_url.h). A
  // notice to another URL, which was allowed when its job was submitted, is given up.
  static std::unique_ptr<Notifier> Start(Shell* shell, std::vector<std::string> allowed, Post post);

  // Makes one round of attempts for notices due at `now`. Public for tests.
  void SendDueNotices(absl::Time now, const std::stop_token& stop = {});

  Notifier(Shell* shell, std::vector<std::string> allowed, Post post)
      : shell_(shell), allowed_(std::move(allowed)), post_(std::move(post)) {}

 private:
  void Loop(const std::stop_token& stop);

  Shell* const shell_;
  const std::vector<std::string> allowed_;
  const Post post_;
  std::map<std::string, absl::Time> not_before_;  // earliest next attempt, by job; used only by the thread
  std::jthread thread_;                           // the last member, so that it is destroyed first
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_NOTIFIER_H_
