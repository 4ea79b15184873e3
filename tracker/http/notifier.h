// SPDX-License-Identifier: Apache-2.0
// Sends the notices of ended jobs (hone submit --notify) and of nights of fleet watches (hone watch-fleet add
// --notify): one thread that posts each notice to its URL.
//
// The shell stores which notices are sent, so that the notifier resumes after a restart. A failed attempt is repeated
// after waits that double up to an hour, until a day after the end of the job or night. A receiver that hangs delays a
// round only once, however many notices it has. A notice that was accepted just before a kill -9 may be sent twice; it
// contains the job's id. docs/decisions/0158. Start at Notifier::Start.
#ifndef HONE_TRACKER_HTTP_NOTIFIER_H_
#define HONE_TRACKER_HTTP_NOTIFIER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
// The body of the notice about a night of a watch: the night as in the HTTP API, with its watch and device.
std::string NoticeBody(const NightNotice& notice);

class Notifier {
 public:
  // Attempts stop this long after the end of the job or the night.
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
  struct Attempt {
    std::string subject;  // what the notice is about, for the log and unique among all notices
    std::string url;
    absl::Time ended;
  };
  void Loop(const std::stop_token& stop);
  // Makes one attempt and returns the state of the notice after it. nullopt: it made none, because the notice must wait
  // or the notifier stops.
  std::optional<v1::JobNotice> Send(const Attempt& attempt, const std::function<std::string()>& body,
                                    v1::JobNotice notice, absl::Time now, const std::stop_token& stop);

  Shell* const shell_;
  const std::vector<std::string> allowed_;
  const Post post_;
  // Used only by the thread.
  std::map<std::string, absl::Time> not_before_;  // earliest next attempt, by Attempt::subject
  std::set<std::string> failed_;                  // receivers that failed in this round; their other notices wait
  std::jthread thread_;                           // the last member, so that it is destroyed first
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_NOTIFIER_H_
