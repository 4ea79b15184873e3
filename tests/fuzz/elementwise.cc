// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/recipes.h"

namespace hone::fuzz {
namespace {

using graph::kAbsent;
using ir::DType;

constexpr int64_t kOnnxTypes[] = {1, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16};  // TensorProto.DataType

struct Named {
  std::string_view op;
  Effect effect = Effect::kRounds;
  std::string_view domain = "";
};

void Smooth(Grower& g) {
  constexpr Named kOps[] = {{"Abs", Effect::kMoves},
                            {"Neg", Effect::kMoves},
                            {"Relu", Effect::kMoves},
                            {"Identity", Effect::kMoves},
                            {"Dropout", Effect::kMoves},
                            {"Sigmoid"},
                            {"Tanh"},
                            {"Erf"},
                            {"Exp"},
                            {"Sin"},
                            {"Cos"},
                            {"Atan"},
                            {"Asinh"},
                            {"Sinh"},
                            {"Cosh"},
                            {"Softplus"},
                            {"Softsign"},
                            {"Mish"},
                            {"Gelu"},
                            {"HardSigmoid"},
                            {"HardSwish"},
                            {"LeakyRelu"},
                            {"Elu"},
                            {"Selu"},
                            {"Celu"},
                            {"Swish"},
                            {"Gelu", Effect::kRounds, "hone"},
                            {"Silu", Effect::kRounds, "hone"}};
  const Named& named = g.OneOf(kOps);
  g.Grow(named.op, {g.PickFloat()}, named.effect, {}, 1, named.domain);
}

void SmoothInteger(Grower& g) {
  constexpr std::string_view kOps[] = {"Abs", "Neg", "Relu", "Sign", "BitwiseNot", "Identity"};
  const ValueId x = g.Pick([&](ValueId id) { return ir::IsInt(g.TypeOf(id).dtype); });
  if (x != kAbsent) g.Grow(g.OneOf(kOps), {x}, Effect::kMoves);
}

void Jumping(Grower& g) {
  constexpr std::string_view kOps[] = {"Floor", "Ceil", "Round", "Sign", "IsNaN", "IsInf", "Shrink", "ThresholdedRelu"};
  g.Grow(g.OneOf(kOps), {g.PickExactFloat()}, Effect::kJumps);
}

// Returns |x| + least, on which the following operator is defined and not steep.
ValueId Above(Grower& g, ValueId x, double least) {
  const ValueId size = g.GrowOne("Abs", {x}, Effect::kMoves);
  if (size == kAbsent) return kAbsent;
  return g.GrowOne("Add", {size, g.Scalar(g.TypeOf(x).dtype, least)}, Effect::kRounds);
}

void OfPositive(Grower& g) {
  constexpr std::string_view kOps[] = {"Log", "Sqrt", "Reciprocal", "Acosh"};
  const std::string_view op = g.OneOf(kOps);
  const ValueId x = Above(g, g.PickFloat(), op == "Acosh" ? 1.5 : 0.5);
  if (x != kAbsent) g.Grow(op, {x}, Effect::kRounds);
}

void Pow(Grower& g) {
  constexpr double kExponents[] = {2, 0.5, 3, -1, 1, 1.7};
  const ValueId x = Above(g, g.PickFloat(), 0.5);
  if (x != kAbsent) g.Grow("Pow", {x, g.Scalar(g.TypeOf(x).dtype, g.OneOf(kExponents))}, Effect::kRounds);
}

void Divide(Grower& g) {
  const ValueId x = g.PickNumber();
  const DType dtype = g.TypeOf(x).dtype;
  ValueId divisor = g.Partner(dtype, g.ShapeOf(x));
  if (ir::IsFloat(dtype)) divisor = Above(g, divisor, 0.5);
  if (divisor != kAbsent) g.Grow("Div", {x, divisor}, Effect::kRounds);
}

void InsideOne(Grower& g) {
  constexpr std::string_view kOps[] = {"Acos", "Asin", "Atanh", "Tan"};
  const ValueId x = g.PickFloat();
  const DType dtype = g.TypeOf(x).dtype;
  const ValueId inside = g.GrowOne("Clip", {x, g.Scalar(dtype, -0.875), g.Scalar(dtype, 0.875)}, Effect::kMoves);
  if (inside != kAbsent) g.Grow(g.OneOf(kOps), {inside}, Effect::kRounds);
}

void Binary(Grower& g) {
  constexpr Named kOps[] = {
      {"Add"}, {"Add"}, {"Sub"}, {"Mul"}, {"Mul"}, {"Max", Effect::kMoves}, {"Min", Effect::kMoves}};
  const ValueId x = g.PickNumber();
  const Named& named = g.OneOf(kOps);
  const ValueId y = g.Partner(g.TypeOf(x).dtype, g.ShapeOf(x));
  if (g.OneIn(2)) {
    g.Grow(named.op, {x, y}, named.effect);
  } else {
    g.Grow(named.op, {y, x}, named.effect);
  }
}

void OfThree(Grower& g) {
  constexpr Named kOps[] = {{"Sum"}, {"Mean"}, {"Max", Effect::kMoves}, {"Min", Effect::kMoves}};
  const ValueId x = g.PickFloat();
  const DType dtype = g.TypeOf(x).dtype;
  const Named& named = g.OneOf(kOps);
  g.Grow(named.op, {x, g.Partner(dtype, g.ShapeOf(x)), g.Partner(dtype, g.ShapeOf(x))}, named.effect);
}

void Integers(Grower& g) {
  constexpr std::string_view kOps[] = {"Div", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift"};
  ValueId x = g.Pick([&](ValueId id) { return ir::IsInt(g.TypeOf(id).dtype); });
  if (x == kAbsent) x = g.Operand(DType::kUInt32, g.Shape(0, 3));
  const std::string_view op = g.OneOf(kOps);
  Attributes attributes;
  if (op == "BitShift") attributes["direction"] = std::string(g.OneIn(2) ? "LEFT" : "RIGHT");
  if (op == "Mod") attributes["fmod"] = g.Below(2);
  g.Grow(op, {x, g.Partner(g.TypeOf(x).dtype, g.ShapeOf(x))}, Effect::kJumps, attributes);
}

void Compare(Grower& g) {
  constexpr std::string_view kOps[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  const ValueId x = g.Pick([&](ValueId id) { return g.IsExact(id) && g.TypeOf(id).dtype != DType::kBool; });
  if (x != kAbsent) g.Grow(g.OneOf(kOps), {x, g.Partner(g.TypeOf(x).dtype, g.ShapeOf(x))}, Effect::kJumps);
}

ValueId Condition(Grower& g, const Ints& shape) { return g.Partner(DType::kBool, shape); }

void Logic(Grower& g) {
  constexpr std::string_view kOps[] = {"And", "Or", "Xor", "Equal"};
  ValueId x = g.Pick([&](ValueId id) { return g.TypeOf(id).dtype == DType::kBool; });
  if (x == kAbsent) x = g.Operand(DType::kBool, g.Shape(0, 3));
  if (g.OneIn(4)) x = g.GrowOne("Not", {x}, Effect::kJumps);
  if (x != kAbsent) g.Grow(g.OneOf(kOps), {x, Condition(g, g.ShapeOf(x))}, Effect::kJumps);
}

void Where(Grower& g) {
  const ValueId x = g.PickAny();
  const ValueId y = g.Partner(g.TypeOf(x).dtype, g.ShapeOf(x));
  const ValueId condition = Condition(g, g.ShapeOf(x));
  if (g.OneIn(2)) {
    g.Grow("Where", {condition, x, y}, Effect::kMoves);
  } else {
    g.Grow("Where", {condition, y, x}, Effect::kMoves);
  }
}

void Cast(Grower& g) { g.Grow("Cast", {g.PickAny()}, Effect::kMoves, {{"to", g.OneOf(kOnnxTypes)}}); }

void Clip(Grower& g) {
  const ValueId x = g.PickNumber();
  const DType dtype = g.TypeOf(x).dtype;
  const ValueId low = g.OneIn(4) ? kAbsent
                                 : g.Scalar(dtype, ir::IsSignedInt(dtype) ? -3
                                                   : ir::IsFloat(dtype)   ? -0.5
                                                                          : 1);
  const ValueId high = g.OneIn(4) ? kAbsent : g.Scalar(dtype, ir::IsFloat(dtype) ? 0.75 : 4);
  g.Grow("Clip", {x, low, high}, Effect::kMoves);
}

void PRelu(Grower& g) {
  const ValueId x = g.PickFloat();
  g.Grow("PRelu", {x, g.Partner(g.TypeOf(x).dtype, g.ShapeOf(x))}, Effect::kRounds);
}

void Remainder(Grower& g) {
  const ValueId x = g.PickExactFloat();
  g.Grow("Mod", {x, g.Constant(g.TypeOf(x).dtype, {}, 0.3, 0.9)}, Effect::kJumps, {{"fmod", int64_t{1}}});
}

void Quantize(Grower& g) {
  const DType dtype = g.OneIn(2) ? DType::kInt8 : DType::kUInt8;
  const ValueId scale = g.Scalar(DType::kFloat32, 0.03125);
  const ValueId zero = g.Scalar(dtype, static_cast<double>(g.Below(5)));
  const ValueId quantized = g.GrowOne("QuantizeLinear", {g.PickExactFloat(), scale, zero}, Effect::kJumps);
  if (quantized != kAbsent) g.Grow("DequantizeLinear", {quantized, scale, zero}, Effect::kRounds);
}

constexpr Recipe kElementwiseRecipes[] = {
    {8, Smooth},    {1, SmoothInteger}, {2, Jumping}, {3, OfPositive}, {2, Pow},       {3, Divide},
    {2, InsideOne}, {10, Binary},       {2, OfThree}, {2, Integers},   {3, Compare},   {2, Logic},
    {3, Where},     {4, Cast},          {2, Clip},    {1, PRelu},      {1, Remainder}, {2, Quantize}};

}  // namespace

std::span<const Recipe> ElementwiseRecipes() { return kElementwiseRecipes; }

}  // namespace hone::fuzz
