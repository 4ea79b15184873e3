// SPDX-License-Identifier: Apache-2.0
// The loops that put values in order (ir::Reduction::kOrder), as statements of the IR: a radix sort of the keys, from
// the lowest digit to the highest. One thread sorts a line.
//
// If a line has fewer places than values, the values that cannot have a place are dropped first: a histogram of the
// highest digit tells where the last place is. Up to 16 places are filled in one pass over the values, which keeps the
// lowest so far in registers. Not here: where the lines are and who sorts them (build_loops.cc). Start
// with OrderLine.
#ifndef HONE_COMPILER_PASSES_ORDER_LOOPS_H_
#define HONE_COMPILER_PASSES_ORDER_LOOPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/ir/workload.h"

namespace hone::passes {

struct OrderedLine {
  std::string name;                                   // of the stage; the names of loops and buffers derive from it
  ir::Expr values, places;                            // extents of the reduce axis and of the last axis
  int64_t values_max;                                 // the largest extent of the reduce axis
  std::function<ir::Expr(const ir::Expr& at)> value;  // the pair at a place: an i64, the key its high half
  ir::Buffer ordered;                                 // the result
  std::vector<ir::Buffer> spare;                      // SpareLines, allocated
  std::vector<ir::Expr> line;                         // indices of the line in `ordered` and in the spare buffers
};

// Buffers with room for the values of every line while they are sorted, of i64 and of the stage's shape with the
// values' extent: one if every value has a place, none for up to 16 places, else two.
std::vector<ir::Buffer> SpareLines(const ir::Stage& stage);

// The statement that sorts one line into `ordered`. The buffers of `spare` lose what they have.
ir::Stmt OrderLine(const OrderedLine& line);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_ORDER_LOOPS_H_
