// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/arithmetic.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

#include <cmath>

#include "base/status.h"
#include "compiler/codegen/llvm/math.h"

namespace hone::codegen {
namespace {

llvm::Triple TripleOf(llvm::IRBuilder<>& builder) {
  return llvm::Triple(builder.GetInsertBlock()->getModule()->getTargetTriple());
}
bool IsX86(llvm::IRBuilder<>& builder) { return TripleOf(builder).isX86(); }
bool IsArm32(llvm::IRBuilder<>& builder) { return TripleOf(builder).isARM(); }

// Integers as f64, for rounding them to a much shorter float type next. The conversion is exact where it can be. Where
// 64-bit integers have too many digits, the result is inexact but never falls on a tie that the integer is not on.
llvm::Value* EmitIntToFloat64(llvm::IRBuilder<>& builder, llvm::Value* value, ir::Type from) {
  const ir::Type type{ir::DType::kFloat64, from.width};
  if (ir::SizeOf(from.dtype) < 8) return EmitCast(builder, value, from, type);
  constexpr int64_t kExactMax = int64_t{1} << 53;
  // Low bits: only whether any of them is set can change the rounding (sticky bit).
  constexpr int64_t kStickyBits = 0xFFF;
  llvm::Type* ints = value->getType();
  const auto number = [&](int64_t n) { return llvm::ConstantInt::get(ints, static_cast<uint64_t>(n), true); };
  llvm::Value* low_bits = builder.CreateAnd(value, number(kStickyBits));
  llvm::Value* sticky = builder.CreateZExt(builder.CreateICmpNE(low_bits, number(0)), ints);
  llvm::Value* odd = builder.CreateOr(builder.CreateAnd(value, number(~kStickyBits)), builder.CreateShl(sticky, 11));
  llvm::Value* size = ir::IsSignedInt(from.dtype)
                          ? builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, builder.getFalse())
                          : value;
  return EmitCast(builder, builder.CreateSelect(builder.CreateICmpULT(size, number(kExactMax)), value, odd), from,
                  type);
}

// Saturates; NaN gives 0. LLVM would convert vectors element by element: all of them for x86, those of short integers
// for every CPU. So vectors are clamped as floats first, and then converted by one instruction. Short integers go
// through i32.
llvm::Value* EmitFloatToInt(llvm::IRBuilder<>& builder, llvm::Value* value, ir::Type from, ir::Type to) {
  llvm::Type* type = TypeOf(builder, to);
  const bool is_signed = ir::IsSignedInt(to.dtype), is_short = ir::SizeOf(to.dtype) <= 2;
  if (from.dtype == ir::DType::kFloat16 && IsArm32(builder)) {
    // LLVM 19 for 32-bit Arm cannot convert vectors of f16 to 64-bit integers. The way through f32 is exact.
    const ir::Type single{ir::DType::kFloat32, from.width};
    return EmitFloatToInt(builder, EmitCast(builder, value, from, single), single, to);
  }
  if (from.width == 1 || (!is_short && !IsX86(builder))) {
    const auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return builder.CreateIntrinsic(id, {type, value->getType()}, {value});
  }
  if (from.dtype == ir::DType::kFloat16) value = EmitCast(builder, value, from, {ir::DType::kFloat32, from.width});
  const unsigned bits = type->getScalarSizeInBits();
  const double range = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));
  const bool is_double = from.dtype == ir::DType::kFloat64;
  const double highest = std::floor(is_double ? std::nextafter(range, 0.0) : std::nextafterf(range, 0.0F));
  llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
  llvm::Value* low = llvm::ConstantFP::get(value->getType(), is_signed ? -range : 0.0);
  llvm::Value* high = llvm::ConstantFP::get(value->getType(), highest);
  llvm::Value* clamped = builder.CreateSelect(builder.CreateFCmpORD(value, zero), value, zero);
  clamped = builder.CreateSelect(builder.CreateFCmpOLT(clamped, low), low, clamped);
  clamped = builder.CreateSelect(builder.CreateFCmpOGT(clamped, high), high, clamped);
  if (is_short) {
    return builder.CreateTrunc(builder.CreateFPToSI(clamped, TypeOf(builder, {ir::DType::kInt32, to.width})), type);
  }
  llvm::Value* whole = is_signed ? builder.CreateFPToSI(clamped, type) : builder.CreateFPToUI(clamped, type);
  if (highest >= range - 1) return whole;  // the highest integer is a float, too
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  llvm::Value* above = builder.CreateFCmpOGT(value, high);  // and therefore beyond every integer
  return builder.CreateSelect(above, llvm::ConstantInt::get(type, most), whole);
}

}  // namespace

llvm::Type* MemoryTypeOf(llvm::IRBuilder<>& builder, ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kFloat16:
      return builder.getHalfTy();
    case ir::DType::kFloat32:
      return builder.getFloatTy();
    case ir::DType::kFloat64:
      return builder.getDoubleTy();
    default:
      return builder.getIntNTy(8 * ir::SizeOf(dtype));
  }
}

