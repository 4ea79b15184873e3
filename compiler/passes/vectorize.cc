// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/passes/passes.h"

namespace hone::passes {
namespace {

constexpr int64_t kVectorElementsMax = 4096;  // equal to the parser's limit (docs/IR.md)

// Whether the expression is ready to be vectorized: it has no vectors, and each access has one flat index.
bool IsFlatAndScalar(const ir::Expr& e) {
  bool flat = true;
  ir::ForEachExpr(e, [&](const ir::Expr& below) {
    const ir::Load* load = below.As<ir::Load>();
    flat = flat && below.type().width == 1 && (load == nullptr || load->indices.size() == 1);
  });
  return flat;
}
bool IsFlatAndScalar(const ir::Stmt& s, const ir::Store& store) {
  bool flat = store.indices.size() == 1;
  ir::ForEachChild(s, [](const ir::Stmt&) {}, [&](const ir::Expr& e) { flat = flat && IsFlatAndScalar(e); });
  return flat;
}

// Whether a statement in `s` writes to a buffer that the expression reads.
bool WritesBufferReadBy(const ir::Stmt& s, const ir::Expr& read) {
  bool writes = false;
  ir::ForEachExpr(read, [&](const ir::Expr& e) {
    const ir::Load* load = e.As<ir::Load>();
    if (load == nullptr || writes) return;
    writes = ir::AnyStmt(s, [&](const ir::Stmt& below) { return ir::WrittenBuffer(below) == load->buffer; });
  });
  return writes;
}

class LoopVectorizer {
 public:
  LoopVectorizer(std::string var, int width, ir::Ranges ranges)
      : var_(std::move(var)), width_(width), ranges_(std::move(ranges)) {
    ranges_[var_] = {0, width - 1};
  }

  absl::Status status() const { return status_; }

  ir::Stmt Run(const ir::Stmt& s, const ir::Expr& mask) {
    return ir::Match(
        s, [&](const ir::For& loop) { return RunFor(loop, mask); },
        [&](const ir::Store& store) { return IsFlatAndScalar(s, store) ? RunStore(store, mask) : Fail(kNotFlat, s); },
        [&](const ir::Block& block) {
          std::vector<ir::Stmt> stmts;
          for (const ir::Stmt& child : block.stmts) stmts.push_back(Run(child, mask));
          return ir::MakeBlock(std::move(stmts), block.name);
        },
        [&](const ir::If& branch) { return RunIf(branch, mask); },
        [&](const ir::Alloc&) { return Fail("allocates", s); },
        [&](const ir::Let&) { return Fail("binds a variable", s); },
        [&](const ir::Barrier&) { return Fail("waits at a barrier", s); },
        [&](const ir::Mma&) { return Fail("contains a tensor instruction", s); },
        [&](const ir::MmaWait&) { return Fail("waits for instructions", s); },
        [&](const ir::Copy&) { return Fail("copies asynchronously", s); },
        [&](const ir::Commit&) { return Fail("commits copies", s); },
        [&](const ir::Wait&) { return Fail("waits for copies", s); },
        [&](const ir::LaneReduce&) { return Fail("contains a lane reduction", s); },
        [&](const ir::Prefetch&) { return Fail("prefetches", s); });
  }

 private:
  static constexpr std::string_view kNotFlat = "contains vectors, or accesses with more than one index";

  ir::Stmt Fail(std::string_view what, const ir::Stmt& s) {
    if (status_.ok()) status_ = absl::FailedPreconditionError(fmt::format("vectorized loop {} {}", var_, what));
    return s;
  }

  ir::Stmt RunFor(const ir::For& loop, const ir::Expr& mask) {
    const ir::Stmt same = ir::MakeFor(loop.var, loop.extent, loop.kind, loop.body);
    if (loop.kind == ir::LoopKind::kVectorized) return Fail("contains vectorized loop " + loop.var, same);
    if (ir::UsesVar(loop.extent, var_)) return Fail(fmt::format("decides the extent of loop {}", loop.var), same);
    if (const auto high = ir::BoundsOf(loop.extent, ranges_).high; high < ir::Interval::kUnbounded)
      ranges_[loop.var] = {0, high - 1};
    const ir::Stmt body = Run(loop.body, mask);
    ranges_.erase(loop.var);  // a later loop may reuse the name
    return ir::MakeFor(loop.var, loop.extent, loop.kind, body);
  }

