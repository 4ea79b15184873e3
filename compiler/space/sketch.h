// SPDX-License-Identifier: Apache-2.0
// What spaces are made of: the rules that derive schedules for any workload, and the templates. Private to space/.
//
// A Sketch carries the state being scheduled, the steps taken, and the Chooser. Each function looks at the state, asks
// the chooser, and takes steps. The rules are in sketch/, the templates in templates/; space.cc says which follow one
// another.
#ifndef HONE_COMPILER_SPACE_SKETCH_H_
#define HONE_COMPILER_SPACE_SKETCH_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/chooser.h"
#include "compiler/target/target.h"

namespace hone::space {

// The loops that a split leaves: `outer` counts tiles, `inner` the iterations of one tile.
struct SplitLoops {
  std::string outer, inner;
};

// The axes that SplitAxis leaves of one axis: `groups` counts groups of elements, `place` the elements of one group.
struct SplitAxes {
  std::string groups, place;
};

// What Rfactor leaves: the stage of the partial results, and the axis of the reduction that is left to the stage.
struct Partials {
  std::string stage, axis;
};

// A schedule in the making: the state, the steps that led to it, and what the rules choose with.
//
// Steps that make loops, axes or stages return their names. Rules never derive a name from another.
struct Sketch {
  schedule::State state;
  const target::Target& target;
  Chooser& chooser;
  schedule::Schedule steps;

  // Takes the step. An illegal step is an error that quotes it; the sketch must be thrown away then.
  absl::Status Do(schedule::Step step);
  absl::Status DoAll(const schedule::Schedule& taken);

  absl::StatusOr<SplitLoops> Split(const std::string& loop, int64_t factor, schedule::Tail tail);
  // One loop of two, `inner` directly inside `outer`.
  absl::StatusOr<std::string> Fuse(const std::string& outer, const std::string& inner);
  // One loop of these, each directly inside the one before it, outermost first; at least one.
  absl::StatusOr<std::string> FuseAll(const std::vector<std::string>& loops);
  absl::StatusOr<SplitAxes> SplitAxis(const std::string& stage, const std::string& axis, int64_t factor);
  absl::StatusOr<Partials> Rfactor(const schedule::Rfactor& step);
  // The copy of `buffer` in another layout, which `stage` reads.
  absl::StatusOr<std::string> Pack(const std::string& buffer, const std::string& stage,
                                   std::vector<schedule::PackDim> dims);
  // The copy of `buffer` as it is, which `stage` reads.
  absl::StatusOr<std::string> CacheRead(const std::string& buffer, const std::string& stage);
  // The stage that computes what `stage`, which becomes a copy of it, did before.
  absl::StatusOr<std::string> CacheWrite(const std::string& stage);
  // The rounded copy of `buffer`, which `stage` reads.
  absl::StatusOr<std::string> Round(const std::string& buffer, const std::string& stage, int64_t bits);
  // The copy of `buffer` as another type, which `stage` reads.
  absl::StatusOr<std::string> Recode(const std::string& buffer, const std::string& stage);

