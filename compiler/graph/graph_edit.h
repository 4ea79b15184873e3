// SPDX-License-Identifier: Apache-2.0
// The few operations with which import and passes change a Graph. Everything else reads its vectors directly.
//
// A pass appends nodes and redirects uses, then calls Tidy, which restores what every pass may rely on: nodes in
// topological order and none without use. ValueIds stay valid throughout; values are never removed, only unused.
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

// The version of ai.onnx whose meaning the nodes have that passes make.
inline constexpr int kOwnOpset = 17;

ValueId AddValue(Graph& graph, std::string_view name_hint, TensorType type, TensorData data = nullptr);

// A constant of T, which must be the C++ type of dtype (float, int64_t, ...), in row-major order.
template <typename T>
ValueId AddConstant(Graph& graph, std::string_view name_hint, ir::DType dtype, std::vector<int64_t> shape,
                    const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  return AddValue(graph, name_hint, {dtype, std::move(shape)}, std::move(bytes));
}

// A list of integers as operators take it: i64[n].
ValueId AddInts(Graph& graph, std::string_view name_hint, const std::vector<int64_t>& values);

// Appends the node. Each of its outputs that is not kAbsent (kNewValue, say) is replaced by a new value, which gets its
// type from the operator and the name at its place in `names`, or one made of the node's. Returns node.outputs.
inline constexpr ValueId kNewValue = -2;
absl::StatusOr<std::vector<ValueId>> AddNode(Graph& graph, Node node, const std::vector<std::string>& names = {});
// The same for the common case: an operator of ai.onnx with one output.
absl::StatusOr<ValueId> AddOp(Graph& graph, std::string_view op, std::vector<ValueId> inputs,
                              std::map<std::string, Attribute> attributes = {}, std::string_view domain = "");
// Cast; the value itself if it is of that type already.
absl::StatusOr<ValueId> AddCast(Graph& graph, ValueId value, ir::DType to);
// Reshape to a shape with as many elements; the value itself if it has that shape already.
absl::StatusOr<ValueId> AddReshape(Graph& graph, ValueId value, const std::vector<int64_t>& shape);

// Slice: [begin, end) along the axis.
absl::StatusOr<ValueId> AddSlice(Graph& graph, ValueId value, int64_t axis, int64_t begin, int64_t end);

// Node indices that read each value, in order, once per node; graph outputs are not in it.
std::vector<std::vector<int>> Consumers(const Graph& graph);
// The node that makes each value, or -1.
std::vector<int> Producers(const Graph& graph);
bool IsOutput(const Graph& graph, ValueId value);
// Whether the node is given that input, which may be optional.
bool HasInput(const Node& node, size_t input);

// Every use of `from` (by nodes and as graph output) becomes a use of `to`. The node that makes `to`, and what was
// appended for it, moves to where `from` is made: at the end of the graph it would run after everything that is ready
// sooner, whose results then need memory all that time.
void ReplaceUses(Graph& graph, ValueId from, ValueId to);
// As ReplaceUses for many values at once; chains are followed.
void ReplaceUses(Graph& graph, std::map<ValueId, ValueId> replacements);

// Removes nodes none of whose outputs is used. A node that comes before one of its inputs moves behind it; else the
// order stays. Constants that nobody reads lose their data, which may be large.
void Tidy(Graph& graph);

// Who still reads a value, for a pass that replaces one node after the other: the weights that it has done with are
// gone before it makes the next ones, not only when it tidies.
class Readers {
 public:
  explicit Readers(const Graph& graph);
  // What reads `from` will read `to`. Nodes that were appended since the last call count from here on.
  void Redirect(const Graph& graph, ValueId from, ValueId to);
  // The node has been replaced: constants that nobody else reads lose their data.
  void Drop(Graph& graph, const Node& node);

 private:
  void CountNew(const Graph& graph);

  std::vector<int64_t> reads_;  // per value
  size_t counted_ = 0;          // the nodes up to here
};

// What `lower` makes of a node takes the place of its outputs, in their order, for every node that there is at first;
// no values leave a node as it is. Constants go with the last node that reads them. Tidies. The first error ends it.
using Lowering = std::function<absl::StatusOr<std::vector<ValueId>>(Graph& graph, const Node& node)>;
absl::Status ReplaceNodes(Graph& graph, const Lowering& lower);
// The same for the first output only; kAbsent leaves a node as it is.
absl::Status LowerNodes(Graph& graph, const std::function<absl::StatusOr<ValueId>(Graph&, const Node&)>& lower);

// True if the node is `op` of ai.onnx.
inline bool Is(const Node& node, std::string_view op) { return node.domain.empty() && node.op == op; }

// The attribute, or the fallback where it is absent or of another type.
int64_t IntAttribute(const Node& node, const std::string& name, int64_t fallback);
double FloatAttribute(const Node& node, const std::string& name, double fallback);
std::vector<int64_t> IntsAttribute(const Node& node, const std::string& name, std::vector<int64_t> fallback = {});
std::string StringAttribute(const Node& node, const std::string& name, std::string_view fallback);

// An axis that may be counted from the end, counted from the front.
inline int64_t AxisFromFront(int64_t axis, size_t rank) { return axis < 0 ? axis + static_cast<int64_t>(rank) : axis; }

// The elements of a constant as T (which must be the C++ type of its dtype).
template <typename T>
std::vector<T> ReadConstant(const Value& value) {
  std::vector<T> elements(value.data->size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), value.data->data(), elements.size() * sizeof(T));
  return elements;
}

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_GRAPH_EDIT_H_
