// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/permute.h"
#include "compiler/graph/passes/view.h"
#include "compiler/graph/traits.h"

namespace hone::graph {
namespace {

bool IsConstant(const Graph& graph, ValueId id) { return id != kAbsent && graph.values[id].data != nullptr; }

ValueId AddTransposed(Graph& graph, Value constant) {
  const Perm perm = {1, 0};
  return AddValue(graph, constant.name, {constant.type.dtype, PermuteDims(constant.type.shape, perm)},
                  Permute(constant, perm));
}

// Returns value * factor (a float32 constant); the value itself if the factor is 1.
ValueId ScaleConstant(Graph& graph, ValueId id, double factor) {
  if (factor == 1) return id;
  const Value source = graph.values[id];
  std::vector<float> values = ReadConstant<float>(source);
  for (float& value : values) value = static_cast<float>(value * factor);
  return AddConstant<float>(graph, source.name, source.type.dtype, source.type.shape, values);
}

// Whether the elements are f16 or bf16. Each operator on them rounds its result.
bool IsShortFloat(const Graph& graph, ValueId id) {
  const ir::DType dtype = graph.values[id].type.dtype;
  return ComputeType(dtype) != dtype;
}

absl::StatusOr<ValueId> LowerGemm(Graph& graph, const Node& node) {
  const double alpha = FloatAttribute(node, "alpha", 1), beta = FloatAttribute(node, "beta", 1);
  const bool floats = graph.values[node.inputs[1]].type.dtype == ir::DType::kFloat32;
  if (!IsConstant(graph, node.inputs[1]) || (!floats && (alpha != 1 || beta != 1))) return kAbsent;
  if (HasInput(node, 2) && beta != 1 && !IsConstant(graph, node.inputs[2])) return kAbsent;
  const auto rank = [&](size_t input) { return graph.values[node.inputs[input]].type.shape.size(); };
  if (rank(0) != 2 || rank(1) != 2 || (HasInput(node, 2) && rank(2) > 2)) return kAbsent;  // an unusual form
  if (HasInput(node, 2) && IsShortFloat(graph, node.inputs[0])) return kAbsent;            // it rounds once
  ValueId a = node.inputs[0], b = node.inputs[1];
  if (IntAttribute(node, "transA", 0) != 0) {
    HONE_ASSIGN_OR_RETURN(a, AddOp(graph, "Transpose", {a}, {{"perm", Perm{1, 0}}}));
  }
  if (IntAttribute(node, "transB", 0) != 0) b = AddTransposed(graph, graph.values[b]);
  b = ScaleConstant(graph, b, alpha);
  HONE_ASSIGN_OR_RETURN(const ValueId product, AddOp(graph, "MatMul", {a, b}));
  if (!HasInput(node, 2) || beta == 0) return product;
  return AddOp(graph, "Add", {product, ScaleConstant(graph, node.inputs[2], beta)});
}

// Splits the shape into the product of all dimensions but the last, and the last.
ir::Shape Rows(const ir::Shape& shape, const ir::Size& last) {
  return {ir::Product(std::span(shape).first(shape.size() - 1)), last};
}

// Returns true if the value is the result of a node with the trait sums_per_channel, followed only by element-wise
// nodes, and has one reader; nothing else reads a value on the way.
absl::StatusOr<bool> IsSumOfSeparateSums(const Graph& graph, const UseDefView& view, ValueId id) {
  if (view.ConsumersOf(id).size() != 1) return false;
  const Node* found = nullptr;
  std::set<const Node*> inside;
  std::vector<ValueId> pending = {id};
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (value == kAbsent || graph.values[value].data != nullptr) continue;
    const Node* maker = view.Producer(value);
    if (maker == nullptr || IsOutput(graph, value)) return false;
    if (!inside.insert(maker).second) continue;
    HONE_ASSIGN_OR_RETURN(const NodeTraits traits, FindTraits(graph, *maker));
    if (traits.sums_per_channel && (found == nullptr || found == maker)) {
      found = maker;
    } else if (traits.elementwise) {
      pending.insert(pending.end(), maker->inputs.begin(), maker->inputs.end());
    } else {
      return false;
    }
  }
  for (const Node* node : inside) {
    for (const ValueId made : node->outputs) {
      if (made == id || made == kAbsent) continue;
      const auto reads_inside = [&](int reader) { return inside.contains(&graph.nodes[reader]); };
      if (!std::ranges::all_of(view.ConsumersOf(made), reads_inside)) return false;
    }
  }
  return found != nullptr;
}

// The product of two matrices, or of lists of matrices, plus the bias if there is one. Matrices of a short type are
// multiplied by Gemm, which adds the bias before it rounds, as a convolution does.
absl::StatusOr<ValueId> AddProduct(Graph& graph, const std::vector<ValueId>& factors, ValueId bias) {
  const auto is_matrix = [&](ValueId id) { return graph.values[id].type.shape.size() == 2; };
  if (bias != kAbsent && IsShortFloat(graph, bias) && std::ranges::all_of(factors, is_matrix)) {
    return AddOp(graph, "Gemm", {factors[0], factors[1], bias});
  }
  HONE_ASSIGN_OR_RETURN(const ValueId product, AddOp(graph, "MatMul", factors));
  return bias == kAbsent ? product : AddOp(graph, "Add", {product, bias});
}

absl::StatusOr<ValueId> LowerConv(Graph& graph, const UseDefView& view, const Node& node) {
  const auto all = [&](const char* name, int64_t wanted) {
    const std::vector<int64_t> values = IntsAttribute(node, name);
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
  };
  if (!IsConstant(graph, node.inputs[1]) || IntAttribute(node, "group", 1) != 1) return kAbsent;
  const ir::Shape weights = graph.values[node.inputs[1]].type.shape;
  if (std::any_of(weights.begin() + 2, weights.end(), [](const ir::Size& extent) { return extent != 1; }))
    return kAbsent;
  // For a 1x1 window with stride 1 every kind of automatic padding is zero.
  if (!all("strides", 1) || !all("pads", 0)) return kAbsent;
  const ir::Shape input = graph.values[node.inputs[0]].type.shape;
  const ir::Shape output = graph.values[node.outputs[0]].type.shape;
  const bool channels_last = StringAttribute(node, "layout", "NCHW") == "NHWC";
  // Channels last: pixels x weights. Channels first: weights x pixels, image by image.
  const ir::Size pixels = ir::Product(std::span(input).subspan(2));
  ir::Shape matrix_shape = {input[0], input[1], pixels};
  if (channels_last) {
    matrix_shape = Rows(input, weights[1]);
    // The pixels are not reshaped if the kernel of a depthwise convolution can compute the products as well.
    if (graph.target.facts().joins_products) {
      HONE_ASSIGN_OR_RETURN(const bool after_depthwise, IsSumOfSeparateSums(graph, view, node.inputs[0]));
      if (after_depthwise) matrix_shape = input;
    }
  } else if (input[0] == 1) {
    matrix_shape = {input[1], pixels};
  }
  HONE_ASSIGN_OR_RETURN(const ValueId matrix, AddReshape(graph, node.inputs[0], matrix_shape));
  Value flat = graph.values[node.inputs[1]];
  flat.type.shape = {weights[0], weights[1]};
  const std::vector<ValueId> factors =
      channels_last ? std::vector<ValueId>{matrix, AddTransposed(graph, flat)}
                    : std::vector<ValueId>{AddValue(graph, flat.name, flat.type, flat.data), matrix};
  ValueId bias = HasInput(node, 2) ? node.inputs[2] : kAbsent;
  if (bias != kAbsent && !channels_last) {
    HONE_ASSIGN_OR_RETURN(bias, AddReshape(graph, bias, ir::Shape{weights[0], 1}));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId product, AddProduct(graph, factors, bias));
  return AddReshape(graph, product, output);
}

absl::StatusOr<ValueId> FlattenMatMul(Graph& graph, const Node& node) {
  const ir::Shape a = graph.values[node.inputs[0]].type.shape;
  const ir::Shape b = graph.values[node.inputs[1]].type.shape;
  if (a.size() < 3 || b.size() != 2 || !IsConstant(graph, node.inputs[1])) return kAbsent;
  const ir::Shape output = graph.values[node.outputs[0]].type.shape;
  HONE_ASSIGN_OR_RETURN(const ValueId matrix, AddReshape(graph, node.inputs[0], Rows(a, a.back())));
  HONE_ASSIGN_OR_RETURN(const ValueId product, AddOp(graph, "MatMul", {matrix, node.inputs[1]}));
  return AddReshape(graph, product, output);
}

// MatMulNBits as rows x K. Its scales and zero points become a matrix with one row per column of the result, so that
// they can be packed like the weights.
absl::StatusOr<ValueId> FlattenMatMulNBits(Graph& graph, const Node& node) {
  const ir::Shape x = graph.values[node.inputs[0]].type.shape;
  const ir::Size outputs = IntAttribute(node, "N", 0);
  std::vector<ValueId> inputs = node.inputs;
  for (const size_t i : {size_t{2}, size_t{3}}) {
    if (!HasInput(node, i) || outputs == 0) continue;
    const ir::Size elements = ir::Product(graph.values[inputs[i]].type.shape);
    if (!Divides(outputs, elements)) continue;
    HONE_ASSIGN_OR_RETURN(inputs[i],
                          AddReshape(graph, inputs[i], ir::Shape{outputs, ExactQuotient(elements, outputs)}));
  }
  if (x.size() < 3 && inputs == node.inputs) return kAbsent;
  const ir::Shape output = graph.values[node.outputs[0]].type.shape;
  if (x.size() >= 3) {
    HONE_ASSIGN_OR_RETURN(inputs[0], AddReshape(graph, inputs[0], Rows(x, x.back())));
  }
  HONE_ASSIGN_OR_RETURN(const ValueId product, AddOp(graph, node.op, inputs, node.attributes, node.domain));
  return AddReshape(graph, product, output);
}

absl::StatusOr<ValueId> LowerMatMul(Graph& graph, const UseDefView& view, const Node& node) {
  if (Is(node, "Gemm")) return LowerGemm(graph, node);
  if (Is(node, "Conv")) return LowerConv(graph, view, node);
  if (Is(node, "MatMul")) return FlattenMatMul(graph, node);
  if (node.domain == "com.microsoft" && node.op == "MatMulNBits") return FlattenMatMulNBits(graph, node);
  return kAbsent;
}

}  // namespace

absl::Status LowerMatMuls(Graph& graph) {
  const UseDefView view(graph);
  return LowerNodes(graph, [&](Graph& g, const Node& node) { return LowerMatMul(g, view, node); });
}

}  // namespace hone::graph
