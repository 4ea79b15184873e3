// SPDX-License-Identifier: Apache-2.0
// The failures in a farm: the seed chooses the kinds of failure and how often they strike.
#ifndef HONE_TESTS_SIMULATION_FAILURE_INJECTOR_H_
#define HONE_TESTS_SIMULATION_FAILURE_INJECTOR_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/agent_machine.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/tracker_machine.h"
#include "tests/simulation/tuner_machine.h"
#include "tests/simulation/world.h"

namespace hone::simulation {

// All participants of the farm.
struct Cast {
  World* world;
  TrackerMachine* tracker;
  Checker* checker;
  std::vector<std::unique_ptr<AgentMachine>> agents;
  std::vector<std::unique_ptr<TunerMachine>> tuners;
  Line people;
};

class FailureInjector {
 public:
  // Chooses about half of the kinds of failure.
  explicit FailureInjector(Cast* cast);
  // Causes one random failure.
  void InjectFailure();
  // Stops causing failures, and repairs what is broken.
  void RepairAll();
  size_t operators() const { return drained_.size(); }  // operators who have drained an agent and will undrain it

 private:
  AgentMachine& AnAgent();
  TunerMachine& ATuner();
  Line& ALine();
  MadeUpDevice& ADevice();
  void Add(const std::string& name, std::function<void()> strike);
  void AddNetwork();
  void AddTracker();
  void AddAgents();
  void AddDevices();
  // Runs `action` after a random delay, unless RepairAll was called by then.
  void Later(double low_seconds, double high_seconds, std::function<void()> action);
  void Drain(AgentMachine& agent);
  void Undrain(const std::string& agent_id);

  Cast* const cast_;
  World* const world_;
  std::vector<std::pair<std::string, std::function<void()>>> kinds_;
  const std::shared_ptr<Process> operators_ = std::make_shared<Process>(Process{.name = "operator"});
  std::set<std::string> drained_, slowed_;  // agent ids
  bool repaired_ = false;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_FAILURE_INJECTOR_H_
