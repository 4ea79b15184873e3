// SPDX-License-Identifier: Apache-2.0
#include "cli/schedule_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/version.h"
#include "device_agent/devices/cpu/host.h"

namespace hone::cli {
namespace {

using records::BestRecord;

std::string ArchitectureOf(const std::string& target) { return target.substr(0, target.find(' ')); }

size_t CommonPrefix(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The record of another target of the same architecture whose schedule is most likely to fit, or none. The target whose
// text has the longest common prefix with `target` wins; among equals, the fastest record.
std::optional<BestRecord> OfNearTarget(std::vector<BestRecord> candidates, const std::string& target) {
  const auto target_of = [](const BestRecord& best) { return best.stored.record.key.target; };
  std::erase_if(candidates, [&](const BestRecord& best) {
    return target_of(best) == target || ArchitectureOf(target_of(best)) != ArchitectureOf(target);
  });
  const auto best = std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    const size_t common_a = CommonPrefix(target_of(a), target), common_b = CommonPrefix(target_of(b), target);
    return common_a != common_b ? common_a > common_b : a.median_seconds < b.median_seconds;
  });
  if (best == candidates.end()) return std::nullopt;
  return std::move(*best);
}

}  // namespace

absl::StatusOr<Place> PlaceOf(const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const target::Target host, target::ParseTarget("cpu"));
  return Place{target::Print(target), SameMachine(target, host) ? agent::DetectHost().text : ""};
}

absl::StatusOr<std::vector<UsableRecord>> UsableRecords(const records::Source& source, const Place& place,
                                                        const std::string& digest, const records::Filter& filter) {
  HONE_ASSIGN_OR_RETURN(std::vector<BestRecord> all, source.AllBest({.workload_digest = digest,
                                                                     .device_fingerprint = filter.device_fingerprint,
                                                                     .compiler_version = filter.compiler_version}));
  std::vector<UsableRecord> usable;
  const records::Key key{digest, place.target, place.device_fingerprint, kCompilerVersion};
  if (std::optional<records::NearestRecord> nearest = records::Nearest(key, all)) {
    usable.push_back({std::move(nearest->best), std::string(records::ClosenessName(nearest->closeness))});
  }
  if (std::optional<BestRecord> near = OfNearTarget(std::move(all), place.target)) {
    usable.push_back({*std::move(near), kOtherTarget});
  }
  return usable;
}

std::vector<package::RecordedSchedule> ToRecordedSchedules(const std::vector<UsableRecord>& usable) {
  std::vector<package::RecordedSchedule> schedules;
  for (const UsableRecord& record : usable) {
    schedules.push_back(
        {record.best.stored.record.schedule, fmt::format("record {}, {}", record.best.stored.row, record.closeness)});
  }
  return schedules;
}

package::ScheduleLookup MakeScheduleLookup(std::shared_ptr<const records::Source> source, const Place& place,
                                           OtherTargets others) {
  return [source = std::move(source), place,
          others](const std::string& digest) -> absl::StatusOr<std::vector<package::RecordedSchedule>> {
    HONE_ASSIGN_OR_RETURN(std::vector<UsableRecord> usable, UsableRecords(*source, place, digest));
    if (others == OtherTargets::kIgnored) {
      std::erase_if(usable, [](const UsableRecord& record) { return record.closeness == kOtherTarget; });
    }
    return ToRecordedSchedules(usable);
  };
}

}  // namespace hone::cli
