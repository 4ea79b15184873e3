// SPDX-License-Identifier: Apache-2.0
// The steps of a schedule, and the schedule: a list of steps over named loops and stages, as data and as text.
//
// A schedule is what the search looks for and what the records keep: readable, hashable, replayed without the code that
// invented it. docs/SCHEDULE.md shows each step with its effect. Apply (apply.h) gives the steps their meaning.
//
// Loops: a fresh stage has one loop per axis, named as the axis. `split i f` makes i into i+"o" and i+"i"; `fuse a b`
// makes a+"_"+b. So every loop's name says where it comes from, and names are unique in a workload.
#ifndef HONE_COMPILER_SCHEDULE_STEP_H_
#define HONE_COMPILER_SCHEDULE_STEP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::schedule {

// What happens in the last tile when the factor does not divide the extent.
enum class Tail : uint8_t {
  kMask,   // the tile runs over; a condition guards every store. Vector loops become masked.
           // Cheap for a vectorized axis with packed (padded) constants; costly elsewhere.
  kShift,  // the last tile starts earlier and computes some elements twice. No condition, no second
           // copy of the code. Only spatial loops of extent >= factor with no reduction loop outside.
  kPeel,   // the tail is its own copy of the code with its own constant extent. No waste; twice the code.
};

struct Split {
  std::string loop;
  int64_t factor;
  Tail tail = Tail::kMask;
};
struct Fuse {
  std::string outer, inner;
};  // outer directly around inner
struct Reorder {
  std::vector<std::string> loops;
};  // loops of one stage; they share out their places in this order
struct Annotate {
  std::string loop;
  ir::LoopKind kind;
};  // vectorize, unroll, parallel; bind to the groups or the lanes of a target that has them
// Where the stage is stored: workspace at the root; local, shared or swizzled memory inside a loop. Comes before
// compute_at, because what lanes share is what all of them need.
struct StoreIn {
  std::string stage;
  ir::Scope scope;
  int64_t pad = 0;  // elements added to every row of the storage, so that lanes which go down a column meet other banks
  int64_t dims = 1;  // the last so many dimensions are a row; of several, the pad counts in elements of the first
};
// Computes the stage inside the given loop of its consumer: just the region that one iteration needs, in local storage.
struct ComputeAt {
  std::string stage, loop;
};
struct Inline {
  std::string stage;
};  // recomputes the stage where it is read
struct CacheWrite {
  std::string stage;
};  // reduces into a new stage "<stage>c", then copies to the stage
struct CacheRead {
  std::string buffer, stage;
};  // the stage reads a copy "<buffer>r<stage>" of the buffer
// The most elements of a group of `split_axis`, or of a tile of `pack`, that is longer than what it divides.
inline constexpr int64_t kMostBeyond = 4096;
// An axis of a stage, and the dimension of its buffer, become two: "<axis>x", which counts groups of `factor`, and
// "<axis>y", the place in one. So a loop can take every so many elements of it and store them side by side.
struct SplitAxis {
  std::string stage, axis;
  int64_t factor;
};
// One dimension of a packed layout: a source dimension, whole (factor 0), divided by the factor, or its remainder.
struct PackDim {
  int dim;
  int64_t factor = 0;
  bool remainder = false;
};
// The stage reads a re-arranged copy "<buffer>p<stage>" of the buffer, padded with zeros to whole tiles. The copy
// of a constant is made once, before the kernel runs.
struct Pack {
  std::string buffer, stage;
  std::vector<PackDim> dims;
};
// Takes a reduction apart: "<stage>f" reduces within groups of `factor` (keep_outer) or across them (keep_inner: one
// partial result per position in the group), and the stage reduces the partial results. Those of one result lie side by
// side; `first`: all first ones, then all second ones.
struct Rfactor {
  std::string stage, axis;
  int64_t factor;
  bool keep_inner = false, first = false;
};

// A sum of products leaves out whole iterations of its outer loops in which a factor is the zeros of padding. What
// these would make of an infinity or a NaN, the sum does not see.
struct SkipPadding {
  std::string stage;
};
// A maximum of f32 becomes one of integers: "<stage>c" reduces the places of the floats in IEEE's total order, the
// stage takes the float in that place. A NaN wins, and of two zeros the positive one, as in a maximum of floats.
struct TotalOrder {
  std::string stage;
};
// The stage reads "<buffer>o<stage>", a copy of an i8 buffer in u8 or the other way round, every number moved by 128,
// and takes the 128 back. The copy of a constant is made once, before the kernel runs.
struct Recode {
  std::string buffer, stage;
};
// The stage reads "<buffer>n<stage>", a copy of an f32 buffer with so many bits of fraction, rounded to nearest, ties
// away from zero. The copy of a constant is made once, before the kernel runs.
struct Round {
  std::string buffer, stage;
  int64_t bits;
};
// A sum of products of differences, sum (a - p) * (b - q) with p and q the same all along the reduction, as
// "<stage>m" = sum a * b less what the offsets are due: q times "<stage>a" = sum a, p times "<stage>b" = sum b.
struct Distribute {
  std::string stage;
};
// A convolution of 3x3 by constant weights, in tiles of size x size outputs, by one product for each element of a
// transformed patch (Winograd). "<stage>m" is those products, of matrices; the stage itself only moves "<stage>y".
// Rounds differently, the more so the larger the tiles.
struct Winograd {
  std::string stage;
  int64_t size;
};
// The innermost loops of the stage are one tensor instruction.
struct Tensorize {
  std::string stage;
  ir::TensorInstruction instruction;
};

// The stage, which only moves what it loads, to shared memory: asynchronously, `count` elements of its innermost loop
// at once. More than lanes copy is copied by the group, or by `groups` that follow one another and read the same: each
// a part of it, to all of them.
struct CopyAsync {
  std::string stage;
  int64_t count;
  int64_t groups = 1;
};
// The stages that are copied at the loop have so many buffers: the copies for an iteration begin `buffers` - 1
// iterations before, less those whose instructions may go on (which read shared memory themselves) while the next are
// begun: `running`.
struct Pipeline {
  std::string loop;
  int64_t buffers;
  int64_t running = 0;
};

// While an iteration of the loop runs, what the stage reads of the constant buffer `ahead` iterations later is brought
// into the second cache: an even share of it in each iteration of the stage's innermost loop that is not unrolled.
struct Prefetch {
  std::string buffer, stage, loop;
  int64_t ahead;
};

using Step = std::variant<Split, Fuse, Reorder, Annotate, StoreIn, ComputeAt, Inline, CacheWrite, CacheRead, SplitAxis,
                          Pack, Rfactor, SkipPadding, TotalOrder, Recode, Round, Distribute, Winograd, Tensorize,
                          CopyAsync, Pipeline, Prefetch>;
using Schedule = std::vector<Step>;

std::string Print(const Step& step);
// One step a line.
std::string Print(const Schedule& schedule);
// Errors: InvalidArgument naming line and word.
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_STEP_H_
