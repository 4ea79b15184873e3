#include "cli/records_options.h"

#include "base/status.h"
#include "cli/command.h"
#include "cli/job_client.h"
#include "fmt/format.h"

namespace hone::cli {
namespace {

// A device of the farm by its name, or the fingerprint itself.
absl::StatusOr<std::string> FingerprintOf(const TrackerOptions& given, const std::string& device) {
  TrackerOptions tracker = given;
  HONE_ASSIGN_OR_RETURN(const auto channel, tracker.Connect());
  HONE_ASSIGN_OR_RETURN(const v1::ListDevicesResponse known, JobClient(channel, tracker.address).Devices());
  std::string fingerprint;
  for (const v1::Device& d : known.devices()) {
    const std::string& found = d.state().fingerprint().text();
    if (device != d.agent_id() && device != d.agent_id() + "/" + d.state().device_id()) continue;
    if (!fingerprint.empty() && fingerprint != found) {
      return UsageError(fmt::format("{} has several devices; name one, as `hone devices` lists them: {}/DEVICE", device,
                                    d.agent_id()));
    }
    fingerprint = found;
  }
  return fingerprint.empty() ? device : fingerprint;
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
