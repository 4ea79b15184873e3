// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/interpret.h"

#include <algorithm>
#include <functional>

#include "base/status.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/eval_copy.h"
#include "compiler/ir/eval_lane_reduce.h"
#include "compiler/ir/eval_mma.h"
#include "compiler/ir/match.h"
#include "compiler/ir/serial_lanes.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

using eval::AccessCode;
using eval::Code;
using eval::ExprCompiler;
using eval::Frame;

constexpr int64_t kAllocBytesMax = int64_t{1} << 34;
// Fills memory before its first write. It is a NaN in every float type and an index that is out of every bound.
constexpr std::byte kUninitialized{0xff};

// Runs a statement. Returns false after an illegal access.
using Exec = std::function<bool(Frame&)>;

// The lanes of one group, each with its own frame.
struct Group {
  std::vector<Frame> lanes;
  RaceLog races;
  int64_t id = 0;
  std::string error;
};
// Runs a statement for all lanes of a group: one lane after the other, or, if lanes must meet inside it, piece by
// piece.
using GroupExec = std::function<bool(Group&)>;

// Whether the statement itself needs all lanes at once: a barrier, a lane reduction or a shared allocation.
bool NeedsAllLanes(const Stmt& s) {
  const Alloc* alloc = s.As<Alloc>();
  return s.As<Barrier>() != nullptr || s.As<LaneReduce>() != nullptr ||
         (alloc != nullptr && IsShared(alloc->buffer->scope));
}

class StmtCompiler {
 public:
  ExprCompiler& exprs() { return exprs_; }

  absl::StatusOr<Exec> Compile(const Stmt& s) {
    if (!s.defined()) return absl::InvalidArgumentError("a statement is missing");
    return Match(
        s, [&](const For& n) { return CompileFor(n); }, [&](const Store& n) { return CompileStore(n); },
        [&](const Block& n) { return CompileBlock(n); }, [&](const If& n) { return CompileIf(n); },
        [&](const Alloc& n) { return CompileAlloc(n); }, [&](const Let& n) { return CompileLet(n); },
        [](const Barrier&) -> absl::StatusOr<Exec> {
          return absl::InvalidArgumentError("a barrier is allowed only in a func with a grid");
        },
        [&](const Mma& n) -> absl::StatusOr<Exec> {
          HONE_ASSIGN_OR_RETURN(eval::MmaCode code, eval::MmaCode::Compile(n, exprs_));
          return Exec([code = std::move(code)](Frame& frame) { return code.Run(frame); });
        },
        [](const MmaWait& n) -> absl::StatusOr<Exec> {
          return Exec([pending = n.pending](Frame& frame) { return eval::MmaCode::WaitForGroups(pending, frame); });
        },
        [&](const Copy& n) -> absl::StatusOr<Exec> {
          HONE_ASSIGN_OR_RETURN(eval::CopyCode code, eval::CopyCode::Compile(n, exprs_));
          return Exec([code = std::move(code)](Frame& frame) { return code.Run(frame); });
        },
        [](const Commit&) -> absl::StatusOr<Exec> {
          return Exec([](Frame& frame) { return RecordError(frame, frame.copies.Commit()); });
        },
        [](const Wait& n) -> absl::StatusOr<Exec> {
          return Exec([pending = n.pending](Frame& frame) {
            return RecordError(frame, frame.copies.Wait(pending, frame.races));
          });
        },
        [&](const LaneReduce& n) { return Compile(SerialReduceStep(n)); },
        [](const Prefetch&) -> absl::StatusOr<Exec> { return Exec([](Frame&) { return true; }); });
  }

