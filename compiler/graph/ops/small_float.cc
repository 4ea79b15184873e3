// SPDX-License-Identifier: Apache-2.0
// Operators of domain "hone" for floats of 8 and 4 bits: EncodeSmall and ScaleDown (small_types.h has the types).
#include <cmath>
#include <string>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/quantize.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/small_types.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::DType;
using ir::Expr;

constexpr int kMantissaBits = 23, kBias = 127;  // of f32

Expr Int(int64_t value) { return Number(DType::kInt32, static_cast<double>(value)); }

Expr BitsOf(const Expr& x) { return ir::MakeCall({DType::kInt32, 1}, ir::Intrinsic::kReinterpret, {x}); }

// The bits of |x|, an f32.
Expr MagnitudeBits(const Expr& x) { return ir::MakeBinary(ir::BinaryOp::kAnd, BitsOf(x), Int(0x7fffffff)); }

// The code of a finite |x|, rounded to nearest with ties to even. Beyond the largest number it goes on counting.
Expr MagnitudeCode(const SmallFloat& type, const Expr& x, const Expr& bits) {
  const int dropped = kMantissaBits - type.mantissa_bits;
  const int64_t exponent_shift = int64_t{kBias - type.bias} << kMantissaBits;
  const int64_t first_normal = int64_t{kBias - type.bias + 1} << kMantissaBits;
  const Expr moved = bits - Int(exponent_shift);
  const Expr is_odd =
      ir::MakeBinary(ir::BinaryOp::kAnd, ir::MakeBinary(ir::BinaryOp::kShr, moved, Int(dropped)), Int(1));
  const Expr normal =
      ir::MakeBinary(ir::BinaryOp::kShr, moved + Int((int64_t{1} << (dropped - 1)) - 1) + is_odd, Int(dropped));
  // Below the normal numbers, codes are multiples of the smallest one.
  const double smallest_inverse = std::ldexp(1.0, type.bias - 1 + type.mantissa_bits);
  const Expr multiple = ir::MakeUnary(ir::UnaryOp::kAbs, x) * Number(DType::kFloat32, smallest_inverse);
  const Expr below = To(DType::kInt32, ir::MakeUnary(ir::UnaryOp::kRound, multiple));
  return ir::MakeSelect(bits < Int(first_normal), below, normal);
}

Expr EncodeFloat(const SmallType& small, const SmallFloat& type, bool saturate, const Expr& x) {
  const Expr bits = MagnitudeBits(x);
  const Expr code = MagnitudeCode(type, x, bits);
  const Expr beyond = Int(saturate ? type.largest : type.overflow);
  const Expr limited = ir::MakeSelect(code > Int(type.largest), beyond, code);
  const Expr is_negative = BitsOf(x) < Int(0);
  const Expr has_sign = type.has_negative_zero ? is_negative : is_negative && limited > Int(0);
  const Expr sign = ir::MakeSelect(has_sign, Int(int64_t{1} << (small.bits - 1)), Int(0));
  const Expr is_nan = bits > Int(0x7f800000);
  return ir::MakeSelect(is_nan, Int(type.nan), ir::MakeBinary(ir::BinaryOp::kOr, limited, sign));
}

// A power of two: the code is its exponent. Zero has the code of the smallest one; negative numbers are NaN.
Expr EncodePower(bool saturate, std::string_view round_mode, const Expr& x) {
  constexpr int64_t kNan = 0xff, kLargest = 0xfe;
  const Expr bits = MagnitudeBits(x);
  const Expr fraction = ir::MakeBinary(ir::BinaryOp::kAnd, bits, Int((int64_t{1} << kMantissaBits) - 1));
  const Expr exponent = ir::MakeBinary(ir::BinaryOp::kShr, bits, Int(kMantissaBits));
  const int64_t half = int64_t{1} << (kMantissaBits - 1);
  Expr code = exponent;
  if (round_mode == "up") code = ir::MakeSelect(fraction > Int(0), exponent + Int(1), exponent);
  if (round_mode == "nearest") code = ir::MakeSelect(fraction >= Int(half), exponent + Int(1), exponent);
  code = ir::MakeSelect(bits <= Int(half), Int(0), code);  // up to 2^-127
  const Expr limited = ir::MakeSelect(code > Int(kLargest), Int(saturate ? kLargest : kNan), code);
  const Expr is_invalid = bits > Int(0x7f800000) || (BitsOf(x) < Int(0) && bits > Int(0));
  return ir::MakeSelect(is_invalid, Int(kNan), limited);
}

// Output: u8, the codes of the numbers in a small float type. Attributes: type, of TensorProto.DataType; saturate and
// round_mode as in Cast.
OpResult EncodeSmall(const OpArgs& args, StageBuilder& builder) {
  const int64_t number = args.Int("type", 17);
  const SmallType* small = FindSmallType(number);
  if (small == nullptr || !ir::IsFloat(small->stored)) {
    return Malformed(fmt::format("attribute type is {}; it must be a float type of 8 or 4 bits", number));
  }
  const bool saturate = args.Int("saturate", 1) != 0;
  const std::string round_mode = args.String("round_mode", "up");
  if (round_mode != "up" && round_mode != "down" && round_mode != "nearest") {
    return Malformed(fmt::format("attribute round_mode is '{}'; it must be up, down or nearest", round_mode));
  }
  const SmallFloat* type = FindSmallFloat(*small);
  const ir::Buffer& x = args.inputs[0];
  return Buffers{builder.Compute("encode", DType::kUInt8, x->shape, [&](Indices i) {
    const Expr value = ReadAs(DType::kFloat32, x, Exprs(i.begin(), i.end()));
    return To(DType::kUInt8,
              type == nullptr ? EncodePower(saturate, round_mode, value) : EncodeFloat(*small, *type, saturate, value));
  })};
}

// Inputs and attributes as QuantizeLinear. Output: f32, x / scale + zero point, not rounded.
OpResult ScaleDown(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const Granularity granularity, ReadGranularity(args));
  const DType f32 = DType::kFloat32;
  return Buffers{builder.Compute("scale_down", f32, args.inputs[0]->shape, [&](Indices i) {
    const Expr scale = ReadAs(f32, args.inputs[1], granularity.Place(args.inputs[1], i));
    const Expr quotient = ReadAs(f32, args.inputs[0], Exprs(i.begin(), i.end())) / scale;
    if (!args.Has(2)) return quotient;
    return quotient + ReadAs(f32, args.inputs[2], granularity.Place(args.inputs[2], i));
  })};
}

constexpr OpDef kSmallFloatOps[] = {
    {"EncodeSmall", Checked<EncodeSmall, 1, Elements::kNumber>, kElementwise},
    {"ScaleDown", Checked<ScaleDown, 2, Elements::kNumber>, {.axes = {AxisForm::kAxis, 1}, .floats_differ = true}}};

}  // namespace

std::span<const OpDef> SmallFloatOps() { return kSmallFloatOps; }

}  // namespace hone::graph
