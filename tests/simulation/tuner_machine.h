// SPDX-License-Identifier: Apache-2.0
// A tuner, made up: leases jobs, submits their batches, waits for them, and starts anew without a memory when it is
// killed. What is in it stands in for tuner/tune_loop.cc, which compiles.
#ifndef HONE_TESTS_SIMULATION_TUNER_MACHINE_H_
#define HONE_TESTS_SIMULATION_TUNER_MACHINE_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/simulation/checker.h"
#include "tests/simulation/tracker_machine.h"
#include "tests/simulation/world.h"

namespace hone::simulation {

// What the jobs' batches are like.
struct Workload {
  int batches = 6, candidates = 5;
  double kills = 0, fails = 0, poison = 0;  // chance, of a candidate; of a batch
};

class TunerMachine {
 public:
  TunerMachine(World* world, TrackerMachine* tracker, Checker* checker, std::string id, const Workload& workload);
  void Start();
  void Kill();  // it comes back
  void StopForGood();
  Line line;
  double gives_back = 0.005;  // how likely it is, after each wait, that it is stopped and gives its job back
  Process& process() { return *machine_; }

 private:
  struct Open {
    std::string client_id, batch_id;  // batch_id "": not submitted yet
    v1::Batch batch;
    bool may_fail = false;
  };
  void Live();
  void WorkOn(const v1::LeaseJobResponse& lease);
  // False: the lease is gone.
  bool Submit(const v1::LeaseJobResponse& lease);
  bool Await(const v1::LeaseJobResponse& lease);
  void Report(const v1::LeaseJobResponse& lease);
  void Complete(const v1::JobLease& lease, bool returned);
  Open NewBatch(const v1::Job& job, int number);
  bool Gone() const;

  World* const world_;
  TrackerMachine* const tracker_;
  Checker* const checker_;
  const std::string id_;
  const Workload workload_;
  std::shared_ptr<Process> machine_;
  std::map<std::string, Open> open_;           // by client id; of the living process
  std::set<std::string> acked_;                // batch ids
  std::map<std::string, std::set<int>> done_;  // by job: numbers of batches; as the records would tell
  bool over_ = false;
  int alive_ = 0;
  int64_t trials_ = 0;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_TUNER_MACHINE_H_
