// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>
#include <optional>
#include <utility>

#include "compiler/codegen/llvm/arithmetic.h"
#include "compiler/codegen/llvm/expr_emitter.h"
#include "compiler/ir/numeric.h"

namespace hone::codegen {
namespace {

// min(max(round(x) + offset, low), high), where low and high are the bounds of a short integer type.
struct Quantization {
  ir::Expr x;
  double offset = 0, low = 0, high = 0;
};

// The number that an f32 is in all lanes, which may be spelled as a cast of an integer.
std::optional<double> NumberIn(ir::Expr e) {
  if (const ir::Broadcast* broadcast = e.As<ir::Broadcast>()) e = ir::Expr(broadcast->value);
  if (const ir::Cast* cast = e.As<ir::Cast>()) e = ir::Expr(cast->value);
  if (const ir::Broadcast* broadcast = e.As<ir::Broadcast>()) e = ir::Expr(broadcast->value);
  if (const ir::FloatImm* number = e.As<ir::FloatImm>()) return number->value;
  const ir::IntImm* number = e.As<ir::IntImm>();
  return number != nullptr ? std::optional(static_cast<double>(number->value)) : std::nullopt;
}

// Takes `op` with a number as one operand off the expression, and returns the number.
std::optional<double> TakeOff(ir::BinaryOp op, ir::Expr* e) {
  const ir::Binary* binary = e->As<ir::Binary>();
  if (binary == nullptr || binary->op != op) return std::nullopt;
  for (const auto& [rest, number] : {std::pair(binary->a, binary->b), std::pair(binary->b, binary->a)}) {
    const std::optional<double> found = NumberIn(number);
    if (!found.has_value()) continue;
    *e = rest;
    return found;
  }
  return std::nullopt;
}

std::optional<Quantization> FindQuantization(const ir::Cast& cast) {
  if (!ir::IsInt(cast.type.dtype) || ir::SizeOf(cast.type.dtype) > 2) return std::nullopt;
  if (cast.value.type().dtype != ir::DType::kFloat32) return std::nullopt;
  Quantization q{.x = cast.value};
  const std::optional<double> high = TakeOff(ir::BinaryOp::kMin, &q.x), low = TakeOff(ir::BinaryOp::kMax, &q.x);
  if (low != static_cast<double>(ir::LowestInt(cast.type.dtype)) ||
      high != static_cast<double>(ir::HighestInt(cast.type.dtype))) {
    return std::nullopt;
  }
  q.low = *low;
  q.high = *high;
  q.offset = TakeOff(ir::BinaryOp::kAdd, &q.x).value_or(0);
  constexpr double kOffsetMax = 1 << 16;  // sums with it are exact
  const ir::Unary* round = q.x.As<ir::Unary>();
  if (round == nullptr || round->op != ir::UnaryOp::kRound || q.offset != std::nearbyint(q.offset) ||
      std::abs(q.offset) > kOffsetMax) {
    return std::nullopt;
  }
  q.x = ir::Expr(round->a);
  return q;
}

}  // namespace

// round(x) + c within bounds is round(x within the bounds minus c) + c. So x is bounded once, with a NaN where the cast
// has its 0, and one instruction rounds and converts. c and both bounds are integers.
llvm::Value* ExprEmitter::EmitQuantization(const ir::Cast& cast) {
  const std::optional<Quantization> q = FindQuantization(cast);
  if (!q.has_value()) return nullptr;
  llvm::Value* x = EmitExpr(q->x);
  const auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  llvm::Value *low = number(q->low - q->offset), *high = number(q->high - q->offset);
  if (q->low != 0) x = builder_.CreateSelect(builder_.CreateFCmpORD(x, x), x, number(-q->offset));
  x = builder_.CreateSelect(builder_.CreateFCmpOGT(x, low), x, low);  // a NaN becomes the lower bound, which is 0
  x = builder_.CreateSelect(builder_.CreateFCmpOLT(x, high), x, high);
  llvm::Type* const wide = TypeOf({ir::DType::kInt32, cast.type.width});
  llvm::Value* whole = nullptr;
  if (scaling_ == Scaling::kScalef && cast.type.width == 16) {
    constexpr uint32_t kRoundAsUsual = 4;
    whole = builder_.CreateIntrinsic(
        llvm::Intrinsic::x86_avx512_mask_cvtps2dq_512, {},
        {x, llvm::Constant::getNullValue(wide), builder_.getInt16(0xffff), builder_.getInt32(kRoundAsUsual)});
  } else {
    whole = builder_.CreateFPToSI(EmitUnary(builder_, ir::UnaryOp::kRound, ir::DType::kFloat32, x), wide);
  }
  const auto offset = static_cast<uint64_t>(static_cast<int64_t>(q->offset));
  return builder_.CreateTrunc(builder_.CreateAdd(whole, llvm::ConstantInt::get(wide, offset, true)), TypeOf(cast.type));
}

}  // namespace hone::codegen
