// SPDX-License-Identifier: Apache-2.0
// Decisions of lane tiles whose lanes run a tensor instruction together: which instruction, in what shape, and what its
// operands need.
#include <limits>
#include <map>

#include "base/status.h"
#include "compiler/space/sketch/analysis.h"
#include "compiler/space/templates/lane_tile_choice.h"

namespace hone::space {
namespace {

// The bytes of a row beyond a multiple of kRowPeriod, so that simultaneous loads of lanes find different banks.
// kRowBytes: four lanes load a quarter of each of eight rows. kApartRowBytes: the steps lie apart, and four lanes load
// one number of each of eight rows.
constexpr int64_t kRowBytes = 32, kApartRowBytes = 16, kRowPeriod = 64;

}  // namespace

std::optional<ir::TensorInstruction> ChooseInstruction(const LaneProblem& p, LaneShapes* shapes) {
  std::vector<int64_t> ids = {0};
  std::map<int64_t, LaneShapes> with;
  int64_t preferred = 0;
  double least = shapes->min_cycles();
  for (const ir::TensorInstruction instruction :
       LaneInstructionsFor(p.state, p.sums, p.SumsName(p.vector_axis), p.step_axis, p.target)) {
    LaneShapes found = ShapesWith(p, instruction);
    const int64_t id = ir::EntryOf(instruction).number;
    if (!found.fits()) continue;
    if (found.min_cycles() < least) preferred = id;
    least = std::min(least, found.min_cycles());
    ids.push_back(id);
    with.emplace(id, std::move(found));
  }
  if (ids.size() == 1) return std::nullopt;
  const int64_t chosen = p.Choose("instruction", ids, preferred);
  if (chosen == 0) return std::nullopt;
  *shapes = with.at(chosen);
  return ir::InstructionOfNumber(chosen);
}

int64_t ChooseSharing(const LaneProblem& p, ir::TensorInstruction instruction, LaneShapes* shapes) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
  const bool packed = std::ranges::all_of(LoadsOf(p.sums), [&](const ir::Load& load) {
    return !p.VariesAlongColumns(load) || p.IsFixed(load) || IsPackedBefore(p, load, entry);
  });
  // Groups that share must come in whole clusters, which open sizes do not promise.
  if (!packed || !p.state.sizes.empty()) return 1;
  std::map<int64_t, LaneShapes> with = {{1, *shapes}};
  std::vector<int64_t> counts = {1};
  for (int64_t n = 2; n <= p.target.hierarchy.sharing_groups; n *= 2) {
    LaneShapes found = ShapesWith(p, instruction, n);
    if (!found.fits()) continue;
    counts.push_back(n);
    with.emplace(n, std::move(found));
  }
  if (counts.size() == 1) return 1;
  const int64_t sharing = p.Choose("sharing", counts, 1);
  *shapes = with.at(sharing);
  return sharing;
}

