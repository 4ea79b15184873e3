// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/Intrinsics.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "base/status.h"
#include "compiler/codegen/llvm/math.h"

namespace hone::codegen {
namespace {

using llvm::Intrinsic::ID;

// The formulas, in f64. All values are f64 or vectors of it.
class Formulas {
 public:
  explicit Formulas(llvm::IRBuilder<>& builder, llvm::Value* like) : b_(builder), type_(like->getType()) {}

  llvm::Value* Const(double value) const { return llvm::ConstantFP::get(type_, value); }
  llvm::Value* Whole(int64_t value) const {
    return llvm::ConstantInt::get(IntType(), static_cast<uint64_t>(value), true);
  }
  llvm::Type* IntType() const { return type_->getWithNewType(b_.getInt64Ty()); }
  llvm::Value* Unary(ID id, llvm::Value* x) { return b_.CreateUnaryIntrinsic(id, x); }
  llvm::Value* Abs(llvm::Value* x) { return Unary(llvm::Intrinsic::fabs, x); }
  llvm::Value* Sqrt(llvm::Value* x) { return Unary(llvm::Intrinsic::sqrt, x); }
  llvm::Value* Fma(llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {x, y, z});
  }
  llvm::Value* SignOf(llvm::Value* magnitude, llvm::Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  // Both arms are computed.
  llvm::Value* If(llvm::Value* condition, llvm::Value* then, llvm::Value* otherwise) {
    return b_.CreateSelect(condition, then, otherwise);
  }
  llvm::Value* Add(llvm::Value* x, llvm::Value* y) { return b_.CreateFAdd(x, y); }
  llvm::Value* Sub(llvm::Value* x, llvm::Value* y) { return b_.CreateFSub(x, y); }
  llvm::Value* Mul(llvm::Value* x, llvm::Value* y) { return b_.CreateFMul(x, y); }
  llvm::Value* Div(llvm::Value* x, llvm::Value* y) { return b_.CreateFDiv(x, y); }
  llvm::Value* Less(llvm::Value* x, double y) { return b_.CreateFCmpOLT(x, Const(y)); }

  // The sum of c(k) * x^k for k in [0, count).
  template <typename Coefficient>
  llvm::Value* Series(llvm::Value* x, int count, Coefficient c) {
    llvm::Value* sum = Const(c(count - 1));
    for (int k = count - 2; k >= 0; --k) sum = Fma(sum, x, Const(c(k)));
    return sum;
  }

  llvm::Value* Exp(llvm::Value* x);
  llvm::Value* Log(llvm::Value* x);
  llvm::Value* Atanh(llvm::Value* x);
  llvm::Value* Sinh(llvm::Value* x);
  llvm::Value* Cosh(llvm::Value* x);
  llvm::Value* Tanh(llvm::Value* x);
  llvm::Value* Asinh(llvm::Value* x);
  llvm::Value* Acosh(llvm::Value* x);
  llvm::Value* Erf(llvm::Value* x);
  llvm::Value* Pow(llvm::Value* x, llvm::Value* y);
  llvm::Value* Sine(llvm::Value* x, int quarters);  // sin(x + quarters * pi / 2)
  llvm::Value* Atan(llvm::Value* x);
  llvm::Value* Asin(llvm::Value* x);
  llvm::Value* Acos(llvm::Value* x);
  llvm::Value* Fmod(llvm::Value* x, llvm::Value* y);

 private:
  llvm::Value* Power2(llvm::Value* exponent) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(exponent, Whole(1023)), Whole(52)), type_);
  }
  // The whole number nearest to x * y, as a float and as an integer: f64 near 1.5 * 2^52 are whole numbers, and their
  // last bits are the number. Only right for |x * y| < 2^51.
  struct Rounded {
    llvm::Value *number, *integer;
  };
  Rounded Round(llvm::Value* x, double y) {
    llvm::Value* const beside = Const(0x1.8p52);
    llvm::Value* const shifted = Fma(x, Const(y), beside);
    return {Sub(shifted, beside),
            b_.CreateSub(b_.CreateBitCast(shifted, IntType()), b_.CreateBitCast(beside, IntType()))};
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
};

