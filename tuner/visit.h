// SPDX-License-Identifier: Apache-2.0
// Visits to devices: batches that are compiled and measured in the background, several at once.
//
// While one batch is on a device, the next ones are compiled or wait. Each visit has a thread that mostly waits. The
// caller takes finished visits and decides in its own single thread. Start with Visits::Start.
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
  // Set by the caller.
  size_t task = 0;                           // index of the task
  int64_t trials = 0;                        // number of proposals without the incumbent
  std::vector<Proposal> proposals;           // the candidates in the batch's order
  std::optional<LatencyEstimate> incumbent;  // latency estimate of the last proposal if it is the incumbent
  Batch batch;                               // without kernels and artifact, which building adds
  RecordKey key;                             // of the records of candidates that do not compile
  // Set by the visit.
  absl::Status status;           // error of a call of the farm, which ends the job's attempt
  std::string error;             // why the batch was not built or measured; "": it was
  double building_seconds = 0;   // sum over all compilers
  double waiting_seconds = 0;    // from submission to a device
  double measuring_seconds = 0;  // on the device
  Outcomes outcomes;             // candidates that were measured or have failed
  // Set by the caller: when the visit must end. Candidates not measured by then have no outcome.
  absl::Time deadline = absl::InfiniteFuture();
};

class Visits {
 public:
  // All arguments must outlive this.
  Visits(Farm* farm, BuildPool* builders, const Clock* clock) : farm_(farm), builders_(builders), clock_(clock) {}
  // Builds nothing more, and waits for all visits. Call Farm::Abandon before to end running measurements.
  ~Visits();
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;

  void Start(Visit visit);
  // Waits at most `wait` for a visit that has ended, and returns it; nullopt: none has.
  std::optional<Visit> Finished(absl::Duration wait);
  int open() const { return static_cast<int>(threads_.size()); }  // started and not yet taken from Finished

 private:
  void Run(Visit& visit);

  Farm* const farm_;
  BuildPool* const builders_;
  const Clock* const clock_;
  std::atomic<bool> stopping_{false};  // the destructor runs
  std::mutex mutex_;                   // guards finished_
  std::condition_variable over_;
  std::deque<std::pair<int64_t, Visit>> finished_;  // with serial numbers
  std::map<int64_t, std::thread> threads_;          // threads of started visits not yet taken, by serial number
  int64_t next_ = 0;                                // the next serial number
};

}  // namespace hone::tuner

#endif  // HONE_TUNER_VISIT_H_
