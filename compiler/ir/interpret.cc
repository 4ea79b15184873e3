#include "compiler/ir/interpret.h"

#include <algorithm>
#include <functional>

#include "base/status.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/match.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

using eval::AccessCode;
using eval::Code;
using eval::ExprCompiler;
using eval::Frame;

constexpr int64_t kMaxAllocBytes = int64_t{1} << 34;
// What memory holds before it is written: a NaN in every float type, and an index that is out of every bounds.
constexpr std::byte kUninitialized{0xff};

// Runs a statement; false once an access was out of bounds.
using Exec = std::function<bool(Frame&)>;

class StmtCompiler {
 public:
  ExprCompiler& exprs() { return exprs_; }

  absl::StatusOr<Exec> Compile(const Stmt& s) {
    if (!s.defined()) return absl::InvalidArgumentError("a statement is missing");
    return Match(
        s, [&](const For& n) { return CompileFor(n); }, [&](const Store& n) { return CompileStore(n); },
        [&](const Block& n) { return CompileBlock(n); }, [&](const If& n) { return CompileIf(n); },
        [&](const Alloc& n) { return CompileAlloc(n); }, [&](const Let& n) { return CompileLet(n); });
  }

 private:
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
    const int lanes = store.value.type().lanes;
    const auto slot = static_cast<size_t>(exprs_.NewSlot(lanes));
    return Exec([access = std::move(access), value, dtype, lanes, slot](Frame& frame) {
      // All lanes are read before any is written. A lane that is masked off computes its value all the same.
      for (frame.lane = 0; frame.lane < lanes; ++frame.lane) {
        frame.vars[slot + static_cast<size_t>(frame.lane)] = (*value)(frame);
      }
      std::byte* data = frame.buffers[static_cast<size_t>(access.slot)];
      for (frame.lane = 0; frame.lane < lanes && !frame.failed; ++frame.lane) {
        if (access.mask != nullptr && (*access.mask)(frame).i == 0) continue;
        const int64_t offset = access.Offset(frame);
        if (frame.failed) break;
        eval::Write(dtype, frame.vars[slot + static_cast<size_t>(frame.lane)], data + offset * SizeOf(dtype));
      }
      frame.lane = 0;
      return !frame.failed;
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
    const int64_t bytes = NumBytes(*alloc.buffer);
    if (bytes > kMaxAllocBytes) {
      return absl::ResourceExhaustedError(fmt::format("alloc of '{}' needs {} bytes", alloc.buffer->name, bytes));
    }
    const auto slot = static_cast<size_t>(exprs_.BindBuffer(alloc.buffer.get()));
    HONE_ASSIGN_OR_RETURN(Exec body, Compile(alloc.body));
    return Exec([slot, bytes, body = std::move(body)](Frame& frame) {
      Bytes memory(static_cast<size_t>(bytes), kUninitialized);
      frame.buffers[slot] = memory.data();
      return body(frame);
    });
  }

  absl::StatusOr<Exec> CompileLet(const Let& let) {
    HONE_ASSIGN_OR_RETURN(const Code* value, exprs_.Compile(let.value));
    const int lanes = let.value.type().lanes;
    const auto slot = static_cast<size_t>(exprs_.BindVar(let.var, lanes));
    HONE_ASSIGN_OR_RETURN(Exec body, Compile(let.body));
    exprs_.UnbindVar(let.var);
    return Exec([value, lanes, slot, body = std::move(body)](Frame& frame) {
      for (frame.lane = 0; frame.lane < lanes; ++frame.lane) {
        frame.vars[slot + static_cast<size_t>(frame.lane)] = (*value)(frame);
      }
      frame.lane = 0;
      return !frame.failed && body(frame);
    });
  }

  ExprCompiler exprs_;
};

absl::Status Run(const Func& func, std::span<const std::span<std::byte>> args) {
  if (args.size() != func.params.size()) {
    return absl::InvalidArgumentError(
        fmt::format("got {} arguments for {} parameters", args.size(), func.params.size()));
  }
  StmtCompiler compiler;
  for (size_t i = 0; i < args.size(); ++i) {
    const BufferNode& param = *func.params[i];
    if (static_cast<int64_t>(args[i].size()) != NumBytes(param)) {
      return absl::InvalidArgumentError(
          fmt::format("argument '{}' has {} bytes but its parameter {}", param.name, args[i].size(), NumBytes(param)));
    }
    compiler.exprs().BindBuffer(&param);
  }
  HONE_ASSIGN_OR_RETURN(const Exec exec, compiler.Compile(func.body));
  Frame frame;
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
