// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/permute.h"
#include "compiler/graph/passes/view.h"
#include "compiler/graph/traits.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/tensor_instruction.h"

namespace hone::graph {
namespace {

using ir::DType;

// A value that a DequantizeLinear makes: (q - zero_point) * scale, in f32. q has 8 bits, the rest is constant.
struct QdqValue {
  std::vector<ValueId> inputs;   // of the DequantizeLinear
  ValueId zero_point = kAbsent;  // kAbsent: 0
  std::vector<float> scale;      // one, or one for each place along the axis
  int64_t axis = 0;

  ValueId q() const { return inputs[0]; }
};

// A value that a Relu or Clip makes.
struct Bounded {
  ValueId source;
  double low, high;
};

// A product of dequantized operands: scale * sums + bias.
struct Product {
  Node sums;                 // makes an i32
  std::vector<float> scale;  // the product of both operands' scales: one, or one for each channel
  size_t channel = 0;        // the dimension of the output along which channels lie
  ValueId bias = kAbsent;    // f32; it broadcasts to the output
};

bool IsByte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

// Whether the scale and the zero point of a QuantizeLinear or DequantizeLinear are constant, and the scale is f32.
bool HasConstants(const Graph& graph, const Node& node) {
  const Value& scale = graph.values[node.inputs[1]];
  return scale.data != nullptr && scale.type.dtype == DType::kFloat32 &&
         (!HasInput(node, 2) || graph.values[node.inputs[2]].data != nullptr);
}

// The zero point of a constant input 2; kAbsent if it is 0.
ValueId ZeroPointOf(const Graph& graph, const Node& node) {
  if (!HasInput(node, 2)) return kAbsent;
  const bool zero =
      std::ranges::all_of(*graph.values[node.inputs[2]].data, [](std::byte b) { return b == std::byte{0}; });
  return zero ? kAbsent : node.inputs[2];
}

std::optional<QdqValue> ReadDequantize(const Graph& graph, const Node& node) {
  if (!Is(node, "DequantizeLinear") || node.outputs[0] == kAbsent) return std::nullopt;
  const Value &q = graph.values[node.inputs[0]], &scale = graph.values[node.inputs[1]];
  const bool floats = graph.values[node.outputs[0]].type.dtype == DType::kFloat32;
  if (!HasConstants(graph, node) || !floats || !IsByte(q.type.dtype) || IntAttribute(node, "block_size", 0) != 0) {
    return std::nullopt;
  }
  return QdqValue{node.inputs, ZeroPointOf(graph, node), ReadConstant<float>(scale),
                  AxisFromFront(IntAttribute(node, "axis", 1), q.type.shape.size())};
}

std::optional<double> NumberIn(const Graph& graph, const Node& node, size_t input, double fallback) {
  if (!HasInput(node, input)) return fallback;
  const Value& value = graph.values[node.inputs[input]];
  return value.data == nullptr ? std::nullopt : UniformValue(value);
}

std::optional<Bounded> ReadBounds(const Graph& graph, const Node& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (Is(node, "Relu")) return Bounded{node.inputs[0], 0, kInfinity};
  if (!Is(node, "Clip")) return std::nullopt;
  const std::optional<double> low = NumberIn(graph, node, 1, -kInfinity), high = NumberIn(graph, node, 2, kInfinity);
  return low.has_value() && high.has_value() ? std::optional(Bounded{node.inputs[0], *low, *high}) : std::nullopt;
}

bool HasByteInstruction(const target::Target& target) {
  return std::ranges::any_of(target.tensor_instructions, [](ir::TensorInstruction instruction) {
    return ir::EntryOf(instruction).sum == DType::kInt32;
  });
}

class LowerQuantized {
 public:
  explicit LowerQuantized(const Graph& graph) : products_(HasByteInstruction(graph.target)) {
    for (const Node& node : graph.nodes) {
      if (auto found = ReadDequantize(graph, node)) dequantized_.emplace(node.outputs[0], *std::move(found));
      if (const auto bounded = ReadBounds(graph, node)) bounded_.emplace(node.outputs[0], *bounded);
    }
  }

  // Returns what replaces the node's output; kAbsent if it stays.
  absl::StatusOr<ValueId> Lower(Graph& graph, const Node& node) {
    if (Is(node, "QuantizeLinear")) return Quantize(graph, node);
    if (Moves(node)) return Move(graph, node);
    HONE_ASSIGN_OR_RETURN(const std::optional<Product> product, FindProduct(graph, node));
    return product.has_value() ? Emit(graph, *product, node) : Follow(graph, node);
  }

 private:
  const QdqValue* Find(const Node& node, size_t input) const {
    const auto found = HasInput(node, input) ? dequantized_.find(node.inputs[input]) : dequantized_.end();
    return found == dequantized_.end() ? nullptr : &found->second;
  }

