// SPDX-License-Identifier: Apache-2.0
#include "cli/farm_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/status.h"
#include "cli/command.h"
#include "cli/job_client.h"
#include "tracker/queue/matches.h"

namespace hone::cli {
namespace {

constexpr size_t kDevicesNamedMax = 20;  // devices that an error message lists

// "board/cpu (rpi4, room=lab)"
std::string WithLabels(const v1::Device& device) {
  std::vector<std::string> labels;
  for (const auto& [name, value] : std::map(device.state().labels().begin(), device.state().labels().end())) {
    labels.push_back(tracker::LabelText(name, value));
  }
  return labels.empty() ? NameOf(device) : fmt::format("{} ({})", NameOf(device), fmt::join(labels, ", "));
}

std::string Among(const std::vector<v1::Device>& known) {
  if (known.empty()) return "it has no devices yet (on a board, run: hone-agent join)";
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(known.size(), kDevicesNamedMax); ++i) names.push_back(WithLabels(known[i]));
  if (known.size() > kDevicesNamedMax) names.push_back(fmt::format("and {} more", known.size() - kDevicesNamedMax));
  return fmt::format("it has {}", fmt::join(names, ", "));
}

}  // namespace

std::string NameOf(const v1::Device& device) { return tracker::NameOf(device.agent_id(), device.state().device_id()); }

absl::StatusOr<std::vector<v1::Device>> SelectDevices(const std::vector<v1::Device>& known, const std::string& words) {
  std::vector<v1::Device> meant;
  for (const v1::Device& device : known) {
    if (tracker::MatchesWords(words, device.agent_id(), device.state())) meant.push_back(device);
  }
  if (!meant.empty()) return meant;
  return absl::NotFoundError(
      fmt::format("--device {}: the farm has no device with that name or label; {}", words, Among(known)));
}

absl::StatusOr<target::Target> TargetOf(const v1::Device& device, int threads) {
  if (device.state().target().empty()) {
    return absl::FailedPreconditionError(
        fmt::format("{} does not report its target; give --target, or start its agent with --target", NameOf(device)));
  }
  absl::StatusOr<target::Target> target = target::ParseTarget(device.state().target());
  if (!target.ok())
    return Annotate(target.status(), fmt::format("{} has a target that this hone does not know", NameOf(device)));
  if (threads > 0) target->threads = threads;
  return target;
}

absl::StatusOr<std::vector<v1::Device>> KnownDevices(TrackerOptions& tracker) {
  HONE_ASSIGN_OR_RETURN(const auto channel, tracker.Connect());
  HONE_ASSIGN_OR_RETURN(const v1::ListDevicesResponse known, JobClient(channel, tracker.address).Devices());
  return std::vector<v1::Device>(known.devices().begin(), known.devices().end());
}

absl::StatusOr<std::vector<DevicePlace>> SelectDevicePlaces(const std::vector<v1::Device>& known,
                                                            const std::vector<std::string>& asked, int threads) {
  std::vector<DevicePlace> places;
  std::map<std::string, const v1::Device*> first;  // by target: the first device that has it
  std::vector<v1::Device> meant;
  for (const std::string& words : asked) {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> some, SelectDevices(known, words));
    meant.insert(meant.end(), some.begin(), some.end());
  }
  for (const v1::Device& device : meant) {
    HONE_ASSIGN_OR_RETURN(target::Target target, TargetOf(device, threads));
    const auto [other, is_new] = first.try_emplace(target::Print(target), &device);
    const std::string& fingerprint = device.state().fingerprint().text();
    if (is_new) {
      places.push_back({std::move(target), fingerprint});
    } else if (other->second->state().fingerprint().text() != fingerprint) {
      return UsageError(
          fmt::format("{} and {} are different kinds of device with the same target, but a package has only one "
                      "program for a target; name one of them",
                      NameOf(*other->second), NameOf(device)));
    }
  }
  return places;
}

}  // namespace hone::cli
