// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/lane_instruction.h"

#include <algorithm>
#include <limits>

#include "compiler/schedule/instruction.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

// Constants of the cost model for one unit (streaming multiprocessor) of NVIDIA's GPUs, Ampere and later.
// Registers of a lane: for addresses and loops, and the most that a lane may have.
constexpr int64_t kOtherRegisters = 48, kLaneRegistersMax = 232;
constexpr double kInstruction = 1.8;          // cycles for which an instruction occupies a unit
constexpr double kLatency = 36;               // cycles until the sums of an instruction are available
constexpr double kLoad = 0.65, kRound = 0.5;  // cycles to load one word in all lanes of an instruction, and to round it
constexpr double kBytes = 18;                 // bytes per cycle from the last-level cache
constexpr double kBarrier = 250;              // cycles of a barrier, of which every staged piece has one
constexpr int64_t kBuffers = 3;               // staged pieces in shared memory at a time
// Constants for instructions that read shared memory themselves (wgmma). With them the model estimates products of 1024
// to 4096 on an H100 to a fifth.
constexpr double kColumn = 0.55;       // cycles for which one column of all rows occupies a unit
constexpr double kBlockBytes = 32;     // bytes per cycle from the last-level cache
constexpr double kBlockBarrier = 160;  // cycles of a barrier, as kBarrier
constexpr double kRoundedBytes = 64;   // bytes per cycle that are read, rounded and written back
constexpr double kLoadedBytes = 256;   // bytes per cycle that are read and rounded while instructions run; not measured

// The units of one cluster of the hardware (GPC). Groups that share copies run within one. CUTLASS assumes the same
// number (tile_scheduler_params.h, get_max_cta_occupancy).
constexpr int64_t kClusterUnits = 18;

// The number of units that groups can occupy if `sharing` groups at a time share copies.
int64_t UnitsFor(int64_t sharing, int64_t units) {
  return (units / kClusterUnits * (kClusterUnits / sharing) + units % kClusterUnits / sharing) * sharing;
}

// The bytes of either operand that a group reads for one step.
struct OperandBytes {
  double rows, columns;
};
OperandBytes BytesOfStep(const LaneWork& work, const LaneShape& s) {
  LaneShape of_rows = s;
  of_rows.width = 0;
  const double rows = StepBytes(work, of_rows);
  return {rows, StepBytes(work, s) - rows};
}

// Cycles to round the operands of one step.
double RoundingCycles(const LaneWork& work, const LaneShape& s, const ir::TensorInstructionEntry& entry) {
  const auto [rows, columns] = BytesOfStep(work, s);
  return (work.rounds_rows ? rows / (entry.loads_a ? kLoadedBytes : kRoundedBytes) : 0) +
         (work.rounds_columns ? columns / kRoundedBytes : 0);
}

bool IsInput(const schedule::State& state, const ir::Buffer& buffer) {
  return std::ranges::any_of(state.params, [&](const ir::Param& param) { return param.buffer == buffer; });
}

// Whether the operand's steps along the axis are contiguous, or can be made so, as the instruction requires.
bool HasRequiredLayout(const schedule::State& state, const ir::Load& load, const std::string& step,
                       const ir::Stage& stage, const ir::TensorInstructionEntry& entry) {
  if (std::ranges::any_of(load.indices, ir::HasLoad)) return false;  // rows with loaded indices may be anywhere
  const std::optional<int64_t> stride = StrideOf(load, step, AxisRanges(stage));
  if (!stride.has_value() || *stride <= 0 || (entry.is_async && OwnDimension(load, step) < 0)) return false;
  // Constants are packed before the kernel runs. An input of an instruction that reads shared memory itself is laid out
  // by a launch before it.
  return *stride == 1 || entry.chunk == 1 || schedule::IsFixed(state, load.buffer.get()) ||
         (entry.is_async && IsInput(state, load.buffer));
}

}  // namespace

bool HasUnitStride(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges) {
  return std::ranges::all_of(load.indices, [&](const ir::Expr& index) {
    return std::ranges::all_of(ir::ToLinear(index, ranges).terms, [&](const auto& term) {
      return !ir::UsesVar(term.first, axis) || (term.first.template As<ir::Var>() != nullptr && term.second == 1);
    });
  });
}

int OwnDimension(const ir::Load& load, const std::string& axis) {
  const auto along = [&](const ir::Expr& index) { return ir::UsesVar(index, axis); };
  const auto index = std::ranges::find_if(load.indices, along);
  const bool own = std::ranges::count_if(load.indices, along) == 1 && index->As<ir::Var>() != nullptr;
  return own ? static_cast<int>(index - load.indices.begin()) : -1;
}

