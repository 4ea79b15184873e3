// SPDX-License-Identifier: Apache-2.0
// Agents and their devices: registration, epochs, who is heard from, drain, and the health records of devices.
//
// Pure state: no threads, no input or output, no clock; every call takes `now`, which must not go back. Knows nothing
// of batches: a device only carries the id of its lease. What makes a device ill or well is health.h's to say. Start at
// Register. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_DEVICES_H_
#define HONE_TRACKER_QUEUE_DEVICES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/agent.pb.h"
#include "tracker/queue/limits.h"
#include "tracker/queue/matches.h"

namespace hone::tracker {

struct Device {
  v1::DeviceState state;
  std::string lease_id;                             // "" when idle
  absl::Time may_ask_again = absl::InfinitePast();  // for a check of its golden kernel
  int64_t batches_done = 0, candidates_done = 0, losses = 0;
};

// "wall"; "" where the agent did not say.
std::string NameOf(v1::SandboxLevel level);

// What makes no sense in an agent's call.
absl::Status Validate(const v1::SynchronizeRequest& request);

struct Agent {
  std::string id, boot_id, version;
  uint64_t epoch = 0;
  std::string claimant;          // another process, which would have the name
  uint64_t claimed_epoch = 0;    // that it was told
  uint64_t sequence = 0;         // of the last call
  absl::Time last_seen, called;  // called: when its newest call came
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

  // A process that is not the one known of its name takes it with its second call, by the epoch that the first is
  // answered with: what comes late from one that is dead takes no name. Where this is the first call: that epoch.
  std::optional<uint64_t> Claim(const v1::SynchronizeRequest& request);
  bool Unproven(const v1::SynchronizeRequest& request) const;  // whether it is such a first call

  // Whether Register would refuse it, for another call or another process of that name.
  bool Overtaken(const v1::SynchronizeRequest& request) const;
  Agent* Find(const std::string& agent_id);  // nullptr when unknown
  std::map<std::string, Agent>& agents() { return agents_; }
  const std::map<std::string, Agent>& agents() const { return agents_; }

  // What a process is told after another one has taken its name.
  static absl::Status Superseded(const std::string& agent_id);

  // The device measured a batch. celsius: the hottest it was.
  void CountDone(const Agent& agent, Device& device, int64_t candidates, std::optional<double> celsius);
  // name: NameOf a device, which need not be there any more.
  void CountTrouble(const std::string& name, const std::string& why, absl::Time now);
  // One trouble of it turned out to be a candidate's.
  void Forgive(const std::string& name);
  // Its idle devices that are to measure their golden kernel now; they are not asked for again for a while.
  std::vector<std::string> AskForChecks(Agent& agent, absl::Time now);

  void Drain(const std::string& agent_id, const std::string& reason);
  void Undrain(const std::string& agent_id);  // ends quarantine too, and forgets what its devices were like
  bool drained(const std::string& agent_id) const { return drained_.contains(agent_id); }

  bool Silent(const Agent& agent, absl::Time now) const { return now - agent.last_seen > options_.lease_ttl; }
  bool Online(const Agent& agent, absl::Time now) const { return now - agent.last_seen <= options_.offline_after; }
  // "" for a healthy device, else why it gets no work.
  std::string Problem(const Agent& agent, const Device& device, absl::Time now) const;
  // The same for its agent's log: "" where it may get work, and a text that changes only when something happens.
  std::string Barred(const Agent& agent, const Device& device, absl::Time now) const;
  // Whether the device may get work at all, now or when its lease ends.
  bool Serves(const Agent& agent, const Device& device, absl::Time now) const;
  // Forgets agents and devices that have been away for long, and ends quarantines that only time can end.
  void Expire(absl::Time now);
  // The tracker stood still for so long: nobody was heard because nobody listened.
  void GiveBack(absl::Duration stall, absl::Time now);

  // Health records that changed since the last call and are to be stored, by name of the device; one without fields is
  // to be forgotten.
  std::map<std::string, v1::HealthRecord> TakeChangedHealth();
  // Of a tracker that ended: how long it was away is not known, so that what cools down has all its time again.
  void RestoreHealth(const std::string& name, v1::HealthRecord health) {
    health.clear_cooling_since();
    health_[name] = std::move(health);
  }

  std::vector<v1::Device> List(const v1::ListDevicesRequest& request, absl::Time now) const;

 private:
  const DeviceOptions options_;
  const uint64_t incarnation_;
  uint64_t next_epoch_ = 0;
  std::map<std::string, Agent> agents_;
  std::string LackOfWall(const v1::Sandbox& sandbox) const;
  uint64_t NextEpoch() { return incarnation_ << 32 | ++next_epoch_; }
  void DescribeHealth(const Agent& agent, const Device& device, absl::Time now, v1::Device& proto) const;
  v1::HealthRecord& HealthOf(const std::string& name);  // to be changed, and then stored
  void TakeState(const Agent& agent, Device& device, const v1::DeviceState& state, absl::Time now);
  bool IsThere(const std::string& name) const;
  void ForgetFormerDevices(const Agent& agent);
  void ForgetAway(absl::Time now);

  std::map<std::string, std::string> drained_;      // agent id to reason; also of agents not known yet
  std::map<std::string, v1::HealthRecord> health_;  // by name; also of devices that are away
  std::set<std::string> changed_health_;
  std::map<std::string, absl::Time> away_;  // devices that are in health_ and that no agent states, since when
  absl::Time looked_for_away_ = absl::InfinitePast();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_DEVICES_H_