double Factorial(int n) { return std::tgamma(n + 1.0); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;

// 2^n * exp(r), |r| <= ln 2 / 2; 2^n in two factors reaches the denormals.
llvm::Value* Formulas::Exp(llvm::Value* x) {
  llvm::Value* const clamped = If(Less(x, -746), Const(-746), If(b_.CreateFCmpOGT(x, Const(710)), Const(710), x));
  const auto [n, whole] = Round(clamped, std::numbers::log2e);
  llvm::Value* const r = Fma(n, Const(-kLn2Low), Fma(n, Const(-kLn2High), clamped));
  llvm::Value* const e = Series(r, 14, [](int k) { return 1 / Factorial(k); });
  llvm::Value* const half = b_.CreateAShr(whole, Whole(1));
  return Mul(Mul(e, Power2(half)), Power2(b_.CreateSub(whole, half)));
}

// 2 atanh(s) = 2 (s + s^3 / 3 + ...), |s| < 0.18.
llvm::Value* Formulas::Log(llvm::Value* x) {
  llvm::Value* const tiny = Less(x, 2.2250738585072014e-308);
  llvm::Value* const scaled = If(tiny, Mul(x, Const(0x1p54)), x);
  llvm::Value* const bits = b_.CreateBitCast(scaled, IntType());
  llvm::Value* const offset = b_.CreateSub(bits, Whole(0x3fe6a09e667f3bcd));  // sqrt(1/2)
  llvm::Value* const k = b_.CreateAShr(offset, Whole(52));
  llvm::Value* const m = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(k, Whole(52))), type_);
  llvm::Value* const power = Sub(b_.CreateSIToFP(k, type_), If(tiny, Const(54), Const(0)));
  llvm::Value* const f = Sub(m, Const(1));
  llvm::Value* const s = Div(f, Add(f, Const(2)));
  llvm::Value* const square = Mul(s, s);
  llvm::Value* const series = Mul(Mul(s, Const(2)), Series(square, 12, [](int i) { return 1.0 / (2 * i + 1); }));
  llvm::Value* result = Fma(power, Const(kLn2High), Fma(power, Const(kLn2Low), series));
  result = If(b_.CreateFCmpOEQ(x, Const(kInfinity)), Const(kInfinity), result);
  result = If(b_.CreateFCmpOEQ(x, Const(0)), Const(-kInfinity), result);
  return If(b_.CreateFCmpULT(x, Const(0)), llvm::ConstantFP::getNaN(type_), result);  // negative, or NaN itself
}

llvm::Value* Formulas::Atanh(llvm::Value* x) {
  llvm::Value* const small = Mul(x, Series(Mul(x, x), 12, [](int i) { return 1.0 / (2 * i + 1); }));
  llvm::Value* const large = Mul(Const(0.5), Log(Div(Add(Const(1), x), Sub(Const(1), x))));
  return If(Less(Abs(x), 0.17), small, large);
}

// Above 1 with e^(a/2): its square overflows only where the result does.
llvm::Value* Formulas::Sinh(llvm::Value* x) {
  llvm::Value* const a = Abs(x);
  llvm::Value* const small = Mul(x, Series(Mul(x, x), 11, [](int i) { return 1 / Factorial(2 * i + 1); }));
  llvm::Value* const e = Exp(Mul(a, Const(0.5)));
  llvm::Value* const large = Sub(Mul(Mul(e, Const(0.5)), e), Div(Div(Const(0.5), e), e));
  return If(Less(a, 1), small, SignOf(large, x));
}

llvm::Value* Formulas::Cosh(llvm::Value* x) {
  llvm::Value* const e = Exp(Mul(Abs(x), Const(0.5)));
  return Add(Mul(Mul(e, Const(0.5)), e), Div(Div(Const(0.5), e), e));
}

llvm::Value* Formulas::Tanh(llvm::Value* x) {
  llvm::Value* const a = Abs(x);
  llvm::Value* const small = Div(Sinh(x), Cosh(x));
  llvm::Value* const large = Sub(Const(1), Div(Const(2), Add(Exp(Add(a, a)), Const(1))));
  return If(Less(a, 1), small, SignOf(large, x));
}

llvm::Value* Formulas::Asinh(llvm::Value* x) {
  llvm::Value* const a = Abs(x);
  llvm::Value* const root = Sqrt(Fma(a, a, Const(1)));
  llvm::Value* const small = Atanh(Div(a, root));
  llvm::Value* const large = If(Less(a, 1e150), Log(Add(a, root)), Add(Log(a), Const(std::numbers::ln2)));
  return SignOf(If(Less(a, 0.15), small, large), x);
}

// Near 1 as an atanh, because a logarithm of a number near 1 has lost most digits.
llvm::Value* Formulas::Acosh(llvm::Value* x) {
  llvm::Value* const root = Sqrt(Mul(Sub(x, Const(1)), Add(x, Const(1))));
  llvm::Value* const large = Add(Log(x), Const(std::numbers::ln2));
  llvm::Value* const far = If(b_.CreateFCmpOGT(x, Const(1e150)), large, Log(Add(x, root)));
  llvm::Value* const result = If(Less(x, 1.01), Atanh(Div(root, x)), far);
  return If(Less(x, 1), llvm::ConstantFP::getNaN(type_), result);
}

