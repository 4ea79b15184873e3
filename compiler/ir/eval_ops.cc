// SPDX-License-Identifier: Apache-2.0
// The scalar semantics of all operators: one small function for each operator and class of type, as expr.h defines
// them.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half_float.h"
#include "base/status.h"
#include "compiler/ir/eval_code.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/typing.h"

namespace hone::ir::eval {
namespace {

Value Of(int64_t i) { return {.i = i}; }
Value Of(double d) { return {.d = d}; }

// Int is uint64_t for u64 and int64_t for every other integer type. Narrower unsigned values fit int64_t unchanged.
template <BinaryOp op, typename Int>
bool CompareInts(Int a, Int b) {
  if constexpr (op == BinaryOp::kEq) return a == b;
  if constexpr (op == BinaryOp::kNe) return a != b;
  if constexpr (op == BinaryOp::kLt) return a < b;
  if constexpr (op == BinaryOp::kLe) return a <= b;
  if constexpr (op == BinaryOp::kGt) return a > b;
  return a >= b;
}

template <BinaryOp op, typename Int>
Int DivideInts(Int a, Int b) {
  constexpr bool kQuotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<Int>) {
    // Only the lowest value divided by -1 overflows. It wraps.
    if (b == -1) return kQuotient ? static_cast<Int>(-static_cast<uint64_t>(a)) : 0;
    const bool round_down =
        (op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod) && a % b != 0 && (a < 0) != (b < 0);
    if (round_down) return kQuotient ? a / b - 1 : a % b + b;
  }
  return kQuotient ? a / b : a % b;
}

template <BinaryOp op, typename Int>
Int ComputeInts(Int a, Int b, DType dtype) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if constexpr (op == BinaryOp::kAdd) return static_cast<Int>(ua + ub);
  if constexpr (op == BinaryOp::kSub) return static_cast<Int>(ua - ub);
  if constexpr (op == BinaryOp::kMul) return static_cast<Int>(ua * ub);
  if constexpr (op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod) return DivideInts<op, Int>(a, b);
  if constexpr (op == BinaryOp::kMin) return a < b ? a : b;
  if constexpr (op == BinaryOp::kMax) return a < b ? b : a;
  if constexpr (op == BinaryOp::kAnd) return a & b;
  if constexpr (op == BinaryOp::kOr) return a | b;
  if constexpr (op == BinaryOp::kXor) return a ^ b;
  const bool too_far = ub >= static_cast<uint64_t>(8 * SizeOf(dtype));
  if constexpr (op == BinaryOp::kShl) return too_far ? 0 : static_cast<Int>(ua << ub);
  return too_far ? 0 : a >> b;
}

template <BinaryOp op, typename Int, bool wraps>
Value RunInts(const Code& code, Frame& frame) {
  const auto a = static_cast<Int>((*code.a)(frame).i);
  const auto b = static_cast<Int>((*code.b)(frame).i);
  if constexpr (op >= BinaryOp::kEq) {
    return Of(static_cast<int64_t>(CompareInts<op, Int>(a, b)));
  } else {
    const auto result = static_cast<int64_t>(ComputeInts<op, Int>(a, b, code.from));
    return Of(wraps ? WrapTo(code.from, result) : result);
  }
}

