#include "cli/records_options.h"

#include "base/status.h"
#include "cli/command.h"
#include "cli/farm_devices.h"
#include "fmt/format.h"

namespace hone::cli {
namespace {

// A device of the farm in the words of --device, or the fingerprint itself, which alone has spaces.
absl::StatusOr<std::string> FingerprintOf(const TrackerOptions& given, const std::string& device) {
  if (device.find(' ') != std::string::npos) return device;
  TrackerOptions tracker = given;
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> known, KnownDevices(tracker));
  HONE_ASSIGN_OR_RETURN(const std::vector<v1::Device> meant, DevicesMeant(known, device));
  for (const v1::Device& other : meant) {
    if (other.state().fingerprint().text() == meant.front().state().fingerprint().text()) continue;
    return UsageError(fmt::format("--device {} means {} and {}, which are of different kinds; name one of them", device,
                                  NameOf(meant.front()), NameOf(other)));
  }
  return meant.front().state().fingerprint().text();
}

absl::Status SetFailure(const std::string& failure, records::Filter& filter) {
  if (failure.empty()) return absl::OkStatus();
  filter.outcomes = records::Filter::Outcomes::kFailed;
  if (failure == "any") return absl::OkStatus();
  filter.failure = records::FailureKindFromName(failure);
  if (filter.failure.has_value()) return absl::OkStatus();
  std::string known = "any";
  for (const auto kind : records::kAllFailureKinds) known += fmt::format(", {}", records::FailureKindName(kind));
  return UsageError(fmt::format("--failed does not know '{}'; it takes one of: {}", failure, known));
}

}  // namespace

absl::StatusOr<records::Filter> RecordsOptions::ResolvedFilter() const {
  if (require && !model.given()) return UsageError("--require is about the workloads of a model: give --model FILE");
  records::Filter resolved = filter;
  HONE_RETURN_IF_ERROR(SetFailure(failure, resolved));
  if (!model.targets.empty()) {
    // In the words of people, or as stored, which may be a target that this Hone does not know.
    const absl::StatusOr<target::Target> target = target::ParseTarget(model.targets.front());
    resolved.target = target.ok() ? target::Print(*target) : model.targets.front();
  }
  if (source.tracker.given() && !filter.device_fingerprint.empty()) {
    HONE_ASSIGN_OR_RETURN(resolved.device_fingerprint, FingerprintOf(source.tracker, filter.device_fingerprint));
  }
  return resolved;
}

}  // namespace hone::cli
