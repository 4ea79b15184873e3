// SPDX-License-Identifier: Apache-2.0
// A model as a graph of values, nodes and attributes. Import makes it and the graph passes rewrite it.
//
// Every value has a type whose dimensions are numbers or expressions of open sizes, which get their values when a run
// begins. A node is an ONNX operator, or one of the few internal operators that passes introduce (domain "hone"). The
// meaning of operators is defined in ops/ (see op.h) and nowhere else.
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
#include "compiler/ir/expr.h"
#include "compiler/target/target.h"

namespace hone::graph {

struct TensorType {
  ir::DType dtype = ir::DType::kFloat32;
  ir::Shape shape;
  bool operator==(const TensorType&) const = default;
  ir::Size elements() const { return ir::Product(shape); }
};

// Row-major bytes of a constant. The bytes are shared, because graphs are copied and weights are large.
using TensorData = std::shared_ptr<const std::vector<std::byte>>;
// The elements of a value that is known but for open sizes, row-major: arithmetic on their Vars.
using ElementExprs = std::shared_ptr<const std::vector<ir::Expr>>;

struct Constant {
  TensorType type;
  TensorData data;
  bool operator==(const Constant&) const = default;  // compares data by pointer, here and in Value and Node
};

struct Graph;
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Constant, std::shared_ptr<const Graph>>;

using ValueId = int;
inline constexpr ValueId kAbsent = -1;  // an optional input or output that the node leaves out

// A value of the model's file, as a value of the graph holds it.
struct FileValue {
  std::string name;  // in the file; inside of functions and graphs of nodes with a prefix, as in Origin
  ir::Shape shape;   // in the file
  // If not empty: the elements are in the order that the file's value has after its dimensions change places. Dimension
  // i of the file's value is dimension axes[i].
  std::vector<int64_t> axes = {};
  bool operator==(const FileValue&) const = default;
};

struct Value {
  std::string name;  // the model's name for it; unique in the graph
  TensorType type;
  TensorData data;  // set exactly if the value is a constant
  // Set if the value is known but for open sizes: one expression per element. No node makes such a value.
  ElementExprs elements;
  // The values of the file whose elements it has. Kept as Node::origins.
  std::vector<FileValue> held = {};
  bool operator==(const Value&) const = default;
};

// A node of the model's file, as origin of nodes of a graph. Names are unique in a model.
struct Origin {
  std::string name;  // its name, or "Conv_12" by its operator and index; inside of functions and graphs of nodes with
                     // the name of the node outside before it: "loop/Add_3"
  std::string op;    // its operator in the file
  bool computes = false;  // after the import it does more than reinterpret bytes: it is not a constant, a Reshape, ...
  bool operator==(const Origin&) const = default;
};

struct Node {
  std::string name;    // the model's name for it, or "<op>_<index>"; used in messages only
  std::string op;      // "Conv", "MatMul", ...
  std::string domain;  // "" means ai.onnx
  int opset = 0;       // version of the domain's operator set, which decides the meaning of `op`
  std::vector<ValueId> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  // Indices into Graph::origins, ascending: the nodes of the file that it computes, wholly or in part. Import sets
  // them, and ReplaceUses and Tidy keep them (graph_edit.h), so that passes need not.
  std::vector<int> origins = {};
  bool operator==(const Node&) const = default;
};

struct Graph {
  target::Target target;            // the target to optimize for; passes ask for its capabilities
  std::vector<ir::OpenSize> sizes;  // the open sizes that shapes and elements use; names are unique
  std::vector<Value> values;        // indexed by ValueId
  std::vector<Node> nodes;          // in topological order
  std::vector<ValueId> inputs, outputs;
  std::map<ValueId, TensorData> defaults;  // the values of inputs that a run need not set; each key is in inputs
  std::vector<std::string> output_names;   // one per output: the model's name, kept when a pass replaces the value
  std::vector<Origin> origins;             // the imported nodes of the file, in its order; empty: they are not known
};

// Returns true if both graphs have the same nodes on the same values, names included. A pass that changes nothing
// leaves an equal graph. Constants are equal only if they share their bytes, or expressions. Values that
// only one graph has, sizes and targets do not count.
bool Equal(const Graph& a, const Graph& b);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_GRAPH_H_
