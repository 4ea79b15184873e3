#include "compiler/schedule/instruction.h"

#include <fmt/format.h>

#include "base/status.h"

namespace hone::schedule {
namespace {

// The load of the type, or that e casts to it; null if it is something else.
const ir::Load* LoadAs(const ir::Expr& e, ir::DType to) {
  if (const ir::Load* load = e.As<ir::Load>()) return load->buffer->dtype == to ? load : nullptr;
  const ir::Cast* cast = e.As<ir::Cast>();
  return cast != nullptr && cast->type.dtype == to ? cast->value.As<ir::Load>() : nullptr;
}

// By how much the load's place in its buffer moves with each loop of the instruction, in elements.
struct Steps {
  int64_t m = 0, n = 0, k = 0;
};

absl::StatusOr<Steps> StepsOf(const ir::Load& load, const InstructionLoops& loops, const ir::Ranges& ranges) {
  ir::Linear place;
  int64_t row = 1;
  for (size_t d = load.indices.size(); d-- > 0;) {
    place.Add(ir::ToLinear(ir::Simplify(load.indices[d], ranges), ranges), row);
    row *= load.buffer->shape[d];
  }
  Steps steps;
  for (const auto& [atom, factor] : place.terms) {
    const ir::Var* var = atom.As<ir::Var>();
    for (const auto& [loop, step] :
         {std::pair(&loops.m, &steps.m), std::pair(&loops.n, &steps.n), std::pair(&loops.k, &steps.k)}) {
      if (loop->empty() || !ir::UsesVar(atom, *loop)) continue;
      if (var == nullptr) {
        return absl::FailedPreconditionError(
            fmt::format("the place in {} does not move evenly with loop {}", load.buffer->name, *loop));
      }
      *step += factor;
    }
  }
  return steps;
}

// The operand if it has rows that lie side by side, or may lie apart, and stands still along the third loop.
absl::StatusOr<ir::MatrixOperand> Operand(const ir::Expr& e, const InstructionLoops& loops, const ir::Ranges& ranges,
                                          int64_t Steps::* row, int64_t Steps::* column, int64_t Steps::* still,
                                          bool apart = false) {
  const ir::Load& load = *e.As<ir::Load>();
  HONE_ASSIGN_OR_RETURN(const Steps steps, StepsOf(load, loops, ranges));
  if ((apart ? steps.*column < 1 : steps.*column != 1) || steps.*still != 0) {
    return absl::FailedPreconditionError(
        fmt::format("the rows of operand {} do not lie side by side: pack it", load.buffer->name));
  }
  ir::VarMap first;
  for (const std::string* loop : {&loops.m, &loops.n, &loops.k}) {
    if (!loop->empty()) first[*loop] = ir::Expr(0);
  }
  return ir::MatrixOperand{ir::Substitute(e, first), steps.*row, steps.*column};
}

}  // namespace

absl::StatusOr<Factors> FactorsOf(const ir::Expr& value, const ir::TensorInstructionEntry& entry) {
  const ir::Binary* product = value.As<ir::Binary>();
  if (product != nullptr && product->op == ir::BinaryOp::kMul) {
    const ir::Load *a = LoadAs(product->a, entry.sum), *b = LoadAs(product->b, entry.sum);
    if (a != nullptr && b != nullptr) return Factors{*a, *b};
  }
  return absl::FailedPreconditionError(
      fmt::format("{} multiplies two loads, each as {}; the stage does not", entry.name, ir::Name(entry.sum)));
}

InstructionLoops LoopsOf(const Nest& nest, const ir::TensorInstructionEntry& entry) {
  InstructionLoops loops;
  size_t next = nest.loops.size();
  for (const auto& [extent, loop] :
       {std::pair(entry.k, &loops.k), std::pair(entry.n, &loops.n), std::pair(entry.m, &loops.m)}) {
    if (extent > 1 && next > 0) *loop = nest.loops[--next].name;
  }
  return loops;
}

absl::StatusOr<ir::Stmt> ContractOf(const Nest& nest, const ir::Expr& sum, const ir::Ranges& ranges,
                                    const std::function<ir::Expr(const ir::Expr&)>& load) {
  const ir::TensorInstructionEntry& entry = ir::EntryOf(*nest.instruction);
  const InstructionLoops loops = LoopsOf(nest, entry);
  HONE_ASSIGN_OR_RETURN(const Factors factors, FactorsOf(ir::Substitute(nest.stage.value, nest.bindings), entry));
  ir::Expr a = load(ir::MakeLoad(factors.a.buffer, factors.a.indices));
  ir::Expr b = load(ir::MakeLoad(factors.b.buffer, factors.b.indices));
  // Either may be the one whose rows go along n.
  HONE_ASSIGN_OR_RETURN(const Steps steps, StepsOf(*a.As<ir::Load>(), loops, ranges));
  if (steps.n != 0) std::swap(a, b);
  ir::MatrixOperand operands[3];
  HONE_ASSIGN_OR_RETURN(operands[0], Operand(sum, loops, ranges, &Steps::m, &Steps::n, &Steps::k));
  HONE_ASSIGN_OR_RETURN(operands[1], Operand(a, loops, ranges, &Steps::m, &Steps::k, &Steps::n, entry.apart));
  HONE_ASSIGN_OR_RETURN(operands[2], Operand(b, loops, ranges, &Steps::n, &Steps::k, &Steps::m, entry.apart));
  if (entry.b_rows_follow && operands[2].stride != entry.k) {
    return absl::FailedPreconditionError(fmt::format("the rows of operand {} do not follow one another: pack it",
                                                     operands[2].first.As<ir::Load>()->buffer->name));
  }
  const ir::DType wanted[] = {entry.sum, entry.a, entry.b};
  for (int i = 0; i < 3; ++i) {
    const ir::BufferNode& buffer = *operands[i].first.As<ir::Load>()->buffer;
    if (buffer.dtype == wanted[i]) continue;
    return absl::FailedPreconditionError(fmt::format("operand {} is {}, where {} has {}", buffer.name,
                                                     ir::Name(buffer.dtype), entry.name, ir::Name(wanted[i])));
  }
  return ir::MakeContract(*nest.instruction, operands[0], operands[1], operands[2]);
}

}  // namespace hone::schedule
