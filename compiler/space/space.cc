// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/space.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/status.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/grid.h"
#include "compiler/schedule/spread.h"
#include "compiler/space/sketch.h"
#include "compiler/space/sketch/lanes.h"

namespace hone::space {
namespace {

using schedule::Nest;

constexpr int64_t kPreparedLanes = 64;

// The reader with which a reduction can share register tiles: its only one, element-wise, in place, not taken yet.
std::string TileReader(const schedule::State& state, const Nest& nest, const std::vector<std::string>& taken) {
  if (state.IsOutput(nest.stage.buffer.get())) return "";
  const std::vector<std::string> readers = Readers(state, nest.stage.buffer.get());
  if (readers.size() != 1 || std::find(taken.begin(), taken.end(), readers[0]) != taken.end()) return "";
  const Nest* reader = state.FindNest(readers[0]);
  if (reader->stage.reduction != ir::Reduction::kNone || reader->prepared || reader->touched) return "";
  return ReadsInPlace(reader->stage, nest.stage.buffer) ? readers[0] : "";
}

std::vector<std::string> StageNames(const schedule::State& state, bool reductions) {
  std::vector<std::string> names;
  for (const Nest& nest : state.nests) {
    if ((nest.stage.reduction != ir::Reduction::kNone) == reductions) names.push_back(nest.stage.buffer->name);
  }
  return names;
}

// Every reduction by `schedule`, with the reader that it can share loops with or with a copy of its own.
using ScheduleReduction = absl::Status (*)(Sketch& sketch, const std::string& reader, const std::string& stage,
                                           const std::string& prefix);
absl::Status ScheduleReductions(Sketch& sketch, ScheduleReduction schedule) {
  std::vector<std::string> taken;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const std::string prefix = taken.empty() ? "" : stage + ".";
    HONE_ASSIGN_OR_RETURN(const SharedTile tile, ShareTile(sketch, stage, &taken));
    HONE_RETURN_IF_ERROR(schedule(sketch, tile.reader, tile.reduction, prefix));
  }
  return absl::OkStatus();
}

// What no other rule has taken.
absl::Status ScheduleRest(Sketch& sketch, absl::Status (*schedule)(Sketch& sketch, const std::string& stage)) {
  for (const std::string& stage : StageNames(sketch.state, false)) {
    const Nest& nest = sketch.Get(stage);
    if (nest.AtRoot() && !nest.touched && !nest.prepared) HONE_RETURN_IF_ERROR(schedule(sketch, stage));
  }
  return absl::OkStatus();
}

// Whether packed operands and register tiles have anything to work on: a sum of products.
bool HasContraction(const ir::Workload& workload) { return std::ranges::any_of(workload.stages, IsContraction); }

bool IsEmpty(const ir::Workload& workload) {
  return std::any_of(workload.stages.begin(), workload.stages.end(), [](const ir::Stage& s) {
    return std::any_of(s.axes.begin(), s.axes.end(), [](const ir::Axis& a) { return a.extent == 0; }) ||
           std::any_of(s.reduce_axes.begin(), s.reduce_axes.end(), [](const ir::Axis& a) { return a.extent == 0; });
  });
}

bool HasLanes(const ir::Workload&, const target::Target& target) { return target.HasLanes(); }
bool HasNoLanes(const ir::Workload&, const target::Target& target) { return !target.HasLanes(); }
bool IsLaneContraction(const ir::Workload& workload, const target::Target& target) {
  return target.HasLanes() && HasContraction(workload);
}
bool IsCpuContraction(const ir::Workload& workload, const target::Target& target) {
  return !target.HasLanes() && HasContraction(workload);
}

absl::Status RegisterTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                           const std::string& prefix) {
  return ScheduleRegisterTile(sketch, reader, stage, prefix);
}

absl::Status BuildRegisterTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, RegisterTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

// Whether `is` holds once the stages that only move are gone.
template <typename F>
bool Inlined(const ir::Workload& workload, const target::Target& target, const F& is) {
  Chooser none;
  Sketch sketch{schedule::Start(workload), target, none, {}};
  return InlineStages(sketch).ok() && is(sketch.state);
}

// Whether it then holds for some reduction.
template <typename F>
bool SomeReduction(const ir::Workload& workload, const target::Target& target, const F& is) {
  return Inlined(workload, target, [&](const schedule::State& state) {
    return std::ranges::any_of(state.nests, [&](const Nest& nest) { return is(state, nest.stage); });
  });
}

