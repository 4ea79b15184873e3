// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/templates/lane_shape.h"

#include <algorithm>
#include <limits>

#include "compiler/space/sketch/analysis.h"

namespace hone::space {
namespace {

// Constants of the cost model for one unit (streaming multiprocessor) of NVIDIA's GPUs, Maxwell to Hopper.
constexpr double kProducts = 98;            // multiply-adds per cycle that compiled code reaches; the peak is 128
constexpr double kSharedBytes = 128;        // bytes per cycle from shared memory
constexpr double kColumnLoadCyclesMin = 2;  // the fewest cycles of a load along the columns
constexpr double kClash = 1.33;             // factor for loads along the rows, some of which have bank conflicts
constexpr double kBytes = 12;               // bytes per cycle from the last-level cache
constexpr double kLatency = 12;             // latency of one step of the reduction beside its products, in cycles
constexpr double kBarrier = 60;             // cycles of a barrier
constexpr double kLaunch = 4000;            // cycles between two launches that follow one another
constexpr double kApart = 1.4;              // factor for windows whose rows share nothing with the next row's window
constexpr int64_t kOtherRegisters = 40;     // registers of a lane for addresses and loops
constexpr int64_t kLaneRegistersMax = 180;
constexpr int64_t kSmallTile = 48;  // multiply-adds per step, below which registers allow a second group
constexpr int64_t kLargeTile = 96;  // multiply-adds per step, from which registers hold operands of one step only
constexpr int64_t kLargeTileStepsMin = 1024;  // the fewest steps that pay for the start and end of a large tile
constexpr double kBufferedSteps = 24;         // steps in shared memory, all buffers together
constexpr int64_t kPartStepsMin = 8;
constexpr int64_t kPartsMax = 64;
constexpr int64_t kVector = 4;  // elements of one vector load of a lane

// Cycles to load the operands of one step for one warp. Lanes that read the same element share the load.
double LoadCycles(const LaneShape& s, const target::Target& target) {
  const auto cycles = [](int64_t vectors, int64_t lanes, double fewest) {
    const double bytes = static_cast<double>(lanes * kVector) * sizeof(float);
    return static_cast<double>(vectors) / kVector * std::max(fewest, bytes / kSharedBytes);
  };
  const int64_t columns = std::min<int64_t>(s.lanes_x, target.hierarchy.lane_width);
  return cycles(s.width, columns, kColumnLoadCyclesMin) +
         kClash * cycles(s.rows * s.more_rows, target.hierarchy.lane_width / columns * 2, 1 / kClash);
}

}  // namespace

// One vector load brings four steps of a row. More unrolled steps take the registers of a second group, which hides the
// latency of a short reduction. A tile of two vectors of columns has no registers even for four.
int64_t UnrolledSteps(const LaneShape& s, int64_t depth) {
  const int64_t products = s.width * s.rows * s.more_rows;
  if (products < kSmallTile) return kVector;
  if (products >= kLargeTile) return 1;
  return s.width <= kVector && depth >= kLargeTileStepsMin ? 2 * kVector : 2;
}

double StepBytes(const LaneWork& work, const LaneShape& s) {
  const auto of_rows = [](int64_t rows, double growth) { return 1 + static_cast<double>(rows - 1) * growth; };
  return work.column_bytes * static_cast<double>(s.width * s.lanes_x) +
         work.row_bytes * of_rows(s.rows * s.lanes_y, work.row_growth) *
             of_rows(s.more_rows * s.lanes_z, work.more_growth);
}

int64_t GroupsOf(const LaneWork& work, const LaneShape& s) {
  return CeilDiv(work.columns, s.width * s.lanes_x) * CeilDiv(work.rows, s.rows * s.lanes_y) *
         CeilDiv(work.more_rows, s.more_rows * s.lanes_z) * work.others * s.parts;
}

double LaunchCycles(double bytes, double unit_bytes, const target::Target& target) {
  return kLaunch + bytes / (unit_bytes * target.hierarchy.units);
}

double PartsCycles(const LaneWork& work, const LaneShape& s, double unit_bytes, const target::Target& target) {
  if (s.parts == 1) return 0;
  const auto results = static_cast<double>(work.columns * work.rows * work.more_rows * work.others * s.parts);
  return LaunchCycles(results * 2 * sizeof(float), unit_bytes, target);
}

void ForEachRowTile(const LaneWork& work, const LaneShape& shape, int64_t most_lanes,
                    const std::function<void(const LaneShape&)>& visit) {
  LaneShape s = shape;
  for (const int64_t lanes_y : LaneSizes(work.rows, most_lanes / s.lanes_x)) {
    for (const int64_t lanes_z : LaneSizes(work.more_rows, most_lanes / s.lanes_x / lanes_y)) {
      for (const int64_t rows : LaneSizes(CeilDiv(work.rows, lanes_y), kLaneRowsMax)) {
        for (const int64_t more_rows : LaneSizes(CeilDiv(work.more_rows, lanes_z), kLaneRowsMax / rows)) {
          s.lanes_y = lanes_y, s.lanes_z = lanes_z, s.rows = rows, s.more_rows = more_rows;
          visit(s);
        }
      }
    }
  }
}

double LaneCycles(const LaneWork& work, const LaneShape& s, const target::Target& target) {
  const auto units = static_cast<int64_t>(target.hierarchy.units);
  const int64_t products = s.width * s.rows * s.more_rows, rows = s.rows * s.more_rows;
  const bool large = products >= kLargeTile;
  const int64_t registers = kOtherRegisters + products + (large ? rows + s.width : rows * kVector);
  const bool is_short = work.steps / s.parts * work.window < kLargeTileStepsMin;
  if (large ? is_short : registers > kLaneRegistersMax) return std::numeric_limits<double>::infinity();
  const int64_t warps = CeilDiv(s.lanes(), target.hierarchy.lane_width);
  const int64_t all_lanes = warps * target.hierarchy.lane_width;
  // Every device has the registers for a group of one warp.
  if (warps > 1 && registers * all_lanes > target.memory.group_registers) {
    return std::numeric_limits<double>::infinity();
  }
  const auto shared = static_cast<int64_t>(StepBytes(work, s) * kBufferedSteps);
  const int64_t resident = std::max<int64_t>(
      1, std::min<int64_t>({kUnitRegisters / (registers * all_lanes), target.hierarchy.unit_lanes / all_lanes,
                            target.hierarchy.unit_groups, target.memory.unit_shared_bytes / shared}));
  const int64_t per_unit = CeilDiv(GroupsOf(work, s), units), rounds = CeilDiv(per_unit, resident);
  const double steps = static_cast<double>(work.steps) / static_cast<double>(s.parts);
  const double depth = steps * static_cast<double>(work.window);
  const double arithmetic = static_cast<double>(products * target.hierarchy.lane_width) / kProducts;
  const double busy = static_cast<double>(per_unit * warps) * depth * (arithmetic + LoadCycles(s, target));
  const double waiting = static_cast<double>(rounds) * depth * (static_cast<double>(products) + kLatency);
  const double memory = static_cast<double>(per_unit) * steps * StepBytes(work, s) / kBytes;
  double cycles = std::max({busy, waiting, memory}) + kExposedReadShare * memory;
  const bool apart =
      (work.row_growth >= 1 && s.rows * s.lanes_y > 1) || (work.more_growth >= 1 && s.more_rows * s.lanes_z > 1);
  if (work.window > 1 && apart) cycles *= kApart;
  cycles += static_cast<double>(rounds) * (kStartCycles + kBarrier * depth / 16);
  return cycles + PartsCycles(work, s, kBytes, target);
}

std::vector<int64_t> LaneSizes(int64_t extent, int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= std::min(most, PowerOf2Ceil(extent)); ++size) {
    if ((size & (size - 1)) == 0 || extent % size == 0) sizes.push_back(size);
  }
  return sizes;
}

