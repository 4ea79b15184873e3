// SPDX-License-Identifier: Apache-2.0
// An analytic cost model of a sum of products on a GPU. Its best shape is the default of a lane tile, and where a
// search begins.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_SHAPE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_SHAPE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/target/target.h"

namespace hone::space {

// How a sum of products is laid over lanes. A lane's tile has `width` elements along the output's columns, and `rows`
// and `more_rows` along up to two other axes; lanes_x, lanes_y and lanes_z are a group's lanes along the same axes.
// Each of the `parts` of the reduction is walked by groups of its own.
struct LaneShape {
  int64_t width = 4, rows = 4, more_rows = 1;
  int64_t lanes_x = 16, lanes_y = 4, lanes_z = 1;
  int64_t parts = 1;
  int64_t staged = 0;  // steps that are staged in shared memory at once; 0: as many as there is room for

  int64_t lanes() const { return lanes_x * lanes_y * lanes_z; }
};

// The size of a sum of products: the extents of the axes of a LaneShape, and the product of all other extents (others);
// the steps of the axis of the reduction that is walked, and the steps of the other axes for each of them (window).
struct LaneWork {
  int64_t columns = 1, rows = 1, more_rows = 1, others = 1;
  int64_t steps = 1, window = 1;
  // Bytes that a group reads for one step with its window: of the operand that varies along the columns, for one
  // column; of the other operand, for one row. Another row adds the share row_growth of row_bytes, below 1 if windows
  // overlap; more_growth is the same for the second axis of rows.
  double column_bytes = 0, row_bytes = 0, row_growth = 1, more_growth = 1;
  // Whether the group rounds the operand while it runs, because the instruction would cut off low bits.
  bool rounds_columns = false, rounds_rows = false;
  int64_t sharing = 1;  // groups along the rows that share copies of the columns; each reads a part for all of them
  // Whether the index of an operand depends on the axis of rows (or of more rows) and on another axis of the output, as
  // in a convolution with windows. An instruction's tile that covers that whole axis must then have the axis' exact
  // length: the lanes must divide it.
  bool rows_begin_apart = false, more_rows_begin_apart = false;
};

inline constexpr int64_t kLaneRowsMax = 16;  // the most rows of a lane, along both axes together

inline constexpr int64_t kUnitRegisters = 65536;   // registers of a unit, as NVIDIA's GPUs have
inline constexpr double kExposedReadShare = 0.15;  // the share of reading that other work does not hide
inline constexpr double kStartCycles = 1500;  // cycles until a group has its first operands, and to write its results

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }  // a / b, rounded up
// The number of groups of the launch; each part of the reduction has groups of its own.
int64_t GroupsOf(const LaneWork& work, const LaneShape& shape);
// Cycles of a launch that only moves `bytes`, at `unit_bytes` a cycle and unit.
double LaunchCycles(double bytes, double unit_bytes, const target::Target& target);
// Cycles of the launch that adds up the parts of a reduction, which moves `unit_bytes` a cycle and unit; 0 for one
// part.
double PartsCycles(const LaneWork& work, const LaneShape& shape, double unit_bytes, const target::Target& target);
// Visits every tile and number of lanes along the rows; the other fields are those of `shape`.
void ForEachRowTile(const LaneWork& work, const LaneShape& shape, int64_t most_lanes,
                    const std::function<void(const LaneShape&)>& visit);
// The preferred number of unrolled steps of a reduction of that depth, for a tile of this shape.
int64_t UnrolledSteps(const LaneShape& shape, int64_t depth);
// The bytes that a group reads for one step of the walked axis.
double StepBytes(const LaneWork& work, const LaneShape& shape);
// Sizes for a part of an axis, ascending: powers of two, and what divides the extent, which needs no condition.
std::vector<int64_t> LaneSizes(int64_t extent, int64_t most);
// The possible numbers of parts of the walked axis: they divide it, and every part is long enough for a group.
std::vector<int64_t> LaneParts(int64_t steps);
// The estimated cycles on the target. Infinity if a lane or a group does not have enough registers, or if the tile is
// large but the reduction too short to pay for it.
double LaneCycles(const LaneWork& work, const LaneShape& shape, const target::Target& target);
// The shape with the fewest estimated cycles.
LaneShape BestLaneShape(const LaneWork& work, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_SHAPE_H_
