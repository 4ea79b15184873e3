// SPDX-License-Identifier: Apache-2.0
#include "tuner/index_code.h"

#include <algorithm>
#include <array>

#include "compiler/ir/match.h"

namespace hone::tuner {
namespace {

constexpr size_t kStackDepthMax = 32;

int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t Apply(ir::BinaryOp op, int64_t a, int64_t b) {
  switch (op) {
    case ir::BinaryOp::kAdd:
      return a + b;
    case ir::BinaryOp::kSub:
      return a - b;
    case ir::BinaryOp::kMul:
      return a * b;
    case ir::BinaryOp::kDiv:
      return b == 0 ? 0 : a / b;
    case ir::BinaryOp::kMod:
      return b == 0 ? 0 : a % b;
    case ir::BinaryOp::kFloorDiv:
      return FloorDivide(a, b);
    case ir::BinaryOp::kFloorMod:
      return a - FloorDivide(a, b) * b;
    case ir::BinaryOp::kMin:
      return std::min(a, b);
    case ir::BinaryOp::kMax:
      return std::max(a, b);
    case ir::BinaryOp::kAnd:
      return a & b;
    case ir::BinaryOp::kOr:
      return a | b;
    case ir::BinaryOp::kXor:
      return a ^ b;
    case ir::BinaryOp::kShl:
      return b < 0 || b > 62 ? 0 : a << b;
    case ir::BinaryOp::kShr:
      return b < 0 || b > 62 ? 0 : a >> b;
    case ir::BinaryOp::kEq:
      return a == b;
    case ir::BinaryOp::kNe:
      return a != b;
    case ir::BinaryOp::kLt:
      return a < b;
    case ir::BinaryOp::kLe:
      return a <= b;
    case ir::BinaryOp::kGt:
      return a > b;
    case ir::BinaryOp::kGe:
      return a >= b;
  }
  return 0;
}

}  // namespace

IndexCode::IndexCode(const ir::Expr& index, const Slots& slots) {
  Compile(index, slots);
  size_t depth = 0, deepest = 0;
  for (const Instruction& i : code_) {
    if (i.op == Op::kConstant || i.op == Op::kSlot) deepest = std::max(deepest, ++depth);
    if (i.op == Op::kBinary) --depth;
    if (i.op == Op::kSelect) depth -= 2;
  }
  irregular_ |= deepest > kStackDepthMax;
  if (irregular_) {
    code_.clear();
    Push(0);
  }
}

void IndexCode::Compile(const ir::Expr& e, const Slots& slots) {
  ir::Match(
      e, [&](const ir::IntImm& n) { Push(n.value); },
      [&](const ir::Var& n) {
        const auto it = std::find(slots.begin(), slots.end(), n.name);
        if (it == slots.end()) return Push(0);
        code_.push_back({Op::kSlot, ir::BinaryOp::kAdd, it - slots.begin()});
      },
      [&](const ir::Cast& n) { Compile(n.value, slots); },
      [&](const ir::Unary& n) {
        Compile(n.a, slots);
        irregular_ |= n.op != ir::UnaryOp::kNeg;
        code_.push_back({Op::kNegate});
      },
      [&](const ir::Binary& n) {
        Compile(n.a, slots);
        Compile(n.b, slots);
        code_.push_back({Op::kBinary, n.op});
      },
      [&](const ir::Select& n) {
        Compile(n.condition, slots);
        Compile(n.on_true, slots);
        Compile(n.on_false, slots);
        code_.push_back({Op::kSelect});
      },
      [&](const auto&) {
        irregular_ = true;
        Push(0);
      });
}

int64_t IndexCode::Evaluate(std::span<const int64_t> values) const {
  std::array<int64_t, kStackDepthMax> stack;
  size_t top = 0;
  for (const Instruction& i : code_) {
    switch (i.op) {
      case Op::kConstant:
        stack[top++] = i.value;
        break;
      case Op::kSlot:
        stack[top++] = values[static_cast<size_t>(i.value)];
        break;
      case Op::kNegate:
        stack[top - 1] = -stack[top - 1];
        break;
      case Op::kBinary:
        --top;
        stack[top - 1] = Apply(i.binary, stack[top - 1], stack[top]);
        break;
      case Op::kSelect:
        top -= 2;
        stack[top - 1] = stack[top - 1] != 0 ? stack[top] : stack[top + 1];
        break;
    }
  }
  return stack[0];
}

}  // namespace hone::tuner