// Below 3 the series without cancellation, 2 / sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!; above, 1 minus a
// continued fraction.
llvm::Value* Formulas::Erf(llvm::Value* x) {
  constexpr double kTwoOverRootPi = 2 * std::numbers::inv_sqrtpi;
  llvm::Value* const a = Abs(x);
  llvm::Value* const square = Mul(a, a);
  llvm::Value* const falling = Exp(b_.CreateFNeg(square));
  llvm::Value* sum = Const(1);
  for (int n = 60; n >= 1; --n) sum = Fma(Mul(square, Const(2.0 / (2 * n + 1))), sum, Const(1));
  llvm::Value* const small = Mul(Mul(Const(kTwoOverRootPi), falling), Mul(a, sum));
  llvm::Value* fraction = a;
  for (int n = 30; n >= 1; --n) fraction = Add(a, Div(Const(0.5 * n), fraction));
  llvm::Value* const large = Sub(Const(1), Div(Mul(Const(std::numbers::inv_sqrtpi), falling), fraction));
  llvm::Value* const result = If(Less(a, 3), small, If(b_.CreateFCmpOGT(a, Const(6)), Const(1), large));
  return If(b_.CreateFCmpUNO(x, x), x, SignOf(result, x));
}

// exp(y log |x|), and the special cases of C's pow.
llvm::Value* Formulas::Pow(llvm::Value* x, llvm::Value* y) {
  llvm::Value* const a = Abs(x);
  llvm::Value* const power = Exp(Mul(y, Log(a)));
  llvm::Value* const is_whole = b_.CreateFCmpOEQ(Unary(llvm::Intrinsic::floor, y), y);
  llvm::Value* const half = Mul(y, Const(0.5));
  llvm::Value* const is_odd = b_.CreateAnd(is_whole, b_.CreateFCmpUNE(Unary(llvm::Intrinsic::floor, half), half));
  llvm::Value* result = If(is_odd, SignOf(power, x), power);
  llvm::Value* const negative = b_.CreateAnd(Less(x, 0), b_.CreateFCmpUNE(a, Const(kInfinity)));
  llvm::Value* const root_of_negative = b_.CreateAnd(negative, b_.CreateNot(is_whole));
  result = If(root_of_negative, llvm::ConstantFP::getNaN(type_), result);
  llvm::Value* const one_to_infinity =
      b_.CreateAnd(b_.CreateFCmpOEQ(a, Const(1)), b_.CreateFCmpOEQ(Abs(y), Const(kInfinity)));
  llvm::Value* const is_one =
      b_.CreateOr(b_.CreateOr(b_.CreateFCmpOEQ(y, Const(0)), b_.CreateFCmpOEQ(x, Const(1))), one_to_infinity);
  return If(is_one, Const(1), result);
}

// x minus n quarter turns, with pi / 2 in three parts, each rounded once; then the series of sine or cosine.
llvm::Value* Formulas::Sine(llvm::Value* x, int quarters) {
  const auto [n, whole] = Round(x, 2 / std::numbers::pi);
  llvm::Value* r = x;
  for (const double part : {1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33}) {
    r = Fma(n, Const(-part), r);
  }
  llvm::Value* const square = Mul(r, r);
  const auto sign = [](int k) { return k % 2 == 0 ? 1.0 : -1.0; };
  llvm::Value* const sine = Mul(r, Series(square, 10, [&](int k) { return sign(k) / Factorial(2 * k + 1); }));
  llvm::Value* const cosine = Series(square, 10, [&](int k) { return sign(k) / Factorial(2 * k); });
  llvm::Value* const turn = b_.CreateAdd(whole, Whole(quarters));
  const auto bit = [&](int64_t mask) { return b_.CreateICmpNE(b_.CreateAnd(turn, Whole(mask)), Whole(0)); };
  llvm::Value* const value = If(bit(1), cosine, sine);
  return If(bit(2), b_.CreateFNeg(value), value);
}

// atan(t) = 2 atan(t / (1 + sqrt(1 + t^2))), twice, then the series.
llvm::Value* Formulas::Atan(llvm::Value* x) {
  llvm::Value* const a = Abs(x);
  llvm::Value* const inverted = b_.CreateFCmpOGT(a, Const(1));
  llvm::Value* const start = If(inverted, Div(Const(1), a), a);
  llvm::Value* t = start;
  for (int i = 0; i < 2; ++i) t = Div(t, Add(Const(1), Sqrt(Fma(t, t, Const(1)))));
  llvm::Value* const series =
      Mul(Mul(t, Const(4)), Series(Mul(t, t), 13, [](int k) { return (k % 2 == 0 ? 1.0 : -1.0) / (2 * k + 1); }));
  llvm::Value* const result = If(inverted, Sub(Const(std::numbers::pi / 2), series), series);
  return SignOf(result, x);
}

