// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/recurrent_cell.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "compiler/graph/ops/activation.h"
#include "fmt/format.h"

namespace hone::graph {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;
using ir::Reduction;

namespace {

// The values of activation_alpha or activation_beta that no activation has taken yet.
class Coefficients {
 public:
  Coefficients(const OpArgs& args, std::string_view name)
      : list_(FindAttribute<std::vector<double>>(args, name, "a list of floats")) {}
  // Rounded to f32, as ONNX stores float attributes.
  double Next(double fallback) {
    return static_cast<float>(list_ != nullptr && next_ < list_->size() ? (*list_)[next_++] : fallback);
  }

 private:
  const std::vector<double>* list_;
  size_t next_ = 0;
};

// Takes alpha and beta only for functions that have them, which keeps the order of ONNX's lists. Names are compared
// without case, because exporters differ in it.
absl::StatusOr<Activation> MakeActivation(const std::string& given, Coefficients& alphas, Coefficients& betas) {
  const std::string name = absl::AsciiStrToLower(given);
  if (name == "sigmoid") return Activation([](Expr x) { return Apply(Intrinsic::kSigmoid, x); });
  if (name == "tanh") return Activation([](Expr x) { return Apply(Intrinsic::kTanh, x); });
  if (name == "relu") return Activation(ReluOf);
  if (name == "softsign") return Activation(SoftsignOf);
  if (name == "softplus") return Activation(SoftplusOf);
  if (name == "leakyrelu" || name == "thresholdedrelu" || name == "elu") {
    const double a = alphas.Next(name == "leakyrelu" ? 0.01 : 1.0);
    if (name == "leakyrelu") return Activation([a](Expr x) { return LeakyReluOf(x, a); });
    if (name == "thresholdedrelu") return Activation([a](Expr x) { return ThresholdedReluOf(x, a); });
    return Activation([a](Expr x) { return EluOf(x, a); });
  }
  if (name == "affine" || name == "scaledtanh" || name == "hardsigmoid") {
    const double a = alphas.Next(name == "hardsigmoid" ? 0.2 : 1.0);
    const double b = betas.Next(name == "hardsigmoid" ? 0.5 : name == "affine" ? 0.0 : 1.0);
    if (name == "affine") return Activation([a, b](Expr x) { return x * Like(x, a) + Like(x, b); });
    if (name == "hardsigmoid") return Activation([a, b](Expr x) { return HardSigmoidOf(x, a, b); });
    return Activation([a, b](Expr x) { return Like(x, a) * Apply(Intrinsic::kTanh, x * Like(x, b)); });
  }
  return Unsupported(fmt::format("the activation '{}' is not supported", given));
}

std::vector<std::string> DefaultActivations(CellKind kind) {
  switch (kind) {
    case CellKind::kRnn:
      return {"Tanh"};
    case CellKind::kGru:
      return {"Sigmoid", "Tanh"};
    case CellKind::kLstm:
      return {"Sigmoid", "Tanh", "Tanh"};
  }
  return {};
}

}  // namespace

absl::StatusOr<RecurrentCell> ReadCell(const OpArgs& args, CellKind kind, int64_t direction, int64_t directions) {
  RecurrentCell cell{.kind = kind, .activations = {}};
  cell.clip = args.Float("clip", 0);
  cell.linear_before_reset = args.Int("linear_before_reset", 0) != 0;
  cell.input_forget = args.Int("input_forget", 0) != 0;
  const std::vector<std::string> defaults = DefaultActivations(kind);
  std::vector<std::string> names;
  for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (const auto* given = FindAttribute<std::vector<std::string>>(args, "activations", "a list of strings")) {
    names = *given;
  }
  const size_t count = defaults.size();
  if (names.size() != count * static_cast<size_t>(directions)) {
    return Malformed(
        fmt::format("attribute activations has {} names; {} per direction are needed", names.size(), count));
  }
  Coefficients alphas(args, "activation_alpha"), betas(args, "activation_beta");
  for (size_t k = 0; k < names.size(); ++k) {
    HONE_ASSIGN_OR_RETURN(Activation activation, MakeActivation(names[k], alphas, betas));
    if (static_cast<int64_t>(k / count) == direction) cell.activations.push_back(std::move(activation));
  }
  return cell;
}

namespace {

// The product R h for rows [first, first + rows); null if h is zero.
Buffer EmitRecurrent(StageBuilder& builder, const StepInputs& in, const State& hidden, int64_t first, int64_t rows) {
  if (!hidden) return nullptr;
  return builder.Reduce("recur", in.dtype, {in.batch, rows}, {in.units}, Reduction::kSum, [&](Indices i, Indices r) {
    return hidden(i[0], r[0]) * in.recurrent_weight(first == 0 ? i[1] : i[1] + Expr(first), r[0]);
  });
}

// The expressions for one element of the new state.
class GateElement {
 public:
  GateElement(const RecurrentCell& cell, const StepInputs& in, const Buffer& recurrent, Indices i)
      : cell_(cell), in_(in), recurrent_(recurrent), batch_(i[0]), unit_(i[1]) {}

