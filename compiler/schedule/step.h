// SPDX-License-Identifier: Apache-2.0
// The steps of a schedule, and the schedule: a list of steps over named loops and stages, as data and as text.
//
// A schedule is what the search produces and the records keep. It is readable, hashable, and replays without the code
// that made it. docs/SCHEDULE.md shows the effect of each step. The texts are stored in records and must not change.
//
// The Apply below each step implements it, in a file of its own in steps/. apply.h applies whole schedules, and lists
// the errors.
//
// Loops: a fresh stage has one loop per axis, named like the axis. `split i f` makes i into i+"o" and i+"i"; `fuse a b`
// makes a+"_"+b. A loop's name thus tells where it comes from, and names are unique in a workload.
#ifndef HONE_COMPILER_SCHEDULE_STEP_H_
#define HONE_COMPILER_SCHEDULE_STEP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::schedule {

struct State;  // state.h

// The treatment of the last tile if the factor does not divide the extent.
enum class Tail : uint8_t {
  // The last tile exceeds the extent, and a condition guards every store. Vector loops get masks. Cheap for a
  // vectorized axis with packed (padded) constants; costly elsewhere.
  kMask,
  // The last tile starts earlier and computes some elements twice, without conditions or a second copy of the code.
  // Only for loops over output elements, of extent >= factor, without a reduction loop outside.
  kShift,
  // The tail is a second copy of the code with its own constant extent. No wasted work; twice the code.
  kPeel,
  // Only for loops over output elements with an open extent, which may be less than the factor, of at most
  // kFittedTileMax. What is left behind the full tiles is one or two shorter tiles, which share evenly
  // (fitted_tiles.h). The code has a copy for each length. Little wasted work, no conditions inside, several times the
  // code.
  kFit,
};

inline constexpr int64_t kFittedTileMax = 64;  // the longest tile with Tail::kFit

// Splits the loop into an outer loop and an inner one of `factor` iterations, or of the loop's extent if that is less.
struct Split {
  std::string loop;
  int64_t factor;
  Tail tail = Tail::kMask;
};
absl::Status Apply(const Split& step, State& state);

// Replaces two loops by one; outer must be directly around inner.
struct Fuse {
  std::string outer, inner;
};
absl::Status Apply(const Fuse& step, State& state);

// Reorders loops of one stage. The named loops take each other's places in this order; other loops keep theirs.
struct Reorder {
  std::vector<std::string> loops;
};
absl::Status Apply(const Reorder& step, State& state);

// Vectorizes (up to 64 iterations), unrolls (up to 512) or parallelizes the loop, or binds it to groups or lanes.
struct Annotate {
  std::string loop;
  ir::LoopKind kind;
};
absl::Status Apply(const Annotate& step, State& state);

// Chooses where the stage is stored: workspace for a top-level stage; local, shared or swizzled memory inside a loop.
// It comes before compute_at, which infers the region of all lanes for shared memory.
struct StoreIn {
  std::string stage;
  ir::Scope scope;
  int64_t pad = 0;  // elements added to every row, so that lanes that access a column use different banks
  // A row is this many of the last dimensions. With several, the pad is added to the extent of the first of them.
  int64_t dims = 1;
};
absl::Status Apply(const StoreIn& step, State& state);

// Computes the stage inside the given loop of its consumer: only the region that one iteration needs, in local memory
// unless store_in says otherwise.
struct ComputeAt {
  std::string stage, loop;
};
absl::Status Apply(const ComputeAt& step, State& state);

// Repeats the stage's computation at every read, so that the stage disappears.
struct Inline {
  std::string stage;
};
absl::Status Apply(const Inline& step, State& state);

// Moves the reduction to a new stage "<stage>c"; the stage itself copies the results.
struct CacheWrite {
  std::string stage;
};
absl::Status Apply(const CacheWrite& step, State& state);

// The stage reads a copy "<buffer>r<stage>".
struct CacheRead {
  std::string buffer, stage;
};
absl::Status Apply(const CacheRead& step, State& state);

// The largest group of `split_axis`, or tile of `pack`, that may exceed the dimension it divides, in elements.
inline constexpr int64_t kPaddedTileElementsMax = 4096;
// Splits an axis of a stage, and the dimension of its buffer, into "<axis>x", the number of a group of `factor`
// elements, and "<axis>y", the position in it. A loop over "<axis>x" can then store strided elements contiguously.
struct SplitAxis {
  std::string stage, axis;
  int64_t factor;
};
absl::Status Apply(const SplitAxis& step, State& state);

// One dimension of a packed layout: a whole source dimension (factor 0), its quotient by the factor, or its remainder.
struct PackDim {
  int dim;
  int64_t factor = 0;
  bool remainder = false;
};
// The stage reads a re-arranged copy "<buffer>p<stage>" of the buffer, padded with zeros to whole tiles. A copy of a
// constant is made once, before the kernel runs.
struct Pack {
  std::string buffer, stage;
  std::vector<PackDim> dims;
};
absl::Status Apply(const Pack& step, State& state);

