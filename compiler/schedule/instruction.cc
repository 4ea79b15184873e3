// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/instruction.h"

#include <fmt/format.h>

#include "base/status.h"

namespace hone::schedule {
namespace {

// The load that is e itself, or that e casts to the type; null if e is anything else.
const ir::Load* LoadAs(const ir::Expr& e, ir::DType to) {
  if (const ir::Load* load = e.As<ir::Load>()) return load->buffer->dtype == to ? load : nullptr;
  const ir::Cast* cast = e.As<ir::Cast>();
  return cast != nullptr && cast->type.dtype == to ? cast->value.As<ir::Load>() : nullptr;
}

// The distance in the load's buffer, in elements, between two iterations of each loop of the instruction.
struct LoopStrides {
  int64_t m = 0, n = 0, chunks = 0, k = 0;
};

absl::StatusOr<LoopStrides> StridesOf(const ir::Load& load, const InstructionLoops& loops, const ir::Ranges& ranges) {
  const ir::Linear place = LinearPlaceOf(load, ranges);
  LoopStrides steps;
  for (const auto& [atom, factor] : place.terms) {
    const ir::Var* var = atom.As<ir::Var>();
    for (const auto& [loop, step] : {std::pair(&loops.m, &steps.m), std::pair(&loops.n, &steps.n),
                                     std::pair(&loops.chunks, &steps.chunks), std::pair(&loops.k, &steps.k)}) {
      if (loop->empty() || !ir::UsesVar(atom, *loop)) continue;
      if (var == nullptr) {
        return absl::FailedPreconditionError(
            fmt::format("the address in {} does not grow by a constant stride with loop {}", load.buffer->name, *loop));
      }
      *step += factor;
    }
  }
  return steps;
}

// How an operand is laid out over the instruction's loops: `row` goes to its next row, `column` to the next element of
// a row, and `still` leaves the address unchanged. `chunks` goes to the next chunk of a row; null if rows have no
// chunks.
struct OperandLayout {
  int64_t LoopStrides::* row;
  int64_t LoopStrides::* column;
  int64_t LoopStrides::* still;
  int64_t LoopStrides::* chunks = nullptr;
};

// The operand, if its strides match the layout. chunk: contiguous elements of a row; 1 if all may lie apart.
absl::StatusOr<ir::MatrixOperand> Operand(const ir::Expr& e, const InstructionLoops& loops, const ir::Ranges& ranges,
                                          const OperandLayout& way, int64_t chunk) {
  const ir::Load& load = *e.As<ir::Load>();
  HONE_ASSIGN_OR_RETURN(const LoopStrides steps, StridesOf(load, loops, ranges));
  const bool in_chunks = way.chunks != nullptr && !loops.chunks.empty();
  const int64_t column_stride = in_chunks ? steps.*way.chunks : steps.*way.column;
  const bool side_by_side = chunk == 1 || steps.*way.column == 1;
  if (!side_by_side || steps.*way.still != 0 ||
      (in_chunks || chunk == 1 ? column_stride < chunk : column_stride != 1)) {
    return absl::FailedPreconditionError(fmt::format("the rows of operand {} are not contiguous{}: pack it",
                                                     load.buffer->name,
                                                     in_chunks ? fmt::format(" in chunks of {}", chunk) : ""));
  }
  ir::VarMap first;
  for (const std::string* loop : {&loops.m, &loops.n, &loops.chunks, &loops.k}) {
    if (!loop->empty()) first[*loop] = ir::Expr(0);
  }
  return ir::MatrixOperand{ir::Substitute(e, first), steps.*way.row, column_stride};
}

}  // namespace

absl::StatusOr<Factors> FindFactors(const ir::Expr& value, const ir::TensorInstructionEntry& entry) {
  const ir::Binary* product = value.As<ir::Binary>();
  if (product != nullptr && product->op == ir::BinaryOp::kMul) {
    const ir::Load *a = LoadAs(product->a, entry.sum), *b = LoadAs(product->b, entry.sum);
    if (a != nullptr && b != nullptr) return Factors{*a, *b};
  }
  return absl::FailedPreconditionError(
      fmt::format("{} needs a product of two loads, each as {}; the stage has none", entry.name, ir::Name(entry.sum)));
}

std::vector<RequiredLoop> RequiredLoops(const ir::TensorInstructionEntry& entry) {
  const bool in_chunks = entry.chunk > 1;
  return {{in_chunks ? entry.chunk : entry.k, true, &InstructionLoops::k},
          {in_chunks ? entry.k / entry.chunk : 1, true, &InstructionLoops::chunks},
          {entry.n, false, &InstructionLoops::n},
          {entry.m, false, &InstructionLoops::m}};
}

InstructionLoops LoopsOf(const Nest& nest, const ir::TensorInstructionEntry& entry) {
  InstructionLoops loops;
  size_t next = nest.loops.size();
  for (const RequiredLoop& loop : RequiredLoops(entry)) {
    if (loop.extent > 1 && next > 0) loops.*loop.name = nest.loops[--next].name;
  }
  return loops;
}

absl::StatusOr<ir::Stmt> BuildMma(const Nest& nest, const ir::Expr& sum, const ir::Ranges& ranges,
                                  const std::function<ir::Expr(const ir::Expr&)>& load) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(*nest.instruction);
  const InstructionLoops loops = LoopsOf(nest, entry);
  HONE_ASSIGN_OR_RETURN(const Factors factors, FindFactors(ir::Substitute(nest.stage.value, nest.bindings), entry));
  ir::Expr a = load(ir::MakeLoad(factors.a.buffer, factors.a.indices));
  ir::Expr b = load(ir::MakeLoad(factors.b.buffer, factors.b.indices));
  // The factors may be in either order: the one that moves with n is b.
  HONE_ASSIGN_OR_RETURN(const LoopStrides steps, StridesOf(*a.As<ir::Load>(), loops, ranges));
  if (steps.n != 0) std::swap(a, b);
  ir::MatrixOperand operands[3];
  const OperandLayout ways[] = {{&LoopStrides::m, &LoopStrides::n, &LoopStrides::k},
                                {&LoopStrides::m, &LoopStrides::k, &LoopStrides::n, &LoopStrides::chunks},
                                {&LoopStrides::n, &LoopStrides::k, &LoopStrides::m, &LoopStrides::chunks}};
  HONE_ASSIGN_OR_RETURN(operands[0], Operand(sum, loops, ranges, ways[0], entry.n));
  HONE_ASSIGN_OR_RETURN(operands[1], Operand(a, loops, ranges, ways[1], entry.Chunk()));
  HONE_ASSIGN_OR_RETURN(operands[2], Operand(b, loops, ranges, ways[2], entry.Chunk()));
  if (entry.b_rows_adjacent && operands[2].stride != entry.k) {
    return absl::FailedPreconditionError(fmt::format("the rows of operand {} are not adjacent: pack it",
                                                     operands[2].first.As<ir::Load>()->buffer->name));
  }
  const ir::DType wanted[] = {entry.sum, entry.a, entry.b};
  for (int i = 0; i < 3; ++i) {
    const ir::BufferNode& buffer = *operands[i].first.As<ir::Load>()->buffer;
    if (buffer.dtype == wanted[i]) continue;
    return absl::FailedPreconditionError(fmt::format("operand {} is {}, but {} takes {}", buffer.name,
                                                     ir::Name(buffer.dtype), entry.name, ir::Name(wanted[i])));
  }
  return ir::MakeMma(*nest.instruction, operands[0], operands[1], operands[2]);
}

}  // namespace hone::schedule
