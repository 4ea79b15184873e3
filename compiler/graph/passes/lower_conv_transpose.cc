// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/passes/passes.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

struct Phases {
  Ints strides, pads;  // per spatial dimension; pads are those at the beginning
  Ints sizes;          // of each phase's output
};

bool CanLowerConvTranspose(const Graph& graph, const Node& node) {
  if (!Is(node, "ConvTranspose") || StringAttribute(node, "layout", "NCHW") != "NHWC") return false;
  const Value& weights = graph.values[node.inputs[1]];
  if (weights.data == nullptr || weights.data->empty() || IntAttribute(node, "group", 1) != 1) return false;
  const std::string auto_pad = StringAttribute(node, "auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" || node.attributes.contains("output_shape")) return false;
  // The phases' sizes are an attribute, which holds numbers.
  const ir::Shape& output = graph.values[node.outputs[0]].type.shape;
  if (!ir::IsFixed(std::span(output).subspan(1))) return false;
  const Ints dilations = IntsAttribute(node, "dilations"), strides = IntsAttribute(node, "strides");
  return std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; }) &&
         std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; });
}

// Reorders weights [inputs, outputs, kernel...] to [stride..., taps..., inputs, outputs]. Tap t of phase p is kernel
// element (p + pad) mod stride + stride * t, or 0 beyond the kernel's end.
ValueId SplitWeights(Graph& graph, ValueId id, const Phases& phases) {
  const Value source = graph.values[id];
  const Ints from = ir::Values(source.type.shape);
  const size_t rank = phases.strides.size();
  Ints shape = phases.strides;
  for (size_t d = 0; d < rank; ++d) shape.push_back((from[2 + d] + phases.strides[d] - 1) / phases.strides[d]);
  const int64_t inputs = from[0], outputs = from[1];
  const Ints positions = shape;  // phases, then taps
  shape.insert(shape.end(), {inputs, outputs});
  const TensorType type{source.type.dtype, shape};
  const int64_t elements = type.elements().value();
  const size_t element = static_cast<size_t>(ir::SizeOf(type.dtype));
  auto data = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(elements) * element);
  int64_t kernel = 1;
  for (size_t d = 0; d < rank; ++d) kernel *= from[2 + d];
  const int64_t count = elements / (inputs * outputs);
  for (int64_t position = 0; position < count; ++position) {
    int64_t rest = position, tap = 0, step = 1;  // tap: row-major index in the kernel
    Ints index(2 * rank);
    for (size_t i = 2 * rank; i-- > 0; rest /= positions[i]) index[i] = rest % positions[i];
    bool inside = true;
    for (size_t d = rank; d-- > 0; step *= from[2 + d]) {
      const int64_t stride = phases.strides[d];
      const int64_t k = (index[d] + phases.pads[d]) % stride + stride * index[rank + d];
      inside = inside && k < from[2 + d];
      tap += k * step;
    }
    if (!inside) continue;
    for (int64_t channels = 0; channels < inputs * outputs; ++channels) {
      std::memcpy(data->data() + static_cast<size_t>(position * inputs * outputs + channels) * element,
                  source.data->data() + static_cast<size_t>(channels * kernel + tap) * element, element);
    }
  }
  return AddValue(graph, source.name, type, std::move(data));
}

absl::StatusOr<ValueId> Crop(Graph& graph, ValueId value, const ir::Shape& shape) {
  if (graph.values[value].type.shape == shape) return value;
  Ints to;  // the batch, which may be open, is not cropped
  for (const ir::Size& size : shape) to.push_back(size.IsFixed() ? size.value() : std::numeric_limits<int64_t>::max());
  const ValueId starts = AddInts(graph, "starts", Ints(shape.size(), 0)), ends = AddInts(graph, "ends", to);
  return AddOp(graph, "Slice", {value, starts, ends});
}

// Returns true if it is faster to compute all products of inputs and taps by one matrix product and to sum them
// afterwards. Phase by phase, vectors run along the output channels and all phases are padded to the same number of
// taps. With the matrix product, vectors run along taps and channels and nothing is wasted, but all products pass
// through memory.
bool PrefersProducts(const Graph& graph, const Node& node, const Ints& strides) {
  const Ints weights = ir::Values(graph.values[node.inputs[1]].type.shape);  // [inputs, outputs, kernel...]
  const int64_t width = graph.target.VectorWidth(4);
  int64_t taps = 1, phased = 1;
  for (size_t d = 0; d < strides.size(); ++d) {
    taps *= weights[2 + d];
    phased *= (weights[2 + d] + strides[d] - 1) / strides[d] * strides[d];
  }
  const auto vectors = [&](int64_t elements) { return static_cast<double>((elements + width - 1) / width); };
  constexpr double kThroughMemory = 6;  // cost of passing a vector through memory, in multiply-adds
  const auto inputs = static_cast<double>(weights[0]);
  return vectors(taps * weights[1]) * (inputs + kThroughMemory) <
         static_cast<double>(phased) * vectors(weights[1]) * inputs;
}

