// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

// The scalar form of ramp(base, 1, width) < broadcast(bound), if base and bound are multiples of the width; else
// undefined.
ir::Expr UniformCondition(const ir::Binary& compare) {
  const ir::Ramp* ramp = compare.a.As<ir::Ramp>();
  const ir::Broadcast* broadcast = compare.b.As<ir::Broadcast>();
  const ir::IntImm* bound = broadcast != nullptr ? broadcast->value.As<ir::IntImm>() : nullptr;
  if (compare.op != ir::BinaryOp::kLt || ramp == nullptr || bound == nullptr || ramp->base.type() != ir::kIndexType ||
      ir::ConstantValue(ramp->stride) != 1 || bound->value % ramp->width != 0) {
    return {};
  }
  const ir::Linear base = ir::ToLinear(ramp->base, {});
  const bool aligned =
      base.constant % ramp->width == 0 && std::all_of(base.terms.begin(), base.terms.end(),
                                                      [&](const auto& term) { return term.second % ramp->width == 0; });
  return aligned ? ir::MakeBroadcast(ramp->base < broadcast->value, ramp->width) : ir::Expr();
}

ir::Expr MakeMaskUniform(const ir::Expr& e) {
  const ir::Expr mapped = ir::MapChildren(e, MakeMaskUniform);
  if (const ir::Unary* unary = mapped.As<ir::Unary>(); unary != nullptr && unary->op == ir::UnaryOp::kNot) {
    const ir::Broadcast* a = unary->a.As<ir::Broadcast>();
    return a != nullptr ? ir::MakeBroadcast(ir::MakeUnary(ir::UnaryOp::kNot, a->value), a->width) : mapped;
  }
  const ir::Binary* binary = mapped.As<ir::Binary>();
  if (binary == nullptr) return mapped;
  const ir::Broadcast* a = binary->a.As<ir::Broadcast>();
  const ir::Broadcast* b = binary->b.As<ir::Broadcast>();
  if (binary->op == ir::BinaryOp::kAnd && a != nullptr && b != nullptr) {
    return ir::MakeBroadcast(ir::MakeBinary(ir::BinaryOp::kAnd, a->value, b->value), a->width);
  }
  const ir::Expr shared = UniformCondition(*binary);
  return shared.defined() ? shared : mapped;
}

}  // namespace

ir::Stmt BroadcastUniformMasks(const ir::Stmt& s) { return ir::MapChildren(s, BroadcastUniformMasks, MakeMaskUniform); }

}  // namespace hone::passes