// Whether an operand would be packed to be read once: each of its elements goes into one result, as in the product of a
// matrix and a vector, and vectors of results do not lie along it. The packed copy takes longer than the product.
bool PacksForOneUse(const schedule::State& state, const ir::Stage& s) {
  if (!IsContraction(s)) return false;
  const auto counts = [](const ir::Axis& axis) { return axis.extent > 1; };
  const auto vector = std::find_if(s.axes.rbegin(), s.axes.rend(), counts);
  if (vector == s.axes.rend()) return false;
  const ir::Ranges ranges = AxisRanges(s);
  return std::ranges::any_of(LoadsOf(s), [&](const ir::Load& load) {
    const auto along = StrideOf(load, vector->name, ranges);
    if (!along.has_value() || *along <= 1 || schedule::IsFixed(state, load.buffer.get())) return false;
    return std::ranges::all_of(
        s.axes, [&](const ir::Axis& axis) { return !counts(axis) || StrideOf(load, axis.name, ranges) != 0; });
  });
}

// A small window along the vectors, as of a depthwise convolution with channels first, has nothing to pack: what the
// sketch makes of it shares rows among windows. And the sketch can have vectors along what is summed over.
bool PrefersRegisterTiles(const ir::Workload& workload, const target::Target& target) {
  return !SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& s) {
    const bool alone = std::ranges::count_if(state.nests, IsContraction, &Nest::stage) == 1;
    return SharesRows(s) || PacksForOneUse(state, s) || (alone && PrefersPartialResults(state, s, target));
  });
}

bool HasWinograd(const ir::Workload& workload, const target::Target& target) {
  return IsCpuContraction(workload, target) && SomeReduction(workload, target, FitsWinograd);
}

bool PrefersWinograd(const ir::Workload& workload, const target::Target& target) {
  return SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& stage) {
    return WinogradPays(state, stage, target);
  });
}

bool HasWinogradLanes(const ir::Workload& workload, const target::Target& target) {
  return IsLaneContraction(workload, target) && SomeReduction(workload, target, FitsWinograd);
}

// What is read once gains nothing by tiles: lanes that share rows of a matrix read it as memory has it. And where too
// few results share what is loaded, as of a depthwise convolution with channels first, each short sum is a lane's work.
bool PrefersLaneTiles(const ir::Workload& workload, const target::Target& target) {
  return target.memory.shared_gain <= 1 ||
         !SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& s) {
           const bool is_short = IsContraction(s) && ReduceSteps(s) < kSharedReduction;
           return IsVectorProduct(state, s) || (is_short && !FillsLaneTile(s, target));
         });
}

bool PrefersWinogradLanes(const ir::Workload& workload, const target::Target& target) {
  return SomeReduction(workload, target, [&](const schedule::State& state, const ir::Stage& stage) {
    return WinogradLanesPay(state, stage, target);
  });
}

// The convolutions from transformed tiles, by one rule; other reductions in plain tiles, by another.
using TileRule = absl::Status (*)(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix);
absl::Status ScheduleWinograd(Sketch& sketch, TileRule transformed, TileRule plain) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  std::vector<std::string> taken;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const std::string prefix = taken.empty() ? "" : stage + ".";
    if (!FitsWinograd(sketch.state, sketch.Get(stage).stage)) {
      HONE_ASSIGN_OR_RETURN(const SharedTile tile, ShareTile(sketch, stage, &taken));
      HONE_RETURN_IF_ERROR(plain(sketch, tile.reader, tile.reduction, prefix));
      continue;
    }
    const std::string reader = TileReader(sketch.state, sketch.Get(stage), taken);
    taken.push_back(reader.empty() ? stage : reader);
    HONE_RETURN_IF_ERROR(transformed(sketch, taken.back(), stage, prefix));
  }
  return absl::OkStatus();
}

absl::Status BuildWinogradTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(ScheduleWinograd(sketch, ScheduleWinogradTile, RegisterTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

bool HasAttention(const ir::Workload& workload, const target::Target& target) {
  return IsCpuContraction(workload, target) && Inlined(workload, target, FitsAttention);
}

absl::Status BuildAttentionTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  return ScheduleAttentionTile(sketch);
}

// Maxima of windows as integers where that of floats takes several instructions: windows share what they load, so that
// its place in the order of floats is found once.
absl::Status OrderMaxima(Sketch& sketch) {
  if (sketch.target.has_maximum) return absl::OkStatus();
  for (const std::string& stage : StageNames(sketch.state, true)) {
    const ir::Stage& s = sketch.Get(stage).stage;
    if (s.reduction != ir::Reduction::kMax || s.buffer->dtype != ir::DType::kFloat32 || !HasWindow(s)) continue;
    if (sketch.chooser.OneOf(stage + ".order", {0, 1}, 1) == 0) continue;
    HONE_RETURN_IF_ERROR(sketch.Do(schedule::TotalOrder{stage}));
  }
  return absl::OkStatus();
}

absl::Status BuildSketch(const ir::Workload& workload, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(OrderMaxima(sketch));
  HONE_ASSIGN_OR_RETURN(const bool split, SplitLongReductions(sketch));
  if (!split && !HasContraction(workload)) {
    HONE_ASSIGN_OR_RETURN(const bool rows, ScheduleRows(sketch));
    if (rows) return absl::OkStatus();
  }
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, ScheduleTiles));
  return ScheduleRest(sketch, ScheduleElementwise);
}