// Parts of a result of a short type are of a wider one (ComputeType), so that the result is rounded once.
absl::StatusOr<ValueId> Products(Graph& graph, const Node& node, const Phases& phases) {
  const ir::Shape& data = graph.values[node.inputs[0]].type.shape;
  const Ints weights = ir::Values(graph.values[node.inputs[1]].type.shape);
  const size_t rank = phases.strides.size();
  Ints order = {0};
  ir::Shape shape(data.begin(), data.end() - 1);
  int64_t columns = weights[1];
  for (size_t d = 0; d < rank; ++d) {
    order.push_back(static_cast<int64_t>(2 + d));
    shape.push_back(weights[2 + d]);
    columns *= weights[2 + d];
  }
  order.push_back(1);
  shape.push_back(weights[1]);
  HONE_ASSIGN_OR_RETURN(ValueId matrix, AddOp(graph, "Transpose", {node.inputs[1]}, {{"perm", order}}));
  HONE_ASSIGN_OR_RETURN(matrix, AddReshape(graph, matrix, ir::Shape{weights[0], columns}));
  const ir::DType parts = ComputeType(graph.values[matrix].type.dtype);
  HONE_ASSIGN_OR_RETURN(matrix, AddCast(graph, matrix, parts));
  HONE_ASSIGN_OR_RETURN(const ValueId x, AddCast(graph, node.inputs[0], parts));
  HONE_ASSIGN_OR_RETURN(ValueId products, AddOp(graph, "MatMul", {x, matrix}));
  HONE_ASSIGN_OR_RETURN(products, AddReshape(graph, products, shape));
  std::vector<ValueId> inputs = {products};
  if (HasInput(node, 2)) {
    HONE_ASSIGN_OR_RETURN(const ValueId bias, AddCast(graph, node.inputs[2], parts));
    inputs.push_back(bias);
  }
  return AddOp(graph, "SumTaps", std::move(inputs),
               {{"pads", phases.pads}, {"sizes", phases.sizes}, {"strides", phases.strides}}, "hone");
}

absl::StatusOr<ValueId> PhaseByPhase(Graph& graph, const Node& node, const Phases& phases) {
  const ValueId split = SplitWeights(graph, node.inputs[1], phases);
  const ir::DType dtype = graph.values[split].type.dtype, parts = HasInput(node, 2) ? ComputeType(dtype) : dtype;
  HONE_ASSIGN_OR_RETURN(const ValueId x, AddCast(graph, node.inputs[0], parts));
  HONE_ASSIGN_OR_RETURN(const ValueId weights, AddCast(graph, split, parts));
  HONE_ASSIGN_OR_RETURN(const ValueId result, AddOp(graph, "PhasedConvTranspose", {x, weights},
                                                    {{"pads", phases.pads}, {"sizes", phases.sizes}}, "hone"));
  if (!HasInput(node, 2)) return result;
  HONE_ASSIGN_OR_RETURN(const ValueId bias, AddCast(graph, node.inputs[2], parts));
  return AddOp(graph, "Add", {result, bias});
}

absl::StatusOr<ValueId> LowerConvTranspose(Graph& graph, const Node& node) {
  if (!CanLowerConvTranspose(graph, node)) return kAbsent;
  const ir::Shape output = graph.values[node.outputs[0]].type.shape;
  const size_t rank = output.size() - 2;
  Phases phases{IntsAttribute(node, "strides"), IntsAttribute(node, "pads", Ints(2 * rank, 0)), {}};
  phases.pads.resize(rank);
  ir::Shape whole = {output[0]};
  for (size_t d = 0; d < rank; ++d) {
    phases.sizes.push_back((output[1 + d].value() + phases.strides[d] - 1) / phases.strides[d]);
    whole.push_back(phases.sizes[d] * phases.strides[d]);
  }
  whole.push_back(output.back());
  const bool products = PrefersProducts(graph, node, phases.strides);
  HONE_ASSIGN_OR_RETURN(ValueId result, products ? Products(graph, node, phases) : PhaseByPhase(graph, node, phases));
  HONE_ASSIGN_OR_RETURN(result, AddCast(graph, result, graph.values[node.outputs[0]].type.dtype));
  HONE_ASSIGN_OR_RETURN(result, AddReshape(graph, result, whole));
  return Crop(graph, result, output);
}

}  // namespace

absl::Status LowerConvTransposes(Graph& graph) { return LowerNodes(graph, LowerConvTranspose); }

}  // namespace hone::graph
