// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/activation.h"

#include <cmath>

#include "compiler/graph/ops/families.h"
#include "fmt/format.h"

namespace hone::graph {

using ir::DType;
using ir::Expr;
using ir::Intrinsic;

namespace {

Expr Exp(Expr x) { return Apply(Intrinsic::kExp, std::move(x)); }
Expr Abs(Expr x) { return MakeUnary(ir::UnaryOp::kAbs, std::move(x)); }

}  // namespace

Expr ReluOf(const Expr& x) { return Max(x, Like(x, 0)); }

Expr LeakyReluOf(const Expr& x, double alpha) { return MakeSelect(x < Like(x, 0), x * Like(x, alpha), x); }

Expr ThresholdedReluOf(const Expr& x, double alpha) { return MakeSelect(x > Like(x, alpha), x, Like(x, 0)); }

Expr EluOf(const Expr& x, double alpha) {
  return MakeSelect(x < Like(x, 0), Like(x, alpha) * (Exp(x) - Like(x, 1)), x);
}

Expr HardSigmoidOf(const Expr& x, double alpha, double beta) {
  return Max(Min(x * Like(x, alpha) + Like(x, beta), Like(x, 1)), Like(x, 0));
}

Expr SoftplusOf(const Expr& x) { return Max(x, Like(x, 0)) + Apply(Intrinsic::kLog, Exp(Negate(Abs(x))) + Like(x, 1)); }

Expr SoftsignOf(const Expr& x) { return x / (Abs(x) + Like(x, 1)); }

namespace {

OpResult Relu(const OpArgs& args, StageBuilder& builder) {
  if (ir::IsUnsignedInt(args.inputs[0]->dtype)) return Buffers{args.inputs[0]};
  return Buffers{MapInput(args, builder, [](Expr x) { return ReluOf(x); })};
}

OpResult LeakyRelu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 0.01);
  return Buffers{MapInput(args, builder, [&](Expr x) { return LeakyReluOf(x, alpha); })};
}

OpResult PRelu(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  const ir::Buffer& x = args.inputs[0];
  const ir::Buffer& slope = args.inputs[1];
  if (!BroadcastsTo(slope->shape, x->shape)) return Malformed("the slope (input 1) does not broadcast to input 0");
  return Buffers{Map(builder, "prelu", x->dtype, x->shape, [&](Indices i) {
    Expr value = ReadBroadcast(x, i);
    return MakeSelect(value < Like(value, 0), value * ReadBroadcast(slope, i), value);
  })};
}

OpResult Elu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.0);
  return Buffers{MapInput(args, builder, [&](Expr x) { return EluOf(x, alpha); })};
}

OpResult Selu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.67326319217681884765625);
  const double gamma = args.Float("gamma", 1.05070102214813232421875);
  return Buffers{MapInput(args, builder, [&](Expr x) {
    return Like(x, gamma) * MakeSelect(x > Like(x, 0), x, Like(x, alpha) * (Exp(x) - Like(x, 1)));
  })};
}

OpResult Celu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.0);
  if (alpha == 0) return Malformed("attribute alpha is 0");
  return Buffers{MapInput(args, builder, [&](Expr x) {
    const Expr zero = Like(x, 0);
    return Max(x, zero) + Min(Like(x, alpha) * (Exp(x / Like(x, alpha)) - Like(x, 1)), zero);
  })};
}

OpResult HardSigmoid(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 0.2);
  const double beta = args.Float("beta", 0.5);
  return Buffers{MapInput(args, builder, [&](Expr x) { return HardSigmoidOf(x, alpha, beta); })};
}

OpResult HardSwish(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return x * HardSigmoidOf(x, 1.0 / 6, 0.5); })};
}

OpResult Softplus(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return SoftplusOf(x); })};
}

OpResult Softsign(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return SoftsignOf(x); })};
}

OpResult Mish(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) { return x * Apply(Intrinsic::kTanh, SoftplusOf(x)); })};
}

