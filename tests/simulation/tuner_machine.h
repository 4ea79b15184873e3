// SPDX-License-Identifier: Apache-2.0
// A made-up tuner: leases jobs, submits their batches and waits for them. After a kill it restarts without memory. It
// stands in for tuner/tune_loop.cc, because that compiles code.
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

// The batches of a job.
struct Workload {
  int batches = 6, candidates = 5;
  double kills = 0, fails = 0, poison = 0;  // kills, fails: chance for each candidate; poison: chance for each batch
};

class TunerMachine {
 public:
  TunerMachine(World* world, TrackerMachine* tracker, Checker* checker, std::string id, const Workload& workload);
  void Start();
  void Kill();  // the tuner starts again
  void StopForGood();
  Line line;
  double gives_back = 0.005;  // chance, after each wait, that the tuner is stopped and returns its job
  Process& process() { return *machine_; }

 private:
  struct Open {
    std::string client_id, batch_id;  // batch_id "": not submitted yet
    v1::Batch batch;
    bool may_fail = false;
  };
  void RunLoop();
  void WorkOn(const v1::LeaseJobResponse& lease);
  // Submit and Await return false if the job's lease is gone.
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
  std::map<std::string, Open> open_;           // by client id; batches of the living process
  std::set<std::string> acked_;                // batch ids
  std::map<std::string, std::set<int>> done_;  // finished batch numbers by job; stands in for the records
  bool over_ = false;
  int alive_ = 0;
  int64_t trials_ = 0;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_TUNER_MACHINE_H_
