// SPDX-License-Identifier: Apache-2.0
#include "cli/model_compilation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "cli/output.h"
#include "fmt/ranges.h"

namespace hone::cli {

std::vector<package::KernelOptions> RecordedTargets(const std::vector<DevicePlace>& places,
                                                    const std::shared_ptr<const records::Source>& source,
                                                    OtherTargets others) {
  std::vector<package::KernelOptions> targets;
  for (const DevicePlace& place : places) {
    targets.push_back(
        {.target = place.target,
         .lookup = MakeScheduleLookup(source, Place{target::Print(place.target), place.fingerprint}, others)});
  }
  return targets;
}

absl::StatusOr<std::vector<package::KernelOptions>> RecordedTargets(
    const ModelOptions& model, const std::shared_ptr<const records::Source>& source, OtherTargets others) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::vector<target::Target>> given, model.TargetLists());
  std::vector<package::KernelOptions> targets;
  for (const std::vector<target::Target>& list : given) {
    std::vector<package::UnitOptions> units;
    for (const target::Target& target : list) {
      HONE_ASSIGN_OR_RETURN(const Place place, PlaceOf(target));
      units.push_back({target, source == nullptr ? nullptr : MakeScheduleLookup(source, place, others)});
    }
    package::KernelOptions& added = targets.emplace_back();
    added.target = units.front().target;
    added.lookup = std::move(units.front().lookup);
    added.other_units.assign(std::move_iterator(units.begin() + 1), std::move_iterator(units.end()));
    HONE_ASSIGN_OR_RETURN(added.placement, model.PlacementOn(list));
  }
  return targets;
}

void ShowKernels(ProgressLine& line, std::vector<package::KernelOptions>& targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    const std::string which = targets.size() > 1 ? fmt::format("target {} of {}: ", i + 1, targets.size()) : "";
    targets[i].progress = [&line, which](size_t done, size_t all) {
      line.Show(fmt::format("{}{} of {} kernels are compiled", which, done, all),
                static_cast<double>(done) / static_cast<double>(std::max<size_t>(all, 1)));
    };
  }
}

package::ProgramSummary Sum(std::span<const package::ProgramSummary> programs) {
  package::ProgramSummary sum;
  for (const package::ProgramSummary& program : programs) {
    sum.kernels += program.kernels;
    sum.records_used += program.records_used;
  }
  return sum;
}

std::string TargetsWithoutRecords(std::span<const package::ProgramSummary> programs) {
  std::vector<std::string> targets;
  for (const package::ProgramSummary& program : programs) {
    const bool is_new = std::ranges::find(targets, program.target) == targets.end();
    if (program.records_used < program.kernels && is_new) targets.push_back(program.target);
  }
  return fmt::format("{}", fmt::join(targets, ", "));
}

void WarnIfUntuned(const std::string& model, std::span<const package::ProgramSummary> programs,
                   std::string_view advice) {
  const package::ProgramSummary sum = Sum(programs);
  if (sum.records_used > 0 || sum.kernels == 0) return;
  PrintMessage(fmt::format("warning: none of the records is for {} on {}: all {} kernels are untuned; {}\n", model,
                           TargetsWithoutRecords(programs), sum.kernels, advice));
}

}  // namespace hone::cli
