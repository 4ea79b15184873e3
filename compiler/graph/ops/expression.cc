// SPDX-License-Identifier: Apache-2.0
// Expression, the internal operator whose meaning is a workload that the user gives (custom_operators.h).
#include <map>
#include <optional>

#include "compiler/graph/custom_operators.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/ir/match.h"

namespace hone::graph {
namespace {

using BufferMap = std::map<const ir::BufferNode*, ir::Buffer>;

ir::Expr Redirect(const ir::Expr& e, const BufferMap& buffers) {
  const ir::Expr mapped = ir::MapChildren(e, [&](const ir::Expr& child) { return Redirect(child, buffers); });
  const auto* load = mapped.As<ir::Load>();
  return load == nullptr ? mapped : ir::MakeLoad(buffers.at(load->buffer.get()), load->indices, load->mask);
}

Shape SubstituteAll(const std::vector<ir::Axis>& axes, const MatchedSizes& values) {
  Shape shape;
  for (const ir::Axis& axis : axes) shape.push_back(axis.extent.Substitute(values));
  return shape;
}

absl::StatusOr<ir::Workload> WorkloadOf(const OpArgs& args) { return ir::ParseWorkload(args.String("workload", "")); }

// Attributes: workload, the text of a workload without numbers of attributes; label, the operator's name in records.
OpResult Expression(const OpArgs& args, StageBuilder& builder) {
  const absl::StatusOr<ir::Workload> workload = WorkloadOf(args);
  if (!workload.ok()) return workload.status();
  std::vector<TensorType> types;
  for (const ir::Buffer& input : args.inputs) {
    if (input == nullptr) return Malformed("an input is missing");
    types.push_back({input->dtype, input->shape});
  }
  const std::optional<MatchedSizes> sizes = MatchInputs(*workload, types);
  if (!sizes.has_value()) return Malformed("the inputs do not fit its definition");
  BufferMap buffers;
  for (size_t i = 0; i < args.inputs.size(); ++i) buffers[workload->params[i].buffer.get()] = args.inputs[i];
  ir::VarMap numbers;
  for (const auto& [name, size] : *sizes) numbers[name] = ir::Expr(size);
  for (const ir::Stage& stage : workload->stages) {
    const auto value = [&](Indices axes, Indices reduce_axes) {
      ir::VarMap vars = numbers;
      for (size_t i = 0; i < axes.size(); ++i) vars[stage.axes[i].name] = axes[i];
      for (size_t i = 0; i < reduce_axes.size(); ++i) vars[stage.reduce_axes[i].name] = reduce_axes[i];
      return Redirect(ir::Substitute(stage.value, vars), buffers);
    };
    buffers[stage.buffer.get()] =
        builder.Reduce(args.String("label", "expression"), stage.buffer->dtype, SubstituteAll(stage.axes, *sizes),
                       SubstituteAll(stage.reduce_axes, *sizes), stage.reduction, value);
  }
  Buffers outputs;
  for (const ir::Buffer& output : workload->outputs) outputs.push_back(buffers.at(output.get()));
  return outputs;
}

void ExpressionRange(const OpArgs& args, size_t input, double* low, double* high) {
  const absl::StatusOr<ir::Workload> workload = WorkloadOf(args);
  if (!workload.ok() || input >= workload->params.size()) return;
  *low = workload->params[input].low;
  *high = workload->params[input].high;
}

std::string LabelOfExpression(const Graph& /*graph*/, const Node& node) {
  const auto label = node.attributes.find("label");
  const auto* text = label == node.attributes.end() ? nullptr : std::get_if<std::string>(&label->second);
  return text == nullptr ? "expression" : *text;
}

constexpr OpDef kExpressionOps[] = {{"Expression", Expression, {.label = {.of = LabelOfExpression}}, ExpressionRange}};

}  // namespace

std::span<const OpDef> ExpressionOps() { return kExpressionOps; }

}  // namespace hone::graph
