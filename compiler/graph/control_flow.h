// SPDX-License-Identifier: Apache-2.0
// Control flow: the nodes whose meaning is not a tensor expression but a decision of the run, or a model of another
// runtime. A plan has steps for them, or a call (plan.h). Import makes them; passes leave them as they are, and rewrite
// the graphs inside.
//
// All of them are of domain "hone".
//
//   ReadSize   Gives an open size its value when the run comes here.
//              Input: the value, i64[]. Output: the same value. Attribute sizes: the name.
//   Fit        Requires that dimensions are equal, which the model implies by its use of them.
//              Inputs: x; its shape in terms of other sizes, known but for them. Output: x, with this shape.
//   If         Runs one of two graphs.
//              Inputs: condition, bool[]; captures. Attributes then, else: graphs with the captures as inputs and one
//              output per output of the node. Where the shapes of the two differ, the output has a size of its own.
//   Loop       Runs a graph again and again.
//              Inputs: the number of steps, i64[] (absent: no limit); whether to begin, bool[] (absent: yes); the
//              initial states; captures. Attribute body: a graph. Its inputs are the states and the captures; its
//              outputs are whether to go on (bool[]), the next states, and the rows. Attribute states:
//              their number. Attribute counter: the size that is the number of the step, from 0, inside the body.
//              Attribute steps_max: memory is planned for so many rows. Attribute steps (optional): the size that is
//              the number of steps done, if it is not known when the loop begins. Outputs: the last states, and the
//              rows of all steps, each stacked along a new first dimension. A state keeps its element type and rank; a
//              dimension that changes from step to step is an open size.
//   Foreign    ONNX Runtime computes it (fallback.h).
//              Inputs and outputs: those of the model in attribute model, the bytes of an ONNX file, in its order. The
//              types of the outputs are those of the values.
//
// Attribute sizes of every such node but Foreign: the names of all open sizes that have values after it and not before.
// A value of Value::elements may use such a size, and its readers then run after the node.
#ifndef HONE_COMPILER_GRAPH_CONTROL_FLOW_H_
#define HONE_COMPILER_GRAPH_CONTROL_FLOW_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

inline constexpr char kControlDomain[] = "hone";

bool IsControlFlow(const Node& node);
inline bool IsControl(const Node& node, std::string_view op) { return node.domain == kControlDomain && node.op == op; }

// The names in attribute sizes; empty for a node without control flow.
const std::vector<std::string>& SizesMadeBy(const Node& node);
// Per open size that a node of the graph makes: the first output of the node.
std::map<std::string, ValueId, std::less<>> SizeMakers(const Graph& graph);
// The outputs of nodes on which the elements of the value depend by the sizes in them.
std::vector<ValueId> MakersOf(const Value& value, const std::map<std::string, ValueId, std::less<>>& makers);

// The graph in attribute `name` of a node; aborts if there is none.
const Graph& BodyOf(const Node& node, const std::string& name);
// Replaces every graph inside the graph's nodes by a changed copy.
absl::Status ChangeBodies(Graph& graph, const std::function<absl::Status(Graph&)>& change);

bool IsTrue(const Value& value);  // whether it is one constant bool, which is true
// The size that a scalar value is, if it is known but for open sizes.
std::optional<ir::Size> SizeOfScalar(const Graph& graph, ValueId value);
// The number of steps of a Loop if it is known when the loop begins: a number or a size, and no step ends the loop.
std::optional<ir::Size> KnownSteps(const Graph& graph, const Node& loop);

// The types of the node's outputs. InvalidArgument if the graphs inside do not fit the node or each other.
absl::StatusOr<std::vector<TensorType>> ControlTypes(const Graph& graph, const Node& node);
// The number of dimensions in which the outputs of two graphs differ: so many names the attribute sizes of an If has.
size_t DifferingExtents(const Graph& then_graph, const Graph& else_graph, const std::vector<ir::OpenSize>& outside);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_CONTROL_FLOW_H_
