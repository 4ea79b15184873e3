// SPDX-License-Identifier: Apache-2.0
#include "tracker/queue/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/protocol_version.h"
#include "base/status.h"
#include "proto/convert.h"
#include "proto/is_equal.h"
#include "tracker/queue/health.h"
#include "tracker/queue/text_limits.h"

namespace hone::tracker {
namespace {

constexpr size_t kFormerBoots = 8;
constexpr int kDevicesPerAgentMax = 64;               // machines have eight GPUs, rarely sixteen
constexpr size_t kDeviceBytesMax = size_t{64} << 10;  // a device's description usually has some kilobytes
// Health records of one agent's devices, former devices included, so that an agent may change its cards several times.
constexpr size_t kHealthRecordsPerAgentMax = 256;
constexpr absl::Duration kKnownPeriod = absl::Minutes(10);     // how exactly `last_seen` of a stored device is kept
constexpr absl::Duration kAwayCheckPeriod = absl::Minutes(1);  // a minute is little against forget_after

absl::Status ValidateDevice(const v1::DeviceState& device) {
  HONE_RETURN_IF_ERROR(CheckNameLength("device_id", device.device_id()));
  if (device.ByteSizeLong() <= kDeviceBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("the description of device '{}' has {} bytes; the limit is {}",
                                                device.device_id(), device.ByteSizeLong(), kDeviceBytesMax));
}

// A new process of a known agent has started: the leases of the old process are lost.
absl::Status ChangeBoot(Agent& agent, const v1::SynchronizeRequest& request) {
  if (std::find(agent.former_boots.begin(), agent.former_boots.end(), request.boot_id()) != agent.former_boots.end()) {
    return DeviceRegistry::Superseded(agent.id);
  }
  if (!agent.boot_id.empty()) agent.former_boots.push_back(agent.boot_id);
  if (agent.former_boots.size() > kFormerBoots) agent.former_boots.pop_front();
  agent.boot_id = request.boot_id();
  agent.sequence = 0;
  for (auto& [id, device] : agent.devices) {
    if (!device.lease_id.empty()) agent.orphaned_leases.push_back(std::exchange(device.lease_id, ""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const v1::SynchronizeRequest& request) {
  HONE_RETURN_IF_ERROR(CheckNameLength("agent_id", request.agent_id()));
  HONE_RETURN_IF_ERROR(CheckNameLength("boot_id", request.boot_id()));
  HONE_RETURN_IF_ERROR(CheckNameLength("agent_version", request.agent_version()));
  HONE_RETURN_IF_ERROR(CheckProtocol(request.protocol_version(), fmt::format("agent '{}'", request.agent_id())));
  if (request.agent_id().empty()) return absl::InvalidArgumentError("agent has no agent_id");
  if (request.boot_id().empty()) return absl::InvalidArgumentError("agent has no boot_id");
  if (request.devices_size() > kDevicesPerAgentMax) {
    return absl::InvalidArgumentError(fmt::format("agent '{}' has {} devices; the limit is {}; run several agents",
                                                  request.agent_id(), request.devices_size(), kDevicesPerAgentMax));
  }
  std::set<std::string> ids;
  for (const v1::DeviceState& device : request.devices()) {
    HONE_RETURN_IF_ERROR(ValidateDevice(device));
    if (device.device_id().empty() || !ids.insert(device.device_id()).second) {
      return absl::InvalidArgumentError(
          fmt::format("device id '{}' of agent '{}' is empty or used twice", device.device_id(), request.agent_id()));
    }
    if (device.fingerprint().digest().empty() || device.threads() < 1) {
      return absl::InvalidArgumentError(fmt::format("device '{}' of agent '{}' lacks a fingerprint or a thread",
                                                    device.device_id(), request.agent_id()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Agent*> DeviceRegistry::Register(const v1::SynchronizeRequest& request, absl::Time now) {
  HONE_RETURN_IF_ERROR(Validate(request));
  Agent& agent = agents_[request.agent_id()];
  agent.id = request.agent_id();
  const bool new_boot = agent.boot_id != request.boot_id();
  if (new_boot) {
    const bool claimed = !agent.boot_id.empty();
    HONE_RETURN_IF_ERROR(ChangeBoot(agent, request));
    agent.epoch = claimed ? agent.claimed_epoch : NextEpoch();
    agent.claimant.clear();
  } else if (request.sequence() <= agent.sequence) {
    return absl::AbortedError(fmt::format("call {} of agent '{}' came after its newer call {}", request.sequence(),
                                          request.agent_id(), agent.sequence));
  }
  agent.sequence = request.sequence();
  agent.version = request.agent_version();
  agent.last_seen = agent.called = now;
  agent.broke_off = absl::InfiniteFuture();
  agent.leaving = request.leaving();

  std::map<std::string, Device> devices;
  for (const v1::DeviceState& state : request.devices()) {
    auto known = agent.devices.extract(state.device_id());
    Device& device = devices[state.device_id()];
    if (!known.empty()) device = std::move(known.mapped());
    TakeState(agent, device, state, now);
  }
  for (auto& [id, device] : agent.devices) {
    if (!device.lease_id.empty()) agent.orphaned_leases.push_back(device.lease_id);
    // It is gone, not away: a tracker that starts again must not show it.
    if (const auto former = health_.find(NameOf(agent.id, id)); former != health_.end() && former->second.has_known()) {
      HealthOf(former->first).clear_known();
    }
  }
  agent.devices = std::move(devices);
  ForgetFormerDevices(agent);
  return &agent;
}

void DeviceRegistry::TakeState(const Agent& agent, Device& device, const v1::DeviceState& state, absl::Time now) {
  device.state = state;
  RememberDevice(agent, state, now);
  const std::string name = NameOf(agent.id, state.device_id());
  if (!state.has_golden() || !RememberCheck(health_[name], agent.boot_id, state.golden())) return;
  ApplyCheck(HealthOf(name), state.golden(), now, options_);
  device.next_check_request = now + options_.cooling_check;
}

// Notes what is needed of a device that is away. Written seldom, because agents call every second.
void DeviceRegistry::RememberDevice(const Agent& agent, const v1::DeviceState& state, absl::Time now) {
  v1::KnownDevice known;
  *known.mutable_state() = state;
  known.mutable_state()->clear_golden();
  known.set_agent_version(agent.version);
  const std::string name = NameOf(agent.id, state.device_id());
  v1::HealthRecord& record = health_[name];
  // The self-test's numbers differ each time.
  v1::KnownDevice before = record.known();
  const bool is_recent = now - FromProto(before.last_seen()) < kKnownPeriod;
  before.clear_last_seen();
  *before.mutable_state()->mutable_self_test() = known.state().self_test();
  if (is_recent && IsEqual(before, known)) return;  // texts of maps would differ by their order
  *known.mutable_last_seen() = ToProto(now);
  *HealthOf(name).mutable_known() = std::move(known);
}

void DeviceRegistry::RestoreHealth(const std::string& name, v1::HealthRecord health) {
  health.clear_cooling_since();
  if (health.has_known()) {
    const auto [agent_id, device_id] = SplitName(name);
    Agent& agent = agents_[agent_id];
    agent.id = agent_id;
    agent.version = health.known().agent_version();
    agent.last_seen = std::max(agent.last_seen, FromProto(health.known().last_seen()));
    agent.devices[device_id].state = health.known().state();
  }
  health_[name] = std::move(health);
}

bool DeviceRegistry::IsPresent(const std::string& name) const {
  const auto [agent_id, device_id] = SplitName(name);
  const auto agent = agents_.find(agent_id);
  return agent != agents_.end() && agent->second.devices.contains(device_id);
}

// Bounds the health records of one agent, so that an agent that keeps renaming its devices cannot fill the memory.
void DeviceRegistry::ForgetFormerDevices(const Agent& agent) {
  const std::string prefix = NameOf(agent.id, "");
  const auto first = health_.lower_bound(prefix);
  size_t known = 0;
  for (auto health = first; health != health_.end() && health->first.starts_with(prefix); ++health) ++known;
  for (auto health = first; known > kHealthRecordsPerAgentMax;) {
    const bool forgotten = !agent.devices.contains(health->first.substr(prefix.size()));
    if (forgotten) changed_health_.insert(health->first);
    known -= forgotten ? 1 : 0;
    health = forgotten ? health_.erase(health) : std::next(health);
  }
}

// Drops the health records of devices that were away for forget_after, because boards are renamed and given away. Until
// then a record stays, so that a device does not become healthy by going away. A device in quarantine keeps its record.
void DeviceRegistry::ForgetAway(absl::Time now) {
  if (now - away_checked_ < kAwayCheckPeriod) return;
  away_checked_ = now;
  std::map<std::string, absl::Time> away;
  for (auto health = health_.begin(); health != health_.end();) {
    const std::string& name = health->first;
    const auto before = away_.find(name);
    const absl::Time since = before == away_.end() ? now : before->second;
    const bool is_away = !IsPresent(name);
    if (is_away && now - since > options_.forget_after && !IsQuarantined(health->second)) {
      changed_health_.insert(name);
      health = health_.erase(health);
      continue;
    }
    if (is_away) away[name] = since;
    ++health;
  }
  away_ = std::move(away);
}

std::string NameOf(v1::SandboxLevel level) {
  switch (level) {
    case v1::SANDBOX_LEVEL_NONE:
      return "none";
    case v1::SANDBOX_LEVEL_FILTER:
      return "filter";
    case v1::SANDBOX_LEVEL_WALL:
      return "wall";
    default:
      return "";
  }
}

v1::HealthRecord& DeviceRegistry::HealthOf(const std::string& name) {
  changed_health_.insert(name);
  return health_[name];
}

bool DeviceRegistry::IsFirstClaim(const v1::SynchronizeRequest& request) const {
  const auto known = agents_.find(request.agent_id());
  if (known == agents_.end() || known->second.boot_id.empty())
    return false;  // no process of it has called this tracker
  if (known->second.boot_id == request.boot_id() || IsSuperseded(request)) return false;
  const Agent& agent = known->second;
  return agent.claimant != request.boot_id() || agent.claimed_epoch != request.epoch();
}

std::optional<uint64_t> DeviceRegistry::Claim(const v1::SynchronizeRequest& request) {
  if (!IsFirstClaim(request)) return std::nullopt;
  Agent& agent = agents_.at(request.agent_id());
  if (agent.claimant != request.boot_id()) agent.claimed_epoch = NextEpoch();
  agent.claimant = request.boot_id();
  return agent.claimed_epoch;
}

bool DeviceRegistry::IsSuperseded(const v1::SynchronizeRequest& request) const {
  const auto known = agents_.find(request.agent_id());
  if (known == agents_.end()) return false;
  const Agent& agent = known->second;
  if (agent.boot_id == request.boot_id()) return request.sequence() <= agent.sequence;
  return std::find(agent.former_boots.begin(), agent.former_boots.end(), request.boot_id()) != agent.former_boots.end();
}

absl::Status DeviceRegistry::Superseded(const std::string& agent_id) {
  return absl::AbortedError(fmt::format(
      "another process has registered as agent '{}'; stop one of the two, or give it another name", agent_id));
}

Agent* DeviceRegistry::Find(const std::string& agent_id) {
  auto found = agents_.find(agent_id);
  return found == agents_.end() ? nullptr : &found->second;
}

void DeviceRegistry::CountDone(const Agent& agent, Device& device, int64_t candidates, std::optional<double> celsius) {
  device.batches_done += 1;
  device.candidates_done += candidates;
  const std::string name = NameOf(agent.id, device.state.device_id());
  const v1::HealthRecord before = health_[name];
  v1::HealthRecord after = before;
  CountMeasured(after, options_);
  // Only a check of the golden kernel ends cooling down.
  if (device.state.has_golden()) ApplyTemperature(after, celsius, options_);
  // Most batches change nothing, and then the record is not stored again.
  if (!IsEqual(after, before)) HealthOf(name) = std::move(after);
}

void DeviceRegistry::CountFailure(const std::string& name, const std::string& why, absl::Time now) {
  tracker::CountFailure(HealthOf(name), why, now, options_);
}

void DeviceRegistry::Forgive(const std::string& name) { tracker::Forgive(HealthOf(name)); }

std::vector<std::string> DeviceRegistry::AskForChecks(Agent& agent, absl::Time now) {
  std::vector<std::string> ids;
  for (auto& [id, device] : agent.devices) {
    const auto health = health_.find(NameOf(agent.id, id));
    if (health == health_.end() || !device.state.has_golden() || !device.lease_id.empty()) continue;
    if (now < device.next_check_request || !NeedsCheck(health->second, device.state.golden(), now)) continue;
    device.next_check_request = now + options_.cooling_check;
    ids.push_back(id);
  }
  return ids;
}

void DeviceRegistry::Drain(const std::string& agent_id, const std::string& reason) { drained_[agent_id] = reason; }

void DeviceRegistry::Undrain(const std::string& agent_id) {
  drained_.erase(agent_id);
  const std::string own = agent_id + "/";
  for (auto health = health_.lower_bound(own); health != health_.end() && health->first.starts_with(own); ++health) {
    ResetHealth(HealthOf(health->first));
  }
}

// Why the sandbox is less than the farm requires; "" where it suffices. An agent that reports no sandbox has none.
std::string DeviceRegistry::SandboxShortfall(const v1::Sandbox& sandbox) const {
  if (sandbox.level() >= options_.required_sandbox) return "";
  std::vector<std::string> missing;
  for (const v1::SandboxLayer& layer : sandbox.layers()) {
    if (layer.holds()) continue;
    missing.push_back(layer.detail().empty() ? layer.name() : fmt::format("{} ({})", layer.name(), layer.detail()));
  }
  const std::string level = NameOf(sandbox.level());
  return fmt::format(
      "its sandbox level is {}, but the farm requires {}; {}; docs/SANDBOX.md says how to enable them. Then restart "
      "the agent, or start hone-tracker with a lower --require-sandbox",
      level.empty() ? "not known" : level, NameOf(options_.required_sandbox),
      missing.empty() ? "the agent does not report which layers are missing"
                      : fmt::format("missing layers: {}", fmt::join(missing, ", ")));
}

std::string DeviceRegistry::Problem(const Agent& agent, const Device& device, absl::Time now) const {
  const v1::SelfTest& test = device.state.self_test();
  if (test.pending()) return fmt::format("its self-test waits: {}", test.reason());
  if (!test.passed()) return fmt::format("self-test failed: {}", test.reason());
  if (const std::string lack = SandboxShortfall(device.state.sandbox()); !lack.empty()) return lack;
  const auto known = health_.find(NameOf(agent.id, device.state.device_id()));
  return HealthProblem(known == health_.end() ? v1::HealthRecord() : known->second,
                       device.state.has_golden() ? &device.state.golden() : nullptr, now);
}

std::string DeviceRegistry::ExclusionReason(const Agent& agent, const Device& device, absl::Time now) const {
  const auto drain = drained_.find(agent.id);
  if (drain != drained_.end()) {
    return fmt::format("drained{}; hone drain --undo gives it work again",
                       drain->second.empty() ? "" : ": " + drain->second);
  }
  const std::string problem = Problem(agent, device, now);
  const auto known = health_.find(NameOf(agent.id, device.state.device_id()));
  if (problem.empty() || known == health_.end()) return problem;
  // These two texts contain times and temperatures, which change all the time.
  if (problem == known->second.cooling_reason()) return "cooling down: it is too hot, or slows itself down";
  if (problem.starts_with(known->second.quarantine_reason()) && IsQuarantined(known->second)) {
    return "quarantined: " + known->second.quarantine_reason();
  }
  return problem;
}

bool DeviceRegistry::CanServe(const Agent& agent, const Device& device, absl::Time now) const {
  return IsOnline(agent, now) && !agent.leaving && !drained(agent.id) && Problem(agent, device, now).empty();
}

void DeviceRegistry::Expire(absl::Time now) {
  // The clock may have been set back before this start of the tracker.
  for (auto& [id, agent] : agents_) agent.last_seen = std::min(agent.last_seen, now);
  std::erase_if(agents_, [&](const auto& entry) {
    const Agent& agent = entry.second;
    const bool idle = std::all_of(agent.devices.begin(), agent.devices.end(),
                                  [](const auto& device) { return device.second.lease_id.empty(); });
    return idle && agent.orphaned_leases.empty() && now - agent.last_seen > options_.forget_after;
  });
  ForgetAway(now);
  for (auto& [name, health] : health_) {
    if (RestartQuarantineAfterClockStep(health, now)) changed_health_.insert(name);
  }
  for (const auto& [id, agent] : agents_) {
    if (agent.boot_id.empty()) continue;  // not heard yet: whether it has a golden kernel is not known
    for (const auto& [device_id, device] : agent.devices) {
      const std::string name = NameOf(id, device_id);
      const auto health = health_.find(name);
      if (health == health_.end() || device.state.has_golden() || !IsQuarantined(health->second)) continue;
      if (now >= FromProto(health->second.retry_at())) EndOverdueQuarantine(HealthOf(name), now, options_);
    }
  }
}

void DeviceRegistry::ExcludeStall(absl::Duration stall, absl::Time now) {
  for (auto& [id, agent] : agents_) agent.last_seen = std::min(now, agent.last_seen + stall);
  for (auto& [name, since] : away_) since = std::min(now, since + stall);
  for (const auto& [name, health] : health_) {
    if (health.has_cooling_since()) ExcludeStallFromCooling(HealthOf(name), stall, now);
  }
}

std::map<std::string, v1::HealthRecord> DeviceRegistry::TakeChangedHealth() {
  std::map<std::string, v1::HealthRecord> changed;
  for (const std::string& name : std::exchange(changed_health_, {})) {
    const auto known = health_.find(name);
    changed[name] = known == health_.end() ? v1::HealthRecord() : known->second;
  }
  return changed;
}

void DeviceRegistry::DescribeHealth(const Agent& agent, const Device& device, absl::Time now, v1::Device& proto) const {
  proto.set_health_reason(Problem(agent, device, now));
  proto.set_health(v1::DEVICE_HEALTH_GOOD);
  const auto known = health_.find(NameOf(agent.id, device.state.device_id()));
  if (known != health_.end()) {
    *proto.mutable_record() = known->second;
    proto.mutable_record()->clear_counted();
    proto.mutable_record()->clear_known();
    const Baseline baseline = BaselineOf(known->second);
    proto.set_golden_baseline_seconds(baseline.median);
    proto.set_golden_baseline_mad_seconds(baseline.mad);
  }
  if (proto.health_reason().empty()) return;
  const bool cooling = proto.health_reason() == proto.record().cooling_reason();
  const bool unwalled = proto.health_reason() == SandboxShortfall(device.state.sandbox());
  proto.set_health(unwalled  ? v1::DEVICE_HEALTH_UNWALLED
                   : cooling ? v1::DEVICE_HEALTH_COOLING
                             : v1::DEVICE_HEALTH_QUARANTINED);
}

std::vector<v1::Device> DeviceRegistry::List(const v1::ListDevicesRequest& request, absl::Time now) const {
  std::vector<v1::Device> list;
  for (const auto& [id, agent] : agents_) {
    for (const auto& [device_id, device] : agent.devices) {
      if (request.has_for_work() && !(CanServe(agent, device, now) && Matches(request.for_work(), id, device.state))) {
        continue;
      }
      v1::Device& proto = list.emplace_back();
      proto.set_agent_id(id);
      *proto.mutable_state() = device.state;
      proto.set_activity(!IsOnline(agent, now)     ? v1::DEVICE_ACTIVITY_OFFLINE
                         : device.lease_id.empty() ? v1::DEVICE_ACTIVITY_IDLE
                                                   : v1::DEVICE_ACTIVITY_MEASURING);
      DescribeHealth(agent, device, now, proto);
      proto.set_drained(drained(id));
      if (proto.drained() && proto.health_reason().empty()) proto.set_health_reason(drained_.at(id));
      *proto.mutable_last_seen() = ToProto(agent.last_seen);
      proto.set_batches_done(device.batches_done);
      proto.set_candidates_done(device.candidates_done);
      proto.set_losses(device.losses);
      proto.set_agent_version(agent.version);
    }
  }
  return list;
}

}  // namespace hone::tracker
