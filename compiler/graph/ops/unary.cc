// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::UnaryOp;

template <Intrinsic function>
OpResult ApplyFunction(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return Apply(function, std::move(x)); })};
}

// Erf of integers as well, truncated: from 6 on the result is 1, because f64 cannot represent the difference.
OpResult Erf(const OpArgs& args, StageBuilder& builder) {
  if (!ir::IsInt(args.inputs[0]->dtype)) return ApplyFunction<Intrinsic::kErf>(args, builder);
  return Buffers{MapInput(args, builder, [](Expr x) {
    return MakeSelect(x > Like(x, 5), Like(x, 1), MakeSelect(x < Like(x, -5), Like(x, -1), Like(x, 0)));
  })};
}

template <UnaryOp op>
OpResult Rounding(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return MakeUnary(op, std::move(x)); })};
}

OpResult Neg(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return Negate(std::move(x)); })};
}

OpResult AbsOp(const OpArgs& args, StageBuilder& builder) {
  if (ir::IsUnsignedInt(args.inputs[0]->dtype)) return Buffers{args.inputs[0]};
  return Buffers{MapInput(args, builder, [](Expr x) { return MakeUnary(UnaryOp::kAbs, std::move(x)); })};
}

OpResult Sign(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) {
    const DType dtype = x.type().dtype;
    const Expr zero = Number(dtype, 0);
    if (ir::IsUnsignedInt(dtype)) return MakeSelect(x > zero, Number(dtype, 1), zero);
    const Expr neither = ir::IsFloat(dtype) ? MakeSelect(Equals(x, zero), zero, x) : x;  // 0 for -0 too, or NaN
    return MakeSelect(x > zero, Number(dtype, 1), MakeSelect(x < zero, Number(dtype, -1), neither));
  })};
}

OpResult Reciprocal(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return Number(x.type().dtype, 1) / x; })};
}

OpResult LogicalNot(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return Not(std::move(x)); })};
}

OpResult BitwiseNot(const OpArgs& args, StageBuilder& builder) {
  return Buffers{
      MapInput(args, builder, [](Expr x) { return MakeBinary(ir::BinaryOp::kXor, x, MakeInt(x.type(), -1)); })};
}

OpResult Test(const OpArgs& args, StageBuilder& builder, const std::function<Expr(Expr)>& test) {
  const ir::Buffer& x = args.inputs[0];
  return Buffers{
      builder.Compute(args.node.op, DType::kBool, x->shape, [&](Indices i) { return test(ReadHere(x, i)); })};
}

OpResult IsNaN(const OpArgs& args, StageBuilder& builder) {
  return Test(args, builder, [](Expr x) { return Apply(Intrinsic::kIsNan, std::move(x)); });
}

OpResult IsInf(const OpArgs& args, StageBuilder& builder) {
  const bool negative = args.Int("detect_negative", 1) != 0;
  const bool positive = args.Int("detect_positive", 1) != 0;
  return Test(args, builder, [&](Expr x) {
    if (!negative && !positive) return ir::MakeBool(false);
    Expr infinite = Apply(Intrinsic::kIsInf, x);
    if (negative && positive) return infinite;
    const Expr zero = Number(x.type().dtype, 0);
    return infinite && (positive ? x > zero : x < zero);
  });
}

void Positive(const OpArgs&, size_t, double* low, double* high) {
  *low = 0.01;
  *high = 2.0;
}

void AboveOne(const OpArgs&, size_t, double* low, double* high) {
  *low = 1.0;
  *high = 3.0;
}

void InsideOne(const OpArgs&, size_t, double* low, double* high) {
  *low = -0.99;
  *high = 0.99;
}

template <Intrinsic function>
constexpr OpFn kFloatFunction = Checked<ApplyFunction<function>, 1, Elements::kFloat>;

constexpr OpDef kUnaryOps[] = {
    {"Abs", Checked<AbsOp, 1, Elements::kNumber>, kElementwise},
    {"Acos", kFloatFunction<Intrinsic::kAcos>, kElementwise, InsideOne},
    {"Acosh", kFloatFunction<Intrinsic::kAcosh>, kElementwise, AboveOne},
    {"Asin", kFloatFunction<Intrinsic::kAsin>, kElementwise, InsideOne},
    {"Asinh", kFloatFunction<Intrinsic::kAsinh>, kElementwise},
    {"Atan", kFloatFunction<Intrinsic::kAtan>, kElementwise},
    {"Atanh", kFloatFunction<Intrinsic::kAtanh>, kElementwise, InsideOne},
    {"BitwiseNot", Checked<BitwiseNot, 1, Elements::kInteger>, kElementwise},
    {"Ceil", Checked<Rounding<UnaryOp::kCeil>, 1, Elements::kFloat>, kElementwise},
    {"Cos", kFloatFunction<Intrinsic::kCos>, kElementwise},
    {"Cosh", kFloatFunction<Intrinsic::kCosh>, kElementwise},
    {"Erf", Checked<Erf, 1, Elements::kNumber>, kElementwise},
    {"Exp", kFloatFunction<Intrinsic::kExp>, kElementwise},
    {"Floor", Checked<Rounding<UnaryOp::kFloor>, 1, Elements::kFloat>, kElementwise},
    {"IsInf", Checked<IsInf, 1, Elements::kFloat>, kElementwise},
    {"IsNaN", Checked<IsNaN, 1, Elements::kFloat>, kElementwise},
    {"Log", kFloatFunction<Intrinsic::kLog>, kElementwise, Positive},
    {"Neg", Checked<Neg, 1, Elements::kNumber>, kElementwise},
    {"Not", Checked<LogicalNot, 1, Elements::kBool>, kElementwise},
    {"Reciprocal", Checked<Reciprocal, 1, Elements::kFloat>, kElementwise, Positive},
    {"Round", Checked<Rounding<UnaryOp::kRound>, 1, Elements::kFloat>, kElementwise},
    {"Sigmoid", kFloatFunction<Intrinsic::kSigmoid>, kElementwise},
    {"Sign", Checked<Sign, 1, Elements::kNumber>, kElementwise},
    {"Sin", kFloatFunction<Intrinsic::kSin>, kElementwise},
    {"Sinh", kFloatFunction<Intrinsic::kSinh>, kElementwise},
    {"Sqrt", Checked<Rounding<UnaryOp::kSqrt>, 1, Elements::kFloat>, kElementwise, Positive},
    {"Tan", kFloatFunction<Intrinsic::kTan>, kElementwise},
    {"Tanh", kFloatFunction<Intrinsic::kTanh>, kElementwise},
};

}  // namespace

std::span<const OpDef> UnaryOps() { return kUnaryOps; }

}  // namespace hone::graph
