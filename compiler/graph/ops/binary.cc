// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Buffer;
using ir::DType;
using ir::Expr;

using Combine = std::function<Expr(Expr, Expr)>;

absl::StatusOr<Shape> BroadcastAll(const OpArgs& args) {
  Shape shape = args.inputs[0]->shape;
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    if (!args.Has(i)) return Malformed(fmt::format("input {} is missing", i));
    HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, args.inputs[i]->shape));
  }
  return shape;
}

// Two broadcast inputs of one type. The value is computed in their compute type and stored as `out`.
OpResult Broadcast(const OpArgs& args, StageBuilder& builder, DType out, const Combine& combine) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(args.inputs[0]->shape, args.inputs[1]->shape));
  return Buffers{Map(builder, args.node.op, out, std::move(shape), [&](Indices i) {
    return combine(ReadBroadcast(args.inputs[0], i), ReadBroadcast(args.inputs[1], i));
  })};
}

template <BinaryOp op>
OpResult Arithmetic(const OpArgs& args, StageBuilder& builder) {
  return Broadcast(args, builder, args.inputs[0]->dtype, [](Expr a, Expr b) { return MakeBinary(op, a, b); });
}

template <BinaryOp op>
OpResult Comparison(const OpArgs& args, StageBuilder& builder) {
  return Broadcast(args, builder, DType::kBool, [](Expr a, Expr b) { return MakeBinary(op, a, b); });
}

constexpr size_t kOperandsMax = 64;  // per stage: code that walks expressions recurses as deep as they are nested

// Any number of broadcast inputs, combined from left to right.
OpResult Variadic(const OpArgs& args, StageBuilder& builder, const Combine& combine, double divisor) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  if (args.inputs.size() == 1) return Buffers{args.inputs[0]};
  HONE_ASSIGN_OR_RETURN(Shape shape, BroadcastAll(args));
  const DType dtype = args.inputs[0]->dtype, wide = ComputeType(dtype);
  Buffer before;  // the result for the inputs up to `next`
  size_t next = 0;
  const auto fold_to = [&](size_t end, Indices i) {
    Expr value = before == nullptr ? ReadBroadcast(args.inputs[next], i)
                                   : combine(ReadHere(before, i), ReadBroadcast(args.inputs[next], i));
    for (size_t k = next + 1; k < end; ++k) value = combine(value, ReadBroadcast(args.inputs[k], i));
    return value;
  };
  for (; next + kOperandsMax < args.inputs.size(); next += kOperandsMax) {
    before = Map(builder, args.node.op, wide, shape, [&](Indices i) { return fold_to(next + kOperandsMax, i); });
  }
  return Buffers{Map(builder, args.node.op, dtype, std::move(shape), [&](Indices i) {
    const Expr value = fold_to(args.inputs.size(), i);
    return divisor == 1 ? value : value / Number(wide, divisor);
  })};
}

template <BinaryOp op>
OpResult Fold(const OpArgs& args, StageBuilder& builder) {
  return Variadic(args, builder, [](Expr a, Expr b) { return MakeBinary(op, a, b); }, 1);
}

OpResult Mean(const OpArgs& args, StageBuilder& builder) {
  const double count = static_cast<double>(args.inputs.size());
  return Variadic(args, builder, [](Expr a, Expr b) { return a + b; }, count);
}

OpResult Mod(const OpArgs& args, StageBuilder& builder) {
  const bool truncate = args.Int("fmod", 0) != 0;
  const DType dtype = args.inputs[0]->dtype;
  if (ir::IsFloat(dtype) && !truncate) return Malformed("floats need the attribute fmod=1");
  const BinaryOp op = truncate ? BinaryOp::kMod : BinaryOp::kFloorMod;
  return Broadcast(args, builder, dtype, [&](Expr a, Expr b) { return MakeBinary(op, a, b); });
}

// The exponent, if it is a single number known at compile time.
bool ConstantExponent(const OpArgs& args, double* exponent) {
  absl::StatusOr<std::vector<double>> numbers = ConstantNumbers(args, 1);
  if (!numbers.ok() || numbers->size() != 1) return false;
  *exponent = numbers->front();
  return true;
}

// x^n of integers for n < 0, truncated.
Expr InversePower(const Expr& x, const Expr& n) {
  Expr one = Like(x, 1), inverse = MakeSelect(Equals(x, one), one, Like(x, 0));
  if (ir::IsUnsignedInt(x.type().dtype)) return inverse;
  Expr odd = Equals(MakeBinary(BinaryOp::kAnd, n, Like(n, 1)), Like(n, 1));
  return MakeSelect(Equals(x, Like(x, -1)), MakeSelect(odd, x, one), inverse);
}

constexpr int kPowerBits = 4;                // exponent bits that one stage handles
constexpr double kExactIntegerMax = 0x1p53;  // f64 represents every integer below this one

// x^2^k as an expression. A stage loads x as often as 8 times for x^8; kPowerBits limits the depth of these trees.
Expr RepeatedSquare(Expr x, int k) {
  for (; k > 0; --k) x = x * x;
  return x;
}