std::vector<ir::TensorInstruction> LaneInstructionsFor(const schedule::State& state, const ir::Stage& stage,
                                                       const std::string& vector, const std::string& step,
                                                       const target::Target& target) {
  std::vector<ir::TensorInstruction> found;
  if (stage.reduction != ir::Reduction::kSum) return found;
  const auto extent_of = [](const std::vector<ir::Axis>& axes, const std::string& name) {
    return std::ranges::find(axes, name, &ir::Axis::name)->extent;
  };
  for (const ir::TensorInstruction instruction : target.tensor_instructions) {
    const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
    if (entry.lanes % target.hierarchy.lane_width != 0 || entry.sum != stage.buffer->dtype) continue;
    const bool window = std::ranges::any_of(
        stage.reduce_axes, [&](const ir::Axis& axis) { return axis.name != step && axis.extent.max() > 1; });
    // Its tiles must divide their axes.
    const auto is_open = [](const ir::Axis& axis) { return !axis.extent.IsFixed(); };
    const bool open = std::ranges::any_of(stage.axes, is_open) || std::ranges::any_of(stage.reduce_axes, is_open);
    if (entry.is_async && (window || open)) continue;
    const auto factors = schedule::FindFactors(stage.value, entry);
    const bool whole = Divides(ir::kLanesOfRow * entry.n, extent_of(stage.axes, vector));
    if (!factors.ok() || !Divides(entry.k, extent_of(stage.reduce_axes, step)) || (entry.is_async && !whole)) continue;
    ir::Load a = factors->a, b = factors->b;
    const auto varies = [&](const ir::Load& load) { return StrideOf(load, vector, AxisRanges(stage)) != 0; };
    if (varies(a)) std::swap(a, b);
    if (varies(a) || !varies(b) || a.buffer->dtype != entry.a || b.buffer->dtype != entry.b) continue;
    // A constant is rounded before the kernel runs, so lanes need not load it to round it.
    if (entry.loads_a && schedule::IsFixed(state, a.buffer.get())) continue;
    if (entry.is_async && !HasUnitStride(b, vector, AxisRanges(stage))) continue;  // columns of a block are consecutive
    if (HasRequiredLayout(state, a, step, stage, entry) && HasRequiredLayout(state, b, step, stage, entry)) {
      found.push_back(instruction);
    }
  }
  return found;
}

int64_t LaneWidthMax(ir::TensorInstruction instruction) { return ir::EntryOf(instruction).is_async ? 64 : 16; }

bool HasPairs(int64_t size, int64_t lanes, int64_t extent) {
  return size % 2 == 0 && CeilDiv(std::min(size * lanes, extent), lanes) % 2 == 0;
}

bool FitsInstruction(const LaneShape& s, const LaneWork& work, ir::TensorInstruction instruction) {
  const auto divides = [](int64_t size, int64_t extent) { return extent % size == 0; };
  const bool rows = (s.lanes_y * s.lanes_z) % ir::kBlockRows == 0 && (s.rows % 2 == 0 || s.more_rows % 2 == 0);
  const bool lanes = divides(s.lanes_y, ir::kBlockRows) || divides(ir::kBlockRows, s.lanes_y);
  const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
  if (!rows || !lanes || s.width % 2 != 0 || s.lanes_x % ir::kLanesOfRow != 0) return false;
  if (!entry.is_async) {
    const auto ends = [&](bool apart, int64_t size, int64_t lanes_along, int64_t extent) {
      return !apart || size * lanes_along < extent || divides(lanes_along, extent);
    };
    if (!ends(work.rows_begin_apart, s.rows, s.lanes_y, work.rows) ||
        !ends(work.more_rows_begin_apart, s.more_rows, s.lanes_z, work.more_rows)) {
      return false;
    }
    // A tile is at most as long as its axis. The axis must leave work for all lanes, and rows in pairs.
    return 2 * s.lanes_x <= work.columns && s.lanes_y <= work.rows && s.lanes_z <= work.more_rows &&
           (s.rows % 2 == 0 ? HasPairs(s.rows, s.lanes_y, work.rows)
                            : HasPairs(s.more_rows, s.lanes_z, work.more_rows));
  }
  // The lanes of a row are in one warp, a lane's rows come in pairs that are eight apart, and tiles divide their axes.
  return s.lanes_x == ir::kLanesOfRow && s.more_rows == 1 && s.lanes_z == 1 && s.lanes() % entry.lanes == 0 &&
         s.rows % 2 == 0 && divides(s.rows * s.lanes_y * work.sharing, work.rows) &&
         divides(s.width * s.lanes_x, work.columns) && divides(s.more_rows * s.lanes_z, work.more_rows);
}

double LayoutCycles(const ir::BufferNode& buffer, const target::Target& target) {
  return LaunchCycles(2 * static_cast<double>(ir::NumBytes(buffer)), kBytes, target);
}