llvm::Value* Formulas::Asin(llvm::Value* x) { return Atan(Div(x, Sqrt(Mul(Sub(Const(1), x), Add(Const(1), x))))); }

llvm::Value* Formulas::Acos(llvm::Value* x) {
  llvm::Value* const domain = b_.CreateFCmpOGT(Abs(x), Const(1));
  llvm::Value* const angle = Mul(Const(2), Atan(Sqrt(Div(Sub(Const(1), x), Add(Const(1), x)))));
  return If(domain, llvm::ConstantFP::getNaN(type_), angle);
}

// x - trunc(x / y) y, in a loop: a quotient has only 53 bits, so a larger one leaves a remainder above |y|, and the
// loop continues with it. Every remainder is exact. The last quotient may be off by one. A NaN ends the loop.
llvm::Value* Formulas::Fmod(llvm::Value* x, llvm::Value* y) {
  llvm::Value* const a = Abs(x);
  llvm::Value* const m = Abs(y);
  llvm::BasicBlock* const before = b_.GetInsertBlock();
  llvm::BasicBlock* const turn = llvm::BasicBlock::Create(b_.getContext(), "turn", before->getParent());
  llvm::BasicBlock* const after = llvm::BasicBlock::Create(b_.getContext(), "rest", before->getParent());
  b_.CreateBr(turn);
  b_.SetInsertPoint(turn);
  llvm::PHINode* const left = b_.CreatePHI(type_, 2);
  llvm::Value* const quotient = Unary(llvm::Intrinsic::trunc, Div(left, m));
  llvm::Value* rest = Fma(b_.CreateFNeg(quotient), m, left);
  left->addIncoming(a, before);
  left->addIncoming(rest, turn);
  llvm::Value* const more = b_.CreateFCmpOGT(Abs(rest), m);
  b_.CreateCondBr(type_->isVectorTy() ? b_.CreateOrReduce(more) : more, turn, after);
  b_.SetInsertPoint(after);
  rest = If(Less(rest, 0), Add(rest, m), rest);
  rest = If(b_.CreateFCmpOGE(rest, m), Sub(rest, m), rest);
  rest = If(b_.CreateFCmpOLT(a, m), a, rest);  // also if m is infinite
  return SignOf(rest, x);
}

llvm::Value* Evaluate(Formulas& f, ir::Intrinsic function, llvm::Value* x, llvm::Value* y) {
  switch (function) {
    case ir::Intrinsic::kExp:
      return f.Exp(x);
    case ir::Intrinsic::kLog:
      return f.Log(x);
    case ir::Intrinsic::kTanh:
      return f.Tanh(x);
    case ir::Intrinsic::kErf:
      return f.Erf(x);
    case ir::Intrinsic::kPow:
      return f.Pow(x, y);
    case ir::Intrinsic::kSin:
      return f.Sine(x, 0);
    case ir::Intrinsic::kCos:
      return f.Sine(x, 1);
    case ir::Intrinsic::kTan:
      return f.Div(f.Sine(x, 0), f.Sine(x, 1));
    case ir::Intrinsic::kAsin:
      return f.Asin(x);
    case ir::Intrinsic::kAcos:
      return f.Acos(x);
    case ir::Intrinsic::kAtan:
      return f.Atan(x);
    case ir::Intrinsic::kSinh:
      return f.Sinh(x);
    case ir::Intrinsic::kCosh:
      return f.Cosh(x);
    case ir::Intrinsic::kAsinh:
      return f.Asinh(x);
    case ir::Intrinsic::kAcosh:
      return f.Acosh(x);
    case ir::Intrinsic::kAtanh:
      return f.Atanh(x);
    default:  // other functions are never calls of a C library
      HONE_CHECK(false);
      return nullptr;
  }
}

llvm::Value* Widened(llvm::IRBuilder<>& builder, llvm::Value* x) {
  return builder.CreateFPCast(x, x->getType()->getWithNewType(builder.getDoubleTy()));
}

}  // namespace

llvm::Value* EmitWideFunction(llvm::IRBuilder<>& builder, ir::Intrinsic function, std::span<llvm::Value* const> args) {
  llvm::Value* const x = Widened(builder, args[0]);
  Formulas formulas(builder, x);
  llvm::Value* const y = args.size() > 1 ? Widened(builder, args[1]) : nullptr;
  return builder.CreateFPCast(Evaluate(formulas, function, x, y), args[0]->getType());
}

llvm::Value* EmitWideFmod(llvm::IRBuilder<>& builder, llvm::Value* x, llvm::Value* y) {
  llvm::Value* const wide = Widened(builder, x);
  return builder.CreateFPCast(Formulas(builder, wide).Fmod(wide, Widened(builder, y)), x->getType());
}

}  // namespace hone::codegen
