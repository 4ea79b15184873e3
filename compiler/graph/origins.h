// SPDX-License-Identifier: Apache-2.0
// How nodes of a graph keep the nodes of the file that they came from (Node::origins), and values the values of the
// file that they hold (Value::held), while passes replace nodes.
//
// ReplaceUses and Tidy (graph_edit.cc) call this. A pass calls AddOrigins only if it merges two nodes without
// ReplaceUses, as passes/cse.cc does for outputs that only the duplicate has. Import gives the first origins
// (importer.h). A node of the file that no node of the graph has as origin any more was computed at compile time, or
// needs no computation.
#ifndef HONE_COMPILER_GRAPH_ORIGINS_H_
#define HONE_COMPILER_GRAPH_ORIGINS_H_

#include <map>
#include <set>
#include <vector>

#include "compiler/graph/graph.h"

namespace hone::graph {

// Adds indices to the node's origins.
void AddOrigins(Node& node, const std::set<int>& origins);

// Finds which nodes inherit the origins of nodes that a replacement of values makes useless.
//
// Where a value is replaced, its node and all others that only it needed become useless. Their origins go to the new
// nodes that make the replacement. A node is new if no output of the graph depended on it before. A replacement that
// was in the graph before inherits only if the replaced value does not depend on it, directly or indirectly: both then
// computed the same. If the replaced value depends on it, the useless nodes had no effect, and no node inherits their
// origins.
class OriginHeirs {
 public:
  // Looks at the graph before its uses change. replacements: by replaced value, without chains.
  OriginHeirs(const Graph& graph, const std::map<ValueId, ValueId>& replacements);
  // Gives the origins to their heirs in the changed graph, whose nodes are still in the same order.
  void Inherit(Graph& graph) const;

 private:
  // What is known of one replacement.
  struct Replaced {
    ValueId from, to;
    std::set<int> origins;  // what the replacement inherits
  };

  // Adds the origins of the useless nodes to the replacements that made them useless.
  void Collect(const Graph& graph, std::vector<Replaced>& replaced) const;
  bool DependsOn(const Graph& graph, int node, int operand) const;
  // The new nodes that make the value and belong to this replacement.
  std::vector<int> NodesFor(const Graph& graph, const Replaced& replaced) const;
  // Lets the replacement hold the values of the file that the replaced value holds, and the new values of which it is a
  // transposition or view as well.
  void Hold(Graph& graph, ValueId from, ValueId to) const;

  const std::map<ValueId, ValueId>& replacements_;
  bool any_ = false;                         // whether there is something to inherit
  std::set<ValueId> made_;                   // the replacements
  std::vector<int> producers_;               // per value, before the change
  std::vector<std::vector<int>> consumers_;  // the same
  std::vector<bool> live_;                   // per node, the same
};

// Gives every node without origins those of the nodes that read its outputs, or else of those that make its inputs.
// Does nothing if the graph has no origins.
void FillOrigins(Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_ORIGINS_H_
