// SPDX-License-Identifier: Apache-2.0
// Limits for streamed answers (gRPC server streams), each of which holds a thread: how many may be open, and the end of
// streams whose client stopped reading or whose caller is no longer allowed.
//
// The thread of a stream cannot check this itself, because it blocks in gRPC until the client has read the piece. Safe
// from any thread. Start at Begin.
#ifndef HONE_TRACKER_STREAMS_H_
#define HONE_TRACKER_STREAMS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tracker/held_call.h"

namespace hone::tracker {

class Streams {
 public:
  // A stream ends when its client read no piece, and no piece was prepared, for this long. No connection is that slow.
  static constexpr absl::Duration kPauseMax = absl::Minutes(2);

  // An open stream. Destroying it closes the stream; that must happen before Streams is destroyed.
  class Stream {
   public:
    Stream(Streams* streams, std::string who, Present present, std::function<void()> cancel);
    ~Stream();
    Stream(const Stream&) = delete;
    // The client read a piece, or a piece was prepared.
    void Progress() { ++progress_; }

   private:
    friend class Streams;
    Streams* const streams_;
    const std::string who_;
    const Present present_;
    const std::function<void()> cancel_;
    std::atomic<int64_t> progress_ = 0;
    int64_t seen_ = -1;  // the value of progress_ at the last look
    absl::Time since_;   // since when it has that value
  };

  // Starts the thread that calls EndStalledStreams every second.
  void Start();

  // Opens a stream, waiting for up to `wait_max` while too many are open (Quotas). who: the identity of the caller.
  // present: called every second. cancel: ends the call; must not wait. kResourceExhausted: too many streams of `who`
  // or of all were open for all that time, or too many calls of `who` already wait. kCancelled: the caller left.
  absl::StatusOr<std::unique_ptr<Stream>> Begin(std::string who, Present present, std::function<void()> cancel,
                                                absl::Duration wait_max = absl::ZeroDuration());

  // Cancels streams that must end. now: of a steady clock.
  void EndStalledStreams(absl::Time now);

 private:
  void Loop(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable ended_;  // a stream was closed
  std::set<Stream*> open_;
  std::multiset<std::string> waiting_;  // identities of calls that wait in Begin
  std::jthread thread_;                 // the last member, so that it is destroyed first
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_STREAMS_H_
