// SPDX-License-Identifier: Apache-2.0
// Facts about the loop nests of a scheduled state: how often each runs, what it computes, what memory it touches.
//
// They are read off schedule::State without lowering, so tens of thousands of candidates a second can be judged. The
// analytic cost model (analytic_model.h) makes seconds of them, features.h a vector. All facts are estimates:
// conditions are assumed to hold, and caches to be fully associative. Start with AnalyzeNests.
#ifndef HONE_TUNER_NEST_FACTS_H_
#define HONE_TUNER_NEST_FACTS_H_

#include <vector>

#include "base/size_points.h"
#include "compiler/schedule/grid.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace hone::tuner {

// One loop around the computation of a nest.
struct LoopFacts {
  double extent = 1;   // average number of iterations; a peeled tail counts with its own length
  int64_t length = 1;  // largest number of iterations
  ir::LoopKind kind = ir::LoopKind::kSerial;
  bool reduce = false;     // it iterates over a reduction axis of this nest
  bool own = true;         // it belongs to this nest; false: to a nest around it
  bool statement = false;  // one statement, a tensor instruction or a copy, does all its iterations
};

// One load in the stage's value, or the stage's store. Loops are numbered from the outermost. "Inside depth d" means by
// loops d, d+1, ... for fixed values of the loops before.
struct Access {
  const ir::BufferNode* buffer = nullptr;
  double element_bytes = 4;
  bool store = false;            // false: a load
  bool local = false;            // the buffer exists only inside the kernel: registers, stack or shared memory
  bool shared = false;           // it is local and in memory that the lanes of a group share
  bool irregular = false;        // the address depends on data: a gather
  std::vector<double> stride;    // per loop: elements that one iteration moves the address by; 0: none
  std::vector<double> elements;  // per depth d, 0 to the number of loops: distinct elements touched inside it
  std::vector<double> lines;     // the same in cache lines
  double lane_stride = 0;        // elements between the addresses of neighbouring lanes; 0: the same address
  // Bytes touched inside depth d.
  double Bytes(size_t d) const { return elements[d] * element_bytes; }
};

// The register tile: the innermost loops that are unrolled, vectorized or part of one statement. Its code has no jumps.
struct TileFacts {
  size_t begin = 0;         // its outermost loop; the number of loops: there is no tile
  double vectors = 1;       // vector instructions of one tile for each operation of the value
  double outputs = 1;       // result vectors: the accumulators of a reduction
  double reduce_steps = 1;  // steps of the reduction in one tile; vectors = outputs * reduce_steps
  double loads = 0;         // load instructions of one tile, of vectors or of broadcast elements
  double gathers = 0;       // the loads among these that fetch single elements
  double vector_used = 1;   // share of a vector's elements that do work, 0 to 1
  bool vectorized = false;
};

// The facts of one loop nest. A "value" is the stage's expression, which the innermost loop body computes once.
struct NestFacts {
  const schedule::Nest* nest = nullptr;
  schedule::Grid launch;         // the launch that computes the nest
  std::vector<LoopFacts> loops;  // those of the nests around it, then its own
  std::vector<Access> accesses;  // loads, then the store
  TileFacts tile;
  double executed = 1;       // how often the value is computed
  double useful = 1;         // how often it must be computed: once per point of the stage's axes
  double flops = 0;          // operations of one value; a multiply-add counts as two
  double operations = 0;     // vector instructions of one value, weighted by cost; a multiply-add counts as one
  double stored_bytes = 0;   // of the memory that holds the stage's results
  double guards = 0;         // conditions around the store
  double vector_guards = 0;  // the guards that differ between the elements of a vector
  int width = 1;             // elements of the target's widest vector

  size_t depth() const { return loops.size(); }
  // Bytes in whole cache lines that all accesses but local ones touch inside depth d.
  double WorkingSet(size_t d) const;
  // How often loops [0, d) run their body.
  double Trips(size_t d) const;
};

// The facts of every nest that runs with the kernel, in the state's order. Nests that are computed once from constants
// before it are left out. The result points into `state`. Open sizes have their values at the point, or their largest
// ones if it does not name them.
std::vector<NestFacts> AnalyzeNests(const schedule::State& state, const target::Target& target,
                                    const SizePoint& point = {});

}  // namespace hone::tuner

#endif  // HONE_TUNER_NEST_FACTS_H_
