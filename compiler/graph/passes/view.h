// SPDX-License-Identifier: Apache-2.0
// What a pattern needs to know about a graph while it looks for a match: who makes a value, who reads it, what number
// it is. A snapshot: changes to the graph after it was made do not show.
#ifndef HONE_COMPILER_GRAPH_PASSES_VIEW_H_
#define HONE_COMPILER_GRAPH_PASSES_VIEW_H_

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/graph_edit.h"

namespace hone::graph {

// The number that all elements of a constant are equal to; none if it is not constant, empty or not uniform.
std::optional<double> UniformValue(const Value& value);

class View {
 public:
  // The graph must outlive the view.
  explicit View(const Graph& graph) : graph_(graph), producers_(Producers(graph)), consumers_(Consumers(graph)) {}

  // The node that makes the value, or nullptr (inputs, constants, values that came after the snapshot).
  const Node* Producer(ValueId id) const;
  // The same if it is an operator `op` of ai.onnx, else nullptr.
  const Node* Producer(ValueId id, std::string_view op) const;
  const std::vector<int>& ConsumersOf(ValueId id) const;
  // The one node that reads the value, if there is just one and the value is no graph output; else nullptr.
  const Node* OnlyConsumer(ValueId id) const;
  // True if all elements of the value are this number, up to the rounding of exporters.
  bool IsNumber(ValueId id, double number) const;
  // Of a node with two inputs, the one that is not `id`; kAbsent if none or both are.
  static ValueId Other(const Node& node, ValueId id);

 private:
  const Graph& graph_;
  std::vector<int> producers_;
  std::vector<std::vector<int>> consumers_;
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_VIEW_H_