  ir::Stmt RunIf(const ir::If& branch, const ir::Expr& mask) {
    if (!ir::UsesVar(branch.condition, var_)) {
      return ir::MakeIf(branch.condition, Run(branch.then_case, mask),
                        branch.else_case.defined() ? Run(branch.else_case, mask) : ir::Stmt());
    }
    // The condition becomes the mask of every store and is evaluated at each. With a single store it is evaluated
    // before the write, so the store may change what the condition reads.
    const bool once = branch.then_case.As<ir::Store>() != nullptr && !branch.else_case.defined();
    const ir::Stmt both = ir::MakeIf(branch.condition, branch.then_case, branch.else_case);
    if (!IsFlatAndScalar(branch.condition)) return Fail(kNotFlat, both);
    if (!once && WritesBufferReadBy(both, branch.condition))
      return Fail("writes elements that its own conditions read", both);
    const ir::Expr condition = Wide(Vec(branch.condition, mask));
    const ir::Stmt then_case = Run(branch.then_case, And(mask, condition));
    if (!branch.else_case.defined()) return then_case;
    return ir::MakeBlock({then_case, Run(branch.else_case, And(mask, ir::MakeUnary(ir::UnaryOp::kNot, condition)))});
  }

  ir::Stmt RunStore(const ir::Store& store, const ir::Expr& mask) {
    const ir::Expr own = store.mask.defined() ? Vec(store.mask, mask) : store.mask;
    const bool guards_index = own.defined() && MayLeave(store.indices[0]);
    const ir::Expr index = Vec(store.indices[0], guards_index ? And(mask, Wide(own)) : mask);
    const ir::Expr value = Vec(store.value, mask);
    // A scalar store without a mask that differs between elements happens once.
    if (index.type().width == 1 && value.type().width == 1 && !mask.defined() &&
        (!own.defined() || own.type().width == 1)) {
      return ir::MakeStore(store.buffer, {index}, value, own);
    }
    return ir::MakeStore(store.buffer, {Wide(index)}, Wide(value), own.defined() ? And(mask, Wide(own)) : mask);
  }

  // Loads all elements, or those for which `mask` is true if it is defined.
  ir::Expr VecLoad(const ir::Load& load, const ir::Expr& mask, const ir::Expr& outer) {
    const ir::Expr own = load.mask.defined() ? Wide(Vec(load.mask, outer)) : load.mask;
    const bool guards_index = own.defined() && MayLeave(load.indices[0]);
    const ir::Expr index = Wide(Vec(load.indices[0], guards_index ? And(outer, own) : outer));
    return ir::MakeLoad(load.buffer, {index}, own.defined() ? And(mask, own) : mask);
  }

  ir::Expr And(const ir::Expr& mask, const ir::Expr& condition) {
    return mask.defined() ? mask && condition : condition;
  }

  ir::Expr Wide(const ir::Expr& e) { return e.type().width == 1 ? ir::MakeBroadcast(e, width_) : e; }

  // Loads that never leave their buffer need no mask in local memory. A masked load would keep an accumulator out of
  // registers.
  bool NeedsMask(const ir::Load& load) const { return load.buffer->scope != ir::Scope::kLocal || MayLeave(load); }

  // Whether the load may be out of bounds for some value of the variables, as far as their ranges tell.
  bool MayLeave(const ir::Load& load) const {
    const ir::Interval bounds = ir::BoundsOf(load.indices[0], ranges_);
    return bounds.low < 0 || bounds.high >= ir::Product(load.buffer->shape).min();
  }

  bool MayLeave(const ir::Expr& e) const {
    bool leaves = false;
    ir::ForEachExpr(e, [&](const ir::Expr& below) {
      const ir::Load* load = below.As<ir::Load>();
      leaves = leaves || (load != nullptr && MayLeave(*load));
    });
    return leaves;
  }

