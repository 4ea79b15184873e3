// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/space.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/execution/model.h"
#include "compiler/space/builds.h"
#include "compiler/space/conditions.h"
#include "compiler/space/sketch.h"
#include "compiler/space/templates/tensor_tile.h"

namespace hone::space {
namespace {

// The spaces. Templates come before the rules that know no operator. The first entry that applies and is preferred is
// the default. Ids are stored in records and never change.
constexpr Entry kEntries[] = {
    // id, name, family, binds_grid, applies, preferred, build
    {4, "tensor_tile", Family::kTemplate, false, HasTensorProduct, nullptr, BuildTensorTiles},
    {5, "winograd_tile", Family::kTemplate, false, HasWinograd, PrefersWinograd, BuildWinogradTiles},
    {6, "attention_tile", Family::kTemplate, false, HasAttention, nullptr, BuildAttentionTiles},
    {8, "quantized_tile", Family::kTemplate, false, HasQuantizedProduct, nullptr, BuildQuantizedTiles},
    {1, "register_tile", Family::kTemplate, false, HasProduct, PrefersRegisterTiles, BuildRegisterTiles},
    {0, "sketch", Family::kSketch, false, IsAny, nullptr, BuildSketch},
    {7, "winograd_lanes", Family::kTemplate, true, HasWinograd, PrefersWinogradLanes, BuildWinogradLanes},
    {3, "lane_tile", Family::kTemplate, true, HasProduct, PrefersLaneTiles, BuildLaneTiles},
    {2, "lanes", Family::kSketch, true, IsAny, nullptr, BuildLanes},
};

bool IsEmpty(const ir::Workload& workload) {
  return std::any_of(workload.stages.begin(), workload.stages.end(), [](const ir::Stage& s) {
    return std::any_of(s.axes.begin(), s.axes.end(), [](const ir::Axis& a) { return a.extent == 0; }) ||
           std::any_of(s.reduce_axes.begin(), s.reduce_axes.end(), [](const ir::Axis& a) { return a.extent == 0; });
  });
}

absl::Status Fill(const ir::Workload& workload, Sketch& sketch, std::span<const Entry* const> fitting,
                  Families families) {
  if (IsEmpty(workload)) return absl::OkStatus();  // an empty workload has no space
  std::vector<const Entry*> entries;
  std::vector<int64_t> ids;
  for (const Entry* entry : fitting) {
    if (families.has_value() && entry->family != *families) continue;
    entries.push_back(entry);
    ids.push_back(entry->id);
  }
  if (entries.empty())
    return absl::FailedPreconditionError("no schedule space of the chosen family applies to this workload");
  const bool several = fitting.size() > 1;
  const int64_t id = several ? sketch.chooser.OneOf(kSpaceDecision, ids, ids[0]) : ids[0];
  return (*std::ranges::find(entries, id, &Entry::id))->build(workload, sketch);
}

}  // namespace

absl::StatusOr<Families> ParseFamilies(std::string_view text) {
  if (text == "all") return Families();
  if (text == "template") return Families(Family::kTemplate);
  if (text == "sketch") return Families(Family::kSketch);
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a family of schedule spaces; it must be all, template or sketch", text));
}

std::vector<const Entry*> ApplicableEntries(const ir::Workload& workload, const target::Target& target,
                                            Families families) {
  std::vector<const Entry*> fitting;
  for (const Entry& entry : kEntries) {
    const bool wanted = !families.has_value() || entry.family == *families;
    const bool fits = entry.binds_grid == target.facts().has_grid && entry.applies(workload, target);
    if (wanted && fits) fitting.push_back(&entry);
  }
  std::ranges::stable_partition(
      fitting, [&](const Entry* entry) { return entry->preferred == nullptr || entry->preferred(workload, target); });
  return fitting;
}

const Entry* EntryOf(const Decisions& decisions, std::span<const Entry* const> entries) {
  const auto space = std::ranges::find(decisions, kSpaceDecision, &Decision::name);
  // Decisions name no space if only one entry applies to the workload.
  if (space == decisions.end()) return entries.size() == 1 ? entries[0] : nullptr;
  const auto entry = std::ranges::find(entries, space->value, &Entry::id);
  return entry == entries.end() ? nullptr : *entry;
}

absl::StatusOr<Candidate> Build(const ir::Workload& workload, const target::Target& target,
                                std::span<const Entry* const> fitting, Chooser& chooser, Families families) {
  Sketch sketch{schedule::InitialState(workload), target, chooser, {}};
  HONE_RETURN_IF_ERROR(Fill(workload, sketch, fitting, families));
  HONE_RETURN_IF_ERROR(execution::ModelOf(target).check_limits(sketch.state, target));
  return Candidate{chooser.decisions(), std::move(sketch.steps), std::move(sketch.state)};
}

std::vector<Decisions> Hinted(const ir::Workload& workload, const target::Target& target, const TileHint& hint,
                              Families families) {
  std::vector<Decisions> hinted;
  const std::vector<const Entry*> fitting = ApplicableEntries(workload, target);
  for (const Entry* entry : fitting) {
    if (families.has_value() && entry->family != *families) continue;
    const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
    Chooser chooser(&given, nullptr, &hint);
    absl::StatusOr<Candidate> candidate = Build(workload, target, fitting, chooser, families);
    if (candidate.ok()) hinted.push_back(std::move(candidate->decisions));
  }
  return hinted;
}

absl::StatusOr<Candidate> Default(const ir::Workload& workload, const target::Target& target) {
  // Preferred decisions that cannot be lowered are a bug of a rule. The next entries then serve as a simpler default.
  const std::vector<const Entry*> fitting = ApplicableEntries(workload, target);
  for (const Entry* entry : fitting) {
    const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
    Chooser chooser(&given);
    auto candidate = Build(workload, target, fitting, chooser);
    const absl::Status lowered =
        candidate.ok() ? execution::Lower(candidate->state, target, "probe").status() : candidate.status();
    if (lowered.ok()) return candidate;
    spdlog::warn("space {}: its default schedule for {} {} cannot be lowered, so a simpler one is used: {}",
                 entry->name, workload.op, ir::WorkloadDigest(workload).substr(0, 12), std::string(lowered.message()));
  }
  Chooser none;
  Sketch plain{schedule::InitialState(workload), target, none, {}};
  HONE_RETURN_IF_ERROR(SchedulePreparedStages(plain));
  return Candidate{{}, std::move(plain.steps), std::move(plain.state)};
}

}  // namespace hone::space
