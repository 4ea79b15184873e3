// SPDX-License-Identifier: Apache-2.0
// Tells those who asked for it that their job has ended: one thread that posts what the shell says is still to be told.
//
// Nothing is kept here that must survive: the shell stores of every job whether that is done, so after a restart it
// goes on. A receiver that fails is asked again, after waits that double up to an hour, for a day after the job's end.
// One that hangs is waited for once a round, however many notices it has. What was taken just before a kill -9 may come
// twice; the job's id is in it. docs/decisions/0158. Start at Notifier::Start.
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

// How long to wait after the so-manieth attempt, counted from 1.
absl::Duration WaitAfterAttempt(int attempts);

// What is posted: about the job's end, without anything secret.
std::string NoticeBody(const v1::Job& job);

class Notifier {
 public:
  // A day after its end a job is told of no more.
  static constexpr absl::Duration kGiveUpAfter = absl::Hours(24);

  // post: one attempt, which may take some seconds, and gives up at a stop. shell: must outlive it. Its end is a stop.
  using Post =
      std::function<absl::Status(const std::string& url, const std::string& body, const std::stop_token& stop)>;
  // allowed: beginnings of addresses (notice_url.h). A job that was taken while more was allowed has its notice closed.
  static std::unique_ptr<Notifier> Start(Shell* shell, std::vector<std::string> allowed, Post post);

  // One round, for tests too: what is due at `now`.
  void Round(absl::Time now, const std::stop_token& stop = {});

  Notifier(Shell* shell, std::vector<std::string> allowed, Post post)
      : shell_(shell), allowed_(std::move(allowed)), post_(std::move(post)) {}

 private:
  void Loop(const std::stop_token& stop);

  Shell* const shell_;
  const std::vector<std::string> allowed_;
  const Post post_;
  std::map<std::string, absl::Time> not_before_;  // by job; of the thread alone
  std::jthread thread_;                           // ends first
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_NOTIFIER_H_