  // Compiles the statement for all lanes of a group at once.
  absl::StatusOr<GroupExec> CompileForGroup(const Stmt& s) {
    if (!s.defined()) return absl::InvalidArgumentError("a statement is missing");
    if (!AnyStmt(s, NeedsAllLanes)) return CompileLaneByLane(s);
    return Match(
        s, [&](const For& n) { return GroupFor(n); }, [&](const Block& n) { return GroupBlock(n); },
        [&](const If& n) { return GroupIf(n); }, [&](const Alloc& n) { return GroupAlloc(n); },
        [&](const Let& n) { return GroupLet(n); },
        [](const Barrier&) -> absl::StatusOr<GroupExec> {
          return GroupExec([](Group& group) {
            group.races.Synchronize();
            return true;
          });
        },
        [&](const Store&) { return CompileLaneByLane(s); }, [&](const Mma&) { return CompileLaneByLane(s); },
        [&](const MmaWait&) { return CompileLaneByLane(s); }, [&](const Copy&) { return CompileLaneByLane(s); },
        [&](const Commit&) { return CompileLaneByLane(s); }, [&](const Wait&) { return CompileLaneByLane(s); },
        [&](const LaneReduce& n) -> absl::StatusOr<GroupExec> {
          HONE_ASSIGN_OR_RETURN(eval::LaneReduceCode code, eval::LaneReduceCode::Compile(n, exprs_));
          return GroupExec([code = std::move(code)](Group& group) {
            std::string error = code.Run(group.lanes, group.id);
            return error.empty() || Fail(group, std::move(error));
          });
        },
        [&](const Prefetch&) { return CompileLaneByLane(s); });
  }

 private:
  static bool Fail(Group& group, std::string error) {
    group.error = std::move(error);
    return false;
  }
  static bool RecordError(Frame& frame, std::string error) {
    if (!error.empty()) {
      frame.error = std::move(error);
      frame.failed = true;
    }
    return !frame.failed;
  }

  // Returns "" or the reason why the buffer's memory must not be freed yet.
  static std::string InUseError(const Frame& frame, const BufferNode* buffer) {
    if (!frame.copies.HasCopyInFlightTo(buffer)) return eval::MmaCode::InUseError(frame, buffer);
    return fmt::format("the memory of '{}' is freed while a copy to it is in flight; wait for the copy first ('wait')",
                       buffer->name);
  }

  absl::StatusOr<GroupExec> CompileLaneByLane(const Stmt& s) {
    HONE_ASSIGN_OR_RETURN(Exec exec, Compile(s));
    return GroupExec([exec = std::move(exec)](Group& group) {
      for (size_t lane = 0; lane < group.lanes.size(); ++lane) {
        group.races.Enter(group.id, static_cast<int64_t>(lane));
        if (!exec(group.lanes[lane])) return Fail(group, group.lanes[lane].error);
      }
      return true;
    });
  }

  // Evaluates the expression on every lane. Returns false if the values differ.
  static bool Uniform(Group& group, const Code* code, int64_t* value) {
    for (size_t lane = 0; lane < group.lanes.size(); ++lane) {
      Frame& frame = group.lanes[lane];
      group.races.Enter(group.id, static_cast<int64_t>(lane));
      const int64_t own = (*code)(frame).i;
      if (frame.failed) return Fail(group, frame.error);
      if (lane > 0 && own != *value)
        return Fail(group, "the lanes of a group diverge at a statement that all of them must reach");
      *value = own;
    }
    return true;
  }

  absl::StatusOr<GroupExec> GroupFor(const For& loop) {
    HONE_ASSIGN_OR_RETURN(const Code* extent, exprs_.Compile(loop.extent));
    const auto slot = static_cast<size_t>(exprs_.BindVar(loop.var));
    HONE_ASSIGN_OR_RETURN(GroupExec body, CompileForGroup(loop.body));
    exprs_.UnbindVar(loop.var);
    return GroupExec([extent, slot, body = std::move(body)](Group& group) {
      int64_t count = 0;
      if (!Uniform(group, extent, &count)) return false;
      for (int64_t i = 0; i < count; ++i) {
        for (Frame& frame : group.lanes) frame.vars[slot].i = i;
        if (!body(group)) return false;
      }
      return true;
    });
  }

