// SPDX-License-Identifier: Apache-2.0
// The order in which the nodes of a graph or function body are imported, and which of them are needed at all.
//
// Not here: what a node means (importer.h). Start with ResolveDuplicates, then OrderNodes.
#ifndef HONE_COMPILER_GRAPH_NODE_ORDER_H_
#define HONE_COMPILER_GRAPH_NODE_ORDER_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

// Adds the names of the node's inputs.
void CollectInputs(const RawNode& node, std::set<std::string>& reads);
// Adds the names that the node may read: its inputs, and the outer values that its sub-graphs use.
void CollectReads(const RawNode& node, std::set<std::string>& reads);

// Whether a name denotes a value before any of the nodes is imported.
using IsDefined = std::function<bool(const std::string& name)>;

// Some files define a value twice, which ONNX forbids. Returns nullopt if no two nodes define the same name and no node
// redefines an initializer or input (`is_defined_here`). Else returns the nodes with one definition left per value: a
// definition loses its name if `outputs` do not depend on the value, or if it equals an earlier one. InvalidArgument if
// different definitions of a needed value remain.
absl::StatusOr<std::optional<std::vector<RawNode>>> ResolveDuplicates(const std::vector<RawNode>& nodes,
                                                                      const std::vector<std::string>& outputs,
                                                                      const IsDefined& is_defined_here);

// Returns node indices in an order in which every value is produced before it is read. ONNX requires files to have this
// order, but some exporters violate it. No two nodes may define the same name (ResolveDuplicates). `is_defined` is also
// true for names of outer scopes. Adds the names that are read and defined nowhere to `undefined`. InvalidArgument:
// there is a cycle.
absl::StatusOr<std::vector<size_t>> OrderNodes(const std::vector<RawNode>& nodes, const IsDefined& is_defined,
                                               std::set<std::string>& undefined);

// Returns true if the node has an output with one of these names.
bool MakesAny(const RawNode& node, const std::set<std::string>& names);

// Returns `outputs` and, transitively, the names that their producers read according to `collect`. `order` is the
// result of OrderNodes.
std::set<std::string> CollectNeeded(const std::vector<RawNode>& nodes, const std::vector<size_t>& order,
                                    const std::vector<std::string>& outputs,
                                    void (*collect)(const RawNode&, std::set<std::string>&));

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_NODE_ORDER_H_
