// SPDX-License-Identifier: Apache-2.0
// What a build pool has still to build, in the order in which it gets a worker. Not thread-safe.
//
// Linking goes first: it ends a batch that others wait for, while compiling only begins one. Then comes the higher
// priority, and among equals owners take turns (start-time fair queueing), each with its oldest request: whoever asks
// for a lot at once does not keep others from their first.
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

// Whose a request is: of one job. Only compared.
struct BuildOwner {
  const void* job = nullptr;
  int priority = 0;
};

struct BuildTask {
  BuildRequest request;
  std::promise<BuildReply> reply;
  BuildOwner owner = {};
  std::shared_ptr<const std::atomic<bool>> unwanted;  // true once nobody waits for the reply
  absl::Time until = absl::InfiniteFuture();          // so long it is tried again where no worker can begin with it
};

class BuildQueue {
 public:
  void Push(BuildTask task);
  BuildTask Pop();  // there must be one
  bool empty() const { return waiting_.empty(); }

 private:
  using Rank = std::tuple<bool, int, int64_t, int64_t>;  // whether it compiles, -priority, turn, order of coming

  std::map<Rank, BuildTask> waiting_;
  std::map<const void*, int64_t> turns_;  // the last turn that each job has taken, where it is to come yet
  int64_t turn_ = 0;                      // that was served last
  int64_t pushed_ = 0;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_BUILD_QUEUE_H_