  absl::StatusOr<GroupExec> GroupBlock(const Block& block) {
    std::vector<GroupExec> stmts;
    for (const Stmt& child : block.stmts) {
      HONE_ASSIGN_OR_RETURN(GroupExec exec, CompileForGroup(child));
      stmts.push_back(std::move(exec));
    }
    return GroupExec([stmts = std::move(stmts)](Group& group) {
      return std::all_of(stmts.begin(), stmts.end(), [&](const GroupExec& stmt) { return stmt(group); });
    });
  }

  absl::StatusOr<GroupExec> GroupIf(const If& node) {
    HONE_ASSIGN_OR_RETURN(const Code* condition, exprs_.Compile(node.condition));
    HONE_ASSIGN_OR_RETURN(GroupExec then_case, CompileForGroup(node.then_case));
    GroupExec else_case = [](Group&) { return true; };
    if (node.else_case.defined()) {
      HONE_ASSIGN_OR_RETURN(else_case, CompileForGroup(node.else_case));
    }
    return GroupExec([condition, then_case = std::move(then_case), else_case = std::move(else_case)](Group& group) {
      int64_t taken = 0;
      if (!Uniform(group, condition, &taken)) return false;
      return taken != 0 ? then_case(group) : else_case(group);
    });
  }

  // Allocates shared memory once for the group, and local memory once for every lane.
  absl::StatusOr<GroupExec> GroupAlloc(const Alloc& alloc) {
    HONE_RETURN_IF_ERROR(CheckSize(*alloc.buffer));
    const auto bytes = static_cast<size_t>(NumBytes(*alloc.buffer));
    const auto slot = static_cast<size_t>(exprs_.BindBuffer(alloc.buffer.get()));
    HONE_ASSIGN_OR_RETURN(GroupExec body, CompileForGroup(alloc.body));
    return GroupExec([slot, bytes, buffer = alloc.buffer, body = std::move(body)](Group& group) {
      const bool shared = IsShared(buffer->scope);
      const size_t copies = shared ? 1 : group.lanes.size();
      if (bytes > static_cast<size_t>(kAllocBytesMax) / copies) {
        return Fail(group, fmt::format("alloc of '{}' needs {} x {} bytes; the interpreter allows {}", buffer->name,
                                       copies, bytes, kAllocBytesMax));
      }
      Bytes memory(bytes * copies, kUninitialized);
      for (size_t lane = 0; lane < group.lanes.size(); ++lane) {
        group.lanes[lane].buffers[slot] = memory.data() + (shared ? 0 : lane * bytes);
      }
      group.races.Forget(buffer.get());
      if (!body(group)) return false;
      for (const Frame& frame : group.lanes) {
        if (std::string error = InUseError(frame, buffer.get()); !error.empty()) return Fail(group, std::move(error));
      }
      return true;
    });
  }

  absl::StatusOr<GroupExec> GroupLet(const Let& let) {
    HONE_ASSIGN_OR_RETURN(const Code* value, exprs_.Compile(let.value));
    const int width = let.value.type().width;
    const auto slot = static_cast<size_t>(exprs_.BindVar(let.var, width));
    HONE_ASSIGN_OR_RETURN(GroupExec body, CompileForGroup(let.body));
    exprs_.UnbindVar(let.var);
    return GroupExec([value, width, slot, body = std::move(body)](Group& group) {
      for (size_t lane = 0; lane < group.lanes.size(); ++lane) {
        Frame& frame = group.lanes[lane];
        group.races.Enter(group.id, static_cast<int64_t>(lane));
        for (frame.element = 0; frame.element < width; ++frame.element) {
          frame.vars[slot + static_cast<size_t>(frame.element)] = (*value)(frame);
        }
        frame.element = 0;
        if (frame.failed) return Fail(group, frame.error);
      }
      return body(group);
    });
  }

  static absl::Status CheckSize(const BufferNode& buffer) {
    if (NumBytes(buffer) <= kAllocBytesMax) return absl::OkStatus();
    return absl::ResourceExhaustedError(fmt::format("alloc of '{}' needs {} bytes; the interpreter allows {}",
                                                    buffer.name, NumBytes(buffer), kAllocBytesMax));
  }