// The minimum of IEEE 754-2019: NaN if either is NaN, and -0 is less than +0.
double MinOf(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
double MaxOf(double a, double b) { return -MinOf(-a, -b); }

template <BinaryOp op>
double ComputeFloats(double a, double b) {
  if constexpr (op == BinaryOp::kAdd) return a + b;
  if constexpr (op == BinaryOp::kSub) return a - b;
  if constexpr (op == BinaryOp::kMul) return a * b;
  if constexpr (op == BinaryOp::kDiv) return a / b;
  if constexpr (op == BinaryOp::kMod) return std::fmod(a, b);
  if constexpr (op == BinaryOp::kMin) return MinOf(a, b);
  return MaxOf(a, b);
}

// f32 is computed in double and then rounded. For + - * / and sqrt this gives the exact f32 result (53 >= 2 * 24 + 2
// bits).
double Narrow(bool single, double value) { return single ? static_cast<double>(static_cast<float>(value)) : value; }

template <BinaryOp op, bool single>
Value RunFloats(const Code& code, Frame& frame) {
  const double a = (*code.a)(frame).d, b = (*code.b)(frame).d;
  if constexpr (op == BinaryOp::kEq) return Of(static_cast<int64_t>(a == b));
  if constexpr (op == BinaryOp::kNe) return Of(static_cast<int64_t>(a != b));
  if constexpr (op == BinaryOp::kLt) return Of(static_cast<int64_t>(a < b));
  if constexpr (op == BinaryOp::kLe) return Of(static_cast<int64_t>(a <= b));
  if constexpr (op == BinaryOp::kGt) return Of(static_cast<int64_t>(a > b));
  if constexpr (op == BinaryOp::kGe) return Of(static_cast<int64_t>(a >= b));
  return Of(Narrow(single, ComputeFloats<op>(a, b)));
}

// One table per template family, indexed by BinaryOp.
template <typename Int, bool wraps>
Run PickInts(BinaryOp op) {
  using B = BinaryOp;
  static constexpr Run kTable[] = {
      RunInts<B::kAdd, Int, wraps>,      RunInts<B::kSub, Int, wraps>, RunInts<B::kMul, Int, wraps>,
      RunInts<B::kDiv, Int, wraps>,      RunInts<B::kMod, Int, wraps>, RunInts<B::kFloorDiv, Int, wraps>,
      RunInts<B::kFloorMod, Int, wraps>, RunInts<B::kMin, Int, wraps>, RunInts<B::kMax, Int, wraps>,
      RunInts<B::kAnd, Int, wraps>,      RunInts<B::kOr, Int, wraps>,  RunInts<B::kXor, Int, wraps>,
      RunInts<B::kShl, Int, wraps>,      RunInts<B::kShr, Int, wraps>, RunInts<B::kEq, Int, wraps>,
      RunInts<B::kNe, Int, wraps>,       RunInts<B::kLt, Int, wraps>,  RunInts<B::kLe, Int, wraps>,
      RunInts<B::kGt, Int, wraps>,       RunInts<B::kGe, Int, wraps>};
  return kTable[static_cast<size_t>(op)];
}

template <bool single>
Run PickFloats(BinaryOp op) {
  using B = BinaryOp;
  static constexpr Run kTable[] = {RunFloats<B::kAdd, single>,
                                   RunFloats<B::kSub, single>,
                                   RunFloats<B::kMul, single>,
                                   RunFloats<B::kDiv, single>,
                                   RunFloats<B::kMod, single>,
                                   nullptr,
                                   nullptr,
                                   RunFloats<B::kMin, single>,
                                   RunFloats<B::kMax, single>,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   RunFloats<B::kEq, single>,
                                   RunFloats<B::kNe, single>,
                                   RunFloats<B::kLt, single>,
                                   RunFloats<B::kLe, single>,
                                   RunFloats<B::kGt, single>,
                                   RunFloats<B::kGe, single>};
  return kTable[static_cast<size_t>(op)];
}

template <UnaryOp op>
Value RunIntUnary(const Code& code, Frame& frame) {
  const int64_t a = (*code.a)(frame).i;
  if constexpr (op == UnaryOp::kNot) return Of(code.from == DType::kBool ? !a : WrapTo(code.from, ~a));
  const bool keep = op == UnaryOp::kAbs && (a >= 0 || code.from == DType::kUInt64);
  return Of(keep ? a : WrapTo(code.from, static_cast<int64_t>(-static_cast<uint64_t>(a))));
}

template <UnaryOp op>
Value RunFloatUnary(const Code& code, Frame& frame) {
  const double a = (*code.a)(frame).d;
  if constexpr (op == UnaryOp::kNeg) return Of(-a);
  if constexpr (op == UnaryOp::kAbs) return Of(std::fabs(a));
  if constexpr (op == UnaryOp::kFloor) return Of(std::floor(a));
  if constexpr (op == UnaryOp::kCeil) return Of(std::ceil(a));
  if constexpr (op == UnaryOp::kRound) return Of(std::nearbyint(a));
  if constexpr (op == UnaryOp::kTrunc) return Of(std::trunc(a));
  return Of(Narrow(code.from == DType::kFloat32, std::sqrt(a)));
}

Value CastInts(const Code& code, Frame& frame) { return Of(WrapTo(code.to, (*code.a)(frame).i)); }
Value CastFromInt(const Code& code, Frame& frame) { return Of(IntToFloat(code.from, (*code.a)(frame).i, code.to)); }
Value CastToInt(const Code& code, Frame& frame) { return Of(FloatToInt(code.to, (*code.a)(frame).d)); }
Value CastToSingle(const Code& code, Frame& frame) { return Of(Narrow(true, (*code.a)(frame).d)); }
Value CastFloats(const Code& code, Frame& frame) { return Of(RoundTo(code.to, (*code.a)(frame).d)); }

template <DType dtype>
Value RunLoad(const Code& code, Frame& frame) {
  const AccessCode& access = code.access;
  if (access.IsMaskedOff(frame)) return Value{};
  const int64_t offset = access.Offset(frame, AccessCode::Use::kRead);
  if (offset < 0) return Value{};
  return Read(dtype, frame.buffers[static_cast<size_t>(access.slot)] + offset * SizeOf(dtype));
}

Value RunMath(const Code& code, Frame& frame) {
  return Of(Narrow(code.to == DType::kFloat32, code.math((*code.a)(frame).d)));
}
Value RunPow(const Code& code, Frame& frame) {
  const double a = (*code.a)(frame).d, b = (*code.b)(frame).d;
  return Of(Narrow(code.to == DType::kFloat32, std::pow(a, b)));
}
Value RunFma(const Code& code, Frame& frame) {
  const double a = (*code.a)(frame).d, b = (*code.b)(frame).d, c = (*code.c)(frame).d;
  if (code.to == DType::kFloat64) return Of(std::fma(a, b, c));
  return Of(static_cast<double>(std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c))));
}
Value RunIsNan(const Code& code, Frame& frame) { return Of(static_cast<int64_t>(std::isnan((*code.a)(frame).d))); }
Value RunIsInf(const Code& code, Frame& frame) { return Of(static_cast<int64_t>(std::isinf((*code.a)(frame).d))); }
Value RunReinterpret(const Code& code, Frame& frame) {
  std::byte bits[8] = {};
  Write(code.from, (*code.a)(frame), bits);
  return Read(code.to, bits);
}