  // Whether the node only moves or selects elements of a dequantized value with one scale, so that it can do this with
  // the integers.
  bool Moves(const Node& node) const {
    const QdqValue* x = Find(node, 0);
    if (x == nullptr || x->scale.size() != 1 || !(x->scale[0] > 0)) return false;
    return IsView(node) || Is(node, "Transpose") || (Is(node, "MaxPool") && node.outputs.size() == 1);
  }

  absl::StatusOr<ValueId> Move(Graph& graph, const Node& node) {
    QdqValue moved = *Find(node, 0);
    if (IsView(node)) {  // perhaps of an operator that takes floats alone
      HONE_ASSIGN_OR_RETURN(moved.inputs[0], AddReshape(graph, moved.q(), graph.values[node.outputs[0]].type.shape));
    } else {
      Node integers = node;
      integers.inputs[0] = moved.q();
      integers.outputs = {kNewValue};
      HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, AddNode(graph, std::move(integers)));
      moved.inputs[0] = made[0];
    }
    HONE_ASSIGN_OR_RETURN(const ValueId value, AddOp(graph, "DequantizeLinear", moved.inputs));
    dequantized_[node.outputs[0]] = std::move(moved);
    return value;
  }

  absl::StatusOr<std::optional<Product>> FindProduct(Graph& graph, const Node& node) const {
    const QdqValue *a = Find(node, 0), *b = Find(node, 1);
    if (!products_ || a == nullptr || b == nullptr) return std::nullopt;
    if (Is(node, "Conv")) return FindConv(graph, node, *a, *b);
    if (Is(node, "MatMul")) return FindMatMul(graph, node, *a, *b);
    if (Is(node, "Gemm")) return FindGemm(graph, node, *a, *b);
    return std::nullopt;
  }

  // The sums of both operands' products, and their scale. The channels lie along `axis` of b.
  static std::optional<Product> Join(const char* op, const QdqValue& a, const QdqValue& b, int64_t axis) {
    if (a.scale.size() != 1 || (b.scale.size() != 1 && b.axis != axis)) return std::nullopt;
    Product product;
    product.sums = {
        .name = "", .op = op, .domain = "", .opset = kOwnOpset, .inputs = {a.q(), b.q(), a.zero_point, b.zero_point}};
    for (const float scale : b.scale) product.scale.push_back(a.scale[0] * scale);
    const bool normal = std::ranges::all_of(product.scale, [](float scale) { return std::isnormal(scale); });
    return normal ? std::optional(std::move(product)) : std::nullopt;
  }

  // With one channel for each group a sum has few products. Vectors of f32 sum these as fast, and exactly.
  static absl::StatusOr<std::optional<Product>> FindConv(Graph& graph, const Node& node, const QdqValue& x,
                                                         const QdqValue& w) {
    if (IntAttribute(node, "group", 1) != 1) return std::nullopt;
    std::optional<Product> product = Join("ConvInteger", x, w, 0);
    if (!product.has_value()) return std::nullopt;
    product->sums.attributes = node.attributes;
    product->channel = 1;
    if (HasInput(node, 2)) {
      ir::Shape shape(graph.values[node.outputs[0]].type.shape.size() - 1, 1);
      shape[0] = graph.values[node.inputs[2]].type.shape[0];
      HONE_ASSIGN_OR_RETURN(product->bias, AddReshape(graph, node.inputs[2], shape));
    }
    return product;
  }

  static absl::StatusOr<std::optional<Product>> FindMatMul(const Graph& graph, const Node& node, const QdqValue& a,
                                                           const QdqValue& b) {
    const auto rank = [&](ValueId id) { return graph.values[id].type.shape.size(); };
    if (rank(a.q()) < 2 || rank(b.q()) < 2) return std::nullopt;
    std::optional<Product> product = Join("MatMulInteger", a, b, static_cast<int64_t>(rank(b.q())) - 1);
    if (product.has_value()) product->channel = rank(node.outputs[0]) - 1;
    return product;
  }

  static absl::StatusOr<std::optional<Product>> FindGemm(Graph& graph, const Node& node, const QdqValue& a,
                                                         const QdqValue& b) {
    const bool plain = FloatAttribute(node, "alpha", 1) == 1 && FloatAttribute(node, "beta", 1) == 1;
    if (!plain || IntAttribute(node, "transA", 0) != 0) return std::nullopt;
    const bool transposed = IntAttribute(node, "transB", 0) != 0;
    std::optional<Product> product = Join("MatMulInteger", a, b, transposed ? 0 : 1);
    if (!product.has_value()) return std::nullopt;
    if (transposed) {
      HONE_ASSIGN_OR_RETURN(product->sums.inputs[1], AddOp(graph, "Transpose", {b.q()}, {{"perm", Perm{1, 0}}}));
    }
    product->channel = 1;
    if (HasInput(node, 2)) product->bias = node.inputs[2];
    return product;
  }

