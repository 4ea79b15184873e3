// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/activation.h"

#include <cmath>

#include "compiler/graph/ops/families.h"
#include "compiler/ir/numeric.h"
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

Expr EluOf(const Expr& x, double alpha) { return MakeSelect(x < Like(x, 0), Like(x, alpha) * ExpMinusOne(x), x); }

Expr HardSigmoidOf(const Expr& x, double alpha, double beta) {
  return Max(Min(x * Like(x, alpha) + Like(x, beta), Like(x, 1)), Like(x, 0));
}

Expr SoftplusOf(const Expr& x) { return Max(x, Like(x, 0)) + LogOfOnePlus(Exp(Negate(Abs(x)))); }

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
    return Like(x, gamma) * MakeSelect(x > Like(x, 0), x, Like(x, alpha) * ExpMinusOne(x));
  })};
}

OpResult Celu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.0);
  if (alpha == 0) return Malformed("attribute alpha is 0");
  return Buffers{MapInput(args, builder, [&](Expr x) {
    const Expr zero = Like(x, 0);
    return Max(x, zero) + Min(Like(x, alpha) * ExpMinusOne(x / Like(x, alpha)), zero);
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

// x * tanh(softplus(x)) = x * n / (n + 2) with n = e^x * (e^x + 2), where no difference cancels. From 20 on the
// quotient is 1 in f64 too; the limit keeps n finite.
OpResult Mish(const OpArgs& args, StageBuilder& builder) {
  return Buffers{MapInput(args, builder, [](Expr x) {
    const Expr power = Exp(Min(x, Like(x, 20))), two = Like(x, 2), n = power * (power + two);
    return x * (n / (n + two));
  })};
}

OpResult ThresholdedRelu(const OpArgs& args, StageBuilder& builder) {
  const double alpha = args.Float("alpha", 1.0);
  return Buffers{MapInput(args, builder, [&](Expr x) { return ThresholdedReluOf(x, alpha); })};
}

// Exact comparisons and sums of 64-bit integers with a number that may be a fraction.
class LongInteger {
 public:
  explicit LongInteger(Expr x)
      : x_(std::move(x)),
        dtype_(x_.type().dtype),
        end_(ir::IsUnsignedInt(dtype_) ? 0x1p64 : 0x1p63),
        first_(ir::IsUnsignedInt(dtype_) ? 0 : -0x1p63) {}

  // x < number and x > number; false for NaN.
  Expr IsBelow(double number) const {
    const double bound = std::ceil(number);
    if (!(bound > first_)) return ir::MakeBool(false);
    return bound >= end_ ? ir::MakeBool(true) : x_ < Whole(bound);
  }
  Expr IsAbove(double number) const {
    const double bound = std::floor(number);
    if (!(bound < end_)) return ir::MakeBool(false);
    return bound < first_ ? ir::MakeBool(true) : x_ > Whole(bound);
  }
  // x + number, truncated towards 0 and saturated. |number| < 2^63.
  Expr Plus(double number) const {
    const Expr floor = PlusWhole(std::floor(number));
    if (number == std::floor(number) || ir::IsUnsignedInt(dtype_)) return floor;
    return MakeSelect(floor < Limit(0), PlusWhole(std::ceil(number)), floor);
  }

 private:
  Expr Limit(int64_t value) const { return ir::MakeInt({dtype_, 1}, value); }
  Expr PlusWhole(double whole) const {  // saturated
    const Expr amount = Whole(std::fabs(whole));
    return whole < 0 ? Max(x_, Limit(ir::LowestInt(dtype_)) + amount) - amount
                     : Min(x_, Limit(ir::HighestInt(dtype_)) - amount) + amount;
  }
  Expr Whole(double value) const {
    return Limit(value < 0x1p63 ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value)));
  }

  Expr x_;
  DType dtype_;
  double end_, first_;  // the type holds the integers from first_ up to, but not including, end_
};

OpResult Shrink(const OpArgs& args, StageBuilder& builder) {
  const double bias = args.Float("bias", 0.0);
  const double threshold = args.Float("lambd", 0.5);
  const DType dtype = args.inputs[0]->dtype;
  if (ir::IsInt(dtype) && ir::SizeOf(dtype) == 8) {
    if (!(std::fabs(bias) < 0x1p63)) return Malformed(fmt::format("attribute bias is {}; it must be below 2^63", bias));
    return Buffers{MapInput(args, builder, [&](Expr value) {
      const LongInteger x(value);
      return MakeSelect(x.IsBelow(-threshold), x.Plus(bias),
                        MakeSelect(x.IsAbove(threshold), x.Plus(-bias), Like(value, 0)));
    })};
  }
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
    // (1 + tanh(z)) / 2 = sigmoid(2 z), which keeps its digits for negative z.
    Expr inner = (x + x * x * x * Like(x, 0.044715)) * Like(x, 2 * std::sqrt(M_2_PI));
    return x * Apply(Intrinsic::kSigmoid, inner);
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
