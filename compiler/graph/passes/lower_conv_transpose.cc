#include "compiler/graph/passes/lower_conv_transpose.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

struct Phases {
  Ints strides, pads;  // per spatial dimension; pads before it
  Ints sizes;          // of each phase's output
};

bool CanLower(const Graph& graph, const Node& node) {
  if (!Is(node, "ConvTranspose") || StringAttribute(node, "layout", "NCHW") != "NHWC") return false;
  if (graph.values[node.inputs[1]].data == nullptr || IntAttribute(node, "group", 1) != 1) return false;
  const std::string auto_pad = StringAttribute(node, "auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" || node.attributes.contains("output_shape")) return false;
  const Ints dilations = IntsAttribute(node, "dilations"), strides = IntsAttribute(node, "strides");
  return std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; }) &&
         std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; });
}

// The weights [inputs, outputs, kernel...] as [stride..., taps..., inputs, outputs]: for the outputs of phase p, tap t
// is the kernel's (p + pad) mod stride + stride * t, or 0 where the kernel has ended.
ValueId SplitWeights(Graph& graph, ValueId id, const Phases& phases) {
  const Value source = graph.values[id];
  const Ints& from = source.type.shape;
  const size_t rank = phases.strides.size();
  Ints shape = phases.strides;
  for (size_t d = 0; d < rank; ++d) shape.push_back((from[2 + d] + phases.strides[d] - 1) / phases.strides[d]);
  const int64_t inputs = from[0], outputs = from[1];
  const Ints positions = shape;  // phases, then taps
  shape.insert(shape.end(), {inputs, outputs});
  const TensorType type{source.type.dtype, shape};
  const size_t element = static_cast<size_t>(ir::SizeOf(type.dtype));
  auto data = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(type.elements()) * element);
  int64_t kernel = 1;
  for (size_t d = 0; d < rank; ++d) kernel *= from[2 + d];
  const int64_t count = type.elements() / (inputs * outputs);
  for (int64_t position = 0; position < count; ++position) {
    int64_t rest = position, tap = 0, step = 1;  // tap: its place in the kernel, row-major
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

absl::StatusOr<ValueId> Crop(Graph& graph, ValueId value, const Ints& shape) {
  if (graph.values[value].type.shape == shape) return value;
  const int64_t rank = static_cast<int64_t>(shape.size());
  const ValueId starts = AddConstant<int64_t>(graph, "starts", ir::DType::kInt64, {rank}, Ints(shape.size(), 0));
  const ValueId ends = AddConstant<int64_t>(graph, "ends", ir::DType::kInt64, {rank}, shape);
  return AddOp(graph, "Slice", {value, starts, ends});
}

absl::StatusOr<ValueId> Lower(Graph& graph, const Node& node) {
  const Ints output = graph.values[node.outputs[0]].type.shape;
  const size_t rank = output.size() - 2;
  Phases phases{IntsAttribute(node, "strides"), IntsAttribute(node, "pads", Ints(2 * rank, 0)), {}};
  phases.pads.resize(rank);
  Ints whole = {output[0]};
  for (size_t d = 0; d < rank; ++d) {
    phases.sizes.push_back((output[1 + d] + phases.strides[d] - 1) / phases.strides[d]);
    whole.push_back(phases.sizes[d] * phases.strides[d]);
  }
  whole.push_back(output.back());
  const ValueId weights = SplitWeights(graph, node.inputs[1], phases);
  HONE_ASSIGN_OR_RETURN(ValueId result, AddOp(graph, "PhasedConvTranspose", {node.inputs[0], weights},
                                              {{"pads", phases.pads}, {"sizes", phases.sizes}}, "hone"));
  if (node.inputs.size() > 2 && node.inputs[2] != kAbsent) {
    HONE_ASSIGN_OR_RETURN(result, AddOp(graph, "Add", {result, node.inputs[2]}));
  }
  HONE_ASSIGN_OR_RETURN(result, AddReshape(graph, result, whole));
  return Crop(graph, result, output);
}

}  // namespace

absl::Status LowerConvTransposes(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> replacements;
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    if (!CanLower(graph, node)) continue;
    HONE_ASSIGN_OR_RETURN(replacements[node.outputs[0]], Lower(graph, node));
  }
  ReplaceUses(graph, replacements);
  Tidy(graph);
  return absl::OkStatus();
}

}  // namespace hone::graph