  // A scalar that is true exactly if some element of the mask is; undefined if there is no simple one.
  ir::Expr AnyElement(const ir::Expr& mask) const {
    if (const ir::Broadcast* same = mask.As<ir::Broadcast>()) return same->value;
    const ir::Binary* binary = mask.As<ir::Binary>();
    if (binary == nullptr) return {};
    if (binary->op == ir::BinaryOp::kAnd) {
      // Two conditions that both vary may hold for different elements, so && of their scalars would be wrong.
      if (binary->a.As<ir::Broadcast>() == nullptr && binary->b.As<ir::Broadcast>() == nullptr) return {};
      const ir::Expr a = AnyElement(binary->a), b = AnyElement(binary->b);
      return a.defined() && b.defined() ? a && b : ir::Expr();
    }
    const ir::Ramp* ramp = binary->a.As<ir::Ramp>();
    const ir::Broadcast* bound = binary->b.As<ir::Broadcast>();
    const ir::IntImm* stride = ramp == nullptr ? nullptr : ramp->stride.As<ir::IntImm>();
    if (stride == nullptr || bound == nullptr) return {};
    const bool below = binary->op == ir::BinaryOp::kLt || binary->op == ir::BinaryOp::kLe;
    const bool above = binary->op == ir::BinaryOp::kGt || binary->op == ir::BinaryOp::kGe;
    if (!below && !above) return {};
    const bool first = below == (stride->value >= 0);  // the element for which the comparison holds if it holds for any
    const ir::Expr element = first ? ramp->base : ramp->base + ir::Expr(stride->value * (ramp->width - 1));
    return ir::MakeBinary(binary->op, ir::Simplify(element, ranges_), bound->value);
  }

  // Vectorizes the expression; one that does not use the loop variable stays scalar. A scalar load that may leave its
  // buffer is only done if some element of the mask is true.
  ir::Expr Vec(const ir::Expr& e, const ir::Expr& mask) {
    if (!ir::UsesVar(e, var_)) {
      if (!mask.defined() || !MayLeave(e)) return e;
      if (const ir::Expr any = AnyElement(mask); any.defined()) return ir::MakeSelect(any, e, ir::MakeZero(e.type()));
    }
    if (e.type() == ir::kIndexType && !(mask.defined() && MayLeave(e))) {
      if (const ir::Expr ramp = AsRamp(e); ramp.defined()) return ramp;
    }
    if (const ir::Load* load = e.As<ir::Load>()) {
      return VecLoad(*load, NeedsMask(*load) ? mask : ir::Expr(), mask);
    }
    if (const ir::Select* select = e.As<ir::Select>()) return VecSelect(*select, mask);
    if (const ir::Cast* cast = e.As<ir::Cast>()) {
      const ir::Expr value = Vec(cast->value, mask);  // a scalar where the loop variable cancels
      return ir::MakeCast(cast->type.WithWidth(value.type().width), value);
    }
    if (const ir::Call* call = e.As<ir::Call>()) {
      std::vector<ir::Expr> args;
      for (const ir::Expr& arg : call->args) args.push_back(Wide(Vec(arg, mask)));
      return ir::MakeCall(call->type.WithWidth(width_), call->function, std::move(args));
    }
    if (const ir::Unary* unary = e.As<ir::Unary>()) return ir::MakeUnary(unary->op, Vec(unary->a, mask));
    if (const ir::Binary* binary = e.As<ir::Binary>()) {
      return ir::MakeBinary(binary->op, Wide(Vec(binary->a, mask)), Wide(Vec(binary->b, mask)));
    }
    return ir::MakeRamp(ir::Expr(0), ir::Expr(1), width_);  // the loop variable itself
  }