absl::Status ChooseInstructionTile(const LaneProblem& p, LaneTilePlan* plan) {
  const LaneShape preferred = plan->shape;
  LaneShape& shape = plan->shape;
  const int64_t lanes_max = p.target.hierarchy.max_lanes;
  const int64_t elements = p.target.memory.registers_bytes / 8;  // half the registers for accumulators
  const int64_t columns = p.Extent(plan->vector_axis), rows = p.Extent(plan->row_axis);
  const int64_t more_rows = p.Extent(plan->second_axis);
  const auto choose = [&](std::string_view name, std::vector<int64_t> options, int64_t wanted, const auto& fits) {
    std::erase_if(options, [&](int64_t size) { return !fits(size); });
    return options.empty() ? 1 : p.ChooseNear(name, options, wanted);
  };
  // A tile of an instruction that reads shared memory itself must end where its axes end.
  const bool blocks = plan->ReadsSharedMemory();
  const auto has_lanes = [&](int64_t n, int64_t extent) { return blocks ? extent % n == 0 : n <= extent; };
  const auto may_tile = [&](int64_t tile, int64_t extent) {
    return blocks ? extent % tile == 0 : tile <= PowerOf2Ceil(extent);
  };
  const int64_t lanes_min = blocks ? ir::EntryOf(*plan->instruction).lanes / ir::kLanesOfRow : 1;
  shape.lanes_x =
      choose("lanes_x", PowersUpTo(blocks ? ir::kLanesOfRow : lanes_max / ir::kBlockRows), preferred.lanes_x,
             [&](int64_t n) { return n % ir::kLanesOfRow == 0 && has_lanes(2 * n, columns); });
  shape.width = choose("width", PowersUpTo(std::min(LaneWidthMax(*plan->instruction), elements)), preferred.width,
                       [&](int64_t n) { return n % 2 == 0 && may_tile(shape.lanes_x * n, columns); });
  shape.lanes_y = choose("lanes_y", LaneSizes(rows, lanes_max / shape.lanes_x), preferred.lanes_y, [&](int64_t n) {
    return has_lanes(n, rows) && n % lanes_min == 0 &&
           (n % ir::kBlockRows == 0 || (ir::kBlockRows % n == 0 && has_lanes(ir::kBlockRows / n, more_rows)));
  });
  shape.lanes_z =
      choose("lanes_z", LaneSizes(blocks ? 1 : more_rows, lanes_max / shape.lanes_x / shape.lanes_y), preferred.lanes_z,
             [&](int64_t n) { return has_lanes(n, more_rows) && shape.lanes_y * n % ir::kBlockRows == 0; });
  const bool pairs_there = !blocks && HasPairs(2, shape.lanes_z, more_rows);
  const auto pairs = [&](int64_t n) { return HasPairs(n, shape.lanes_y, rows); };
  shape.rows = choose(
      "rows", LaneSizes(CeilDiv(rows, shape.lanes_y), std::min(kLaneRowsMax, elements / shape.width)), preferred.rows,
      [&](int64_t n) { return may_tile(shape.lanes_y * n, rows) && (pairs(n) || (n % 2 == 1 && pairs_there)); });
  const int64_t more_rows_max = std::min(kLaneRowsMax, elements / shape.width / shape.rows);
  shape.more_rows = choose("more_rows", LaneSizes(blocks ? 1 : CeilDiv(more_rows, shape.lanes_z), more_rows_max),
                           preferred.more_rows, [&](int64_t n) {
                             return may_tile(shape.lanes_z * n, more_rows) &&
                                    (pairs(shape.rows) || HasPairs(n, shape.lanes_z, more_rows));
                           });
  const LaneWork work = WorkOf(p, {plan->row_axis, plan->second_axis}).value_or(LaneWork{columns, rows, more_rows});
  if (FitsInstruction(shape, work, *plan->instruction)) return absl::OkStatus();
  return absl::FailedPreconditionError("lanes in this arrangement cannot run the tensor instruction");
}

bool IsPackedBefore(const LaneProblem& p, const ir::Load& load, const ir::TensorInstructionEntry& entry) {
  return entry.is_async && !p.IsFixed(load) && p.StepsLieApart(load);
}

std::pair<std::vector<int64_t>, int64_t> InstructionPads(const LaneProblem& p, const LaneTilePlan& plan,
                                                         const ir::Load& load) {
  const int64_t size = ir::SizeOf(load.buffer->dtype);
  const bool apart = p.StepsLieApart(load);
  const int64_t row_bytes = (apart ? plan.shape.width * plan.shape.lanes_x : plan.step) * size;
  const int64_t beyond = (apart ? kApartRowBytes : kRowBytes) - row_bytes;
  std::vector<int64_t> options;
  for (int64_t bytes = 0; bytes < kRowPeriod; bytes += kApartRowBytes) options.push_back(bytes / size);
  return {options, (beyond % kRowPeriod + kRowPeriod) % kRowPeriod / size};
}

}  // namespace hone::space
