// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/view.h"

namespace hone::graph {
namespace {

// A match: the value to replace and the operator that computes it.
struct Found {
  ValueId value;
  std::string op, domain;
  std::vector<ValueId> inputs;
  std::map<std::string, Attribute> attributes;
};
using Match = std::optional<Found>;

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph), view_(graph) {}

  Match Find(const Node& node) const {
    if (Is(node, "Erf")) return ErfGelu(node);
    if (Is(node, "Tanh")) {
      const Match gelu = TanhGelu(node);
      return gelu ? gelu : Mish(node);
    }
    if (Is(node, "Sigmoid")) return Silu(node);
    if (Is(node, "HardSigmoid")) return HardSwish(node);
    if (Is(node, "Clip")) return ClippedHardSwish(node);
    if (Is(node, "ReduceMean")) {
      const Match layer_norm = LayerNorm(node);
      return layer_norm ? layer_norm : RmsNorm(node);
    }
    return std::nullopt;
  }

 private:
  // Returns the node that reads only `id` and a constant equal to `number`, if it is an `op` and the only reader of id.
  const Node* Next(ValueId id, std::string_view op, double number) const {
    const Node* next = view_.OnlyConsumer(id);
    if (next == nullptr || !Is(*next, op)) return nullptr;
    const ValueId other = UseDefView::Other(*next, id);
    return other != kAbsent && view_.IsNumber(other, number) ? next : nullptr;
  }

  const TensorType& TypeOf(ValueId id) const { return graph_.values[id].type; }

  // Returns x if id is x * number (or x / (1 / number)); else kAbsent.
  ValueId Unscale(ValueId id, double number) const {
    if (const Node* mul = view_.Producer(id, "Mul")) {
      for (size_t i = 0; i < 2; ++i) {
        if (view_.IsNumber(mul->inputs[i], number)) return mul->inputs[1 - i];
      }
    }
    const Node* div = view_.Producer(id, "Div");
    return div != nullptr && view_.IsNumber(div->inputs[1], 1 / number) ? div->inputs[0] : kAbsent;
  }

  // Given 1 + f(x), returns the value of x * 0.5 * (1 + f(x)), with the factors in any order; kAbsent if there is none.
  ValueId HalfTimes(ValueId one_plus, ValueId x) const {
    const Node* product = view_.OnlyConsumer(one_plus);
    if (product == nullptr || !Is(*product, "Mul")) return kAbsent;
    const ValueId other = UseDefView::Other(*product, one_plus);
    if (other == kAbsent) return kAbsent;
    if (Unscale(other, 0.5) == x) return product->outputs[0];
    if (other == x) {
      const Node* half = Next(product->outputs[0], "Mul", 0.5);
      return half == nullptr ? kAbsent : half->outputs[0];
    }
    if (!view_.IsNumber(other, 0.5)) return kAbsent;
    const Node* last = view_.OnlyConsumer(product->outputs[0]);
    const bool with_x = last != nullptr && Is(*last, "Mul") && UseDefView::Other(*last, product->outputs[0]) == x;
    return with_x ? last->outputs[0] : kAbsent;
  }

  Match Unary(ValueId x, ValueId result, std::string op, std::string domain,
              std::map<std::string, Attribute> attributes = {}) const {
    if (x == kAbsent || result == kAbsent || TypeOf(x) != TypeOf(result)) return std::nullopt;
    if (!ir::IsFloat(TypeOf(x).dtype)) return std::nullopt;
    return Found{result, std::move(op), std::move(domain), {x}, std::move(attributes)};
  }

  // x * 0.5 * (1 + erf(x / sqrt(2)))
  Match ErfGelu(const Node& erf) const {
    const ValueId x = Unscale(erf.inputs[0], M_SQRT1_2);
    const Node* plus = Next(erf.outputs[0], "Add", 1);
    if (x == kAbsent || plus == nullptr) return std::nullopt;
    return Unary(x, HalfTimes(plus->outputs[0], x), "Gelu", "hone");
  }

