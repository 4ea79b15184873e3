// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/size_numbers.h"

#include <algorithm>

#include "base/status.h"

namespace hone::ir {
namespace {

SizeOp OpOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return SizeOp::kAdd;
    case BinaryOp::kSub:
      return SizeOp::kSubtract;
    case BinaryOp::kMul:
      return SizeOp::kMultiply;
    case BinaryOp::kFloorDiv:
      return SizeOp::kFloorDivide;
    case BinaryOp::kFloorMod:
      return SizeOp::kFloorRemainder;
    case BinaryOp::kMin:
      return SizeOp::kMin;
    default:
      HONE_CHECK(op == BinaryOp::kMax);
      return SizeOp::kMax;
  }
}

}  // namespace

uint32_t SizeNumbers::Of(const Expr& e) {
  if (const auto* var = e.As<Var>()) {
    const auto found = std::ranges::find(sizes_, var->name, &OpenSize::name);
    HONE_CHECK(found != sizes_.end());
    return static_cast<uint32_t>(found - sizes_.begin());
  }
  const auto known = std::ranges::find_if(numbers_, [&](const auto& entry) { return Equal(entry.first, e); });
  if (known != numbers_.end()) return known->second;
  SizeStep step = {};
  if (const auto* number = e.As<IntImm>()) {
    step = {.op = SizeOp::kNumber, .a = 0, .b = 0, .reserved = 0, .number = number->value};
  } else {
    const auto* binary = e.As<Binary>();
    HONE_CHECK(binary != nullptr);
    const uint32_t a = Of(binary->a), b = Of(binary->b);
    step = {.op = OpOf(binary->op), .a = a, .b = b, .reserved = 0, .number = 0};
  }
  const auto number = static_cast<uint32_t>(sizes_.size() + steps_.size());
  steps_.push_back(step);
  numbers_.emplace_back(e, number);
  return number;
}

}  // namespace hone::ir