  Expr Row(int64_t gate) const { return gate == 0 ? unit_ : Expr(gate * in_.units) + unit_; }
  Expr Input(int64_t gate) const {
    Expr value = in_.input(batch_, Row(gate));
    return in_.input_bias ? value + in_.input_bias(Row(gate)) : value;
  }
  // The gate's row of R h, with its bias. The buffer starts at gate `first`.
  Expr Recurrent(int64_t gate, int64_t first = 0) const {
    Expr value = recurrent_ == nullptr ? Number(in_.dtype, 0)
                                       : MakeLoad(recurrent_, {batch_, first == gate ? unit_ : Row(gate - first)});
    return in_.recurrent_bias ? value + in_.recurrent_bias(Row(gate)) : value;
  }
  Expr Activate(size_t activation, Expr x) const {
    if (cell_.clip > 0) x = Min(Max(x, Like(x, -cell_.clip)), Like(x, cell_.clip));
    return cell_.activations[activation](std::move(x));
  }
  Expr Gate(int64_t gate, size_t activation) const { return Activate(activation, Input(gate) + Recurrent(gate)); }
  Expr Hidden() const { return in_.hidden ? in_.hidden(batch_, unit_) : Number(in_.dtype, 0); }
  Expr Carry() const { return in_.carry ? in_.carry(batch_, unit_) : Number(in_.dtype, 0); }
  Expr Peephole(int64_t gate, const Expr& carry) const { return in_.peephole(gate, unit_) * carry; }

 private:
  const RecurrentCell& cell_;
  const StepInputs& in_;
  const Buffer& recurrent_;
  const Expr batch_, unit_;
};

StepState EmitRnn(StageBuilder& builder, const RecurrentCell& cell, const StepInputs& in) {
  Buffer recurrent = EmitRecurrent(builder, in, in.hidden, 0, in.units);
  Buffer hidden = builder.Compute("hidden", in.dtype, {in.batch, in.units},
                                  [&](Indices i) { return GateElement(cell, in, recurrent, i).Gate(0, 0); });
  return {hidden, nullptr};
}

// Gates: update z, reset r, candidate h.
StepState EmitGru(StageBuilder& builder, const RecurrentCell& cell, const StepInputs& in) {
  const Shape shape = {in.batch, in.units};
  const int64_t gates = cell.linear_before_reset ? 3 : 2;
  Buffer recurrent = EmitRecurrent(builder, in, in.hidden, 0, gates * in.units);
  Buffer candidate_recurrent = recurrent;
  if (!cell.linear_before_reset && in.hidden) {
    Buffer reset = builder.Compute("reset", in.dtype, shape, [&](Indices i) {
      const GateElement element(cell, in, recurrent, i);
      return element.Gate(1, 0) * element.Hidden();
    });
    State kept = [reset](const Expr& batch, const Expr& unit) { return MakeLoad(reset, {batch, unit}); };
    candidate_recurrent = EmitRecurrent(builder, in, kept, 2 * in.units, in.units);
  }
  Buffer hidden = builder.Compute("hidden", in.dtype, shape, [&](Indices i) {
    const GateElement element(cell, in, recurrent, i);
    const GateElement candidate(cell, in, candidate_recurrent, i);
    Expr update = element.Gate(0, 0);
    Expr past = cell.linear_before_reset ? element.Gate(1, 0) * candidate.Recurrent(2) : candidate.Recurrent(2, 2);
    Expr value = candidate.Activate(1, candidate.Input(2) + past);
    return (Like(update, 1) - update) * value + update * element.Hidden();
  });
  return {hidden, nullptr};
}

// Gates: input i, output o, forget f, cell c.
StepState EmitLstm(StageBuilder& builder, const RecurrentCell& cell, const StepInputs& in) {
  const Shape shape = {in.batch, in.units};
  Buffer recurrent = EmitRecurrent(builder, in, in.hidden, 0, 4 * in.units);
  Buffer carry = builder.Compute("carry", in.dtype, shape, [&](Indices i) {
    const GateElement element(cell, in, recurrent, i);
    auto gate = [&](int64_t index, int64_t peephole) {
      Expr sum = element.Input(index) + element.Recurrent(index);
      if (in.peephole) sum = sum + element.Peephole(peephole, element.Carry());
      return element.Activate(0, sum);
    };
    Expr input = gate(0, 0);
    Expr forget = cell.input_forget ? Like(input, 1) - input : gate(2, 2);
    return forget * element.Carry() + input * element.Gate(3, 1);
  });
  Buffer hidden = builder.Compute("hidden", in.dtype, shape, [&](Indices i) {
    const GateElement element(cell, in, recurrent, i);
    Expr next = MakeLoad(carry, {i[0], i[1]});
    Expr sum = element.Input(1) + element.Recurrent(1);
    if (in.peephole) sum = sum + element.Peephole(1, next);
    // The clip limits the inputs of gates, not the state.
    return element.Activate(0, sum) * cell.activations[2](next);
  });
  return {hidden, carry};
}

}  // namespace

StepState EmitStep(StageBuilder& builder, const RecurrentCell& cell, const StepInputs& inputs) {
  switch (cell.kind) {
    case CellKind::kRnn:
      return EmitRnn(builder, cell, inputs);
    case CellKind::kGru:
      return EmitGru(builder, cell, inputs);
    case CellKind::kLstm:
      return EmitLstm(builder, cell, inputs);
  }
  return {};
}

}  // namespace hone::graph
