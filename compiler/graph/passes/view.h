// SPDX-License-Identifier: Apache-2.0
// A snapshot of a graph's producers and consumers, for passes that match patterns. Changes to the graph after the
// snapshot was made are not visible in it.
#ifndef HONE_COMPILER_GRAPH_PASSES_VIEW_H_
#define HONE_COMPILER_GRAPH_PASSES_VIEW_H_

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/graph_edit.h"

namespace hone::graph {

// Returns the number that all elements of a constant equal; nullopt if the value is not constant, is empty, has
// differing elements (0 differs from -0), or holds NaN.
std::optional<double> UniformValue(const Value& value);

class UseDefView {
 public:
  // The graph must outlive the view.
  explicit UseDefView(const Graph& graph) : graph_(graph), producers_(Producers(graph)), consumers_(Consumers(graph)) {}

  // Returns the node that produces the value, or nullptr (inputs, constants, values newer than the snapshot).
  const Node* Producer(ValueId id) const;
  // The same if the producer is the ai.onnx operator `op`, else nullptr.
  const Node* Producer(ValueId id, std::string_view op) const;
  const std::vector<int>& ConsumersOf(ValueId id) const;
  // Returns the node that reads the value if it is the only one and the value is no graph output; else nullptr.
  const Node* OnlyConsumer(ValueId id) const;
  // Returns true if the value is a constant whose elements are all equal and within 1e-4 of `number`, relatively,
  // because exporters round. `number` 0 must be met exactly.
  bool IsNumber(ValueId id, double number) const;
  // Returns the input of a two-input node that is not `id`; kAbsent if none or both are `id`.
  static ValueId Other(const Node& node, ValueId id);

 private:
  const Graph& graph_;
  std::vector<int> producers_;
  std::vector<std::vector<int>> consumers_;
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_VIEW_H_