  absl::StatusOr<Exec> CompileFor(const For& loop) {
    HONE_ASSIGN_OR_RETURN(const Code* extent, exprs_.Compile(loop.extent));
    const auto slot = static_cast<size_t>(exprs_.BindVar(loop.var));
    HONE_ASSIGN_OR_RETURN(Exec body, Compile(loop.body));
    exprs_.UnbindVar(loop.var);
    return Exec([extent, slot, body = std::move(body)](Frame& frame) {
      const int64_t count = (*extent)(frame).i;
      for (int64_t i = 0; i < count && !frame.failed; ++i) {
        frame.vars[slot].i = i;
        if (!body(frame)) return false;
      }
      return !frame.failed;
    });
  }

  absl::StatusOr<Exec> CompileStore(const Store& store) {
    AccessCode access;
    HONE_RETURN_IF_ERROR(exprs_.CompileAccess(store.buffer, store.indices, store.mask, &access));
    HONE_ASSIGN_OR_RETURN(const Code* value, exprs_.Compile(store.value));
    const DType dtype = store.buffer->dtype;
    const int width = store.value.type().width;
    const auto slot = static_cast<size_t>(exprs_.NewSlot(width)), place = static_cast<size_t>(exprs_.NewSlot(width));
    return Exec([access = std::move(access), value, dtype, width, slot, place](Frame& frame) {
      // All elements are read before any is written. The value of a masked-off element is computed as well.
      for (frame.element = 0; frame.element < width; ++frame.element) {
        frame.vars[slot + static_cast<size_t>(frame.element)] = (*value)(frame);
      }
      for (frame.element = 0; frame.element < width; ++frame.element) {
        frame.vars[place + static_cast<size_t>(frame.element)].i =
            access.IsMaskedOff(frame) ? -1 : access.Offset(frame, AccessCode::Use::kWrite);
      }
      frame.element = 0;
      if (frame.failed) return false;
      std::byte* data = frame.buffers[static_cast<size_t>(access.slot)];
      for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
        const int64_t offset = frame.vars[place + i].i;
        if (offset >= 0) eval::Write(dtype, frame.vars[slot + i], data + offset * SizeOf(dtype));
      }
      return true;
    });
  }

  absl::StatusOr<Exec> CompileBlock(const Block& block) {
    std::vector<Exec> stmts;
    for (const Stmt& child : block.stmts) {
      HONE_ASSIGN_OR_RETURN(Exec exec, Compile(child));
      stmts.push_back(std::move(exec));
    }
    return Exec([stmts = std::move(stmts)](Frame& frame) {
      return std::all_of(stmts.begin(), stmts.end(), [&](const Exec& stmt) { return stmt(frame); });
    });
  }

  absl::StatusOr<Exec> CompileIf(const If& node) {
    HONE_ASSIGN_OR_RETURN(const Code* condition, exprs_.Compile(node.condition));
    HONE_ASSIGN_OR_RETURN(Exec then_case, Compile(node.then_case));
    Exec else_case = [](Frame& frame) { return !frame.failed; };
    if (node.else_case.defined()) {
      HONE_ASSIGN_OR_RETURN(else_case, Compile(node.else_case));
    }
    return Exec([condition, then_case = std::move(then_case), else_case = std::move(else_case)](Frame& frame) {
      const bool taken = (*condition)(frame).i != 0;
      if (frame.failed) return false;
      return taken ? then_case(frame) : else_case(frame);
    });
  }

  absl::StatusOr<Exec> CompileAlloc(const Alloc& alloc) {
    HONE_RETURN_IF_ERROR(CheckSize(*alloc.buffer));
    const int64_t bytes = NumBytes(*alloc.buffer);
    const auto slot = static_cast<size_t>(exprs_.BindBuffer(alloc.buffer.get()));
    HONE_ASSIGN_OR_RETURN(Exec body, Compile(alloc.body));
    return Exec([slot, bytes, buffer = alloc.buffer, body = std::move(body)](Frame& frame) {
      Bytes memory(static_cast<size_t>(bytes), kUninitialized);
      frame.buffers[slot] = memory.data();
      return body(frame) && RecordError(frame, InUseError(frame, buffer.get()));
    });
  }

  absl::StatusOr<Exec> CompileLet(const Let& let) {
    HONE_ASSIGN_OR_RETURN(const Code* value, exprs_.Compile(let.value));
    const int width = let.value.type().width;
    const auto slot = static_cast<size_t>(exprs_.BindVar(let.var, width));
    HONE_ASSIGN_OR_RETURN(Exec body, Compile(let.body));
    exprs_.UnbindVar(let.var);
    return Exec([value, width, slot, body = std::move(body)](Frame& frame) {
      for (frame.element = 0; frame.element < width; ++frame.element) {
        frame.vars[slot + static_cast<size_t>(frame.element)] = (*value)(frame);
      }
      frame.element = 0;
      return !frame.failed && body(frame);
    });
  }

  ExprCompiler exprs_;
};

