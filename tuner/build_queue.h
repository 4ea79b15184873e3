// SPDX-License-Identifier: Apache-2.0
// The queue of a build pool: requests in the order in which they get a worker. Not thread-safe.
//
// Linking goes first, because it completes a batch. Then higher priorities go first. Among equal priorities the jobs
// take turns (start-time fair queueing), each with its oldest request, so a job with many requests does not block the
// others.
#ifndef HONE_TUNER_BUILD_QUEUE_H_
#define HONE_TUNER_BUILD_QUEUE_H_

#include <atomic>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <tuple>

#include "absl/time/time.h"
#include "tuner/build_message.h"

namespace hone::tuner {

// The job that a request belongs to.
struct BuildOwner {
  const void* job = nullptr;  // identity of the job; only compared, never dereferenced
  int priority = 0;
};

struct BuildTask {
  BuildRequest request;
  std::promise<BuildReply> reply;
  BuildOwner owner = {};
  std::shared_ptr<const std::atomic<bool>> unwanted;  // true once the reply is not needed any more
  // When to stop trying again, if no worker can begin with the task. Infinite: it has not failed to begin yet.
  absl::Time until = absl::InfiniteFuture();
};

class BuildQueue {
 public:
  void Push(BuildTask task);
  BuildTask Pop();  // the queue must not be empty
  bool empty() const { return waiting_.empty(); }

 private:
  using Rank = std::tuple<bool, int, int64_t, int64_t>;  // compiles (rather than links), -priority, turn, arrival

  std::map<Rank, BuildTask> waiting_;
  std::map<const void*, int64_t> turns_;  // the last turn given to each job; turns up to turn_ are erased
  int64_t turn_ = 0;                      // the latest turn that was served
  int64_t pushed_ = 0;                    // tasks pushed so far: the next arrival number
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_QUEUE_H_
