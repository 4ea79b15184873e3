// SPDX-License-Identifier: Apache-2.0
// The state that steps rewrite: the workload's stages, each with its loops, place and storage.
//
// A State holds no statements; passes/build_loops makes them. The features of the cost model (extents, accesses,
// storage) are read off a State without lowering. Start with Nest.
#ifndef HONE_COMPILER_SCHEDULE_STATE_H_
#define HONE_COMPILER_SCHEDULE_STATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/workload.h"

namespace hone::schedule {

struct Loop {
  std::string name;    // unique in the state
  ir::Expr extent;     // arithmetic on open sizes; after a peeled split also on loops around it
  int64_t max_extent;  // the largest value of extent
  ir::LoopKind kind = ir::LoopKind::kSerial;
  bool reduce = false;  // goes over a reduction axis
  // Software pipelining, for the stages that are copied asynchronously at this loop.
  int64_t buffers = 1;  // buffers per stage; above 1, copies for later iterations are in flight while this one computes
  int64_t async_iterations = 0;  // iterations whose tensor instructions may still run while the next ones start
};

// Each iteration of a loop prefetches one share of a constant buffer, for a later iteration of a loop around it.
struct PrefetchShare {
  ir::Buffer buffer;
  std::string loop;  // each of its iterations prefetches one share
  ir::Expr first;    // row-major number of the first element, in terms of `loop` and the loops around it
  int64_t count;     // elements in a share
  int64_t shares;    // how many shares there are; later iterations prefetch nothing
  ir::Expr number;   // which share an iteration prefetches
};

// Conditions that some iterations of a nest fail.
struct Conditions {
  std::vector<ir::Expr> guards;  // in terms of loops; the result is stored only if all hold
  // In terms of the stage's axes, for a sum: an iteration that fails one would add 0 and may be skipped.
  std::vector<ir::Expr> contributes;
  // In terms of the stage's axes. Iterations beyond the stage's extent fail one of them. Their results are never read,
  // so they may hold anything.
  std::vector<ir::Expr> tail_guards;
};

// Names the loop inside which a stage is computed. Both are empty for a top-level stage.
struct Place {
  std::string stage, loop;
};

// The memory for the results of a stage.
struct Storage {
  std::vector<ir::Expr>
      origin;       // per dimension, the start of the region that one iteration computes; empty at top level
  ir::Shape shape;  // largest extents of that region, all numbers; at top level, the buffer's shape
  ir::Scope scope = ir::Scope::kWorkspace;  // ignored for an output or a prepared stage
  int64_t pad = 0;                          // added to the extent of a row's first dimension
  int64_t pad_dims = 1;                     // a row is this many of the last dimensions
};

// An asynchronous copy to shared memory in place of a computation.
struct AsyncCopy {
  int64_t elements = 0;  // elements of one copy statement; 0: the stage is computed, not copied
  int64_t groups = 1;    // consecutive groups that share each copy
};

// One stage and how it is computed.
struct Nest {
  ir::Stage stage;
  std::vector<Loop> loops;  // outermost first
  ir::VarMap bindings;      // every axis of the stage, in terms of loops of this nest and loops around it
  Conditions conditions;
  std::vector<std::string> overlapping;  // loops over tiles whose last tile overlaps the one before
  Place place;
  Storage storage;
  bool prepared = false;                             // computed once from constants, before the kernel runs
  std::optional<ir::TensorInstruction> instruction;  // replaces the innermost loops; excludes a copy
  AsyncCopy copy;
  std::vector<PrefetchShare> prefetches;
  bool has_loop_steps = false;  // a loop step was applied, so that steps which replace the stage are illegal

  bool IsTopLevel() const { return place.stage.empty(); }  // a top-level stage
  bool HasLoop(ir::LoopKind kind) const;
  // The reduction loop whose iterations consecutive lanes share (lane reduction); null if there is none.
  const Loop* LaneReduceLoop() const;
  // Whether the stage is copied by bulk copies, which one lane issues for its group.
  bool IsBulkCopied() const;
  // How many of the innermost loops the instruction replaces; 0 without an instruction.
  size_t InstructionLoops() const;
  // How many of the innermost loops become one statement: an instruction, a copy of several elements, or a sort.
  size_t StatementLoops() const;
};

struct State {
  std::string op;
  std::vector<ir::OpenSize> sizes;  // those that shapes and extents use
  std::vector<ir::Param> params;
  std::vector<ir::Buffer> outputs;
  std::vector<Nest> nests;  // in topological order