// Prepared stages run once, before the kernel: one element per lane will do.
absl::Status SpreadPrepared(Sketch& sketch) {
  const int64_t lanes = std::min<int64_t>(kPreparedLanes, sketch.target.hierarchy.max_lanes);
  for (const schedule::Step& step : schedule::SpreadOverLanes(sketch.state, lanes)) {
    HONE_RETURN_IF_ERROR(sketch.Do(step));
  }
  return absl::OkStatus();
}

absl::Status BuildLaneTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_RETURN_IF_ERROR(ScheduleReductions(sketch, ScheduleLaneTile));
  HONE_RETURN_IF_ERROR(InlinePadding(sketch));  // what no tile has in shared memory
  HONE_RETURN_IF_ERROR(ScheduleRest(sketch, ScheduleLaneElementwise));
  return SpreadPrepared(sketch);
}

absl::Status BuildWinogradLanes(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(ScheduleWinograd(sketch, ScheduleWinogradLanes, ScheduleLaneTile));
  HONE_RETURN_IF_ERROR(ScheduleRest(sketch, ScheduleLaneElementwise));
  return SpreadPrepared(sketch);
}

absl::Status BuildLanes(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  HONE_ASSIGN_OR_RETURN(const bool rows, ScheduleLaneRows(sketch));
  if (!rows) {
    HONE_RETURN_IF_ERROR(InlineRepeated(sketch));
    HONE_RETURN_IF_ERROR(InlinePadding(sketch));
    HONE_RETURN_IF_ERROR(
        ScheduleReductions(sketch, [](Sketch& s, const std::string& reader, const std::string& stage,
                                      const std::string&) { return ScheduleLaneReduction(s, reader, stage); }));
    HONE_RETURN_IF_ERROR(ScheduleRest(sketch, ScheduleLaneElementwise));
  }
  return SpreadPrepared(sketch);
}

// The sums of products by instructions. What else there is runs around them as it is.
absl::Status BuildTensorTiles(const ir::Workload&, Sketch& sketch) {
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  std::vector<TensorUse> uses;
  for (const std::string& stage : StageNames(sketch.state, true)) {
    HONE_ASSIGN_OR_RETURN(const std::optional<TensorUse> use, PrepareTensorProduct(sketch, stage));
    if (use.has_value()) uses.push_back(*use);
  }
  HONE_RETURN_IF_ERROR(InlineStages(sketch));
  std::vector<std::string> taken;
  for (TensorUse& use : uses) {
    const std::string prefix = taken.empty() ? "" : use.stage + ".";
    HONE_ASSIGN_OR_RETURN(const SharedTile tile, ShareTile(sketch, use.stage, &taken));
    if (tile.reduction != use.stage) use.k += "c";  // the copy's axes
    HONE_RETURN_IF_ERROR(ScheduleRegisterTile(sketch, tile.reader, tile.reduction, prefix, use));
  }
  return ScheduleRest(sketch, ScheduleElementwise);
}

// The spaces, templates before the rules that know no operator; the first that applies and pays is the default. Ids
// stand in records and never change.
constexpr Entry kEntries[] = {
    {4, "tensor_tile", Family::kTemplate, HasTensorProduct, nullptr, BuildTensorTiles},
    {5, "winograd_tile", Family::kTemplate, HasWinograd, PrefersWinograd, BuildWinogradTiles},
    {6, "attention_tile", Family::kTemplate, HasAttention, nullptr, BuildAttentionTiles},
    {1, "register_tile", Family::kTemplate, IsCpuContraction, PrefersRegisterTiles, BuildRegisterTiles},
    {0, "sketch", Family::kSketch, HasNoLanes, nullptr, BuildSketch},
    {7, "winograd_lanes", Family::kTemplate, HasWinogradLanes, PrefersWinogradLanes, BuildWinogradLanes},
    {3, "lane_tile", Family::kTemplate, IsLaneContraction, PrefersLaneTiles, BuildLaneTiles},
    {2, "lanes", Family::kSketch, HasLanes, nullptr, BuildLanes},
};

