// Agents and their devices: registration, epochs, who is heard from, health, drain.
//
// Pure state: no threads, no input or output, no clock; every call takes `now`, which must not go back. Knows nothing
// of batches: a device only carries the id of its lease. Start at Register. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_DEVICES_H_
#define HONE_TRACKER_QUEUE_DEVICES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/agent.pb.h"

namespace hone::tracker {

struct DeviceOptions {
  absl::Duration lease_ttl = absl::Seconds(20);      // heartbeat clock: silent for longer means lost
  absl::Duration offline_after = absl::Seconds(45);  // an idle agent may hang in a call for 20 s
  absl::Duration forget_after = absl::Hours(24 * 14);
  int losses_to_quarantine = 3;                   // in a row, without a result between
  absl::Duration quarantine = absl::Minutes(10);  // after losses; then it may try again
};

struct Device {
  v1::DeviceState state;
  std::string lease_id;  // "" when idle
  int losses_in_a_row = 0;
  absl::Time quarantined_until = absl::InfinitePast();  // because of losses
  std::string quarantine_reason;
  int64_t batches_done = 0, candidates_done = 0, losses = 0;
};

struct Agent {
  std::string id, boot_id, version;
  uint64_t epoch = 0;
  uint64_t sequence = 0;  // of the last call
  absl::Time last_seen;
  bool leaving = false;
  bool told_drained = false;  // what its last answer said
  std::map<std::string, Device> devices;
  std::deque<std::string> former_boots;
  // Leases of devices it does not state any more, or of the boot before: lost.
  std::vector<std::string> orphaned_leases;
};

class DeviceRegistry {
 public:
  DeviceRegistry(DeviceOptions options, uint64_t incarnation) : options_(options), incarnation_(incarnation) {}

  // Takes the agent's statement of itself. A new boot gets a new epoch. Errors as in agent.proto.
  absl::StatusOr<Agent*> Register(const v1::SynchronizeRequest& request, absl::Time now);

  Agent* Find(const std::string& agent_id);  // nullptr when unknown
  std::map<std::string, Agent>& agents() { return agents_; }
  const std::map<std::string, Agent>& agents() const { return agents_; }

  // What a process is told after another one has taken its name.
  static absl::Status Superseded(const std::string& agent_id);

  // The device did what it should, or its lease was lost with it.
  void CountDone(Device& device, int64_t candidates);
  void CountLoss(Device& device, absl::Time now);

  void Drain(const std::string& agent_id, const std::string& reason);
  void Undrain(const std::string& agent_id);  // ends quarantine too
  bool drained(const std::string& agent_id) const { return drained_.contains(agent_id); }

  bool Silent(const Agent& agent, absl::Time now) const { return now - agent.last_seen > options_.lease_ttl; }
  bool Online(const Agent& agent, absl::Time now) const { return now - agent.last_seen <= options_.offline_after; }
  // "" for a healthy device, else why it gets no work.
  std::string HealthProblem(const Device& device, absl::Time now) const;
  // Whether the device may get work at all, now or when its lease ends.
  bool Serves(const Agent& agent, const Device& device, absl::Time now) const;
  // Forgets agents that have been away for long.
  void Expire(absl::Time now);

  std::vector<v1::Device> List(const v1::ListDevicesRequest& request, absl::Time now) const;

 private:
  const DeviceOptions options_;
  const uint64_t incarnation_;
  uint64_t next_epoch_ = 0;
  std::map<std::string, Agent> agents_;
  std::map<std::string, std::string> drained_;  // agent id to reason; also of agents not known yet
};

// Whether the device fulfils every condition.
bool Matches(const v1::Requirements& requirements, const v1::DeviceState& device);
// The conditions in words: "target 'x86-64', label gpu=none".
std::string Describe(const v1::Requirements& requirements);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_DEVICES_H_
