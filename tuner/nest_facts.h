// SPDX-License-Identifier: Apache-2.0
// What one loop nest of a scheduled state does, in numbers: how often it runs, what it computes, what it touches.
//
// Read straight off schedule::State, without lowering, so that tens of thousands of candidates a second can be judged.
// The draft model turns the facts into seconds, the features into a vector. Start with AnalyzeNest. Estimates, all of
// them: conditions are taken to hold, caches to be fully associative.
#ifndef HONE_TUNER_NEST_FACTS_H_
#define HONE_TUNER_NEST_FACTS_H_

#include <vector>

#include "compiler/schedule/grid.h"
#include "compiler/schedule/state.h"
#include "compiler/target/target.h"

namespace hone::tuner {

struct LoopFacts {
  double extent = 1;   // on average: a peeled tail counts with its own length
  int64_t length = 1;  // at most
  ir::LoopKind kind = ir::LoopKind::kSerial;
  bool reduce = false;
  bool own = true;         // of this nest, not of one it is computed in
  bool statement = false;  // a part of one statement, a tensor instruction or a copy, which does all its iterations
};

// One load of the stage's value, or its store. Loops count from the outermost; `inside` d means loops d, d+1, ...
struct Access {
  const ir::BufferNode* buffer = nullptr;
  double element_bytes = 4;
  bool store = false;
  bool local = false;            // stored in the kernel: in registers, on the stack, or shared
  bool shared = false;           // of these, in memory that the lanes of a group share
  bool irregular = false;        // depends on data: a gather
  std::vector<double> stride;    // per loop: elements the address moves by one iteration; 0 if it does not matter
  std::vector<double> elements;  // per depth d (one more than loops): distinct elements touched inside
  std::vector<double> lines;     // the same in cache lines
  double lane_stride = 0;        // elements between neighbouring lanes
  double Bytes(size_t d) const { return elements[d] * element_bytes; }
};

// The loops at the end that are unrolled or vectorized: straight-line code, one register tile.
struct TileFacts {
  size_t begin = 0;         // first loop of it
  double vectors = 1;       // vector operations that do the tile's work once per operation of the value
  double outputs = 1;       // of these, along loops that do not reduce: accumulators of a reduction
  double reduce_steps = 1;  // along loops that reduce
  double loads = 0;         // vector or broadcast loads
  double gathers = 0;       // of these, elements that must be fetched one by one
  double vector_used = 1;   // of its elements, 0 to 1
  bool vectorized = false;
};

struct NestFacts {
  const schedule::Nest* nest = nullptr;
  schedule::Grid launch;         // that it is part of
  std::vector<LoopFacts> loops;  // of nests around, then its own
  std::vector<Access> accesses;  // loads, then the store
  TileFacts tile;
  double executed = 1;       // times the value is computed
  double useful = 1;         // times it would have to be
  double flops = 0;          // per value, a multiply-add as two
  double operations = 0;     // vector instructions per value, dear functions weighted, a multiply-add as one
  double guards = 0;         // conditions around the store
  double vector_guards = 0;  // of these, ones that differ between elements
  int width = 1;             // elements of the widest vector

  size_t depth() const { return loops.size(); }
  // Bytes that everything but local storage touches inside.
  double WorkingSet(size_t d) const;
  // How often loops [0, d) run their body.
  double Trips(size_t d) const;
};

// Of every nest that runs with the kernel, in the state's order.
std::vector<NestFacts> AnalyzeNests(const schedule::State& state, const target::Target& target);

}  // namespace hone::tuner

#endif  // HONE_TUNER_NEST_FACTS_H_
