// SPDX-License-Identifier: Apache-2.0
// Visits to devices that are under way: candidates built and measured in the background, several batches at once.
//
// While one batch is on a device the next is being compiled, or waits compiled. Each visit has a thread that mostly
// waits; what is decided from the outcomes is decided by the caller, in one thread. Start with Visits::Start.
#ifndef HONE_TUNER_VISIT_H_
#define HONE_TUNER_VISIT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tuner/batch.h"
#include "tuner/build_pool.h"
#include "tuner/farm.h"
#include "tuner/task.h"

namespace hone::tuner {

using Clock = std::function<absl::Time()>;

struct Visit {
  size_t task = 0;
  int64_t trials = 0;  // proposals; an incumbent measured along is none
  std::vector<Proposal> proposals;
  std::optional<Belief> incumbent;               // of the last proposal, where it is one: what was believed of it
  Batch batch;                                   // everything but what building adds
  RecordKey key;                                 // of records of candidates that do not compile
  absl::Status status;                           // of the farm's calls, or of building as a whole
  std::string error;                             // why the batch could not be measured, "" if it was
  double building_seconds = 0;                   // of compilers, all together
  double waiting_seconds = 0;                    // once it was compiled, for a device
  double measuring_seconds = 0;                  // of the device
  Outcomes outcomes;                             // of what was compiled and measured, or failed
  absl::Time deadline = absl::InfiniteFuture();  // of the whole visit; what is not measured by then has no outcome
};

class Visits {
 public:
  // All must outlive this.
  Visits(Farm* farm, BuildPool* builders, const Clock* clock) : farm_(farm), builders_(builders), clock_(clock) {}
  ~Visits();  // nothing more is built; Abandon() of the farm first, if what is measured is not to be waited for
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;

  void Start(Visit visit);
  // The next visit that is over; nullopt if none is after `wait`.
  std::optional<Visit> Finished(absl::Duration wait);
  int open() const { return static_cast<int>(threads_.size()); }  // started and not yet taken from Finished

 private:
  void Run(Visit& visit);

  Farm* const farm_;
  BuildPool* const builders_;
  const Clock* const clock_;
  std::atomic<bool> leaving_{false};
  std::mutex mutex_;
  std::condition_variable over_;
  std::deque<std::pair<int64_t, Visit>> finished_;
  std::map<int64_t, std::thread> threads_;  // of started visits not yet taken, by serial number
  int64_t next_ = 0;
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_VISIT_H_