std::vector<int64_t> LaneParts(int64_t steps) {
  std::vector<int64_t> parts = {1};
  for (int64_t p = 2; p <= kPartsMax; p *= 2) {
    if (steps % p == 0 && steps / p >= kPartStepsMin) parts.push_back(p);
  }
  return parts;
}

LaneShape BestLaneShape(const LaneWork& work, const target::Target& target) {
  LaneShape best;
  double least = std::numeric_limits<double>::infinity();
  const std::vector<int64_t> all_parts = LaneParts(work.steps);
  const auto race = [&](LaneShape shape) {
    for (const int64_t parts : all_parts) {
      shape.parts = parts;
      const double cycles = LaneCycles(work, shape, target);
      if (cycles >= least) continue;
      least = cycles;
      best = shape;
    }
  };
  LaneShape s;
  for (s.width = std::min(kVector, PowerOf2Ceil(work.columns));
       s.width <= std::min(2 * kVector, PowerOf2Ceil(work.columns)); s.width *= 2) {
    for (s.lanes_x = 1; s.lanes_x <= std::min(target.hierarchy.lane_width,
                                              static_cast<int>(PowerOf2Ceil(CeilDiv(work.columns, s.width))));
         s.lanes_x *= 2) {
      ForEachRowTile(work, s, target.hierarchy.max_lanes, race);
    }
  }
  return best;
}

}  // namespace hone::space
