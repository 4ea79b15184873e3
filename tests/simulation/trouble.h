// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a farm of one seed: which kinds of trouble there are, and how often.
#ifndef HONE_TESTS_SIMULATION_TROUBLE_H_
#define HONE_TESTS_SIMULATION_TROUBLE_H_

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

// Everybody in the farm.
struct Cast {
  World* world;
  TrackerMachine* tracker;
  Checker* checker;
  std::vector<std::unique_ptr<AgentMachine>> agents;
  std::vector<std::unique_ptr<TunerMachine>> tuners;
  Line people;
};

class Trouble {
 public:
  // Draws the kinds: about half of them.
  explicit Trouble(Cast* cast);
  // One more thing goes wrong.
  void Strike();
  // Nothing more goes wrong, and what is broken is mended.
  void Mend();
  size_t operators() const { return drained_.size(); }  // who are at an agent, which they will undrain

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
  // So much later, unless all was mended by then.
  void Later(double low_seconds, double high_seconds, std::function<void()> action);
  void Drain(AgentMachine& agent);
  void Undrain(const std::string& agent_id);

  Cast* const cast_;
  World* const world_;
  std::vector<std::pair<std::string, std::function<void()>>> kinds_;
  const std::shared_ptr<Process> operators_ = std::make_shared<Process>(Process{.name = "operator"});
  std::set<std::string> drained_, slowed_;  // agents
  bool mended_ = false;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_TROUBLE_H_