  // Vectorizes a select. Loads in an arm get the condition as mask. A condition that is equal for all elements selects
  // whole vectors, and the arms need no masks.
  ir::Expr VecSelect(const ir::Select& select, const ir::Expr& mask) {
    const ir::Expr condition = Wide(Vec(select.condition, mask));
    const ir::Load* load = select.on_true.As<ir::Load>();
    if (load != nullptr && ir::IsZero(select.on_false) && ir::UsesVar(select.on_true, var_)) {
      // select(mask, load, 0) is a masked load, because such a load yields 0 where its mask is false. The index is
      // computed for every element, so loads inside it that may leave their buffers need the mask too.
      const bool guards_index = MayLeave(load->indices[0]) || (load->mask.defined() && MayLeave(load->mask));
      const ir::Expr taken = And(mask, condition);
      if (!guards_index) return VecLoad(*load, taken, mask);
      if (condition.As<ir::Broadcast>() == nullptr) return VecLoad(*load, taken, taken);
    }
    if (condition.As<ir::Broadcast>() != nullptr) {
      return ir::MakeSelect(condition, Wide(Vec(select.on_true, mask)), Wide(Vec(select.on_false, mask)));
    }
    const ir::Expr otherwise = ir::MakeUnary(ir::UnaryOp::kNot, condition);
    return ir::MakeSelect(condition, Wide(Vec(select.on_true, And(mask, condition))),
                          Wide(Vec(select.on_false, And(mask, otherwise))));
  }

  // The factor of the loop variable in a term of an index; undefined if the term is no multiple of the variable.
  ir::Expr FactorOf(const ir::Expr& term) const {
    if (const ir::Var* v = term.As<ir::Var>(); v != nullptr && v->name == var_) return ir::Expr(1);
    const ir::Binary* product = term.As<ir::Binary>();
    if (product == nullptr || product->op != ir::BinaryOp::kMul) return {};
    const bool left = ir::UsesVar(product->a, var_);
    if (left && ir::UsesVar(product->b, var_)) return {};
    const ir::Expr factor = FactorOf(left ? product->a : product->b);
    return factor.defined() ? factor * (left ? product->b : product->a) : factor;
  }

  ir::Expr AsRamp(const ir::Expr& e) {
    ir::Linear linear = ir::ToLinear(e, ranges_);
    ir::Linear base, stride;
    base.constant = linear.constant;
    for (const auto& [atom, k] : linear.terms) {
      if (!ir::UsesVar(atom, var_)) {
        base.Add(atom, k);
        continue;
      }
      const ir::Expr factor = FactorOf(atom);
      if (!factor.defined()) return {};
      stride.Add(ir::ToLinear(factor, ranges_), k);
    }
    if (stride.terms.empty() && stride.constant == 0) return ir::FromLinear(base);
    return ir::MakeRamp(ir::FromLinear(base), ir::FromLinear(stride), width_);
  }

  const std::string var_;
  const int width_;
  ir::Ranges ranges_;
  absl::Status status_;
};

struct Vectorizer {
  absl::Status status;

  ir::Stmt Run(const ir::Stmt& s, const ir::Ranges& ranges) {
    const ir::For* loop = s.As<ir::For>();
    if (!status.ok()) return s;
    if (loop == nullptr) {
      return ir::MapChildren(
          s, [&](const ir::Stmt& child) { return Run(child, ranges); }, [](const ir::Expr& e) { return e; });
    }
    if (loop->kind != ir::LoopKind::kVectorized) {
      ir::Ranges inner = ranges;
      inner[loop->var] = {0, ir::BoundsOf(loop->extent, ranges).high - 1};
      const ir::Stmt body = Run(loop->body, inner);
      return body.SameHandle(loop->body) ? s : ir::MakeFor(loop->var, loop->extent, loop->kind, body);
    }
    const ir::IntImm* extent = loop->extent.As<ir::IntImm>();
    if (extent == nullptr) {
      status = absl::FailedPreconditionError(fmt::format("vectorized loop {} has no constant extent", loop->var));
      return s;
    }
    if (extent->value < 2 || extent->value > kVectorElementsMax) {
      status = absl::FailedPreconditionError(fmt::format("vectorized loop {} has {} iterations; vectors have 2 to {}",
                                                         loop->var, extent->value, kVectorElementsMax));
      return s;
    }
    LoopVectorizer vectorizer(loop->var, static_cast<int>(extent->value), ranges);
    const ir::Stmt result = vectorizer.Run(loop->body, {});
    status = vectorizer.status();
    return result;
  }
};

}  // namespace

absl::StatusOr<ir::Stmt> Vectorize(const ir::Stmt& s, const ir::Ranges& sizes) {
  Vectorizer vectorizer;
  const ir::Stmt result = vectorizer.Run(s, sizes);
  if (!vectorizer.status.ok()) return vectorizer.status;
  return result;
}

}  // namespace hone::passes
