// SPDX-License-Identifier: Apache-2.0
// A whole farm in one thread: the real Farm, fake agents and tuners, and a network that loses, duplicates and delays
// calls.
//
// All randomness comes from one seed, and time is a number that jumps from event to event, so a failing seed always
// fails again. The invariants are checked after every step; `violation` describes the first one that does not hold.
#ifndef HONE_TESTS_FARM_SIMULATION_H_
#define HONE_TESTS_FARM_SIMULATION_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/random.h"
#include "tracker/queue/farm.h"

namespace hone::tracker {

// Size of the farm and chances of failures. All chances are 0 by default.
struct SimulationOptions {
  uint64_t seed = 1;
  int agents = 100;
  int jobs = 4;
  int batches_per_job = 20;
  int candidates = 6;
  bool models = false;          // each job has a model, which its tuner has run when all other batches are done
  double lose_call = 0;         // chance that a call or its answer never arrives
  double double_call = 0;       // chance that a call arrives twice, the second time late
  double kill_agent = 0;        // chance, for each visit, that its agent is killed and restarted
  double freeze_agent = 0;      // chance, for each call, that the agent first stays silent for minutes
  double kill_tuner = 0;        // chance, for each batch awaited, that the tuner dies
  double killer_candidate = 0;  // chance that a candidate kills the agent that runs it
  double restart_tracker = 0;   // chance, for each event, that the tracker is killed and restarted
  int holes = 0;                // number of agents that answer every batch with an error at once
  double stall = 0;             // chance, for each event, that the tracker stalls for up to two minutes
  double clock_jump = 0;        // chance, for each event, that the tracker's clock jumps by up to an hour
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation();

  // Runs until every job has ended, or for 10 simulated days.
  void Run();

  std::string violation;         // "": all invariants held
  int64_t accepted = 0;          // outcomes that reached a tuner
  int64_t lost_candidates = 0;   // accepted outcomes that are LOST_DEVICE
  int64_t wrongly_lost = 0;      // lost candidates that kill no agent
  int64_t batch_leases_max = 0;  // most leases that any one batch needed
  int jobs_ended = 0;
  int models_run = 0;  // reports of models that reached a tuner
  int restarts = 0;
  int quarantined = 0;  // devices in quarantine at the end
  v1::GetFarmResponse counters;

 private:
  struct FakeAgent;
  struct FakeTuner;
  using Action = std::function<void()>;
  struct Event {
    absl::Time time;
    int64_t order;
    Action action;
    bool operator<(const Event& other) const { return std::pair(other.time, other.order) < std::pair(time, order); }
  };

  void After(absl::Duration delay, Action action);
  absl::Duration Delay(double low, double high) { return absl::Seconds(low + (high - low) * random_.Uniform()); }
  bool Chance(double probability) { return random_.Uniform() < probability; }
  absl::Time TrackerNow() const { return now_ + clock_error_; }

  void StartFarm();
  void SubmitJobs();
  void AgentCalls(int index);
  void AgentHears(int index, const std::string& boot, const v1::SynchronizeResponse& response);
  void AgentMeasures(int index, const std::string& boot, const v1::Lease& lease);
  void RestartAgent(int index);
  void TunerActs(int index);
  void TunerSubmits(FakeTuner& tuner);
  bool SubmitBatch(FakeTuner& tuner, const std::string& client_id);
  void TunerReads(FakeTuner& tuner, const std::string& client_id, const v1::BatchResult& result);
  std::optional<Farm::Answer> Deliver(const v1::SynchronizeRequest& request);
  void Tick();
  void CheckInvariants();

  const SimulationOptions options_;
  Random random_, lease_ids_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  absl::Duration clock_error_ = absl::ZeroDuration();
  int64_t next_order_ = 0;
  std::priority_queue<Event> events_;
  uint64_t incarnation_ = 0;
  std::unique_ptr<Farm> farm_;
  std::map<std::string, v1::Job> stored_jobs_;   // the state that a restarted tracker reads
  std::map<std::string, std::string> recorded_;  // agent by record id: results stored before they were acknowledged
  std::vector<std::unique_ptr<FakeAgent>> agents_;
  std::vector<std::unique_ptr<FakeTuner>> tuners_;
  std::map<std::string, int64_t> leases_of_batch_;
  std::set<std::string> leases_seen_;
};

}  // namespace hone::tracker

#endif  // HONE_TESTS_FARM_SIMULATION_H_
