// SPDX-License-Identifier: Apache-2.0
// The operations by which import and passes change a Graph, and small queries on nodes.
//
// A pass appends nodes and redirects uses, then calls Tidy. Tidy restores the two properties that every pass may rely
// on: nodes are in topological order, and every node is used. ValueIds stay valid throughout, because values are never
// removed; a value may become unused. Code that only reads a graph uses its vectors directly.
#ifndef HONE_COMPILER_GRAPH_GRAPH_EDIT_H_
#define HONE_COMPILER_GRAPH_GRAPH_EDIT_H_

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// The ai.onnx operator set version of all nodes that passes make.
inline constexpr int kOwnOpset = 17;

ValueId AddValue(Graph& graph, std::string_view name_hint, TensorType type, TensorData data = nullptr);

// Adds a constant. T must be the C++ type of dtype (float, int64_t, ...); values are in row-major order. The shape is
// fixed.
template <typename T>
ValueId AddConstant(Graph& graph, std::string_view name_hint, ir::DType dtype, ir::Shape shape,
                    const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  return AddValue(graph, name_hint, {dtype, std::move(shape)}, std::move(bytes));
}

// Adds an open size, or those of a shape, to Graph::sizes unless there is one of this name.
void DeclareSize(Graph& graph, const ir::OpenSize& size);
void DeclareSizes(Graph& graph, const ir::Shape& shape);

// Adds a constant i64[n], the form in which operators take lists of integers.
ValueId AddInts(Graph& graph, std::string_view name_hint, const std::vector<int64_t>& values);
// The same for sizes. If some are open, adds a value that is known but for them (Value::elements), and adds to
// Graph::sizes the open sizes that it lacks.
ValueId AddSizes(Graph& graph, std::string_view name_hint, const ir::Shape& sizes);

// Appends the node. Each output that is not kAbsent (write kNewValue) is replaced by a new value. Its type comes from
// the operator; its name is the entry of `names` at the output's position, or is derived from the node's name. Returns
// node.outputs.
inline constexpr ValueId kNewValue = -2;
absl::StatusOr<std::vector<ValueId>> AddNode(Graph& graph, Node node, const std::vector<std::string>& names = {});
// The same for a node with one output. An empty domain means ai.onnx.
absl::StatusOr<ValueId> AddOp(Graph& graph, std::string_view op, std::vector<ValueId> inputs,
                              std::map<std::string, Attribute> attributes = {}, std::string_view domain = "");
// Appends a Cast. Returns `value` itself if it already has the type.
absl::StatusOr<ValueId> AddCast(Graph& graph, ValueId value, ir::DType to);
// Appends a Reshape; both shapes must have the same number of elements. Returns `value` itself if it already has the
// shape. For a constant and a fixed shape, adds a constant of that shape instead, which shares the bytes.
absl::StatusOr<ValueId> AddReshape(Graph& graph, ValueId value, const ir::Shape& shape);

// Appends a Slice of the elements [begin, end) along the axis.
absl::StatusOr<ValueId> AddSlice(Graph& graph, ValueId value, int64_t axis, int64_t begin, int64_t end);

// Returns per value the indices of the nodes that read it, in order, once per node. A node that reads an open size also
// reads the first output of the node that makes the size (control_flow.h). Uses as graph outputs are not listed.
std::vector<std::vector<int>> Consumers(const Graph& graph);
// Returns per value the index of the node that produces it, or -1 for inputs, constants and unused values.
std::vector<int> Producers(const Graph& graph);
// Marks the nodes on which the graph outputs depend.
std::vector<bool> LiveNodes(const Graph& graph);
bool IsOutput(const Graph& graph, ValueId value);
// Returns true if the node has this input, which may be optional.
bool HasInput(const Node& node, size_t input);

// Turns every use of `from`, by nodes and as graph output, into a use of `to`. The node that produces `to`, and the
// nodes appended for it, move to the position where `from` is produced. At the end of the graph they would run too
// late, and every result waiting for them would occupy memory for longer. The appended nodes get the origins of the
// nodes that they replace (origins.h).
void ReplaceUses(Graph& graph, ValueId from, ValueId to);
// The same for many values at once. Chains (a -> b, b -> c) are followed.
void ReplaceUses(Graph& graph, std::map<ValueId, ValueId> replacements);

// Removes nodes none of whose outputs is used. A node that precedes the producer of one of its inputs moves behind it;
// the order is otherwise kept. Constants without readers lose their data, which may be large. A node without origins
// gets those of its readers.
void Tidy(Graph& graph);

// Counts the readers of every value, for a pass that replaces one node after the other. It frees the weights of each
// replaced node before the next node's weights are made, so that peak memory stays low. Tidy alone would free them only
// at the end of the pass.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  // Counts every reader of `from` as a reader of `to`. Nodes appended since the last call are counted from here on.
  void Redirect(const Graph& graph, ValueId from, ValueId to);
  // Tells that the node has been replaced. Constants that only this node read lose their data.
  void Drop(Graph& graph, const Node& node);

 private:
  void CountNew(const Graph& graph);

  std::vector<int64_t> reads_;  // number of reads, per value
  size_t counted_ = 0;          // number of graph nodes counted so far
};

// Replaces nodes by what `lower` returns for them: values for the node's outputs, in order, or an empty list to keep
// the node. Outputs beyond the list stay, and with them the node, if they are used. Nodes that `lower` appends are not
// visited. Constants are freed with their last reader. Calls Tidy at the end. Stops at the first error.
using Lowering = std::function<absl::StatusOr<std::vector<ValueId>>(Graph& graph, const Node& node)>;
absl::Status ReplaceNodes(Graph& graph, const Lowering& lower);
// The same for the first output only; `lower` returns kAbsent to keep the node.
absl::Status LowerNodes(Graph& graph, const std::function<absl::StatusOr<ValueId>(Graph&, const Node&)>& lower);

// Returns true if the node is the operator `op` of ai.onnx.
inline bool Is(const Node& node, std::string_view op) { return node.domain.empty() && node.op == op; }

// These return the attribute, or the fallback if it is absent or has another type. Floats are rounded to f32, as ONNX
// stores them.
int64_t IntAttribute(const Node& node, const std::string& name, int64_t fallback);
double FloatAttribute(const Node& node, const std::string& name, double fallback);
std::vector<int64_t> IntsAttribute(const Node& node, const std::string& name, std::vector<int64_t> fallback = {});
std::string StringAttribute(const Node& node, const std::string& name, std::string_view fallback);

// Converts an axis that may be negative (counted from the end) to one counted from the front.
inline int64_t AxisFromFront(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

// Returns the elements of a constant. T must be the C++ type of its dtype.
template <typename T>
std::vector<T> ReadConstant(const Value& value) {
  std::vector<T> elements(value.data->size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), value.data->data(), elements.size() * sizeof(T));
  return elements;
}

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_GRAPH_EDIT_H_
