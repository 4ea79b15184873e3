// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/math.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <cmath>
#include <initializer_list>
#include <numbers>
#include <utility>

namespace hone::codegen {
namespace {

using Builder = llvm::IRBuilder<>;

llvm::Value* Const(llvm::Value* like, double value) { return llvm::ConstantFP::get(like->getType(), value); }

llvm::Value* Fma(Builder& b, llvm::Value* x, llvm::Value* y, llvm::Value* z) {
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

// Horner's rule, highest coefficient first.
llvm::Value* Polynomial(Builder& b, llvm::Value* x, std::initializer_list<double> coefficients) {
  llvm::Value* sum = nullptr;
  for (const double c : coefficients) sum = sum == nullptr ? Const(x, c) : Fma(b, sum, x, Const(x, c));
  return sum;
}

llvm::Type* IntLike(Builder& b, llvm::Value* x) {
  llvm::Type* i32 = b.getInt32Ty();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector != nullptr ? llvm::FixedVectorType::get(i32, vector->getNumElements()) : i32;
}

llvm::Value* Abs(Builder& b, llvm::Value* x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }

llvm::Value* WithSignOf(Builder& b, llvm::Value* magnitude, llvm::Value* sign) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

// x * 2^n with one rounding, for whole n, by one instruction of AVX-512. Null for widths that it does not have.
llvm::Value* EmitScalef(Builder& b, llvm::Value* x, llvm::Value* n) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  const unsigned width = vector == nullptr ? 1 : vector->getNumElements();
  if (width == 16) {
    constexpr uint32_t kRoundAsUsual = 4;
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                             {x, n, x, b.getInt16(0xffff), b.getInt32(kRoundAsUsual)});
  }
  if (width != 4 && width != 8) return nullptr;
  const auto intrinsic =
      width == 8 ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_256 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
  return b.CreateIntrinsic(intrinsic, {}, {x, n, x, b.getInt8(0xff)});
}

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2. 2^n in two factors reaches the denormals.
llvm::Value* EmitExp(Builder& b, llvm::Value* x, Scaling scaling) {
  llvm::Type* ints = IntLike(b, x);
  llvm::Value* low = b.CreateSelect(b.CreateFCmpOLT(x, Const(x, -104.0)), Const(x, -104.0), x);
  llvm::Value* clamped = b.CreateSelect(b.CreateFCmpOGT(low, Const(x, 89.0)), Const(x, 89.0), low);
  // Floats near 1.5 * 2^23 are whole numbers, and their last bits are the number: one addition rounds and converts. A
  // saturating conversion would be done element by element.
  constexpr double kWhole = 12582912;
  llvm::Value* shifted = Fma(b, clamped, Const(x, 1.4426950408889634), Const(x, kWhole));
  llvm::Value* n = b.CreateFSub(shifted, Const(x, kWhole));
  llvm::Value* r = Fma(b, n, Const(x, -0.693359375), clamped);
  r = Fma(b, n, Const(x, 2.12194440e-4), r);
  llvm::Value* p = Polynomial(
      b, r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  llvm::Value* e = b.CreateFAdd(Fma(b, p, b.CreateFMul(r, r), r), Const(x, 1.0));
  if (llvm::Value* scaled = scaling == Scaling::kScalef ? EmitScalef(b, e, n) : nullptr) return scaled;
  // A NaN passes through the polynomial. Its n may be any integer.
  llvm::Value* whole = b.CreateSub(b.CreateBitCast(shifted, ints), b.CreateBitCast(Const(x, kWhole), ints));
  llvm::Value* half = b.CreateAShr(whole, llvm::ConstantInt::get(ints, 1));
  const auto power = [&](llvm::Value* exponent) {
    llvm::Value* biased = b.CreateAdd(exponent, llvm::ConstantInt::get(ints, 127));
    return b.CreateBitCast(b.CreateShl(biased, llvm::ConstantInt::get(ints, 23)), x->getType());
  };
  return b.CreateFMul(b.CreateFMul(e, power(half)), power(b.CreateSub(whole, half)));
}

// log(x) = k * ln 2 + log(m), m in [sqrt(1/2), sqrt(2)).
llvm::Value* EmitLog(Builder& b, llvm::Value* x) {
  llvm::Type* ints = IntLike(b, x);
  const auto integer = [&](int64_t v) { return llvm::ConstantInt::get(ints, static_cast<uint64_t>(v), true); };
  llvm::Value* tiny = b.CreateFCmpOLT(x, Const(x, 1.17549435e-38));
  llvm::Value* scaled = b.CreateSelect(tiny, b.CreateFMul(x, Const(x, 8388608.0)), x);
  llvm::Value* bits = b.CreateBitCast(scaled, ints);
  llvm::Value* offset = b.CreateSub(bits, integer(0x3f3504f3));  // sqrt(1/2)
  llvm::Value* k = b.CreateAShr(offset, integer(23));
  llvm::Value* m = b.CreateBitCast(b.CreateSub(bits, b.CreateShl(k, integer(23))), x->getType());
  llvm::Value* kf = b.CreateFSub(b.CreateSIToFP(k, x->getType()), b.CreateSelect(tiny, Const(x, 23.0), Const(x, 0.0)));
  llvm::Value* f = b.CreateFSub(m, Const(x, 1.0));
  llvm::Value* p = Polynomial(b, f,
                              {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                               -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  llvm::Value* square = b.CreateFMul(f, f);
  llvm::Value* y = b.CreateFMul(b.CreateFMul(p, f), square);
  y = Fma(b, kf, Const(x, -2.12194440e-4), y);
  y = Fma(b, square, Const(x, -0.5), y);
  llvm::Value* result = Fma(b, kf, Const(x, 0.693359375), b.CreateFAdd(f, y));
  const double infinity = __builtin_inf();
  result = b.CreateSelect(b.CreateFCmpOEQ(x, Const(x, infinity)), Const(x, infinity), result);
  result = b.CreateSelect(b.CreateFCmpOEQ(x, Const(x, 0.0)), Const(x, -infinity), result);
  llvm::Value* nan = llvm::ConstantFP::getNaN(x->getType());
  return b.CreateSelect(b.CreateFCmpULT(x, Const(x, 0.0)), nan, result);  // negative, or NaN itself
}

// Near 0 a polynomial keeps the relative precision; elsewhere 1 - 2 / (exp(2 |x|) + 1).
llvm::Value* EmitTanh(Builder& b, llvm::Value* x, Scaling scaling) {
  llvm::Value* a = Abs(b, x);
  llvm::Value* square = b.CreateFMul(x, x);
  llvm::Value* p = Polynomial(
      b, square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  llvm::Value* small = Fma(b, b.CreateFMul(p, square), x, x);
  llvm::Value* e = EmitExp(b, b.CreateFAdd(a, a), scaling);
  llvm::Value* large = b.CreateFSub(Const(x, 1.0), b.CreateFDiv(Const(x, 2.0), b.CreateFAdd(e, Const(x, 1.0))));
  return WithSignOf(b, b.CreateSelect(b.CreateFCmpOLT(a, Const(x, 0.625)), small, large), x);  // keeps -0
}

// exp(-|x|) is at most 1, so the divisor stays finite for very negative x.
llvm::Value* EmitSigmoid(Builder& b, llvm::Value* x, Scaling scaling) {
  llvm::Value* e = EmitExp(b, b.CreateFNeg(Abs(b, x)), scaling);
  llvm::Value* part = b.CreateSelect(b.CreateFCmpOLT(x, Const(x, 0.0)), e, Const(x, 1.0));
  return b.CreateFDiv(part, b.CreateFAdd(Const(x, 1.0), e));
}

// |x| < 1: x * P(x^2), the series of erf. Elsewhere 1 - t * Q(t) * exp(-x^2) with t = 1 / (1 + p |x|): Abramowitz and
// Stegun, Handbook of Mathematical Functions, 7.1.26 (absolute error below 1.5e-7).
llvm::Value* EmitErf(Builder& b, llvm::Value* x, Scaling scaling) {
  llvm::Value* a = Abs(b, x);
  llvm::Value* square = b.CreateFMul(x, x);
  llvm::Value* p = Polynomial(b, square,
                              {7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
                               1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710e+0});
  llvm::Value* small = b.CreateFMul(x, p);
  llvm::Value* t = b.CreateFDiv(Const(x, 1.0), Fma(b, a, Const(x, 0.3275911), Const(x, 1.0)));
  llvm::Value* q = Polynomial(b, t, {1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592});
  llvm::Value* tail = b.CreateFMul(b.CreateFMul(q, t), EmitExp(b, b.CreateFNeg(square), scaling));
  llvm::Value* large = WithSignOf(b, b.CreateFSub(Const(x, 1.0), tail), x);
  llvm::Value* result = b.CreateSelect(b.CreateFCmpOLT(a, Const(x, 1.0)), small, large);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, result);
}

// x without whole quarter turns. It is computed in f64, where pi / 2 in two parts is precise enough for every f32 with
// |x| < 2^50.
struct Angle {
  llvm::Value* r;         // |r| <= pi / 4
  llvm::Value* quarters;  // quarter turns taken away, modulo 2^32
};
Angle ReduceAngle(Builder& b, llvm::Value* x) {
  llvm::Value* wide = b.CreateFPCast(x, x->getType()->getWithNewType(b.getDoubleTy()));
  llvm::Value* beside = Const(wide, 0x1.8p52);  // f64 near it are whole numbers, and their last bits are the number
  llvm::Value* shifted = Fma(b, wide, Const(wide, 2 / std::numbers::pi), beside);
  llvm::Value* n = b.CreateFSub(shifted, beside);
  llvm::Value* r = Fma(b, n, Const(wide, -1.5707963267948966), wide);
  r = Fma(b, n, Const(wide, -6.123233995736766e-17), r);
  llvm::Value* bits = b.CreateBitCast(shifted, wide->getType()->getWithNewType(b.getInt64Ty()));
  return {b.CreateFPCast(r, x->getType()), b.CreateTrunc(bits, IntLike(b, x))};
}

// sin(r), cos(r), |r| <= pi / 4. The sum alone would lose the sign of -0.
std::pair<llvm::Value*, llvm::Value*> SineAndCosine(Builder& b, llvm::Value* r) {
  llvm::Value* z = b.CreateFMul(r, r);
  llvm::Value* p = Polynomial(b, z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
  llvm::Value* q = Polynomial(b, z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2});
  return {WithSignOf(b, Fma(b, b.CreateFMul(p, z), r, r), r),
          Fma(b, b.CreateFMul(q, z), z, Fma(b, z, Const(z, -0.5), Const(z, 1.0)))};
}

llvm::Value* HasBit(Builder& b, llvm::Value* integer, uint32_t bit) {
  return b.CreateICmpNE(b.CreateAnd(integer, bit), llvm::Constant::getNullValue(integer->getType()));
}

llvm::Value* NegatedIf(Builder& b, llvm::Value* condition, llvm::Value* x) {
  return b.CreateSelect(condition, b.CreateFNeg(x), x);
}

// The part that asin and acos share.
struct ArcSine {
  llvm::Value* angle;    // asin(|x|), or if is_half, asin(sqrt((1 - |x|) / 2)), which is half of acos(|x|)
  llvm::Value* is_half;  // whether |x| > 0.5
};
ArcSine EmitArcSine(Builder& b, llvm::Value* x) {
  llvm::Value* a = Abs(b, x);
  llvm::Value* large = b.CreateFCmpOGT(a, Const(x, 0.5));
  llvm::Value* z = b.CreateSelect(large, Fma(b, a, Const(x, -0.5), Const(x, 0.5)), b.CreateFMul(a, a));
  llvm::Value* s = b.CreateSelect(large, b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, z), a);
  llvm::Value* p =
      Polynomial(b, z, {4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1});
  return {Fma(b, b.CreateFMul(p, z), s, s), large};
}

constexpr double kHalfPi = 0x1.921fb6p0, kHalfPiRest = -4.37113883e-8;  // pi / 2 as f32, and its error

llvm::Value* EmitSine(Builder& b, llvm::Value* x, int quarters) {
  const Angle angle = ReduceAngle(b, x);
  const auto [sine, cosine] = SineAndCosine(b, angle.r);
  llvm::Value* turn = b.CreateAdd(angle.quarters, llvm::ConstantInt::get(angle.quarters->getType(), quarters));
  return NegatedIf(b, HasBit(b, turn, 2), b.CreateSelect(HasBit(b, turn, 1), cosine, sine));
}

llvm::Value* EmitTangent(Builder& b, llvm::Value* x) {
  const Angle angle = ReduceAngle(b, x);
  const auto [sine, cosine] = SineAndCosine(b, angle.r);
  llvm::Value* odd = HasBit(b, angle.quarters, 1);
  return NegatedIf(b, odd, b.CreateFDiv(b.CreateSelect(odd, cosine, sine), b.CreateSelect(odd, sine, cosine)));
}

llvm::Value* EmitAsin(Builder& b, llvm::Value* x) {
  const auto [angle, is_half] = EmitArcSine(b, x);
  llvm::Value* rest = Fma(b, angle, Const(x, -2.0), Const(x, kHalfPiRest));
  return WithSignOf(b, b.CreateSelect(is_half, b.CreateFAdd(Const(x, kHalfPi), rest), angle), x);
}

llvm::Value* EmitAcos(Builder& b, llvm::Value* x) {
  const auto [angle, is_half] = EmitArcSine(b, x);
  llvm::Value* twice = b.CreateFAdd(angle, angle);
  llvm::Value* negative = b.CreateFCmpOLT(x, Const(x, 0.0));
  llvm::Value* obtuse = b.CreateFAdd(Const(x, 2 * kHalfPi), b.CreateFSub(Const(x, 2 * kHalfPiRest), twice));
  llvm::Value* right = b.CreateFAdd(Const(x, kHalfPi), b.CreateFSub(Const(x, kHalfPiRest), WithSignOf(b, angle, x)));
  return b.CreateSelect(is_half, b.CreateSelect(negative, obtuse, twice), right);
}

// Above tan(3 pi / 8), atan(a) = pi / 2 + atan(-1 / a). Above tan(pi / 8), atan(a) = pi / 4 + atan((a - 1) / (a + 1)).
llvm::Value* EmitAtan(Builder& b, llvm::Value* x) {
  llvm::Value *a = Abs(b, x), *one = Const(x, 1.0), *zero = Const(x, 0.0);
  llvm::Value* large = b.CreateFCmpOGT(a, Const(x, 2.414213562373095));
  llvm::Value* middle = b.CreateFCmpOGT(a, Const(x, 0.4142135623730950));
  const auto pick = [&](llvm::Value* of_large, llvm::Value* of_middle, llvm::Value* of_small) {
    return b.CreateSelect(large, of_large, b.CreateSelect(middle, of_middle, of_small));
  };
  llvm::Value* t = b.CreateFDiv(pick(Const(x, -1.0), b.CreateFSub(a, one), a), pick(a, b.CreateFAdd(a, one), one));
  llvm::Value* beside = pick(Const(x, kHalfPi), Const(x, kHalfPi / 2), zero);
  llvm::Value* z = b.CreateFMul(t, t);
  llvm::Value* p = Polynomial(b, z, {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1});
  llvm::Value* rest = Fma(b, beside, Const(x, kHalfPiRest / kHalfPi), Fma(b, b.CreateFMul(p, z), t, t));
  return WithSignOf(b, b.CreateFAdd(beside, rest), x);
}

}  // namespace

llvm::Value* EmitFunction(Builder& b, ir::Intrinsic function, llvm::Value* x, Scaling scaling) {
  switch (function) {
    case ir::Intrinsic::kExp:
      return EmitExp(b, x, scaling);
    case ir::Intrinsic::kLog:
      return EmitLog(b, x);
    case ir::Intrinsic::kTanh:
      return EmitTanh(b, x, scaling);
    case ir::Intrinsic::kErf:
      return EmitErf(b, x, scaling);
    case ir::Intrinsic::kSigmoid:
      return EmitSigmoid(b, x, scaling);
    case ir::Intrinsic::kSin:
      return EmitSine(b, x, 0);
    case ir::Intrinsic::kCos:
      return EmitSine(b, x, 1);
    case ir::Intrinsic::kTan:
      return EmitTangent(b, x);
    case ir::Intrinsic::kAsin:
      return EmitAsin(b, x);
    case ir::Intrinsic::kAcos:
      return EmitAcos(b, x);
    case ir::Intrinsic::kAtan:
      return EmitAtan(b, x);
    default:
      return nullptr;
  }
}

// For equal or unordered operands a select, and x86's max, returns the second one, so it is taken in both orders. The
// bitwise or of both keeps the exponent of a NaN. The sign is that of the bitwise and, so two zeros give -0 only if
// both are. The sign is copied by a float operation, because LLVM would not keep an accumulator in a register that is
// stored as an integer and loaded as a float.
llvm::Value* EmitMaxBySelects(Builder& b, llvm::Value* x, llvm::Value* y) {
  llvm::Type* ints = x->getType()->getWithNewType(b.getIntNTy(x->getType()->getScalarSizeInBits()));
  const auto max = [&](llvm::Value* first, llvm::Value* second) {
    return b.CreateBitCast(b.CreateSelect(b.CreateFCmpOGT(first, second), first, second), ints);
  };
  llvm::Value *one = max(x, y), *other = max(y, x);
  return WithSignOf(b, b.CreateBitCast(b.CreateOr(one, other), x->getType()),
                    b.CreateBitCast(b.CreateAnd(one, other), x->getType()));
}

// Adding the first power of two above which every float is whole rounds to a whole number, and subtracting it is exact.
llvm::Value* EmitRoundEven(Builder& b, llvm::Value* x) {
  llvm::Value* const whole = Const(x, x->getType()->getScalarType()->isDoubleTy() ? 0x1p52 : 0x1p23);
  llvm::Value* const size = Abs(b, x);
  llvm::Value* const rounded = b.CreateFSub(b.CreateFAdd(size, whole), whole);
  return WithSignOf(b, b.CreateSelect(b.CreateFCmpOLT(size, whole), rounded, size), x);
}

llvm::Value* EmitRoundedBeforeTruncation(Builder& builder, llvm::Value* x, int bits) {
  constexpr uint32_t kSignAndExponent = 0xff800000;
  llvm::Value* const power = builder.CreateBitCast(
      builder.CreateAnd(builder.CreateBitCast(x, builder.getInt32Ty()), kSignAndExponent), builder.getFloatTy());
  llvm::Value* const half = llvm::ConstantFP::get(builder.getFloatTy(), std::ldexp(1.0, -bits - 1));
  llvm::Value* const more = builder.CreateIntrinsic(llvm::Intrinsic::fma, {builder.getFloatTy()}, {power, half, x});
  return builder.CreateBitCast(more, builder.getInt32Ty());
}

llvm::Value* EmitFromBFloat(Builder& b, llvm::Value* bits) {
  llvm::Type* floats = bits->getType()->getWithNewType(b.getFloatTy());
  llvm::Value* wide = b.CreateZExt(bits, floats->getWithNewType(b.getInt32Ty()));
  return b.CreateBitCast(b.CreateShl(wide, 16), floats);
}

llvm::Value* EmitRoundToOdd(Builder& b, llvm::Value* x) {
  llvm::Value* nearest = b.CreateFPTrunc(x, x->getType()->getWithNewType(b.getFloatTy()));
  llvm::Value* bits = b.CreateBitCast(nearest, IntLike(b, nearest));
  llvm::Value* back = b.CreateFPExt(nearest, x->getType());
  llvm::Value* above = b.CreateFCmpOGT(Abs(b, back), Abs(b, x));
  llvm::Value* odd = b.CreateOr(b.CreateSub(bits, b.CreateZExt(above, bits->getType())), 1);
  return b.CreateBitCast(b.CreateSelect(b.CreateFCmpONE(back, x), odd, bits), nearest->getType());
}

llvm::Value* EmitToBFloat(Builder& b, llvm::Value* x) {
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  llvm::Value* single =
      is_double ? EmitRoundToOdd(b, x) : b.CreateFPCast(x, x->getType()->getWithNewType(b.getFloatTy()));
  llvm::Value* bits = b.CreateBitCast(single, IntLike(b, single));
  llvm::Value* last = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  llvm::Value* rounded = b.CreateAdd(b.CreateAdd(bits, llvm::ConstantInt::get(bits->getType(), 0x7FFF)), last);
  llvm::Value* quiet = b.CreateOr(bits, llvm::ConstantInt::get(bits->getType(), 0x400000));
  llvm::Value* result = b.CreateSelect(b.CreateFCmpUNO(single, single), quiet, rounded);
  return b.CreateTrunc(b.CreateLShr(result, 16), bits->getType()->getWithNewType(b.getInt16Ty()));
}

}  // namespace hone::codegen