  // x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
  Match TanhGelu(const Node& tanh) const {
    const ValueId sum = Unscale(tanh.inputs[0], std::sqrt(M_2_PI));
    const Node* add = view_.Producer(sum, "Add");
    const Node* plus = Next(tanh.outputs[0], "Add", 1);
    if (add == nullptr || plus == nullptr) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId x = add->inputs[i], cube = Unscale(add->inputs[1 - i], 0.044715);
      const Node* pow = view_.Producer(cube, "Pow");
      if (pow == nullptr || pow->inputs[0] != x || !view_.IsNumber(pow->inputs[1], 3)) continue;
      return Unary(x, HalfTimes(plus->outputs[0], x), "Gelu", "hone", {{"approximate", std::string("tanh")}});
    }
    return std::nullopt;
  }

  // Returns the product of `factor` and x if it is the only reader of factor.
  ValueId TimesX(ValueId factor, ValueId x) const {
    const Node* mul = view_.OnlyConsumer(factor);
    return mul != nullptr && Is(*mul, "Mul") && UseDefView::Other(*mul, factor) == x ? mul->outputs[0] : kAbsent;
  }

  Match Silu(const Node& sigmoid) const {
    const ValueId x = sigmoid.inputs[0];
    return Unary(x, TimesX(sigmoid.outputs[0], x), "Silu", "hone");
  }

  // x * tanh(softplus(x))
  Match Mish(const Node& tanh) const {
    const Node* softplus = view_.Producer(tanh.inputs[0], "Softplus");
    if (softplus == nullptr) return std::nullopt;
    const ValueId x = softplus->inputs[0];
    return Unary(x, TimesX(tanh.outputs[0], x), "Mish", "");
  }

  Match HardSwish(const Node& sigmoid) const {
    const bool fits = std::fabs(FloatAttribute(sigmoid, "alpha", 0.2) - 1.0 / 6) < 1e-5 &&
                      FloatAttribute(sigmoid, "beta", 0.5) == 0.5;
    const ValueId x = sigmoid.inputs[0];
    return fits ? Unary(x, TimesX(sigmoid.outputs[0], x), "HardSwish", "") : std::nullopt;
  }

  // x * (clip(x + 3, 0, 6) / 6), or (x * clip(x + 3, 0, 6)) / 6
  Match ClippedHardSwish(const Node& clip) const {
    const bool zero_to_six =
        clip.inputs.size() == 3 && view_.IsNumber(clip.inputs[1], 0) && view_.IsNumber(clip.inputs[2], 6);
    const Node* add = view_.Producer(clip.inputs[0], "Add");
    if (!zero_to_six || add == nullptr) return std::nullopt;
    const ValueId x = view_.IsNumber(add->inputs[1], 3) ? add->inputs[0] : add->inputs[1];
    if (!view_.IsNumber(UseDefView::Other(*add, x), 3)) return std::nullopt;
    if (const Node* sixth = Sixth(clip.outputs[0])) return Unary(x, TimesX(sixth->outputs[0], x), "HardSwish", "");
    const Node* sixth = Sixth(TimesX(clip.outputs[0], x));
    return sixth == nullptr ? std::nullopt : Unary(x, sixth->outputs[0], "HardSwish", "");
  }

  // Returns the only reader of id, if it divides it by 6.
  const Node* Sixth(ValueId id) const {
    const Node* next = id == kAbsent ? nullptr : view_.OnlyConsumer(id);
    if (next == nullptr || Unscale(next->outputs[0], 1.0 / 6) != id) return nullptr;
    return next;
  }

  // Returns the first axis of a mean over all axes from there to the last, with dimensions kept; nullopt for any other
  // mean.
  std::optional<int64_t> TrailingAxis(const Node& mean) const {
    const int64_t rank = static_cast<int64_t>(TypeOf(mean.inputs[0]).shape.size());
    std::vector<int64_t> axes = IntsAttribute(mean, "axes");
    if (HasInput(mean, 1)) {
      const Value& value = graph_.values[mean.inputs[1]];
      if (value.data == nullptr || value.type.dtype != ir::DType::kInt64) return std::nullopt;
      axes = ReadConstant<int64_t>(value);
    }
    if (axes.empty() || IntAttribute(mean, "keepdims", 1) != 1) return std::nullopt;
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::sort(axes.begin(), axes.end());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != rank - static_cast<int64_t>(axes.size() - i)) return std::nullopt;
    }
    return axes[0];
  }

  // Given the mean of squares, returns x / sqrt(mean(x^2) + epsilon).
  struct Normalized {
    ValueId centered, result;
    double epsilon;
  };
  std::optional<Normalized> DivideByRoot(const Node& mean_of_squares) const {
    const ValueId squares = mean_of_squares.inputs[0];
    ValueId centered = kAbsent;
    if (const Node* pow = view_.Producer(squares, "Pow"); pow != nullptr && view_.IsNumber(pow->inputs[1], 2)) {
      centered = pow->inputs[0];
    }
    if (const Node* mul = view_.Producer(squares, "Mul"); mul != nullptr && mul->inputs[0] == mul->inputs[1]) {
      centered = mul->inputs[0];
    }
    const Node* add = view_.OnlyConsumer(mean_of_squares.outputs[0]);
    if (centered == kAbsent || add == nullptr || !Is(*add, "Add")) return std::nullopt;
    const ValueId epsilon_id = UseDefView::Other(*add, mean_of_squares.outputs[0]);
    const std::optional<double> epsilon =
        epsilon_id == kAbsent ? std::nullopt : UniformValue(graph_.values[epsilon_id]);
    const Node* root = view_.OnlyConsumer(add->outputs[0]);
    if (!epsilon || root == nullptr || !Is(*root, "Sqrt")) return std::nullopt;
    const Node* divide = view_.OnlyConsumer(root->outputs[0]);
    if (divide == nullptr) return std::nullopt;
    if (Is(*divide, "Div") && divide->inputs[0] == centered && divide->inputs[1] == root->outputs[0]) {
      return Normalized{centered, divide->outputs[0], *epsilon};
    }
    // x * (1 / root)
    const bool inverse = Is(*divide, "Reciprocal") || (Is(*divide, "Div") && view_.IsNumber(divide->inputs[0], 1) &&
                                                       divide->inputs[1] == root->outputs[0]);
    const ValueId product = inverse ? TimesX(divide->outputs[0], centered) : kAbsent;
    return product == kAbsent ? std::nullopt : std::optional(Normalized{centered, product, *epsilon});
  }

  // Returns the constant factor (or summand) that the only reader of id applies, if it has the shape of the row.
  ValueId RowConstant(ValueId id, std::string_view op, const ir::Shape& row, ValueId* result) const {
    const Node* next = view_.OnlyConsumer(id);
    const ValueId other = next != nullptr && Is(*next, op) ? UseDefView::Other(*next, id) : kAbsent;
    if (other == kAbsent || graph_.values[other].data == nullptr || TypeOf(other).shape != row) return kAbsent;
    *result = next->outputs[0];
    return other;
  }

  // (d / sqrt(mean(d^2) + epsilon)) * scale + bias with d = x - mean(x); `second` is the mean of d^2.
  Match LayerNorm(const Node& second) const {
    const std::optional<int64_t> axis = TrailingAxis(second);
    const std::optional<Normalized> norm = axis ? DivideByRoot(second) : std::nullopt;
    const Node* sub = norm ? view_.Producer(norm->centered, "Sub") : nullptr;
    const Node* mean = sub == nullptr ? nullptr : view_.Producer(sub->inputs[1], "ReduceMean");
    if (mean == nullptr || mean->inputs[0] != sub->inputs[0] || TrailingAxis(*mean) != axis) return std::nullopt;
    return Affine(sub->inputs[0], *norm, *axis, "LayerNormalization", "Add");
  }

  Match RmsNorm(const Node& mean) const {
    const std::optional<int64_t> axis = TrailingAxis(mean);
    const std::optional<Normalized> norm = axis ? DivideByRoot(mean) : std::nullopt;
    return norm ? Affine(norm->centered, *norm, *axis, "RMSNormalization", "") : std::nullopt;
  }

  // Adds the scale and bias that follow, which both normalizations take as inputs.
  Match Affine(ValueId x, const Normalized& norm, int64_t axis, std::string op, std::string_view bias_op) const {
    const ir::Shape& shape = TypeOf(x).shape;
    if (TypeOf(x).dtype != ir::DType::kFloat32) return std::nullopt;
    const ir::Shape row(shape.begin() + axis, shape.end());
    ValueId result = norm.result;
    const ValueId scale = RowConstant(result, "Mul", row, &result);
    // A constant in the pattern, such as epsilon, may have a larger shape than x and so widen the result.
    if (scale == kAbsent || TypeOf(result) != TypeOf(x)) return std::nullopt;
    Found found{result, std::move(op), "", {x, scale}, {{"axis", axis}, {"epsilon", norm.epsilon}}};
    if (bias_op.empty()) return found;
    const ValueId bias = RowConstant(result, bias_op, row, &found.value);
    if (bias != kAbsent) found.inputs.push_back(bias);
    return found;
  }

  const Graph& graph_;
  const UseDefView view_;
};

}  // namespace

absl::Status RecognizePatterns(Graph& graph) {
  std::vector<Found> found;
  {
    const Matcher matcher(graph);
    for (const Node& node : graph.nodes) {
      if (node.outputs[0] == kAbsent || node.inputs.empty() || node.inputs[0] == kAbsent) continue;
      if (Match match = matcher.Find(node)) found.push_back(*std::move(match));
    }
  }
  std::map<ValueId, ValueId> replacements;
  for (const Found& match : found) {
    HONE_ASSIGN_OR_RETURN(replacements[match.value],
                          AddOp(graph, match.op, match.inputs, match.attributes, match.domain));
  }
  ReplaceUses(graph, std::move(replacements));  // in the new nodes too: one may read a value that another replaces
  Tidy(graph);
  return absl::OkStatus();
}

}  // namespace hone::graph
