// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/op_facts.h"

#include <algorithm>
#include <cctype>

#include "compiler/graph/op.h"

namespace hone::graph {
namespace {

// "LayerNormalization" -> "layer_normalization", "GRU" -> "gru".
std::string SnakeCase(std::string_view name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (upper && after_lower) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return text;
}

}  // namespace

const OpFacts& FactsOf(const Node& node) {
  static constexpr OpFacts kUnknown;
  const OpDef* op = FindOp(node.domain, node.op);
  return op == nullptr ? kUnknown : op->facts;
}

AxisForm AxisFormOf(const Node& node) {
  const Axes& axes = FactsOf(node).axes;
  return node.opset < axes.since ? AxisForm::kOwn : axes.form;
}

bool IsView(const Node& node) {
  if (node.outputs.empty() || node.outputs[0] == kAbsent) return false;
  const bool more = std::any_of(node.outputs.begin() + 1, node.outputs.end(), [](ValueId id) { return id != kAbsent; });
  return !more && FactsOf(node).movement == Movement::kView;
}

std::string LabelOf(const Graph& graph, const Node& node) {
  const Label& label = FactsOf(node).label;
  if (label.of != nullptr) return label.of(graph, node);
  return label.text.empty() ? SnakeCase(node.op) : std::string(label.text);
}

}  // namespace hone::graph