llvm::Type* TypeOf(llvm::IRBuilder<>& builder, ir::Type type) {
  llvm::Type* element = type.dtype == ir::DType::kBool ? builder.getInt1Ty() : MemoryTypeOf(builder, type.dtype);
  return type.width == 1 ? element : llvm::FixedVectorType::get(element, type.width);
}

llvm::Value* EmitCast(llvm::IRBuilder<>& builder, llvm::Value* value, ir::Type from_type, ir::Type to_type) {
  if (from_type.dtype == ir::DType::kBFloat16) {
    return EmitCast(builder, EmitFromBFloat(builder, value), {ir::DType::kFloat32, from_type.width}, to_type);
  }
  const ir::DType from = from_type.dtype, to = to_type.dtype;
  if (to == ir::DType::kBFloat16) {
    return EmitToBFloat(builder, ir::IsFloat(from) ? value : EmitIntToFloat64(builder, value, from_type));
  }
  llvm::Type* type = TypeOf(builder, to_type);
  if (to == ir::DType::kBool) {
    llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
    return ir::IsFloat(from) ? builder.CreateFCmpUNE(value, zero) : builder.CreateICmpNE(value, zero);
  }
  if (ir::IsFloat(from) && ir::IsFloat(to)) {
    // LLVM for x86 and 32-bit Arm would call a function of the compiler's library, which the machine may lack. Rounding
    // to odd first leaves one correct rounding to f16.
    const bool needs_f32 =
        from == ir::DType::kFloat64 && to == ir::DType::kFloat16 && (IsX86(builder) || IsArm32(builder));
    return builder.CreateFPCast(needs_f32 ? EmitRoundToOdd(builder, value) : value, type);
  }
  if (ir::IsFloat(from)) return EmitFloatToInt(builder, value, from_type, to_type);
  if (ir::IsFloat(to))
    return ir::IsSignedInt(from) ? builder.CreateSIToFP(value, type) : builder.CreateUIToFP(value, type);
  return ir::IsSignedInt(from) ? builder.CreateSExtOrTrunc(value, type) : builder.CreateZExtOrTrunc(value, type);
}

llvm::Value* EmitUnary(llvm::IRBuilder<>& builder, ir::UnaryOp op, ir::DType dtype, llvm::Value* a) {
  const bool is_float = ir::IsFloat(dtype);
  const auto intrinsic = [&](llvm::Intrinsic::ID id) { return is_float ? builder.CreateUnaryIntrinsic(id, a) : a; };
  switch (op) {
    case ir::UnaryOp::kNeg:
      return is_float ? builder.CreateFNeg(a) : builder.CreateNeg(a);
    case ir::UnaryOp::kAbs:
      if (is_float) return builder.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      if (!ir::IsSignedInt(dtype)) return a;
      return builder.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder.getFalse());
    case ir::UnaryOp::kNot:
      return builder.CreateNot(a);
    case ir::UnaryOp::kFloor:
      return intrinsic(llvm::Intrinsic::floor);
    case ir::UnaryOp::kCeil:
      return intrinsic(llvm::Intrinsic::ceil);
    case ir::UnaryOp::kRound:
      // LLVM 19 for 32-bit Arm cannot select it for vectors, and calls libm for scalars.
      if (is_float && IsArm32(builder)) return EmitRoundEven(builder, a);
      return intrinsic(llvm::Intrinsic::roundeven);
    case ir::UnaryOp::kTrunc:
      return intrinsic(llvm::Intrinsic::trunc);
    case ir::UnaryOp::kSqrt:
      return intrinsic(llvm::Intrinsic::sqrt);
  }
  return nullptr;
}

llvm::Value* EmitIntBinary(llvm::IRBuilder<>& builder, ir::BinaryOp op, bool is_signed, llvm::Value* a,
                           llvm::Value* b) {
  const auto compare = [&](llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u) {
    return builder.CreateICmp(is_signed ? s : u, a, b);
  };
  const auto shift = [&](llvm::Value* shifted) {
    llvm::Value* width = llvm::ConstantInt::get(a->getType(), a->getType()->getScalarSizeInBits());
    return builder.CreateSelect(builder.CreateICmpULT(b, width), shifted, llvm::Constant::getNullValue(a->getType()));
  };
  switch (op) {
    case ir::BinaryOp::kAdd:
      return builder.CreateAdd(a, b);
    case ir::BinaryOp::kSub:
      return builder.CreateSub(a, b);
    case ir::BinaryOp::kMul:
      return builder.CreateMul(a, b);
    case ir::BinaryOp::kAnd:
      return builder.CreateAnd(a, b);
    case ir::BinaryOp::kOr:
      return builder.CreateOr(a, b);
    case ir::BinaryOp::kXor:
      return builder.CreateXor(a, b);
    case ir::BinaryOp::kShl:
      return shift(builder.CreateShl(a, b));
    case ir::BinaryOp::kShr:
      return shift(is_signed ? builder.CreateAShr(a, b) : builder.CreateLShr(a, b));
    case ir::BinaryOp::kEq:
      return builder.CreateICmpEQ(a, b);
    case ir::BinaryOp::kNe:
      return builder.CreateICmpNE(a, b);
    case ir::BinaryOp::kLt:
      return compare(llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT);
    case ir::BinaryOp::kLe:
      return compare(llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE);
    case ir::BinaryOp::kGt:
      return compare(llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT);
    case ir::BinaryOp::kGe:
      return compare(llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE);
    default:
      HONE_CHECK(false);
      return nullptr;
  }
}

