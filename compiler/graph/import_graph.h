// SPDX-License-Identifier: Apache-2.0
// A graph while an import makes it (importer.h). Operators are added one by one, and what is known at once, such as
// arithmetic on shapes, is computed and leaves no node. Large constants are computed only if a shape needs them.
//
// The model is one such graph, and each graph inside a node of control flow is another. Start with AddOperator.
#ifndef HONE_COMPILER_GRAPH_IMPORT_GRAPH_H_
#define HONE_COMPILER_GRAPH_IMPORT_GRAPH_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/small_types.h"

namespace hone::graph {

struct ImportGraph {
  Graph graph;
  bool proves_sizes = false;                  // ImportOptions::proves_sizes
  std::set<ValueId> unfolded;                 // constants that Fold has not computed; see there
  std::map<ValueId, const SmallType*> small;  // unpacked elements of a small type
  std::map<ValueId, DeferredRead> late;       // values that become constants only if needed: defaults, and unread data

  // Adds the node by AddNode. If that fails, an input that is a large, not yet computed constant may be the reason: the
  // inputs are then computed one by one, from the last, because shapes follow data, until the node can be added.
  // `steps_left` is the interpreter's budget for that; it is reduced.
  absl::StatusOr<std::vector<ValueId>> AddOperator(const Node& node, const std::vector<std::string>& names,
                                                   int64_t& steps_left);
  // Lets inputs of an element-wise node that cannot be broadcast to each other, because open sizes of them differ, have
  // equal sizes by nodes Fit. Returns whether there are such inputs; node.inputs are changed then.
  absl::StatusOr<bool> FitInputs(Node& node);
  // Computes the last node, if its result is known at compile time, and removes it. If the computation takes too many
  // steps, or the node depends on such values, its outputs are recorded in `unfolded`.
  absl::Status Fold();
  // Computes the value, and those it depends on, if it is in `unfolded` or `late`. Returns true if it was.
  absl::StatusOr<bool> FoldValue(ValueId id, int64_t& steps_left);

  // Returns the value that stands for `id` of the graph outside: the same constant, or a value to be made an input.
  ValueId Capture(ImportGraph& outside, ValueId id, const std::string& name, int64_t& steps_left);

 private:
  absl::Status Compute(const Node& node, int64_t max_steps, int64_t* steps = nullptr);
  absl::Status ReadLate(const std::set<ValueId>& values);
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_GRAPH_H_
