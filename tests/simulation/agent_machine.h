// SPDX-License-Identifier: Apache-2.0
// A machine with made-up devices that runs the real loop and outbox of an agent. It can be started, stopped and killed.
#ifndef HONE_TESTS_SIMULATION_AGENT_MACHINE_H_
#define HONE_TESTS_SIMULATION_AGENT_MACHINE_H_

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "device_agent/agent/sync_loop.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/tracker_machine.h"
#include "tests/simulation/world.h"

namespace hone::simulation {

// A candidate's behaviour is named in its id.
inline constexpr char kKills[] = "kills";    // the agent that runs the candidate dies
inline constexpr char kFails[] = "fails";    // the candidate's outcome is a failure
inline constexpr char kPoison[] = "poison";  // no device can measure the candidate's batch

// A device without hardware. The failures of failure_injector.h change its fields while it works.
struct MadeUpDevice {
  std::string id, kind;    // kind: the device's label "kind"
  bool has_golden = true;  // reports checks of a golden kernel
  bool sick = false;       // measures nothing, not even its golden kernel
  bool hangs = false;      // its next visit lasts until the device is told to stop
  bool hot = false;        // reports a temperature of 95 C
  double slowness = 1;     // factor on the times of visits and of the golden kernel
};

class AgentMachine {
 public:
  AgentMachine(World* world, TrackerMachine* tracker, Checker* checker, std::string id, std::string folder,
               std::vector<MadeUpDevice> devices);

  void Start();
  void Kill();  // may be called at any moment; the machine starts again
  void StopAndStart();
  void StopForGood();  // returns when the agent has ended
  // Number of results on the machine's disk that the tracker has not acknowledged.
  int Waiting() const;

  const std::string& id() const { return id_; }
  Line line;
  std::vector<MadeUpDevice>& devices() { return devices_; }
  Process& process() { return *machine_; }

 private:
  agent::ServedDevice Served(MadeUpDevice& device, const std::shared_ptr<Process>& process);
  v1::BatchResult Measure(MadeUpDevice& device, const std::shared_ptr<Process>& process, const v1::Batch& batch,
                          const std::stop_token& stop);
  v1::BatchResult Outcomes(MadeUpDevice& device, const v1::Batch& batch, const std::shared_ptr<Process>& process);
  v1::GoldenCheck Golden(const MadeUpDevice& device, uint64_t number, const std::stop_token& stop);
  // Works for `duration`. Returns false if it was told to stop before the end.
  bool Work(absl::Duration duration, const std::stop_token& stop);
  void RunLoop();
  void NewOutbox();

  World* const world_;
  TrackerMachine* const tracker_;
  Checker* const checker_;
  const std::string id_, folder_;
  std::vector<MadeUpDevice> devices_;
  std::shared_ptr<Process> machine_;
  agent::SyncLoop* loop_ = nullptr;  // loop of the living process; null: none
  std::string outbox_;
  int folders_ = 0, alive_ = 0;  // alive_: number of processes, including those that are ending
  bool over_ = false, ends_now_ = false;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_AGENT_MACHINE_H_