// Runs the groups one after the other. The race log reports an access to data that another group wrote.
absl::Status RunGrid(const Func& func, StmtCompiler& compiler, std::span<const std::span<std::byte>> args) {
  const auto group_slot = static_cast<size_t>(compiler.exprs().BindVar(kGroupVar));
  const auto lane_slot = static_cast<size_t>(compiler.exprs().BindVar(kLaneVar));
  HONE_ASSIGN_OR_RETURN(const GroupExec exec, compiler.CompileForGroup(func.body));
  Group group;
  Frame frame;
  frame.vars.resize(static_cast<size_t>(compiler.exprs().var_slots()));
  frame.buffers.resize(static_cast<size_t>(compiler.exprs().buffer_slots()));
  frame.races = &group.races;
  for (size_t i = 0; i < args.size(); ++i) frame.buffers[i] = args[i].data();
  group.lanes.assign(static_cast<size_t>(func.grid.lanes), frame);
  for (group.id = 0; group.id < func.grid.groups; ++group.id) {
    for (size_t lane = 0; lane < group.lanes.size(); ++lane) {
      group.lanes[lane].vars[group_slot].i = group.id;
      group.lanes[lane].vars[lane_slot].i = static_cast<int64_t>(lane);
      group.lanes[lane].copies = {};
    }
    group.races.Synchronize();
    if (!exec(group)) return absl::OutOfRangeError(group.error);
  }
  return absl::OkStatus();
}

absl::Status Run(const Func& func, std::span<const std::span<std::byte>> args) {
  if (args.size() != func.params.size()) {
    return absl::InvalidArgumentError(
        fmt::format("got {} arguments for {} parameters", args.size(), func.params.size()));
  }
  StmtCompiler compiler;
  for (size_t i = 0; i < args.size(); ++i) {
    const BufferNode& param = *func.params[i];
    if (static_cast<int64_t>(args[i].size()) != NumBytes(param)) {
      return absl::InvalidArgumentError(fmt::format("argument '{}' has {} bytes, but its parameter has {}", param.name,
                                                    args[i].size(), NumBytes(param)));
    }
    compiler.exprs().BindBuffer(&param);
  }
  if (func.grid.defined()) return RunGrid(func, compiler, args);
  HONE_ASSIGN_OR_RETURN(const Exec exec, compiler.Compile(func.body));
  Frame frame;
  RaceLog races;  // for one lane: it reports the use of data that is still being copied
  if (AnyStmt(func.body, [](const Stmt& s) { return s.As<Copy>() != nullptr; })) frame.races = &races;
  frame.vars.resize(static_cast<size_t>(compiler.exprs().var_slots()));
  frame.buffers.resize(static_cast<size_t>(compiler.exprs().buffer_slots()));
  for (size_t i = 0; i < args.size(); ++i) frame.buffers[i] = args[i].data();
  if (!exec(frame)) return absl::OutOfRangeError(frame.error);
  return absl::OkStatus();
}

}  // namespace

absl::Status Interpret(const Func& func, std::span<const std::span<std::byte>> args) {
  return Annotate(Run(func, args), fmt::format("func '{}'", func.name));
}

}  // namespace hone::ir