absl::Status Fill(const ir::Workload& workload, Sketch& sketch, std::span<const Entry* const> fitting,
                  Families families) {
  if (IsEmpty(workload)) return absl::OkStatus();  // nothing to make fast
  std::vector<const Entry*> entries;
  std::vector<int64_t> ids;
  for (const Entry* entry : fitting) {
    if (families.has_value() && entry->family != *families) continue;
    entries.push_back(entry);
    ids.push_back(entry->id);
  }
  if (entries.empty()) return absl::FailedPreconditionError("no space of that family is for this workload");
  const bool several = fitting.size() > 1;
  const int64_t id = several ? sketch.chooser.OneOf(kSpaceDecision, ids, ids[0]) : ids[0];
  return (*std::ranges::find(entries, id, &Entry::id))->build(workload, sketch);
}

// Decisions that no device of the target can launch need no code to be found out.
absl::Status CheckLimits(const schedule::State& state, const target::Target& target) {
  for (const schedule::Grid& grid : schedule::Grids(state)) {
    if (grid.lanes <= target.hierarchy.max_lanes && grid.shared_bytes <= target.memory.shared_bytes) continue;
    return absl::FailedPreconditionError(
        fmt::format("stage {} has groups of {} lanes with {} bytes of shared memory; the target allows {} and {}",
                    grid.root->stage.buffer->name, grid.lanes, grid.shared_bytes, target.hierarchy.max_lanes,
                    target.memory.shared_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SharedTile> ShareTile(Sketch& sketch, const std::string& stage, std::vector<std::string>* taken) {
  SharedTile tile{TileReader(sketch.state, sketch.Get(stage), *taken), stage};
  if (tile.reader.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string sums, sketch.CacheWrite(stage));
    tile = {stage, sums};
  }
  taken->push_back(tile.reader);
  return tile;
}

std::span<const Entry> Entries() { return kEntries; }

absl::StatusOr<Families> ParseFamilies(std::string_view text) {
  if (text == "all") return Families();
  if (text == "template") return Families(Family::kTemplate);
  if (text == "sketch") return Families(Family::kSketch);
  return absl::InvalidArgumentError(fmt::format("'{}' is no family of spaces: all, template or sketch", text));
}

std::vector<const Entry*> Fitting(const ir::Workload& workload, const target::Target& target, Families families) {
  std::vector<const Entry*> fitting;
  for (const Entry& entry : kEntries) {
    const bool wanted = !families.has_value() || entry.family == *families;
    if (wanted && entry.applies(workload, target)) fitting.push_back(&entry);
  }
  std::ranges::stable_partition(
      fitting, [&](const Entry* entry) { return entry->pays == nullptr || entry->pays(workload, target); });
  return fitting;
}

const Entry* EntryOf(const Decisions& decisions, std::span<const Entry* const> entries) {
  const auto space = std::ranges::find(decisions, kSpaceDecision, &Decision::name);
  // Decisions that name none are of a workload for which there is only one.
  if (space == decisions.end()) return entries.size() == 1 ? entries[0] : nullptr;
  const auto entry = std::ranges::find(entries, space->value, &Entry::id);
  return entry == entries.end() ? nullptr : *entry;
}

absl::StatusOr<Candidate> Build(const ir::Workload& workload, const target::Target& target,
                                std::span<const Entry* const> fitting, Chooser& chooser, Families families) {
  Sketch sketch{schedule::Start(workload), target, chooser, {}};
  HONE_RETURN_IF_ERROR(Fill(workload, sketch, fitting, families));
  if (target.HasLanes()) HONE_RETURN_IF_ERROR(CheckLimits(sketch.state, target));
  return Candidate{chooser.decisions(), std::move(sketch.steps), std::move(sketch.state)};
}

std::vector<Decisions> Hinted(const ir::Workload& workload, const target::Target& target, const TileHint& hint,
                              Families families) {
  std::vector<Decisions> hinted;
  const std::vector<const Entry*> fitting = Fitting(workload, target);
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
  // A preferred decision that cannot be lowered would be a flaw of a rule; plainer schedules are there for everyone
  // meanwhile.
  const std::vector<const Entry*> fitting = Fitting(workload, target);
  for (const Entry* entry : fitting) {
    const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
    Chooser chooser(&given);
    auto candidate = Build(workload, target, fitting, chooser);
    const absl::Status lowered =
        candidate.ok() ? passes::Lower(candidate->state, target, "probe").status() : candidate.status();
    if (lowered.ok()) return candidate;
    spdlog::warn("space {}: what it prefers for {} {} cannot be lowered, the default is plainer: {}", entry->name,
                 workload.op, ir::WorkloadDigest(workload).substr(0, 12), std::string(lowered.message()));
  }
  Chooser none;
  Sketch plain{schedule::Start(workload), target, none, {}};
  if (target.HasLanes()) HONE_RETURN_IF_ERROR(SpreadPrepared(plain));
  return Candidate{{}, std::move(plain.steps), std::move(plain.state)};
}

}  // namespace hone::space