OpResult ThresholdedRelu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.0);
  return Buffers{MapInput(args, builder, [&](Expr x) { return ThresholdedReluOf(x, alpha); })};
}

OpResult Shrink(const OpArgs& args, StageBuilder& builder) {
  const double bias = args.Float("bias", 0.0);
  const double threshold = args.Float("lambd", 0.5);
  const DType dtype = args.inputs[0]->dtype;
  // The attributes are floats for every element type: integers are compared and shifted as floats, as in ONNX's
  // reference implementation.
  const DType work = ir::SizeOf(dtype) < 4 ? DType::kFloat32 : DType::kFloat64;
  return Buffers{MapInput(args, builder, [&](Expr value) {
    Expr x = ir::IsInt(dtype) ? To(work, value) : value;
    return MakeSelect(x < Like(x, -threshold), x + Like(x, bias),
                      MakeSelect(x > Like(x, threshold), x - Like(x, bias), Like(x, 0)));
  })};
}

OpResult Gelu(const OpArgs& args, StageBuilder& builder) {
  const std::string approximate = args.String("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    return Malformed(fmt::format("attribute approximate is '{}'; it must be none or tanh", approximate));
  }
  return Buffers{MapInput(args, builder, [&](Expr x) {
    if (approximate == "none") {
      return x * Like(x, 0.5) * (Apply(Intrinsic::kErf, x * Like(x, M_SQRT1_2)) + Like(x, 1));
    }
    Expr inner = (x + x * x * x * Like(x, 0.044715)) * Like(x, std::sqrt(M_2_PI));
    return x * Like(x, 0.5) * (Apply(Intrinsic::kTanh, inner) + Like(x, 1));
  })};
}

OpResult Silu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.0);
  return Buffers{MapInput(
      args, builder, [&](Expr x) { return x * Apply(Intrinsic::kSigmoid, alpha == 1.0 ? x : x * Like(x, alpha)); })};
}

constexpr OpDef kActivationOps[] = {
    {"Celu", Checked<Celu, 1, Elements::kFloat>, kElementwise},
    {"Elu", Checked<Elu, 1, Elements::kFloat>, kElementwise},
    {"Gelu", Checked<Gelu, 1, Elements::kFloat>, kElementwise},
    {"HardSigmoid", Checked<HardSigmoid, 1, Elements::kFloat>, kElementwise},
    {"HardSwish", Checked<HardSwish, 1, Elements::kFloat>, kElementwise},
    {"LeakyRelu", Checked<LeakyRelu, 1, Elements::kFloat>, kElementwise},
    {"Mish", Checked<Mish, 1, Elements::kFloat>, kElementwise},
    {"PRelu", Checked<PRelu, 2, Elements::kNumber>, {.axes = {AxisForm::kBroadcast}, .floats_differ = true}},
    {"Relu", Checked<Relu, 1, Elements::kNumber>, kElementwise},
    {"Selu", Checked<Selu, 1, Elements::kFloat>, kElementwise},
    {"Shrink", Checked<Shrink, 1, Elements::kNumber>, kElementwise},
    {"Softplus", Checked<Softplus, 1, Elements::kFloat>, kElementwise},
    {"Softsign", Checked<Softsign, 1, Elements::kFloat>, kElementwise},
    {"Swish", Checked<Silu, 1, Elements::kFloat>, kElementwise},
    {"ThresholdedRelu", Checked<ThresholdedRelu, 1, Elements::kFloat>, kElementwise},
};

// Operators of domain "hone": passes/recognize.h replaces the chains of nodes that models write for them.
constexpr OpDef kHoneActivationOps[] = {
    {"Gelu", Checked<Gelu, 1, Elements::kFloat>, kElementwise},
    {"Silu", Checked<Silu, 1, Elements::kFloat>, kElementwise},
};

}  // namespace

std::span<const OpDef> ActivationOps() { return kActivationOps; }
std::span<const OpDef> HoneActivationOps() { return kHoneActivationOps; }

}  // namespace hone::graph
