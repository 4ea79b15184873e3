// SPDX-License-Identifier: Apache-2.0
// What must hold of a farm, whatever happens: the list is in the comments of the .cc file, an invariant each.
//
// Looks at the tracker's queue after every turn on it, hears of what devices measure, what calls bring and what people
// are told, and reads the records in the end. Not here: what happens. Start at Look and AtEnd.
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
  void TrackerStarts();
  void Look(const tracker::Farm& farm, absl::Time now);
  // A call's results as they come to the tracker, and what it answers.
  void Brought(const v1::SynchronizeRequest& request);
  void Answered(const v1::SynchronizeRequest& request, const v1::SynchronizeResponse& response);

  // --- devices ------------------------------------------------------------------------------------------------------
  // The time for a candidate, which no other measurement has.
  double NewTime(const std::string& candidate_id);
  void Begins(const std::string& device, const v1::Batch& batch);
  void Ends(const std::string& device, const v1::Batch& batch);
  void AgentDied(const std::string& agent);

  // --- tuners and people --------------------------------------------------------------------------------------------
  void Told(const std::string& batch_id, const v1::Batch& batch, const v1::BatchResult& result, bool may_fail);
  void DrainAnswered(const std::string& agent) { drained_.insert(agent); }
  // Between the two it may happen at any moment: a tracker that stands still may do it when the next drain has been
  // answered.
  void UndrainBegins(const std::string& agent) { undraining_.insert(agent); }
  void UndrainEnds(const std::string& agent);
  void CancelAnswered(const std::string& job_id) { cancelled_.insert(job_id); }
  // asked: when the call was sent of which it is the answer; answers may pass each other on their way.
  void JobSeen(const v1::Job& job, absl::Duration asked);

  // Everything has come to rest.
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
    absl::Time begun;  // by the tracker's clock, as all that follows without the time in which it stood still
  };
  // Seconds that a user had of a kind of device, half of which count after ten minutes.
  struct Had {
    double seconds = 0;
    absl::Time at;
  };
  // What a job had waited for its turn, and since when it is so much.
  struct Waited {
    absl::Duration time;
    absl::Time since;
  };
  double HadBy(const std::string& kind_and_user, absl::Time now) const;
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
    absl::Duration since;        // by the world's time, but for standstills
  };

  World* const world_;
  std::map<std::string, Lease> here_;  // leases of this start of the tracker
  std::set<std::string> live_;
  std::map<std::string, Had> had_;        // in this start, by kind of device and user, of leases that ended
  std::map<std::string, Waited> waited_;  // in this start, by job
  absl::Duration stood_still_;            // the tracker, in this start
  int64_t accepted_ = 0, lost_ = 0, leases_ = 0, told_count_ = 0;
  std::map<std::string, v1::LeaseResult> brought_;       // by lease
  std::map<std::string, std::string> must_be_recorded_;  // batch id and candidate, to why
  std::map<std::string, std::set<double>> times_;        // of a candidate
  int64_t next_time_ = 0;
  std::map<std::string, std::set<std::string>> running_;  // device to candidates that it has in its hands
  std::set<std::string> drained_, cancelled_, told_batches_;
  std::multiset<std::string> undraining_;                 // agents; by calls that the tracker has begun
  std::map<std::string, Quarantine> quarantines_;         // in this start
  std::map<std::string, Quarantine> stored_quarantines_;  // that were surely stored, until they end
  std::map<std::string, JobEnd> ends_;                    // of jobs, as people were told
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_CHECKER_H_
