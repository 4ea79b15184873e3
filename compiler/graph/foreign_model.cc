// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/foreign_model.h"

#include <algorithm>
#include <climits>
#include <set>

#include "base/element_type.h"
#include "base/status.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/import_scope.h"
#include "compiler/graph/onnx_proto.h"
#include "compiler/graph/small_types.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

// What a name outside of the nodes stands for.
struct ForeignInput {
  std::string name;
  TensorType type;
  TensorData data;  // set: the model holds it as a constant; else it is an input of the model
};

constexpr int64_t kIrVersionMin = 4;  // before, a constant had to be listed among the inputs

absl::Status AddBytes(const std::vector<std::string>& sources, auto add) {
  for (const std::string& source : sources) {
    if (!add()->ParseFromString(source)) return absl::InvalidArgumentError("a node or tensor of the file is damaged");
  }
  return absl::OkStatus();
}

void AddInput(const ForeignInput& input, onnx::GraphProto& graph) {
  if (input.data == nullptr) {
    onnx::ValueInfoProto& info = *graph.add_input();
    info.set_name(input.name);
    onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(OnnxNumber(input.type.dtype));
    onnx::TensorShapeProto& shape = *type.mutable_shape();
    for (const ir::Size& extent : input.type.shape) {
      onnx::TensorShapeProto::Dimension& dimension = *shape.add_dim();
      if (extent.IsFixed()) dimension.set_dim_value(extent.value());
    }
    return;
  }
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(input.name);
  tensor.set_data_type(OnnxNumber(input.type.dtype));
  for (const int64_t extent : ir::Values(input.type.shape)) tensor.add_dims(extent);
  tensor.set_raw_data(input.data->data(), input.data->size());
}

// The bytes of the model's file. Its inputs are those without data, in this order, and its outputs those of the part.
absl::StatusOr<std::string> WriteModel(const RawPart& part, const std::vector<ForeignInput>& inputs) {
  onnx::ModelProto model;
  model.set_ir_version(std::max(part.ir_version, kIrVersionMin));
  model.set_producer_name("hone");
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("part");
  HONE_RETURN_IF_ERROR(AddBytes(part.nodes, [&] { return graph.add_node(); }));
  HONE_RETURN_IF_ERROR(AddBytes(part.initializers, [&] { return graph.add_initializer(); }));
  HONE_RETURN_IF_ERROR(AddBytes(part.functions, [&] { return model.add_functions(); }));
  for (const ForeignInput& input : inputs) AddInput(input, graph);
  for (const RawInput& output : part.outputs) {
    onnx::ValueInfoProto& info = *graph.add_output();
    info.set_name(output.name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(OnnxNumber(output.dtype));
  }
  std::set<std::string> domains;
  for (const auto& [domain, version] : part.opsets) domains.insert(domain);
  for (const onnx::NodeProto& node : graph.node()) domains.insert(node.domain() == "ai.onnx" ? "" : node.domain());
  for (const std::string& domain : domains) {
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(OpsetOf(domain, part.opsets));
  }
  if (model.ByteSizeLong() > INT_MAX) {
    return absl::InvalidArgumentError("the nodes that ONNX Runtime is to compute have more than 2 GiB of constants");
  }
  return model.SerializeAsString();
}

}  // namespace

absl::StatusOr<Node> MakeForeign(const ImportGraph& at, const RawNode& raw, const std::vector<ValueId>& inputs) {
  Node node{.name = raw.name,
            .op = raw.op,
            .domain = kControlDomain,
            .opset = 1,
            .inputs = {},
            .outputs = {},
            .attributes = {}};
  std::vector<ForeignInput> named;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kAbsent) return absl::InvalidArgumentError(fmt::format("'{}' is not defined", raw.inputs[i]));
    if (const auto small = at.small.find(inputs[i]); small != at.small.end()) {
      return SmallTypeError(fmt::format("value '{}', which ONNX Runtime is to read,", raw.inputs[i]), *small->second);
    }
    const Value& value = at.graph.values[inputs[i]];
    named.push_back({raw.inputs[i], value.type, value.data});
    if (value.data == nullptr) node.inputs.push_back(inputs[i]);
  }
  HONE_ASSIGN_OR_RETURN(node.attributes["model"], WriteModel(*raw.part, named));
  return node;
}

absl::StatusOr<TensorType> TypeOfForeign(const RawInput& output, const DimRanges& symbols,
                                         const ImportOptions& options) {
  const auto is_zero = [](const RawDimension& dimension) { return dimension.extent == 0; };
  const bool is_unknown = output.shape.has_value() && std::ranges::any_of(*output.shape, is_zero);
  absl::StatusOr<TensorType> type = BindInputType(output, symbols, options);
  if (type.ok() && !is_unknown) return type;
  return absl::InvalidArgumentError(fmt::format(
      "ONNX Runtime is to compute '{}', whose element type and shape the file does not state; add them with "
      "onnx.shape_inference.infer_shapes, or by hand",
      output.name));
}

}  // namespace hone::graph
