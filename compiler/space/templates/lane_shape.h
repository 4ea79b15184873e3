// SPDX-License-Identifier: Apache-2.0
// How a sum of products is best laid over the lanes of a GPU, by a model of what its units do in a cycle: where the
// search of such a tile begins, and what there is without a search.
#ifndef HONE_COMPILER_SPACE_TEMPLATES_LANE_SHAPE_H_
#define HONE_COMPILER_SPACE_TEMPLATES_LANE_SHAPE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/target/target.h"

namespace hone::space {

// Elements of a lane's tile along the output's columns (vectors) and along up to two other axes; lanes of a group along
// each of them; parts of the reduction, each of other groups.
struct LaneShape {
  int64_t width = 4, rows = 4, more_rows = 1;
  int64_t lanes_x = 16, lanes_y = 4, lanes_z = 1;
  int64_t parts = 1;
  int64_t staged = 0;  // steps that are brought to shared memory at once; 0: as many as there is room for

  int64_t lanes() const { return lanes_x * lanes_y * lanes_z; }
};

// A sum of products: the extents of the axes above, the product of all others; steps of the axis of the reduction that
// is walked, and how many steps of the other axes there are for each.
struct LaneWork {
  int64_t columns = 1, rows = 1, more_rows = 1, others = 1;
  int64_t steps = 1, window = 1;
  // Bytes that a group reads for one step, window and all: of the operand that varies along the columns for one of
  // them; of the other for one row, and what of that another row adds, as windows overlap.
  double column_bytes = 0, row_bytes = 0, row_growth = 1, more_growth = 1;
  // Of the two, what an instruction that cuts off has rounded first while the group runs.
  bool rounds_columns = false, rounds_rows = false;
  int64_t sharing = 1;  // groups along the rows, each of which reads a part of the columns for all of them
  // Whether what is read along the rows begins elsewhere in other groups, so that a tile of all rows must not run over.
  bool rows_begin_apart = false, more_rows_begin_apart = false;
};

inline constexpr int64_t kMostRows = 16;  // of a lane, along both axes

inline constexpr int64_t kUnitRegisters = 65536;  // as NVIDIA's have
inline constexpr double kUnhidden = 0.15;         // of reading, beside what takes longest
inline constexpr double kStartCycles = 1500;      // until a group has its first operands, and to write its results

constexpr int64_t Up(int64_t a, int64_t b) { return (a + b - 1) / b; }  // a / b, rounded up
int64_t GroupsOf(const LaneWork& work, const LaneShape& shape);
// Of a launch that only moves so many bytes, so many of them a cycle and unit.
double LaunchCycles(double bytes, double unit_bytes, const target::Target& target);
// Of a launch that takes the parts of a reduction together, and of moving these at so many bytes a cycle and unit; 0
// for one part.
double PartsCycles(const LaneWork& work, const LaneShape& shape, double unit_bytes, const target::Target& target);
// Every shape with the given width and lanes along the columns, but for its parts: lanes and tiles along the rows.
void ForEachRowTile(const LaneWork& work, const LaneShape& shape, int64_t most_lanes,
                    const std::function<void(const LaneShape&)>& visit);
// How many steps of a reduction of that depth are best written out for a tile of this shape.
int64_t StepsWrittenOut(const LaneShape& shape, int64_t depth);
// What a group reads for one step of the walked axis.
double StepBytes(const LaneWork& work, const LaneShape& shape);
// Sizes for a part of an axis, ascending: powers of two, and what divides the extent, which needs no condition.
std::vector<int64_t> LaneSizes(int64_t extent, int64_t most);
// In how many parts the walked axis may go: they divide it, and none is too short to be worth a group.
std::vector<int64_t> LaneParts(int64_t steps);
// How many cycles the target takes for it; infinity if a lane, or a group, has not the registers.
double LaneCycles(const LaneWork& work, const LaneShape& shape, const target::Target& target);
// The one with the fewest.
LaneShape BestLaneShape(const LaneWork& work, const target::Target& target);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_TEMPLATES_LANE_SHAPE_H_