  const schedule::Nest& Get(const std::string& stage) const;  // the stage must exist
  int64_t MaxExtent(const std::string& loop);                 // the loop must exist
};

// Of all stages, producers first.
std::vector<std::string> StagesOf(const schedule::State& state);
// Stages that load from the buffer, by name; how many loads there are in all.
std::vector<std::string> Readers(const schedule::State& state, const ir::BufferNode* buffer);
int CountLoads(const schedule::State& state, const ir::BufferNode* buffer);
// Steps of elements between neighbours along `axis` in the row-major buffer; nullopt if not affine in it.
std::optional<int64_t> StrideOf(const ir::Load& load, const std::string& axis, const ir::Ranges& ranges);
using schedule::AxisRanges;
std::vector<int64_t> ExtentsOf(const ir::Stage& stage);  // of its axes
std::vector<ir::Load> LoadsOf(const ir::Stage& stage);
// Whether the stage reads `buffer` only at its own axes, in order.
bool ReadsInPlace(const ir::Stage& stage, const ir::Buffer& buffer);
// How many leading axes all stages share: axis d of every load of a stage is the reader's own axis d.
size_t CommonAxes(const schedule::State& state);
// Of what the stage makes for one row, where rows are counted by its first `common` axes.
int64_t RowBytes(const ir::Stage& stage, size_t common);
// Whether it is a sum of products of two things that are loaded.
bool IsContraction(const ir::Stage& stage);
// Whether a reduction slides a window: an index that both its axes and the axes it sums over move.
bool HasWindow(const ir::Stage& stage);
int CountNodes(const ir::Expr& e);
bool HasCall(const ir::Expr& e);
// A last tile that overlaps the one before needs no condition; only what is shorter than one tile must be masked.
inline schedule::Tail TailOf(int64_t extent, int64_t tile) {
  return extent >= tile ? schedule::Tail::kShift : schedule::Tail::kMask;
}
// Rounds up to a power of two.
int64_t PowerOfTwo(int64_t n);
// How many of `extent` iterations a task has, where threads take about `tasks` of them. The last task starts earlier,
// so it does again, and perhaps at the same time, what the one before does: both threads then write the same lines,
// which may take three times as long. Fewer tasks where that leaves the slowest thread clearly less to do.
int64_t TaskSize(int64_t extent, int64_t tasks, int64_t threads);
// Into how many tasks a loop may be split: so many, or a few for each thread.
std::vector<int64_t> TaskCounts(std::set<int64_t> counts, int64_t threads);
// Of `extent` iterations, `batch` times, in tasks of `size`: how many the thread does that does most.
int64_t MostOfAThread(int64_t extent, int64_t size, int64_t batch, int64_t threads);
inline constexpr double kClearly = 1.05;  // so many times less to do for it is worth another size

// sketch/operands.cc: what every tile of a reduction does with what it reads.
// The reduction axes, outermost first, so that what is not read as vectors (they lie along axis `vector`) is walked
// along memory.
std::vector<std::string> ReductionOrder(const ir::Stage& stage, const std::string& vector);
// The layout in which one step of the reduction reads its vectors side by side: outer dimensions, tiles of `width`
// elements, reduction axes in the given order, positions in a tile. Empty if an index of the load is not a plain axis.
std::vector<schedule::PackDim> PackedOrder(const ir::Load& load, const std::string& vector, int64_t width,
                                           const std::vector<std::string>& reduce_order);
// In the copy of it that the stage then reads, the dimension that the axis alone goes along is the last; nothing is
// done where there are several.
absl::Status PackLast(Sketch& sketch, const std::string& stage, const ir::Load& load, const std::string& axis);
// Stages without reduction (padding) that only this stage reads and no step has touched.
std::vector<std::string> OwnProducers(const schedule::State& state, const ir::Stage& stage);
// The sum of products that the element-wise stage reads in place, alone and untouched; "" if there is none.
std::string SumsBehind(const schedule::State& state, const std::string& stage);
// Whether the stage reads sums of products in place, and only a product reads it, of which it is the operand without
// vectors: pixels that a depthwise convolution makes, for a pointwise one.
bool FeedsProduct(const schedule::State& state, const std::string& stage);
// How many elements along each dimension the load reads while each axis runs through so many values; of axes not named,
// one. Bytes count none beyond an end of the buffer.
using AxisExtents = std::map<std::string, int64_t, std::less<>>;
std::vector<int64_t> RegionOf(const ir::Load& load, const ir::Ranges& ranges, const AxisExtents& extents);
int64_t RegionBytes(const ir::Load& load, const ir::Ranges& ranges, const AxisExtents& extents);
// That a block of tiles may copy: they should stay in a core's cache, and leave room for other local buffers.
int64_t MostCopiedBytes(const target::Target& target);
// The last loop of a stage that is computed inside another, in vectors.
absl::Status VectorizeCopy(Sketch& sketch, const std::string& producer);

// sketch/inline.cc: element-wise stages disappear into their readers where that repeats no work that matters.
absl::Status InlineStages(Sketch& sketch);
// Also those that several stages read, reductions among them, where loading what they make takes as long as making it:
// where a stage is a launch of its own and goes through memory.
absl::Status InlineRepeated(Sketch& sketch);
// sketch/elementwise.cc: a root stage without reduction: parallel chunks of vectors.
absl::Status ScheduleElementwise(Sketch& sketch, const std::string& stage);
// sketch/rows.cc: softmax, normalizations: everything about one row inside one loop. False if the workload is not of
// that kind.
absl::StatusOr<bool> ScheduleRows(Sketch& sketch);
// The loops of a stage inside a row: the last axis in vectors, if it is none of the first `common`, which rows are
// counted by.
absl::Status VectorizeLast(Sketch& sketch, const std::string& stage, size_t common);
// sketch/reduction.cc: whether the innermost axis of a reduction runs along memory, far enough for partial results that
// fill vectors.
bool FitsVectors(const Sketch& sketch, const ir::Stage& stage);
// How many there may be at once for one element of such a stage.
int64_t MostPartialResults(const Sketch& sketch, const ir::Stage& stage);
// Gives a reduction along a contiguous axis vectors of partial results, where no other axis can be vectorized.
absl::StatusOr<bool> ScheduleVectorReduction(Sketch& sketch, const std::string& stage);
// sketch/split_reduction.cc: long reductions to a few results are taken apart, for threads to share. True if any was.
absl::StatusOr<bool> SplitLongReductions(Sketch& sketch);
// sketch/tile_shape.cc: whether it is a reduction of few steps, with windows along its last axis and another: tiles of
// several rows load what their windows share once.
bool SharesRows(const ir::Stage& stage);
// sketch/tiling.cc: the reduction `stage`, read in place by `reader`, in tiles by the target's tile string. `prefix`
// names the decisions.
absl::Status ScheduleTiles(Sketch& sketch, const std::string& reader, const std::string& stage,
                           const std::string& prefix);
// sketch/tile_choice.cc: whether the stage is a product whose results fill less than half a vector, and vectors of
// partial results are better.
bool PrefersPartialResults(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
// Such a product reads constants along the last axis that it sums over, for vectors of partial results: those that lie
// across it are laid out anew before the kernel runs. Any other stage stays as it is.
absl::Status LayAlongReduction(Sketch& sketch, const std::string& stage);
// A reduction and who reads it in place, in whose tiles it can be computed.
struct SharedTile {
  std::string reader, reduction;
};
// space.cc: the reader that the stage can share loops with, none of those taken, or a copy of its own, which takes the
// stage's name.
absl::StatusOr<SharedTile> ShareTile(Sketch& sketch, const std::string& stage, std::vector<std::string>* taken);
// templates/lane_tile.cc, for targets with lanes: a sum of products in tiles of groups, lanes and registers; whether
// such a tile has rows that use again what columns load, and a result for each of the lanes that run in step.
bool FillsLaneTile(const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleLaneTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                              const std::string& prefix);
// templates/tensor_tile.cc, for targets with tensor instructions: of which stage they compute the sums, and by which
// instruction, several steps of axis k at once.
struct TensorUse {
  ir::TensorInstruction instruction;
  std::string k, stage;
};
// Whether some stage is a sum of products that an instruction of the target can make, exactly.
bool HasTensorProduct(const ir::Workload& workload, const target::Target& target);
// Rewrites such a stage until the instruction can make its sums: types, offsets and layout of the operands. nullopt,
// and nothing done, if the stage is none.
absl::StatusOr<std::optional<TensorUse>> PrepareTensorProduct(Sketch& sketch, const std::string& stage);
// templates/register_tile.cc: a sum of products `stage` computed in register tiles of its reader `reader` (which reads
// it in place): matrix multiply, convolution, depthwise convolution. By the instruction of `use`, if there is one. A
// reader that is computed inside another stage's loop is tiled there, by the one thread that is there. `prefix` names
// the decisions. Nothing is done where a product reads what the reader makes (FeedsProduct): the product's own tiles
// have tiles of the stage inside.
absl::Status ScheduleRegisterTile(Sketch& sketch, const std::string& reader, const std::string& stage,
                                  const std::string& prefix, const std::optional<TensorUse>& use = std::nullopt);
// templates/winograd_tile.cc: a convolution `stage` from transformed tiles, whose results `out` reads in place, or is;
// whether the stage is one that can be; whether that should be faster than to compute it as it is.
bool FitsWinograd(const schedule::State& state, const ir::Stage& stage);
bool WinogradPays(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleWinogradTile(Sketch& sketch, const std::string& out, const std::string& stage,
                                  const std::string& prefix);

// templates/winograd_lanes.cc: the same for targets with lanes.
bool WinogradLanesPay(const schedule::State& state, const ir::Stage& stage, const target::Target& target);
absl::Status ScheduleWinogradLanes(Sketch& sketch, const std::string& out, const std::string& stage,
                                   const std::string& prefix);

// templates/attention_tile.cc: two products with work on rows between them, some rows after the others through all of
// it; whether that is what there is.
bool FitsAttention(const schedule::State& state);
absl::Status ScheduleAttentionTile(Sketch& sketch);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_H_