// Integer powers by squaring over the bits of the exponent; products wrap. `known` is the exponent if it is one nonzero
// number known at compile time; then only its own bits are examined.
Buffer EmitIntegerPower(StageBuilder& builder, const Buffer& base, const Buffer& exponent, const ir::IntImm* known,
                        const Shape& shape) {
  const DType dtype = base->dtype;
  const bool is_signed = !ir::IsUnsignedInt(exponent->dtype);
  const bool negative = known != nullptr && is_signed && known->value < 0;
  const auto number = negative || known == nullptr ? uint64_t{0} : static_cast<uint64_t>(known->value);
  const int bits = known != nullptr ? std::bit_width(number) : 8 * ir::SizeOf(exponent->dtype) - (is_signed ? 1 : 0);
  Buffer square = base, power;  // base^2^first, and the product for the exponent bits below `first`
  for (int first = 0; first < bits; first += kPowerBits) {
    if (first > 0) {
      square = Map(builder, "square", dtype, shape,
                   [&](Indices i) { return RepeatedSquare(ReadBroadcast(square, i), kPowerBits); });
    }
    if (known != nullptr && (number >> first) % (1 << kPowerBits) == 0) continue;
    power = Map(builder, "power", dtype, shape, [&](Indices i) {
      const Expr x = ReadBroadcast(square, i), n = ReadBroadcast(exponent, i);
      Expr product = power == nullptr ? Expr() : ReadHere(power, i);
      for (int k = 0; k < kPowerBits && first + k < bits; ++k) {
        const uint64_t bit = uint64_t{1} << (first + k);
        if (known != nullptr && (number & bit) == 0) continue;
        Expr factor = RepeatedSquare(x, k);
        if (known == nullptr) {
          const Expr mask = ir::MakeInt(n.type(), static_cast<int64_t>(bit));
          factor = MakeSelect(Equals(MakeBinary(BinaryOp::kAnd, n, mask), mask), factor, Like(x, 1));
        }
        product = product.defined() ? product * factor : factor;
      }
      return product;
    });
  }
  if (power != nullptr && (known != nullptr || !is_signed)) return power;
  return Map(builder, "pow", dtype, shape, [&](Indices i) {
    const Expr x = ReadBroadcast(base, i), n = ReadBroadcast(exponent, i);
    if (known != nullptr) return InversePower(x, n);
    return MakeSelect(n < Like(n, 0), InversePower(x, n), ReadHere(power, i));
  });
}

// x^0.5 differs from sqrt(x): -0 gives 0, and -infinity gives infinity.
Expr PowerOfHalf(const Expr& x) {
  Expr special = Equals(x, Like(x, 0)) || Equals(x, Like(x, -std::numeric_limits<double>::infinity()));
  return MakeSelect(special, MakeUnary(ir::UnaryOp::kAbs, x), Sqrt(x));
}

// Returns true if f32 holds every number of the type.
bool FitsSingle(DType dtype) {
  return dtype == DType::kFloat32 || ComputeType(dtype) == DType::kFloat32 || ir::SizeOf(dtype) < 4;
}

// x^n as a `result` (f32 or f64), for a 64-bit integer n and x of f64. f64 rounds a large n, so the sign comes from the
// last bit of n itself.
Expr PowerOfLongExponent(DType result, const Expr& x, const Expr& n) {
  const Expr power = To(result, Power(MakeUnary(ir::UnaryOp::kAbs, x), To(DType::kFloat64, n)));
  const Expr odd = Equals(MakeBinary(BinaryOp::kAnd, n, Like(n, 1)), Like(n, 1));
  const Expr negative = MakeCall({DType::kInt64, 1}, ir::Intrinsic::kReinterpret, {x}) < Expr(0);  // -0 too
  return power * MakeSelect(odd && negative, Like(power, -1), Like(power, 1));
}

// The type in which base^exponent is computed. It holds the numbers of both types; integers of 64 bits need
// PowerOfLongExponent. An exponent that is known needs the wider type only if the narrower one would round it.
DType PowerType(const OpArgs& args, const double* known) {
  const DType base = args.inputs[0]->dtype, exponent = args.inputs[1]->dtype;
  if (!ir::IsFloat(base) || base == DType::kFloat64) return DType::kFloat64;
  const bool fits = FitsSingle(exponent) || (known != nullptr && static_cast<float>(*known) == *known);
  return fits ? DType::kFloat32 : DType::kFloat64;
}

