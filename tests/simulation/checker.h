// SPDX-License-Identifier: Apache-2.0
// Checks the invariants of a farm. The .cc file states each invariant in the comment of the code that checks it.
//
// The checker reads the tracker's queue after every call on it. It is told what devices measure, what calls carry and
// what users see, and it reads the records at the end. It causes nothing itself. Start at Look and AtEnd.
#ifndef HONE_TESTS_SIMULATION_CHECKER_H_
#define HONE_TESTS_SIMULATION_CHECKER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "records/store.h"
#include "tests/simulation/world.h"
#include "tracker/queue/farm.h"

namespace hone::simulation {

class Checker {
 public:
  explicit Checker(World* world) : world_(world) {}

  // --- the tracker --------------------------------------------------------------------------------------------------
  // A new run of the tracker begins: forgets the leases, shares and quarantines of the run before.
  void TrackerStarts();
  // Checks the queue after a call on it. now: by the tracker's clock.
  void Look(const tracker::Farm& farm, absl::Time now);
  // The results that a call brings to the tracker, and the tracker's answer to it.
  void ResultsReported(const v1::SynchronizeRequest& request);
  void Answered(const v1::SynchronizeRequest& request, const v1::SynchronizeResponse& response);

  // --- devices ------------------------------------------------------------------------------------------------------
  // Returns a time for a candidate, in seconds, that differs from those of all other measurements.
  double NewTime(const std::string& candidate_id);
  // A device begins or ends a batch. `device` is "agent/device".
  void Begins(const std::string& device, const v1::Batch& batch);
  void Ends(const std::string& device, const v1::Batch& batch);
  // The devices of a dead agent measure nothing any more.
  void AgentDied(const std::string& agent);

  // --- tuners and users ---------------------------------------------------------------------------------------------
  // A tuner received the result of its batch. may_fail: the batch holds a candidate that no device can measure.
  void BatchResultReceived(const std::string& batch_id, const v1::Batch& batch, const v1::BatchResult& result,
                           bool may_fail);
  void DrainAnswered(const std::string& agent) { drained_.insert(agent); }
  // Between UndrainBegins and UndrainEnds the undrain may take effect at any moment. A stalled tracker may run it even
  // after it has answered the next drain.
  void UndrainBegins(const std::string& agent) { undraining_.insert(agent); }
  void UndrainEnds(const std::string& agent);
  void CancelAnswered(const std::string& job_id) { cancelled_.insert(job_id); }
  // asked: when the call that returned `job` was sent. Answers may overtake each other.
  void JobSeen(const v1::Job& job, absl::Duration asked);

  // Called once at the end, when nothing is under way.
  void AtEnd(const records::Store& store, const std::string& farm_id);

  int64_t leases() const { return leases_; }
  int64_t told() const { return told_count_; }

 private:
  struct JobEnd {
    v1::JobState state;
    absl::Duration told;
  };
  struct Lease {
    std::string batch_id, job_id, device, agent;
    int64_t piece = 0;
    bool live = false;
    std::string kind_and_user;
    absl::Time begun;  // by the tracker's clock, without its stalls; the same holds for all times below
  };
  // Device seconds that a user had of a kind of device. They decay with a half-life of ten minutes.
  struct UsedTime {
    double seconds = 0;
    absl::Time at;
  };
  // How long a job had waited for its turn, and when that value was last reached.
  struct Waited {
    absl::Duration time;
    absl::Time since;
  };
  double UsedSecondsOf(const std::string& kind_and_user, absl::Time now) const;
  void CheckLeases(const tracker::Farm& farm);
  void CheckWaits(const tracker::Farm& farm, absl::Time now);
  void CheckWaited(const tracker::Farm& farm, absl::Time now);
  void CheckTurn(const tracker::Farm& farm, const tracker::BatchQueue::Lease& lease, absl::Time now);
  void Grant(const tracker::Farm& farm, const tracker::BatchQueue::Lease& lease, absl::Time now);
  void End(const tracker::Farm& farm, const std::set<std::string>& ended, absl::Time now);
  void NoteHealth(const tracker::Farm& farm, absl::Time now);
  void ForgetDrain(const std::string& agent);
  void MustBeRecorded(const v1::LeaseResult& result, const std::string& batch_id, const std::string& why);

  struct Quarantine {
    std::string reason;
    absl::Time begun, retry_at;  // by the tracker's clock
    absl::Duration since;        // by the world's clock, without stalls
  };

  World* const world_;
  std::map<std::string, Lease> here_;  // leases given out by this run of the tracker
  std::set<std::string> live_;
  std::map<std::string, UsedTime> used_time_;  // in this run: by kind of device and user; ended leases only
  std::map<std::string, Waited> waited_;       // in this run: by job
  absl::Duration stood_still_;                 // in this run: total time for which the tracker was stalled
  int64_t accepted_ = 0, lost_ = 0, leases_ = 0, told_count_ = 0;
  std::map<std::string, v1::LeaseResult> reported_;      // by lease
  std::map<std::string, std::string> must_be_recorded_;  // reason, by batch id and candidate
  std::map<std::string, std::set<double>> times_;        // seconds that were measured, by candidate
  int64_t next_time_ = 0;
  std::map<std::string, std::set<std::string>> running_;  // candidates that a device is running, by device
  std::set<std::string> drained_, cancelled_, told_batches_;
  std::multiset<std::string> undraining_;                 // agents, once for each undrain call that has begun
  std::map<std::string, Quarantine> quarantines_;         // in this run of the tracker
  std::map<std::string, Quarantine> stored_quarantines_;  // quarantines that are certainly on disk, until they end
  std::map<std::string, JobEnd> ends_;                    // ends of jobs as users were told
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_CHECKER_H_
