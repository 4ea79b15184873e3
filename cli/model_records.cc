// SPDX-License-Identifier: Apache-2.0
#include "cli/model_records.h"

#include <utility>

#include "base/status.h"
#include "cli/command.h"
#include "cli/progress_line.h"
#include "compiler/version.h"
#include "fmt/format.h"

namespace hone::cli {

absl::StatusOr<ModelRecords> FindModelRecords(const RecordsOptions& options, const records::Filter& filter,
                                              const records::Source& source) {
  HONE_ASSIGN_OR_RETURN(const std::vector<DevicePlace> places, options.Places(filter));
  if (places.size() > 1) {
    return UsageError(fmt::format("--device {} selects devices with {} targets; choose one with --target",
                                  options.filter.device_fingerprint, places.size()));
  }
  const DevicePlace& place = places.front();
  const std::string target = target::Print(place.target);
  HONE_ASSIGN_OR_RETURN(std::vector<ModelWorkload> workloads,
                        WorkloadsOf(options.model, options.model.models.front(), place.target));
  std::erase_if(workloads, [&filter](const ModelWorkload& workload) {
    return !workload.digest.starts_with(filter.workload_digest) ||
           workload.op.find(filter.operator_label) == std::string::npos;
  });
  ModelRecords found = {.target = target};
  ProgressLine line;
  for (ModelWorkload& workload : workloads) {
    line.Show(fmt::format("{} of {} workloads looked up", found.entries.size(), workloads.size()));
    records::Filter of_workload = filter;
    of_workload.workload_digest = workload.digest;
    of_workload.operator_label.clear();
    of_workload.target = target;
    of_workload.limit = SIZE_MAX;
    HONE_ASSIGN_OR_RETURN(std::vector<records::BestRecord> winners, source.AllBest(of_workload));
    const records::Key wanted{workload.digest, target, place.fingerprint, kCompilerVersion};
    std::optional<records::NearestRecord> nearest = records::Nearest(wanted, std::move(winners));
    found.missing += nearest.has_value() ? 0 : 1;
    found.entries.push_back({std::move(workload), std::move(nearest)});
  }
  return found;
}

absl::Status CheckRequired(const RecordsOptions& options, const ModelRecords& found) {
  if (!options.require) return absl::OkStatus();
  if (found.entries.empty()) {
    return RecordsMissingError(fmt::format("{} has no workload that matches the filter", options.model.models.front()));
  }
  if (found.missing == 0) return absl::OkStatus();
  return RecordsMissingError(
      fmt::format("{} of the {} workloads of {} have no record for {}; `hone tune` measures them", found.missing,
                  found.entries.size(), options.model.models.front(), found.target));
}

}  // namespace hone::cli