OpResult Pow(const OpArgs& args, StageBuilder& builder) {
  const Buffer& base = args.inputs[0];
  const Buffer& power = args.inputs[1];
  if (power->dtype == DType::kBool) return Malformed("the exponent (input 1) is bool");
  HONE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(base->shape, power->shape));
  if (ir::IsInt(base->dtype) && ir::IsInt(power->dtype)) {
    const bool known = args.constants.size() > 1 && args.constants[1] != nullptr && ir::NumElements(*power) == 1;
    const Expr number = known ? ConstantElement({{power->dtype, power->shape}, args.constants[1]}, 0) : Expr();
    const ir::IntImm* value = number.As<ir::IntImm>();
    if (value != nullptr && value->value == 0) value = nullptr;  // 0 has no bits to examine
    return Buffers{EmitIntegerPower(builder, base, power, value, shape)};
  }
  double exponent = 0;
  const bool known = ConstantExponent(args, &exponent);
  const DType wide = PowerType(args, known ? &exponent : nullptr);
  const bool exact = known && std::fabs(exponent) < kExactIntegerMax;
  const bool is_long = ir::IsInt(power->dtype) && ir::SizeOf(power->dtype) == 8 && !exact;
  return Buffers{Map(builder, "pow", base->dtype, std::move(shape), [&](Indices i) {
    Expr x = ReadBroadcast(base, i);
    if (known && exponent == 1) return x;
    if (known && exponent == 2) return x * x;
    if (known && exponent == 3) return x * x * x;
    if (known && exponent == 0.5 && ir::IsFloat(base->dtype)) return PowerOfHalf(x);
    const Expr n = ReadBroadcast(power, i);
    if (!is_long) return Power(To(wide, x), To(wide, n));
    const DType result = base->dtype == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
    return PowerOfLongExponent(result, To(DType::kFloat64, x), n);
  })};
}

OpResult BitShift(const OpArgs& args, StageBuilder& builder) {
  const std::string direction = args.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return Malformed(fmt::format("attribute direction is '{}'; it must be LEFT or RIGHT", direction));
  }
  const BinaryOp op = direction == "LEFT" ? BinaryOp::kShl : BinaryOp::kShr;
  return Broadcast(args, builder, args.inputs[0]->dtype, [&](Expr a, Expr b) { return MakeBinary(op, a, b); });
}

void PositiveDivisor(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 1) return;
  const bool integer = ir::IsInt(args.inputs[1]->dtype);
  *low = integer ? 1 : 0.5;
  *high = integer ? 7 : 2;
}

void PositiveBase(const OpArgs&, size_t input, double* low, double* high) {
  if (input != 0) return;
  *low = 0.1;
  *high = 2;
}

constexpr OpDef kBinaryOps[] = {
    {"Add", Checked<Arithmetic<BinaryOp::kAdd>, 2, Elements::kNumber>, kElementwise},
    {"And", Checked<Arithmetic<BinaryOp::kAnd>, 2, Elements::kBool>, kElementwise},
    {"BitShift", Checked<BitShift, 2, Elements::kInteger>, kElementwise},
    {"BitwiseAnd", Checked<Arithmetic<BinaryOp::kAnd>, 2, Elements::kInteger>, kElementwise},
    {"BitwiseOr", Checked<Arithmetic<BinaryOp::kOr>, 2, Elements::kInteger>, kElementwise},
    {"BitwiseXor", Checked<Arithmetic<BinaryOp::kXor>, 2, Elements::kInteger>, kElementwise},
    {"Div", Checked<Arithmetic<BinaryOp::kDiv>, 2, Elements::kNumber>, kElementwise, PositiveDivisor},
    {"Equal", Checked<Comparison<BinaryOp::kEq>, 2>, kElementwise},
    {"Greater", Checked<Comparison<BinaryOp::kGt>, 2, Elements::kNumber>, kElementwise},
    {"GreaterOrEqual", Checked<Comparison<BinaryOp::kGe>, 2, Elements::kNumber>, kElementwise},
    {"Less", Checked<Comparison<BinaryOp::kLt>, 2, Elements::kNumber>, kElementwise},
    {"LessOrEqual", Checked<Comparison<BinaryOp::kLe>, 2, Elements::kNumber>, kElementwise},
    {"Max", Checked<Fold<BinaryOp::kMax>, 1, Elements::kNumber>, kElementwise},
    {"Mean", Checked<Mean, 1, Elements::kFloat>, kElementwise},
    {"Min", Checked<Fold<BinaryOp::kMin>, 1, Elements::kNumber>, kElementwise},
    {"Mod", Checked<Mod, 2, Elements::kNumber>, kElementwise, PositiveDivisor},
    {"Mul", Checked<Arithmetic<BinaryOp::kMul>, 2, Elements::kNumber>, kElementwise},
    {"Or", Checked<Arithmetic<BinaryOp::kOr>, 2, Elements::kBool>, kElementwise},
    {"Pow", Checked<Pow, 2, Elements::kNumber>, kElementwise, PositiveBase},
    {"Sub", Checked<Arithmetic<BinaryOp::kSub>, 2, Elements::kNumber>, kElementwise},
    {"Sum", Checked<Fold<BinaryOp::kAdd>, 1, Elements::kNumber>, kElementwise},
    {"Xor", Checked<Arithmetic<BinaryOp::kXor>, 2, Elements::kBool>, kElementwise},
};

}  // namespace

std::span<const OpDef> BinaryOps() { return kBinaryOps; }

}  // namespace hone::graph
