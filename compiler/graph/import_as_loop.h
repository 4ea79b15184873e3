// SPDX-License-Identifier: Apache-2.0
// Operators that an import (importer.h) spells out as nodes of ONNX with a Loop: Scan, NonMaxSuppression, and
// recurrences whose number of steps is open or large.
//
// The nodes take the place of the operator in a scope of their own, inside which all names of the scope outside are
// visible. They are written as they would stand in a file. Start with FindAsLoop.
#ifndef HONE_COMPILER_GRAPH_IMPORT_AS_LOOP_H_
#define HONE_COMPILER_GRAPH_IMPORT_AS_LOOP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

struct AsLoop {
  std::vector<RawNode> nodes;
  bool has_body = false;             // the nodes are of the opset of the node's file; else of kOwnOpset (graph_edit.h)
  std::vector<std::string> outputs;  // per output of the operator: the name of its value; "" if nothing reads it
  // Per output: its rows, which the loop stacks along axis 0, go along this axis, perhaps from the last to the first.
  std::vector<int64_t> axes;
  std::vector<bool> reversed;
};

// Returns the function that spells out the operator, or nullptr. first: the type of its first input; nullptr if it is
// not known. opset: of the node's domain. Errors do not name the node.
using SpellAsLoop = absl::StatusOr<AsLoop> (*)(const RawNode& node, int64_t opset);
SpellAsLoop FindAsLoop(const RawNode& node, const TensorType* first);

// Moves stacked rows to the axis, which may be negative, in that direction.
absl::StatusOr<ValueId> PlaceRows(Graph& graph, ValueId rows, int64_t axis, bool reversed);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_AS_LOOP_H_