llvm::Value* EmitDivision(llvm::IRBuilder<>& builder, ir::BinaryOp op, DivisionFacts facts, llvm::Value* a,
                          llvm::Value* b) {
  const bool modulo = op == ir::BinaryOp::kMod || op == ir::BinaryOp::kFloorMod;
  const bool floors = op == ir::BinaryOp::kFloorDiv || op == ir::BinaryOp::kFloorMod;
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* one = llvm::ConstantInt::get(a->getType(), 1);
  if (facts.is_unsigned) {
    llvm::Value* safe = facts.divisor_is_positive ? b : builder.CreateSelect(builder.CreateICmpEQ(b, zero), one, b);
    llvm::Value* result = modulo ? builder.CreateURem(a, safe) : builder.CreateUDiv(a, safe);
    return facts.divisor_is_positive ? result : builder.CreateSelect(builder.CreateICmpEQ(b, zero), zero, result);
  }
  llvm::Value* minus_one = llvm::Constant::getAllOnesValue(a->getType());
  llvm::Value* is_zero = builder.CreateICmpEQ(b, zero);
  llvm::Value* is_minus_one = builder.CreateICmpEQ(b, minus_one);
  llvm::Value* safe = builder.CreateSelect(builder.CreateOr(is_zero, is_minus_one), one, b);
  llvm::Value* quotient = builder.CreateSDiv(a, safe);
  llvm::Value* rest = builder.CreateSRem(a, safe);
  if (floors) {
    llvm::Value* signs_differ = builder.CreateICmpSLT(builder.CreateXor(rest, safe), zero);
    llvm::Value* adjust = builder.CreateAnd(builder.CreateICmpNE(rest, zero), signs_differ);
    quotient = builder.CreateSub(quotient, builder.CreateZExt(adjust, a->getType()));
    rest = builder.CreateAdd(rest, builder.CreateSelect(adjust, safe, zero));
  }
  llvm::Value* by_minus_one = modulo ? zero : builder.CreateNeg(a);
  llvm::Value* result = builder.CreateSelect(is_minus_one, by_minus_one, modulo ? rest : quotient);
  return builder.CreateSelect(is_zero, zero, result);
}

llvm::Value* EmitIntMinMax(llvm::IRBuilder<>& builder, bool is_min, bool is_signed, llvm::Value* a, llvm::Value* b) {
  if (is_signed) return builder.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax, a, b);
  return builder.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax, a, b);
}

llvm::Value* EmitFloatBinary(llvm::IRBuilder<>& builder, ir::BinaryOp op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case ir::BinaryOp::kAdd:
      return builder.CreateFAdd(a, b);
    case ir::BinaryOp::kSub:
      return builder.CreateFSub(a, b);
    case ir::BinaryOp::kMul:
      return builder.CreateFMul(a, b);
    case ir::BinaryOp::kDiv:
      return builder.CreateFDiv(a, b);
    case ir::BinaryOp::kEq:
      return builder.CreateFCmpOEQ(a, b);
    case ir::BinaryOp::kNe:
      return builder.CreateFCmpUNE(a, b);
    case ir::BinaryOp::kLt:
      return builder.CreateFCmpOLT(a, b);
    case ir::BinaryOp::kLe:
      return builder.CreateFCmpOLE(a, b);
    case ir::BinaryOp::kGt:
      return builder.CreateFCmpOGT(a, b);
    case ir::BinaryOp::kGe:
      return builder.CreateFCmpOGE(a, b);
    default:
      HONE_CHECK(false);
      return nullptr;
  }
}

llvm::Value* EmitFloatMinMax(llvm::IRBuilder<>& builder, bool is_min, llvm::Value* a, llvm::Value* b) {
  // LLVM 19 for 32-bit Arm cannot select the intrinsics for f64.
  if (IsX86(builder) || (IsArm32(builder) && a->getType()->getScalarType()->isDoubleTy())) {
    if (!is_min) return EmitMaxBySelects(builder, a, b);
    // LLVM 19 would turn a direct minimum of widened f16 values into a minimum of f16, and that gives -0 for (NaN, -0).
    return builder.CreateFNeg(EmitMaxBySelects(builder, builder.CreateFNeg(a), builder.CreateFNeg(b)));
  }
  return builder.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, a, b);
}

}  // namespace hone::codegen
