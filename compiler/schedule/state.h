// SPDX-License-Identifier: Apache-2.0
// The state that steps rewrite: the workload's stages, each with its loops, bindings, storage and place.
//
// Not loops in text yet: passes/build_loops turns a State into statements. Everything the features need (extents,
// accesses, what is where) can be read off a State without lowering. Start with Nest.
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
  std::string name;
  ir::Expr extent;  // in terms of loops around it; not constant only after a peeled split
  int64_t max_extent;
  ir::LoopKind kind = ir::LoopKind::kSerial;
  bool reduce = false;
  int64_t buffers = 1;  // of every stage that is copied here: more than 1: while iterations before still compute
  int64_t running = 0;  // iterations whose instructions may go on while the next ones begin
};

// A share of a constant buffer that each iteration of a loop brings nearer, for later iterations of a loop around it.
struct PrefetchShare {
  ir::Buffer buffer;
  std::string loop;  // whose iterations take the shares
  ir::Expr first;    // the number of the first element, in terms of loops around and of that loop
  int64_t count;     // elements
  int64_t shares;    // of one iteration ahead; iterations beyond have none
  ir::Expr number;   // of the share
};

// One stage and how it is computed.
struct Nest {
  ir::Stage stage;
  std::vector<Loop> loops;            // outermost first
  ir::VarMap bindings;                // every axis of the stage in terms of loops of this nest and loops around it
  std::vector<ir::Expr> guards;       // the store happens only where all hold
  std::vector<ir::Expr> contributes;  // of a sum, in terms of the stage's axes: it adds 0 where one does not hold
  std::vector<ir::Expr> ends;        // in terms of the axes, where these run over: what does not hold them nobody reads
  std::vector<std::string> shifted;  // loops over tiles of which the last overlaps the one before
  std::string at_stage, at_loop;     // inside that loop of that stage; both empty: at the root
  std::vector<ir::Expr> origin;      // at a loop: where the stored region starts, per dimension
  std::vector<int64_t> storage_shape;       // at a loop: extents of the stored region; at the root: the buffer's shape
  ir::Scope scope = ir::Scope::kWorkspace;  // of what is stored, unless it is an output or prepared
  int64_t pad = 0;                          // elements added to every stored row
  int64_t pad_dims = 1;                     // the last dimensions, which are a row
  bool prepared = false;                    // computed once from constants, before the kernel runs
  std::optional<ir::TensorInstruction> instruction;  // that the innermost loops are
  std::vector<PrefetchShare> prefetches;
  int64_t copy = 0;         // elements of one asynchronous copy; 0: the stage is computed
  int64_t copy_groups = 1;  // that share it
  bool touched = false;     // a loop step has been applied: region steps come too late
  bool AtRoot() const { return at_stage.empty(); }
  bool HasLoop(ir::LoopKind kind) const;
  // The reduction's loop whose iterations lanes that follow one another take together; null if there is none.
  const Loop* MergedLoop() const;
  // Whether the stage is copied by the group, not by its lanes.
  bool IsCopiedByGroup() const;
  // How many of the innermost loops are the instruction; 0 without one.
  size_t InstructionLoops() const;
  // How many of the innermost loops are one statement: the instruction, or a copy of several elements.
  size_t StatementLoops() const;
};

struct State {
  std::string op;
  std::vector<ir::Param> params;
  std::vector<ir::Buffer> outputs;
  std::vector<Nest> nests;  // in topological order

  Nest* FindNest(std::string_view stage);
  const Nest* FindNest(std::string_view stage) const;
  const Nest* FindNest(const ir::BufferNode* buffer) const;
  // The nest that has the loop, and the loop's position in it; null if there is none.
  Nest* FindLoop(std::string_view loop, size_t* position);
  bool IsOutput(const ir::BufferNode* buffer) const;
  // [0, max_extent) of every loop.
  ir::Ranges LoopRanges() const;
  // Whether any loop is bound to groups or lanes: the schedule is for a target that has them.
  bool IsBound() const;
};

// Every stage at the root with one loop per axis, in the order of its axes, then its reduction axes.
State Start(const ir::Workload& workload);
// A fresh nest for a stage.
Nest MakeNest(ir::Stage stage);
// One of each.
std::vector<ir::Expr> Vars(const std::vector<ir::Axis>& axes);
// A copy of the buffer, element by element.
ir::Stage CopyStage(const std::string& name, const ir::Buffer& buffer);
// Loops that are a part of an instruction or a copy cannot change any more, and loops at or around the place of a stage
// that is computed inside this nest appear in that stage's region and cannot either: FailedPrecondition then.
absl::Status CheckNoStatement(const Nest& nest, size_t position);
absl::Status CheckFree(const State& state, const Nest& nest, size_t position);
// A step that takes other stages in place of this one, or gives it a place, comes before its loop steps and before
// others are computed inside it: FailedPrecondition then.
absl::Status CheckUnscheduled(const State& state, const Nest& nest);
// The shape in memory of what is stored of the nest's stage: rows with their padding; as many of it as the loop has
// buffers, if it is copied there.
std::vector<int64_t> StoredShape(const State& state, const Nest& nest);
// Where in it an element of the stage is, inside the loop that the stage is computed at.
std::vector<ir::Expr> StoredIndices(const State& state, const Nest& nest, std::vector<ir::Expr> indices);
// Known before the kernel runs: a constant, or computed from constants alone.
bool IsFixed(const State& state, const ir::BufferNode* buffer);
// The buffer of that name that the value of a stage loads from; null if it does not.
ir::Buffer FindRead(const ir::Stage& stage, std::string_view name);
// As FindRead, to be copied at the root: FailedPrecondition where the stage does not load from it, or where it is
// computed inside a loop.
absl::StatusOr<ir::Buffer> FindSource(const State& state, const Nest& nest, std::string_view name);
// Whether the value of a stage loads from the buffer.
bool Reads(const ir::Stage& stage, const ir::BufferNode* buffer);
// What the axes of the stage go through, those that it reduces, too.
ir::Ranges AxisRanges(const ir::Stage& stage);
// c itself, or what it joins with &&.
void CollectConditions(const ir::Expr& c, std::vector<ir::Expr>* conditions);
// Every load of `from` in e made into replacement(indices).
ir::Expr ReplaceLoads(const ir::Expr& e, const ir::BufferNode* from,
                      const std::function<ir::Expr(const std::vector<ir::Expr>&)>& replacement);
// Elements beyond the stage's extents are computed but never read, so their value does not matter; only loads that
// would leave their buffer must not happen. (A load from a packed, padded buffer stays inside and needs no condition;
// and where an axis ends is nothing to a load that does not go along it. `inside`: by axis, when it is inside.)
ir::Expr ProtectLoads(const ir::Expr& e, const ir::VarMap& inside, const ir::Ranges& ranges);
// Whether a load of the nest stays inside of what is stored of the buffer: a stage that is computed inside a loop
// stores only what was asked of it before.
bool StaysInside(const State& state, const Nest& nest, const ir::Load& load);

}  // namespace hone::schedule

#endif  // HONE_COMPILER_SCHEDULE_STATE_H_
