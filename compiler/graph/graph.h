// SPDX-License-Identifier: Apache-2.0
// The model as a graph: values, nodes, attributes. What import makes and what the graph passes rewrite.
//
// Every value has a static type: symbolic dimensions are bound at import. A node is an ONNX operator (or one of the few
// internal ones that passes introduce, domain "hone"). What an operator means is in ops/ (see op.h) and nowhere else.
#ifndef HONE_COMPILER_GRAPH_GRAPH_H_
#define HONE_COMPILER_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/type.h"
#include "compiler/target/target.h"

namespace hone::graph {

struct TensorType {
  ir::DType dtype = ir::DType::kFloat32;
  std::vector<int64_t> shape;
  bool operator==(const TensorType&) const = default;
  int64_t elements() const;
};

// Row-major bytes of a constant; shared, because graphs are copied and weights are large.
using TensorData = std::shared_ptr<const std::vector<std::byte>>;

struct Constant {
  TensorType type;
  TensorData data;
  bool operator==(const Constant&) const = default;  // data by handle, here and below
};

struct Graph;
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Constant, std::shared_ptr<const Graph>>;

using ValueId = int;
inline constexpr ValueId kAbsent = -1;  // an optional input or output that the model leaves out

struct Value {
  std::string name;  // as the model names it; unique
  TensorType type;
  TensorData data;  // set iff the value is a constant
  bool operator==(const Value&) const = default;
};

struct Node {
  std::string name;    // as the model names it, or "<op>_<index>"; for messages
  std::string op;      // "Conv", "MatMul", ...
  std::string domain;  // "" is ai.onnx
  int opset = 0;       // the version of the domain that the model imports
  std::vector<ValueId> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  bool operator==(const Node&) const = default;
};

struct Graph {
  target::Target target;      // what the graph is rewritten for: a pass may ask what it can do
  std::vector<Value> values;  // indexed by ValueId
  std::vector<Node> nodes;    // in topological order
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;  // per output, as the model names it: passes may replace the value
};

// The same nodes on the same values: what a pass that changes nothing leaves.
bool Equal(const Graph& a, const Graph& b);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_GRAPH_H_