  Nest* FindNest(std::string_view stage);
  const Nest* FindNest(std::string_view stage) const;
  const Nest* FindNest(const ir::BufferNode* buffer) const;
  // Returns the nest that has the loop and sets the loop's position in it; null if there is no such loop.
  Nest* FindLoop(std::string_view loop, size_t* position);
  bool IsOutput(const ir::BufferNode* buffer) const;
  // The range [0, max_extent) of every loop, and the ranges of the open sizes.
  ir::Ranges LoopRanges() const;
  // The number of iterations, if it is the same wherever the loop runs: not after a peeled split.
  std::optional<ir::Size> IterationsOf(const Loop& loop) const;
  // Whether the expression uses an open size.
  bool IsOpen(const ir::Expr& e) const;
  // Whether any loop is bound to groups or lanes, so that the schedule needs a target with lanes.
  bool IsBound() const;
};

// The initial state: every stage at top level, with one loop per axis and then one per reduction axis.
State InitialState(const ir::Workload& workload);
// The initial nest of a stage.
Nest MakeNest(ir::Stage stage);
// The variables of the axes.
std::vector<ir::Expr> Vars(const std::vector<ir::Axis>& axes);
// A stage that copies the buffer element by element, to a new buffer called `name`. Its axes are "<name>_0",
// "<name>_1", and so on.
ir::Stage CopyStage(const std::string& name, const ir::Buffer& buffer);
// FailedPrecondition if the loop is part of an instruction, a copy or a sort: such a loop cannot change.
absl::Status CheckLoopCanChange(const Nest& nest, size_t position);
// CheckLoopCanChange, and FailedPrecondition if another stage is computed at this loop or inside it, because the region
// of that stage depends on the loop, or if the nest has prefetches, because they count iterations of its loops.
absl::Status CheckNoStageAtLoop(const State& state, const Nest& nest, size_t position);
// FailedPrecondition if the stage is a sort, if the nest has had loop steps, is placed inside a loop, or has other
// stages inside it. Steps that replace or place a stage must come before these.
absl::Status CheckUnscheduled(const State& state, const Nest& nest);
// The shape of the nest's storage in memory: with row padding, and with a first dimension for the buffers of a
// pipeline.
ir::Shape StoredShape(const State& state, const Nest& nest);
// The indices of an element in that storage, inside the loop that the stage is computed at.
std::vector<ir::Expr> StoredIndices(const State& state, const Nest& nest, std::vector<ir::Expr> indices);
// Whether the buffer is known before the kernel runs: a constant param, or the result of a prepared stage. A stage that
// reads only constants but is not prepared does not count.
bool IsFixed(const State& state, const ir::BufferNode* buffer);
// The buffer of that name that the stage's value loads from; null if there is none.
ir::Buffer FindLoadedBuffer(const ir::Stage& stage, std::string_view name);
// Like FindLoadedBuffer, for a step that copies the buffer. FailedPrecondition if the stage does not load from it, or
// if the buffer belongs to a stage that is computed inside a loop.
absl::StatusOr<ir::Buffer> FindCopySource(const State& state, const Nest& nest, std::string_view name);
// Inserts a nest for `copy`, a stage with the elements of `source`, before `reader`, which then reads the copy. It is
// prepared if the source is fixed. replaced: what stands for a cast of a load from the source, in terms of the load
// from the copy; undefined where `wanted` does not describe the cast. FailedPrecondition: the reader uses the source
// for more than `wanted`. `reader` is a nest of the state, and moves.
absl::Status ReadCastsFromCopy(State& state, Nest& reader, const ir::Buffer& source, ir::Stage copy,
                               const std::function<ir::Expr(const ir::Type& cast, const ir::Expr& copied)>& replaced,
                               std::string_view wanted);
// Whether the stage's value loads from the buffer.
bool Reads(const ir::Stage& stage, const ir::BufferNode* buffer);
// Whether step `scan` was applied: the stage reads its own results.
inline bool IsScan(const ir::Stage& stage) { return Reads(stage, stage.buffer.get()); }
// The axis of the stage up to each place of which it reduces the values, for step `scan`; nullopt if it does not.
std::optional<size_t> RunningAxis(const ir::Stage& stage);
// The ranges of the stage's axes, including reduction axes, and of the open sizes that their extents use.
ir::Ranges AxisRanges(const ir::Stage& stage);
// The row-major position of the element that a load of one element reads, its indices simplified.
ir::Linear LinearPlaceOf(const ir::Load& load, const ir::Ranges& ranges);
// Whether index < size for all values in the ranges. False may also mean that it could not be decided.
bool IsAlwaysBelow(const ir::Expr& index, const ir::Size& size, const ir::Ranges& ranges);
// An integer constant of the type, or the value of an open size.
ir::Expr MakeInt(ir::Type type, const ir::Size& value);
// Appends the operands of a chain of &&, or c itself if it is none.
void CollectConditions(const ir::Expr& c, std::vector<ir::Expr>* conditions);
// Replaces every load of `from` in e by replacement(indices).
ir::Expr ReplaceLoads(const ir::Expr& e, const ir::BufferNode* from,
                      const std::function<ir::Expr(const std::vector<ir::Expr>&)>& replacement);
// Replaces loads in e that could leave their buffer beyond the stage's extents by select(condition, load, 0). Elements
// there are computed but never read, so their value does not matter. inside: per axis, the condition that it is within
// its extent. ranges: of all axes, beyond the extents too. A load gets only the conditions of the axes it uses, and
// none if it stays inside its buffer (a padded one, for example).
ir::Expr ProtectLoads(const ir::Expr& e, const ir::VarMap& inside, const ir::Ranges& ranges);
// Whether the nest's load stays inside the stored part of its buffer. A stage that is computed inside a loop stores
// only the region that was inferred for its readers.
bool IsLoadInBounds(const State& state, const Nest& nest, const ir::Load& load);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_STATE_H_
