// SPDX-License-Identifier: Apache-2.0
// A machine with devices: the real loop and outbox of an agent, over devices that are made up. Started, stopped,
// killed.
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

// What a candidate does is in its id.
inline constexpr char kKills[] = "kills";    // whoever runs it dies
inline constexpr char kFails[] = "fails";    // its outcome is a failure
inline constexpr char kPoison[] = "poison";  // of a batch that no device can measure

struct MadeUpDevice {
  std::string id, kind;  // kind: label "kind" of the device
  bool has_golden = true;
  bool sick = false;   // measures nothing, its golden kernel either
  bool hangs = false;  // its next visit ends when it is told to
  bool hot = false;
  double slowness = 1;
};

class AgentMachine {
 public:
  AgentMachine(World* world, TrackerMachine* tracker, Checker* checker, std::string id, std::string folder,
               std::vector<MadeUpDevice> devices);

  void Start();
  void Kill();  // at any moment; it comes back
  void StopAndStart();
  void StopForGood();  // returns when it has ended
  // Results on its disk that the tracker has not acknowledged.
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
  // Waits so long; false: it was told to stop.
  bool Work(absl::Duration duration, const std::stop_token& stop);
  void Live();
  void NewOutbox();

  World* const world_;
  TrackerMachine* const tracker_;
  Checker* const checker_;
  const std::string id_, folder_;
  std::vector<MadeUpDevice> devices_;
  std::shared_ptr<Process> machine_;
  agent::SyncLoop* loop_ = nullptr;  // of the living process
  std::string outbox_;
  int folders_ = 0, alive_ = 0;  // processes, dying ones too
  bool over_ = false, ends_now_ = false;
};

}  // namespace hone::simulation

#endif  // HONE_TESTS_SIMULATION_AGENT_MACHINE_H_
