// SPDX-License-Identifier: Apache-2.0
// Answers that are sent piece by piece, each by a thread that waits for its reader: how many there may be, and the end
// of those that nobody reads and of those whose caller is not welcome any more.
//
// While a piece is on its way nobody else can look after its call: the thread is in gRPC until it was read. Safe from
// any thread. Start at Begin.
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
  // Without a piece that was read, or that was made ready: no line is so slow.
  static constexpr absl::Duration kLongestPause = absl::Minutes(2);

  // One that is open; its end is that of this object, which comes before that of Streams.
  class Stream {
   public:
    Stream(Streams* streams, std::string who, Present present, std::function<void()> cancel);
    ~Stream();
    Stream(const Stream&) = delete;
    // A piece was taken by the reader, or made ready for him.
    void Progress() { ++progress_; }

   private:
    friend class Streams;
    Streams* const streams_;
    const std::string who_;
    const Present present_;
    const std::function<void()> cancel_;
    std::atomic<int64_t> progress_ = 0;
    int64_t seen_ = -1;  // of progress_, since when
    absl::Time since_;
  };

  // It has no thread until Start.
  void Start();

  // present: asked every second. cancel: ends the call; must not wait. kResourceExhausted: `who`, or all together, had
  // as many open as they may for as long as `patience`, or as many calls of his wait for that already. kCancelled: the
  // caller did not wait so long.
  absl::StatusOr<std::unique_ptr<Stream>> Begin(std::string who, Present present, std::function<void()> cancel,
                                                absl::Duration patience = absl::ZeroDuration());

  // Ends what is to end at `now`, by a clock that nobody sets.
  void Look(absl::Time now);

 private:
  void Loop(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable ended_;  // one of them
  std::set<Stream*> open_;
  std::multiset<std::string> waiting_;  // who
  std::jthread thread_;                 // ends first
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_STREAMS_H_
