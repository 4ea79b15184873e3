// SPDX-License-Identifier: Apache-2.0
// The registry of agents and their devices: registration, epochs, last contact, drain, and health records.
//
// An agent is identified by its id and, within it, by the boot id of its process; each boot gets a new epoch, so that
// messages of an older process are recognized. Pure state: no threads, no input or output, no clock; calls that depend
// on time take `now`, which must not go back. Not here: batches (a device carries only the id of its lease), and the
// rules by which a device counts as healthy (health.h). Start at Register. Not thread-safe.
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
  std::string lease_id;                                       // "" when idle
  absl::Time next_check_request = absl::InfinitePast();       // earliest time to ask for another golden check
  int64_t batches_done = 0, candidates_done = 0, losses = 0;  // since the tracker started
};

// The level as users write it: "wall". "" for UNSPECIFIED, when the agent did not say.
std::string NameOf(v1::SandboxLevel level);

// Checks the fields of an agent's call. kInvalidArgument: names the field that is missing or out of range.
absl::Status Validate(const v1::SynchronizeRequest& request);

struct Agent {
  std::string id, boot_id, version;
  uint64_t epoch = 0;
  std::string claimant;        // boot id of another process that asked to take over this agent id; "" without one
  uint64_t claimed_epoch = 0;  // the epoch that the claimant was answered with
  uint64_t sequence = 0;       // of the last call
  absl::Time last_seen;        // also moves while a call of the agent is open
  absl::Time called;           // when its newest call came
  absl::Time broke_off = absl::InfiniteFuture();  // when its newest call was found broken off; infinite: it was not
  bool leaving = false;                           // the agent announced that it will stop
  bool reported_drained = false;                  // whether its last answer said that it is drained
  std::map<std::string, Device> devices;
  std::deque<std::string> former_boots;  // boot ids that were replaced; their calls are refused
  // Leases that are lost, because the agent no longer lists their device or because they belong to its former boot.
  std::vector<std::string> orphaned_leases;
};

class DeviceRegistry {
 public:
  DeviceRegistry(DeviceOptions options, uint64_t incarnation) : options_(options), incarnation_(incarnation) {}

  // Updates the agent and its devices from what it states about itself. A new boot gets a new epoch and takes the agent
  // id over at once, unless it is one of the last boots that were superseded; call Claim first. Errors as in
  // agent.proto.
  absl::StatusOr<Agent*> Register(const v1::SynchronizeRequest& request, absl::Time now);

  // A new process takes over an agent id in two calls: its first call is answered with an epoch, and the second call,
  // which repeats that epoch, is registered. A delayed call of a dead process therefore takes over nothing.
  // Claim returns the epoch to answer with if this is such a first call, else nullopt.
  std::optional<uint64_t> Claim(const v1::SynchronizeRequest& request);
  bool IsFirstClaim(const v1::SynchronizeRequest& request) const;  // as Claim, without changing anything

  // Whether Register would refuse the call, because a newer call or another process of the same id has replaced it.
  bool IsSuperseded(const v1::SynchronizeRequest& request) const;
  Agent* Find(const std::string& agent_id);  // nullptr when unknown
  std::map<std::string, Agent>& agents() { return agents_; }
  const std::map<std::string, Agent>& agents() const { return agents_; }

  // The error for a process whose agent id another process has taken over.
  static absl::Status Superseded(const std::string& agent_id);

  // The device measured a batch. celsius: its highest temperature meanwhile; nullopt: not known.
  void CountDone(const Agent& agent, Device& device, int64_t candidates, std::optional<double> celsius);
  // Counts a failure against the device. name: "agent/device"; the device may be offline.
  void CountFailure(const std::string& name, const std::string& why, absl::Time now);
  // Takes back one counted failure, because a candidate turned out to be its cause.
  void Forgive(const std::string& name);
  // Ids of the agent's idle devices that must measure their golden kernel now. Each is returned again only after a
  // pause.
  std::vector<std::string> AskForChecks(Agent& agent, absl::Time now);

  void Drain(const std::string& agent_id, const std::string& reason);
  void Undrain(const std::string& agent_id);  // also ends quarantines and resets the health records of its devices
  bool drained(const std::string& agent_id) const { return drained_.contains(agent_id); }

  bool IsSilent(const Agent& agent, absl::Time now) const { return now - agent.last_seen > options_.lease_ttl; }
  // An agent without a boot id is known from before this start of the tracker, and has not called since.
  bool IsOnline(const Agent& agent, absl::Time now) const {
    return !agent.boot_id.empty() && now - agent.last_seen <= options_.offline_after &&
           now - agent.broke_off <= options_.offline_after_break;
  }
  // What is wrong with the device itself: its self-test, sandbox or health; "" if nothing is. Draining, leaving and
  // silence of its agent are not considered (see CanServe).
  std::string Problem(const Agent& agent, const Device& device, absl::Time now) const;
  // As Problem, or that the agent is drained, for the agent's log. The text holds no running times, so it changes only
  // when the reason does.
  std::string ExclusionReason(const Agent& agent, const Device& device, absl::Time now) const;
  // Whether the device may get work at all, now or when its lease ends.
  bool CanServe(const Agent& agent, const Device& device, absl::Time now) const;
  // Forgets agents and health records of devices that were away for DeviceOptions::forget_after, except records of
  // devices in quarantine. Ends the quarantines of devices without a golden kernel whose time is over. Repairs
  // quarantines that begin after `now` (RestartQuarantineAfterClockStep).
  void Expire(absl::Time now);
  // The tracker stood still for `stall` and could receive nothing: that time counts as silence of no agent.
  void ExcludeStall(absl::Duration stall, absl::Time now);

  // Health records that changed since the last call and must be stored, by "agent/device". An empty record must be
  // deleted from the store.
  std::map<std::string, v1::HealthRecord> TakeChangedHealth();
  // Restores a stored record at start, and the device as it was known, which is offline until its agent calls. A device
  // that was cooling down gets its whole cooling time again, because the tracker does not know how long it was not
  // running.
  void RestoreHealth(const std::string& name, v1::HealthRecord health);

  std::vector<v1::Device> List(const v1::ListDevicesRequest& request, absl::Time now) const;

 private:
  const DeviceOptions options_;
  const uint64_t incarnation_;
  uint64_t next_epoch_ = 0;
  std::map<std::string, Agent> agents_;
  std::string SandboxShortfall(const v1::Sandbox& sandbox) const;
  uint64_t NextEpoch() { return incarnation_ << 32 | ++next_epoch_; }
  void DescribeHealth(const Agent& agent, const Device& device, absl::Time now, v1::Device& proto) const;
  v1::HealthRecord& HealthOf(const std::string& name);  // marks the record as changed
  void TakeState(const Agent& agent, Device& device, const v1::DeviceState& state, absl::Time now);
  void RememberDevice(const Agent& agent, const v1::DeviceState& state, absl::Time now);
  bool IsPresent(const std::string& name) const;
  void ForgetFormerDevices(const Agent& agent);
  void ForgetAway(absl::Time now);

  std::map<std::string, std::string> drained_;      // agent id to reason; holds agents that are not known yet, too
  std::map<std::string, v1::HealthRecord> health_;  // by "agent/device"; holds devices that are away, too
  std::set<std::string> changed_health_;
  std::map<std::string, absl::Time> away_;  // devices in health_ that no agent lists; since when
  absl::Time away_checked_ = absl::InfinitePast();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_DEVICES_H_