template <typename T>
T Bits(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
template <typename T>
void SetBits(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

Value Read(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::kBool:
      return Of(static_cast<int64_t>(Bits<uint8_t>(from) != 0));
    case DType::kInt8:
      return Of(static_cast<int64_t>(Bits<int8_t>(from)));
    case DType::kInt16:
      return Of(static_cast<int64_t>(Bits<int16_t>(from)));
    case DType::kInt32:
      return Of(static_cast<int64_t>(Bits<int32_t>(from)));
    case DType::kUInt8:
      return Of(static_cast<int64_t>(Bits<uint8_t>(from)));
    case DType::kUInt16:
      return Of(static_cast<int64_t>(Bits<uint16_t>(from)));
    case DType::kUInt32:
      return Of(static_cast<int64_t>(Bits<uint32_t>(from)));
    case DType::kInt64:
    case DType::kUInt64:
      return Of(Bits<int64_t>(from));
    case DType::kFloat16:
      return Of(FromHalfBits(Bits<uint16_t>(from)));
    case DType::kBFloat16:
      return Of(FromBFloatBits(Bits<uint16_t>(from)));
    case DType::kFloat32:
      return Of(static_cast<double>(Bits<float>(from)));
    case DType::kFloat64:
      return Of(Bits<double>(from));
  }
  return Value{};
}

void Write(DType dtype, Value value, std::byte* to) {
  switch (dtype) {
    case DType::kFloat16:
      return SetBits(HalfBits(value.d), to);
    case DType::kBFloat16:
      return SetBits(BFloatBits(value.d), to);
    case DType::kFloat32:
      return SetBits(static_cast<float>(value.d), to);
    case DType::kFloat64:
      return SetBits(value.d, to);
    default:
      break;
  }
  switch (SizeOf(dtype)) {
    case 1:
      return SetBits(static_cast<int8_t>(value.i), to);
    case 2:
      return SetBits(static_cast<int16_t>(value.i), to);
    case 4:
      return SetBits(static_cast<int32_t>(value.i), to);
    default:
      return SetBits(value.i, to);
  }
}

Run PickUnary(UnaryOp op, DType operand) {
  switch (op) {
    case UnaryOp::kNeg:
      return IsFloat(operand) ? RunFloatUnary<UnaryOp::kNeg> : RunIntUnary<UnaryOp::kNeg>;
    case UnaryOp::kAbs:
      return IsFloat(operand) ? RunFloatUnary<UnaryOp::kAbs> : RunIntUnary<UnaryOp::kAbs>;
    case UnaryOp::kNot:
      return RunIntUnary<UnaryOp::kNot>;
    case UnaryOp::kFloor:
      return RunFloatUnary<UnaryOp::kFloor>;
    case UnaryOp::kCeil:
      return RunFloatUnary<UnaryOp::kCeil>;
    case UnaryOp::kRound:
      return RunFloatUnary<UnaryOp::kRound>;
    case UnaryOp::kTrunc:
      return RunFloatUnary<UnaryOp::kTrunc>;
    case UnaryOp::kSqrt:
      return RunFloatUnary<UnaryOp::kSqrt>;
  }
  return nullptr;
}

Run PickBinary(BinaryOp op, DType operand) {
  HONE_CHECK(!IsStorageOnly(operand));
  Run run = nullptr;
  switch (operand) {
    case DType::kFloat32:
      run = PickFloats<true>(op);
      break;
    case DType::kFloat64:
      run = PickFloats<false>(op);
      break;
    case DType::kInt64:
      run = PickInts<int64_t, false>(op);
      break;
    case DType::kUInt64:
      run = PickInts<uint64_t, false>(op);
      break;
    default:
      run = PickInts<int64_t, true>(op);
      break;
  }
  HONE_CHECK(run != nullptr);
  return run;
}

Run PickCast(DType from, DType to) {
  if (!IsFloat(from)) return IsFloat(to) ? CastFromInt : CastInts;
  if (!IsFloat(to)) return CastToInt;
  return to == DType::kFloat32 ? CastToSingle : CastFloats;
}

Run PickLoad(DType dtype) {
  static constexpr Run kTable[] = {RunLoad<DType::kBool>,    RunLoad<DType::kInt8>,     RunLoad<DType::kInt16>,
                                   RunLoad<DType::kInt32>,   RunLoad<DType::kInt64>,    RunLoad<DType::kUInt8>,
                                   RunLoad<DType::kUInt16>,  RunLoad<DType::kUInt32>,   RunLoad<DType::kUInt64>,
                                   RunLoad<DType::kFloat16>, RunLoad<DType::kBFloat16>, RunLoad<DType::kFloat32>,
                                   RunLoad<DType::kFloat64>};
  return kTable[IndexOf(dtype)];
}

Run PickCall(Intrinsic function) {
  switch (function) {
    case Intrinsic::kPow:
      return RunPow;
    case Intrinsic::kFma:
      return RunFma;
    case Intrinsic::kIsNan:
      return RunIsNan;
    case Intrinsic::kIsInf:
      return RunIsInf;
    case Intrinsic::kReinterpret:
      return RunReinterpret;
    default:
      return RunMath;
  }
}

double (*PickMath(Intrinsic function))(double) {
  switch (function) {
    case Intrinsic::kExp:
      return std::exp;
    case Intrinsic::kLog:
      return std::log;
    case Intrinsic::kTanh:
      return std::tanh;
    case Intrinsic::kErf:
      return std::erf;
    case Intrinsic::kSigmoid:
      return Sigmoid;
    case Intrinsic::kSin:
      return std::sin;
    case Intrinsic::kCos:
      return std::cos;
    case Intrinsic::kTan:
      return std::tan;
    case Intrinsic::kAsin:
      return std::asin;
    case Intrinsic::kAcos:
      return std::acos;
    case Intrinsic::kAtan:
      return std::atan;
    case Intrinsic::kSinh:
      return std::sinh;
    case Intrinsic::kCosh:
      return std::cosh;
    case Intrinsic::kAsinh:
      return std::asinh;
    case Intrinsic::kAcosh:
      return std::acosh;
    case Intrinsic::kAtanh:
      return std::atanh;
    default:
      return nullptr;
  }
}

}  // namespace hone::ir::eval