double InstructionCycles(const LaneWork& work, const LaneShape& s, ir::TensorInstruction instruction,
                         const target::Target& target) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
  if (!FitsInstruction(s, work, instruction)) return kNever;
  const int64_t rows = s.rows * s.more_rows, lanes = s.lanes(), warps = lanes / entry.lanes;
  const int64_t loaded = entry.loads_a ? 2 * rows * s.staged / entry.k : entry.is_async ? 0 : 2 * rows + s.width;
  const int64_t registers = kOtherRegisters + s.width * rows + loaded;
  if (registers > kLaneRegistersMax || registers * lanes > target.memory.group_registers) return kNever;
  const double step_bytes = StepBytes(work, s);
  const auto shared = static_cast<int64_t>(step_bytes * static_cast<double>(s.staged * kBuffers));
  if (shared > target.memory.shared_bytes) return kNever;
  const int64_t resident = std::max<int64_t>(
      1,
      std::min(kUnitRegisters / (registers * lanes), target.memory.unit_shared_bytes / std::max<int64_t>(shared, 1)));
  const int64_t units = std::max<int64_t>(1, UnitsFor(work.sharing, target.hierarchy.units));
  const int64_t per_unit = CeilDiv(GroupsOf(work, s), units), rounds = CeilDiv(per_unit, resident);
  const double steps = static_cast<double>(work.steps) / static_cast<double>(s.parts);
  const double depth = steps * static_cast<double>(work.window), turns = depth / static_cast<double>(entry.k);
  if (entry.is_async) {
    // The columns that the lanes of one instruction multiply in each turn.
    const auto columns = static_cast<double>(rows / 2 * s.width * ir::kLanesOfRow);
    const double busy = static_cast<double>(per_unit * lanes / entry.lanes) * turns * columns * kColumn;
    const auto [of_rows, of_columns] = BytesOfStep(work, s);
    const double read = of_rows + of_columns / static_cast<double>(work.sharing);
    const double memory = static_cast<double>(per_unit) * steps * read / kBlockBytes;
    const double stages = static_cast<double>(rounds) * steps / static_cast<double>(s.staged);
    const double rounding = static_cast<double>(per_unit) * steps * RoundingCycles(work, s, entry);
    return std::max(busy, memory) + kExposedReadShare * memory + kBlockBarrier * stages + rounding +
           static_cast<double>(rounds) * kStartCycles + PartsCycles(work, s, kBytes, target);
  }
  const auto products = static_cast<double>(rows / 2 * (s.width / 2));  // instructions of a warp per turn
  const auto words = static_cast<double>(2 * rows + s.width);
  const double fetching = words * (kLoad + (entry.fraction_bits > 0 ? kRound : 0));
  const double busy = static_cast<double>(per_unit * warps) * turns * (products * kInstruction + fetching);
  const double waiting = static_cast<double>(rounds) * turns * std::max(kLatency, products * kInstruction * 4);
  const double memory = static_cast<double>(per_unit) * steps * step_bytes / kBytes;
  const double ends = static_cast<double>(rounds) * (kStartCycles + kBarrier * steps / static_cast<double>(s.staged));
  return std::max({busy, waiting, memory}) + kExposedReadShare * memory + ends + PartsCycles(work, s, kBytes, target);
}

LaneShape BestInstructionShape(const LaneWork& work, ir::TensorInstruction instruction, const target::Target& target) {
  LaneShape best, s;
  double least = std::numeric_limits<double>::infinity();
  const std::vector<int64_t> all_parts = LaneParts(work.steps);
  const ir::TensorInstructionEntry& entry = ir::EntryOf(instruction);
  const auto race = [&](LaneShape shape) {
    if (!FitsInstruction(shape, work, instruction)) return;
    for (shape.staged = entry.k; shape.staged <= kStagedRowBytesMax / ir::SizeOf(entry.a); shape.staged *= 2) {
      for (const int64_t parts : all_parts) {
        shape.parts = parts;
        const bool whole = work.steps / parts % shape.staged == 0;
        const double cycles = whole ? InstructionCycles(work, shape, instruction, target) : least;
        if (cycles >= least) continue;
        least = cycles;
        best = shape;
      }
    }
  };
  const int64_t most = target.hierarchy.max_lanes;
  for (s.width = 2; s.width <= LaneWidthMax(instruction); s.width *= 2) {
    for (s.lanes_x = ir::kLanesOfRow; s.lanes_x <= std::min<int64_t>(most / ir::kBlockRows, work.columns / s.width);
         s.lanes_x *= 2) {
      ForEachRowTile(work, s, most, race);
    }
  }
  return best;
}

}  // namespace hone::space
