#include "tracker/queue/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "tracker/queue/jobs.h"

namespace hone::tracker {
namespace {

constexpr size_t kFormerBoots = 8;

absl::Status Validate(const v1::SynchronizeRequest& request) {
  if (request.protocol_version() != v1::PROTOCOL_VERSION_1) {
    return absl::FailedPreconditionError(
        fmt::format("agent speaks protocol version {}, this tracker version 1; update the older of the two",
                    static_cast<int>(request.protocol_version())));
  }
  if (request.agent_id().empty()) return absl::InvalidArgumentError("agent has no agent_id");
  if (request.boot_id().empty()) return absl::InvalidArgumentError("agent has no boot_id");
  std::set<std::string> ids;
  for (const v1::DeviceState& device : request.devices()) {
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

// A new process of a known agent: whatever the old one held is lost.
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

absl::StatusOr<Agent*> DeviceRegistry::Register(const v1::SynchronizeRequest& request, absl::Time now) {
  HONE_RETURN_IF_ERROR(Validate(request));
  Agent& agent = agents_[request.agent_id()];
  agent.id = request.agent_id();
  if (agent.boot_id != request.boot_id()) {
    HONE_RETURN_IF_ERROR(ChangeBoot(agent, request));
    agent.epoch = incarnation_ << 32 | ++next_epoch_;
  } else if (request.sequence() <= agent.sequence) {
    return absl::AbortedError(fmt::format("call {} of agent '{}' was overtaken by call {}", request.sequence(),
                                          request.agent_id(), agent.sequence));
  }
  agent.sequence = request.sequence();
  agent.version = request.agent_version();
  agent.last_seen = now;
  agent.leaving = request.leaving();

  std::map<std::string, Device> devices;
  for (const v1::DeviceState& state : request.devices()) {
    auto known = agent.devices.extract(state.device_id());
    Device& device = devices[state.device_id()];
    if (!known.empty()) device = std::move(known.mapped());
    device.state = state;
  }
  for (auto& [id, device] : agent.devices) {
    if (!device.lease_id.empty()) agent.orphaned_leases.push_back(device.lease_id);
  }
  agent.devices = std::move(devices);
  return &agent;
}

absl::Status DeviceRegistry::Superseded(const std::string& agent_id) {
  return absl::AbortedError(fmt::format(
      "another process has registered as agent '{}' since; stop one of the two or give it another name", agent_id));
}

Agent* DeviceRegistry::Find(const std::string& agent_id) {
  auto found = agents_.find(agent_id);
  return found == agents_.end() ? nullptr : &found->second;
}

void DeviceRegistry::CountDone(Device& device, int64_t candidates) {
  device.losses_in_a_row = 0;
  device.batches_done += 1;
  device.candidates_done += candidates;
}

void DeviceRegistry::CountLoss(Device& device, absl::Time now) {
  device.losses += 1;
  if (++device.losses_in_a_row < options_.losses_to_quarantine) return;
  device.quarantined_until = now + options_.quarantine;
  device.quarantine_reason = fmt::format("lost {} times in a row while measuring", device.losses_in_a_row);
  device.losses_in_a_row = options_.losses_to_quarantine - 1;  // one more loss after the quarantine brings it back
}

void DeviceRegistry::Drain(const std::string& agent_id, const std::string& reason) { drained_[agent_id] = reason; }

void DeviceRegistry::Undrain(const std::string& agent_id) {
  drained_.erase(agent_id);
  if (Agent* agent = Find(agent_id)) {
    for (auto& [id, device] : agent->devices) {
      device.quarantined_until = absl::InfinitePast();
      device.losses_in_a_row = 0;
    }
  }
}

std::string DeviceRegistry::HealthProblem(const Device& device, absl::Time now) const {
  if (!device.state.self_test().passed()) return fmt::format("self-test failed: {}", device.state.self_test().reason());
  if (now < device.quarantined_until) return device.quarantine_reason;
  return "";
}

bool DeviceRegistry::Serves(const Agent& agent, const Device& device, absl::Time now) const {
  return Online(agent, now) && !agent.leaving && !drained(agent.id) && HealthProblem(device, now).empty();
}

void DeviceRegistry::Expire(absl::Time now) {
  std::erase_if(agents_, [&](const auto& entry) {
    const Agent& agent = entry.second;
    const bool idle = std::all_of(agent.devices.begin(), agent.devices.end(),
                                  [](const auto& device) { return device.second.lease_id.empty(); });
    return idle && agent.orphaned_leases.empty() && now - agent.last_seen > options_.forget_after;
  });
}

std::vector<v1::Device> DeviceRegistry::List(const v1::ListDevicesRequest& request, absl::Time now) const {
  std::vector<v1::Device> list;
  for (const auto& [id, agent] : agents_) {
    for (const auto& [device_id, device] : agent.devices) {
      if (request.has_for_work() && !(Serves(agent, device, now) && Matches(request.for_work(), device.state))) {
        continue;
      }
      v1::Device& proto = list.emplace_back();
      proto.set_agent_id(id);
      *proto.mutable_state() = device.state;
      proto.set_activity(!Online(agent, now)       ? v1::DEVICE_ACTIVITY_OFFLINE
                         : device.lease_id.empty() ? v1::DEVICE_ACTIVITY_IDLE
                                                   : v1::DEVICE_ACTIVITY_MEASURING);
      proto.set_health_reason(HealthProblem(device, now));
      proto.set_health(proto.health_reason().empty() ? v1::DEVICE_HEALTH_GOOD : v1::DEVICE_HEALTH_QUARANTINED);
      proto.set_drained(drained(id));
      *proto.mutable_last_seen() = ToProto(agent.last_seen);
      proto.set_batches_done(device.batches_done);
      proto.set_candidates_done(device.candidates_done);
      proto.set_losses(device.losses);
      proto.set_agent_version(agent.version);
    }
  }
  return list;
}

bool Matches(const v1::Requirements& requirements, const v1::DeviceState& device) {
  const v1::DeviceFingerprint& fingerprint = device.fingerprint();
  if (!requirements.target().empty() && requirements.target() != device.target()) return false;
  if (!requirements.architecture().empty() && requirements.architecture() != fingerprint.architecture()) return false;
  if (!requirements.fingerprint_digest().empty() && requirements.fingerprint_digest() != fingerprint.digest())
    return false;
  if (requirements.threads() > device.threads()) return false;
  const auto& features = fingerprint.cpu_features();
  for (const std::string& feature : requirements.cpu_features()) {
    if (std::find(features.begin(), features.end(), feature) == features.end()) return false;
  }
  for (const auto& [name, value] : requirements.labels()) {
    auto label = device.labels().find(name);
    if (label == device.labels().end() || label->second != value) return false;
  }
  return true;
}

std::string Describe(const v1::Requirements& requirements) {
  std::vector<std::string> parts;
  if (!requirements.target().empty()) parts.push_back(fmt::format("target '{}'", requirements.target()));
  if (!requirements.architecture().empty())
    parts.push_back(fmt::format("architecture {}", requirements.architecture()));
  for (const std::string& feature : requirements.cpu_features()) parts.push_back(fmt::format("feature {}", feature));
  for (const auto& [name, value] : requirements.labels()) parts.push_back(fmt::format("label {}={}", name, value));
  if (!requirements.fingerprint_digest().empty()) {
    parts.push_back(fmt::format("fingerprint {}", requirements.fingerprint_digest().substr(0, 12)));
  }
  if (requirements.threads() > 1) parts.push_back(fmt::format("{} threads", requirements.threads()));
  return parts.empty() ? "any device" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace hone::tracker