// Splits a reduction in two. "<stage>f" computes partial results along a new axis, and the stage reduces these; a
// second rfactor of the stage makes "<stage>ff". keep_outer: one partial result per group of `factor` elements.
// keep_inner: one per position in the group. The new axis is the last one of "<stage>f", so that the partial results of
// one output are contiguous. With `first` it is the first one, so that the partial results of one number, those of all
// outputs, are contiguous.
struct Rfactor {
  std::string stage, axis;
  int64_t factor;
  bool keep_inner = false, first = false;
};
absl::Status Apply(const Rfactor& step, State& state);

// Skips whole iterations of the outer loops of a sum of products if one factor is the zeros of padding. The sum then
// ignores infinities and NaNs in the other factor there.
struct SkipPadding {
  std::string stage;
};
absl::Status Apply(const SkipPadding& step, State& state);

// Computes a maximum of f32 on integers. "<stage>c" reduces the floats' positions in IEEE's total order, and the stage
// converts the result back. As in a maximum of floats a NaN wins, and +0 is above -0.
struct TotalOrder {
  std::string stage;
};
absl::Status Apply(const TotalOrder& step, State& state);

// Computes a reduction of the values up to each place of an axis in one pass: the result at a place is that of the
// place before it, combined with one value. The stage becomes a scan, which no step replaces or places. The axis' loop
// stays serial and whole, like that of a reduction.
struct Scan {
  std::string stage;
};
absl::Status Apply(const Scan& step, State& state);

// The stage reads "<buffer>o<stage>", a copy of an i8 buffer as u8 with 128 added to every number, and subtracts the
// 128 again; for a u8 buffer the reverse. The stage may use the buffer only in casts to a wider integer. A copy of a
// constant is made once, before the kernel runs.
struct Recode {
  std::string buffer, stage;
};
absl::Status Apply(const Recode& step, State& state);

// The stage reads "<buffer>w<stage>", a copy of an f16 or bf16 buffer as f32. The stage may use the buffer only in
// casts to f32. A copy of a constant is made once, before the kernel runs.
struct Widen {
  std::string buffer, stage;
};
absl::Status Apply(const Widen& step, State& state);

// The stage reads "<buffer>n<stage>", a copy of an f32 buffer rounded to `bits` fraction bits, to nearest, ties away
// from zero. A copy of a constant is made once, before the kernel runs.
struct Round {
  std::string buffer, stage;
  int64_t bits;
};
absl::Status Apply(const Round& step, State& state);

// Expands a sum of products of differences, sum (a - p) * (b - q), where p and q are constant along the reduction.
// "<stage>m" = sum a * b; the stage corrects it by q times "<stage>a" = sum a and p times "<stage>b" = sum b.
struct Distribute {
  std::string stage;
};
absl::Status Apply(const Distribute& step, State& state);

// Moves the factors of a sum of products that are the same all along the sum out of it: "<stage>u" sums the others, and
// the stage multiplies the results. Floats may round differently.
struct FactorOut {
  std::string stage;
};
absl::Status Apply(const FactorOut& step, State& state);

// Computes a 3x3 convolution with constant weights by Winograd's algorithm, in tiles of size x size outputs: one
// product for each element of a transformed patch. "<stage>m" is these products, as matrix products; the stage itself
// only moves "<stage>y". Rounding differs from the direct convolution, more so for larger tiles.
struct Winograd {
  std::string stage;
  int64_t size;
};
absl::Status Apply(const Winograd& step, State& state);

// Replaces the innermost loops of the stage by one tensor instruction.
struct Tensorize {
  std::string stage;
  ir::TensorInstruction instruction;
};
absl::Status Apply(const Tensorize& step, State& state);

// Makes the stage, which only moves what it loads to shared memory, an asynchronous copy. One copy of `count` elements
// replaces the innermost loop, which must have exactly `count` iterations; 1: each iteration copies one element. More
// than 16 bytes is a bulk copy, and so is a shared one: with `groups` > 1, that many consecutive groups that read the
// same elements share it, and each fetches a part and sends it to all.
struct CopyAsync {
  std::string stage;
  int64_t count;
  int64_t groups = 1;
};
absl::Status Apply(const CopyAsync& step, State& state);

// Gives the stages that are copied at the loop `buffers` buffers each. Copies for an iteration are issued `buffers` - 1
// iterations ahead, or `async_iterations` fewer. `async_iterations`: iterations whose tensor instructions may still
// read shared memory while the next iterations start.
struct Pipeline {
  std::string loop;
  int64_t buffers;
  int64_t async_iterations = 0;
};
absl::Status Apply(const Pipeline& step, State& state);

// Prefetches what the stage reads of the constant buffer `ahead` iterations of the loop later into the second-level
// cache. Each iteration of the stage's innermost loop that is not unrolled prefetches an equal share.
struct Prefetch {
  std::string buffer, stage, loop;
  int64_t ahead;
};
absl::Status Apply(const Prefetch& step, State& state);

using Step = std::variant<Split, Fuse, Reorder, Annotate, StoreIn, ComputeAt, Inline, CacheWrite, CacheRead, SplitAxis,
                          Pack, Rfactor, SkipPadding, TotalOrder, Recode, Widen, Round, Distribute, FactorOut, Winograd,
                          Scan, Tensorize, CopyAsync, Pipeline, Prefetch>;
using Schedule = std::vector<Step>;

std::string Print(const Step& step);
// One step per line.
std::string Print(const Schedule& schedule);
// Errors: InvalidArgument naming the line and the word.
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_STEP_H_