  absl::StatusOr<ValueId> Emit(Graph& graph, const Product& product, const Node& node) {
    Node sums = product.sums;
    sums.name = node.name;
    sums.outputs = {kNewValue};
    while (sums.inputs.back() == kAbsent) sums.inputs.pop_back();
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, AddNode(graph, std::move(sums)));
    HONE_ASSIGN_OR_RETURN(const ValueId sum, AddCast(graph, made[0], DType::kFloat32));
    ir::Shape shape;  // of the scale
    if (product.scale.size() > 1) {
      shape.assign(graph.values[sum].type.shape.size() - product.channel, 1);
      shape[0] = static_cast<int64_t>(product.scale.size());
    }
    const ValueId scale = AddConstant<float>(graph, node.name, DType::kFloat32, shape, product.scale);
    const ValueId bias =
        product.bias != kAbsent ? product.bias : AddConstant<float>(graph, node.name, DType::kFloat32, {}, {0});
    of_sums_.insert(node.outputs[0]);
    return AddOp(graph, "MultiplyAdd", {sum, scale, bias}, {}, "hone");
  }

  // Notes that an element-wise function of a product is one, too. The node stays.
  absl::StatusOr<ValueId> Follow(const Graph& graph, const Node& node) {
    if (!std::ranges::any_of(node.inputs, [&](ValueId id) { return of_sums_.contains(id); })) return kAbsent;
    HONE_ASSIGN_OR_RETURN(const NodeTraits traits, FindTraits(graph, node));
    if (traits.elementwise) of_sums_.insert(node.outputs.begin(), node.outputs.end());
    return kAbsent;
  }

  absl::StatusOr<ValueId> Quantize(Graph& graph, const Node& node) const {
    const Value& scale = graph.values[node.inputs[1]];
    if (!HasConstants(graph, node) || scale.type.elements() != 1) return kAbsent;
    const float step = ReadConstant<float>(scale)[0];
    if (const QdqValue* x = Find(node, 0); x != nullptr && x->scale == std::vector<float>{step}) {
      if (HasSameIntegers(graph, node, *x)) return x->q();
    }
    // Beside few products a division takes long.
    if (!of_sums_.contains(node.inputs[0]) || !std::isnormal(1 / step)) return kAbsent;
    Node quantize = node;
    quantize.inputs[0] = Unbounded(graph, node, step);
    quantize.op = "QuantizeByReciprocal";
    quantize.domain = "hone";
    quantize.outputs = {kNewValue};
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueId> made, AddNode(graph, std::move(quantize)));
    return made[0];
  }

  // The source of the quantized value, if the quantization has the bounds between them anyway; else the value.
  ValueId Unbounded(const Graph& graph, const Node& node, float step) const {
    const auto found = bounded_.find(node.inputs[0]);
    if (found == bounded_.end()) return node.inputs[0];
    const DType dtype = graph.values[node.outputs[0]].type.dtype;
    double zero_point = 0;
    if (HasInput(node, 2)) zero_point = ir::ElementAsDouble(dtype, graph.values[node.inputs[2]].data->data());
    const auto quantized = [&](double x) { return std::nearbyint(x / step) + zero_point; };
    const bool same = quantized(found->second.low) <= static_cast<double>(ir::LowestInt(dtype)) &&
                      quantized(found->second.high) >= static_cast<double>(ir::HighestInt(dtype));
    return same ? found->second.source : node.inputs[0];
  }

  // Whether the node quantizes x, whose scale it has, to the integers from which x was made.
  static bool HasSameIntegers(const Graph& graph, const Node& node, const QdqValue& x) {
    if (graph.values[node.outputs[0]].type.dtype != graph.values[x.q()].type.dtype) return false;
    const ValueId zero_point = ZeroPointOf(graph, node);
    if (zero_point == kAbsent || x.zero_point == kAbsent) return zero_point == x.zero_point;
    return *graph.values[zero_point].data == *graph.values[x.zero_point].data;
  }

  const bool products_;
  std::map<ValueId, QdqValue> dequantized_;
  std::map<ValueId, Bounded> bounded_;
  std::set<ValueId> of_sums_;  // products and element-wise functions of them
};

}  // namespace

absl::Status LowerQuantizedOps(Graph& graph) {
  LowerQuantized lowering(graph);
  return LowerNodes(graph, [&](Graph& g, const Node& node) { return lowering.Lower(g, node); });
}

}  // namespace hone::graph
