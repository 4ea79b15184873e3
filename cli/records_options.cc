// SPDX-License-Identifier: Apache-2.0
#include "cli/records_options.h"

#include "base/status.h"
#include "cli/command.h"
#include "cli/farm_devices.h"
#include "cli/schedule_lookup.h"
#include "fmt/format.h"

namespace hone::cli {
namespace {

// Whether the value of --device is a fingerprint. Fingerprints contain spaces; names in `hone devices` do not.
bool IsFingerprint(const std::string& device) { return device.find(' ') != std::string::npos; }

absl::StatusOr<std::string> FingerprintOf(const TrackerOptions& given, const std::string& device) {
  if (IsFingerprint(device)) return device;
  TrackerOptions tracker = given;
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> known, KnownDevices(tracker));
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> meant, SelectDevices(known, device));
  for (const v1::Device& other : meant) {
    if (other.state().fingerprint().text() == meant.front().state().fingerprint().text()) continue;
    return UsageError(
        fmt::format("--device {} selects {} and {}, which are different kinds of device; name one of them", device,
                    NameOf(meant.front()), NameOf(other)));
  }
  return meant.front().state().fingerprint().text();
}

absl::Status SetFailure(const std::string& failure, records::Filter& filter) {
  if (failure.empty()) return absl::OkStatus();
  filter.outcomes = records::Filter::Outcomes::kFailed;
  if (failure == "any") return absl::OkStatus();
  filter.failure = FailureKindFromName(failure);
  if (filter.failure.has_value()) return absl::OkStatus();
  std::string known = "any";
  for (const auto kind : kAllFailureKinds) known += fmt::format(", {}", FailureKindName(kind));
  return UsageError(fmt::format("--failed: there is no failure kind '{}'; give one of: {}", failure, known));
}

// Sets the filter's target from --target. The value is a target in any form, or the stored text of one. A stored target
// may be unknown to this Hone, or written in another form, so the given text is matched as well.
absl::Status SetTarget(const ModelOptions& model, records::Filter& filter) {
  const std::string& given = model.targets.front();
  absl::StatusOr<target::Target> target = target::ParseTarget(given);
  if (!target.ok() && model.threads > 0) {
    return UsageError(fmt::format("--threads needs a valid target, but '{}' is not one: {}", given,
                                  std::string(target.status().message())));
  }
  if (target.ok() && model.threads > 0) target->threads = model.threads;
  filter.target = target.ok() ? target::Print(*target) : given;
  if (model.threads == 0 && filter.target != given) filter.other_target = given;
  return absl::OkStatus();
}

absl::Status CheckModelOptions(const RecordsOptions& options) {
  const ModelOptions& model = options.model;
  if (model.given()) return absl::OkStatus();
  if (options.require) return UsageError("--require needs a model whose workloads it checks: give --model FILE");
  if (!model.shapes.empty() || !model.bindings.empty()) {
    return UsageError("--shape and --bind describe inputs of a model: give --model FILE");
  }
  if (model.threads > 0 && model.targets.empty()) {
    return UsageError("--threads belongs to a target: give --target, or --model FILE");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<records::Filter> RecordsOptions::ResolvedFilter() const {
  HONE_RETURN_IF_ERROR(CheckModelOptions(*this));
  records::Filter resolved = filter;
  HONE_RETURN_IF_ERROR(SetFailure(failure, resolved));
  if (!model.given() && !model.targets.empty()) HONE_RETURN_IF_ERROR(SetTarget(model, resolved));
  if (source.tracker.given() && !filter.device_fingerprint.empty()) {
    HONE_ASSIGN_OR_RETURN(resolved.device_fingerprint, FingerprintOf(source.tracker, filter.device_fingerprint));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<records::Source>> RecordsOptions::OpenToRead() const {
  absl::StatusOr<std::unique_ptr<records::Source>> opened = source.Open(records::OpenMode::kReadOnly);
  if (!opened.ok()) return source.MissingIfNoFile(opened.status(), require);
  return opened;
}

absl::StatusOr<std::vector<DevicePlace>> RecordsOptions::Places(const records::Filter& resolved) const {
  HONE_RETURN_IF_ERROR(model.Targets().status());  // a usage error if a --target joins several
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<DevicePlace>> lists, PlaceLists(resolved));
  std::vector<DevicePlace> places;
  for (const std::vector<DevicePlace>& list : lists) places.push_back(list.front());
  return places;
}

absl::StatusOr<std::vector<std::vector<DevicePlace>>> RecordsOptions::PlaceLists(
    const records::Filter& resolved) const {
  std::vector<std::vector<DevicePlace>> lists;
  const std::string& device = filter.device_fingerprint;
  if (source.tracker.given() && !device.empty() && !IsFingerprint(device) && model.targets.empty()) {
    TrackerOptions tracker = source.tracker;
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> known, KnownDevices(tracker));
    HONE_ASSIGN_OR_RETURN(const std::vector<DevicePlace> places, SelectDevicePlaces(known, {device}, model.threads));
    for (const DevicePlace& place : places) lists.push_back({place});
    return lists;
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<target::Target>> targets, model.TargetLists());
  for (const std::vector<target::Target>& list : targets) {
    std::vector<DevicePlace>& places = lists.emplace_back();
    for (const target::Target& target : list) {
      HONE_ASSIGN_OR_RETURN(const Place place, PlaceOf(target));
      places.push_back({target, device.empty() ? place.device_fingerprint : resolved.device_fingerprint});
    }
  }
  return lists;
}

}  // namespace hone::cli
