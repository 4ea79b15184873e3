// SPDX-License-Identifier: Apache-2.0
// The workbench of a rule of the table (table.h): it shows the node to replace, and writes ONNX's operators in its
// place. A rule therefore reads like the function body in the specification of its operator.
//
// Errors are sticky: the first one is kept, all later calls do nothing, and the importer reports it. A rule checks
// nothing in between. After an error, values are kAbsent, ranks are 0 and extents are 1. Not here: the rules, one file
// per family, and operators that have their own tensor expressions (ops/). Start with Decomposition::Op.
#ifndef HONE_COMPILER_GRAPH_DECOMPOSE_DECOMPOSITION_H_
#define HONE_COMPILER_GRAPH_DECOMPOSE_DECOMPOSITION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph::decompose {

using Values = std::vector<ValueId>;
using Attributes = std::map<std::string, Attribute>;

// The graphs in the attributes of the node to replace.
struct NodeGraphs {
  std::vector<std::string> names;  // of the attributes
  // Writes the nodes of the graph in this attribute, with these values for its inputs. Returns its outputs.
  std::function<absl::StatusOr<Values>(const std::string& name, const Values& inputs)> write;
};

// The graph to write to, and how the importer adds to it.
struct GraphWriter {
  Graph& graph;
  // Appends the node, or computes its outputs if they are constant. Returns the outputs.
  std::function<absl::StatusOr<Values>(Node node)> add;
  // Computes the value if it is a constant whose data has not been computed yet, else does nothing.
  std::function<absl::Status(ValueId value)> compute;
  // Makes a name that no value and no open size of the model has.
  std::function<std::string(const std::string& name)> unique;
  NodeGraphs graphs = {};
};

class Decomposition {
 public:
  // Both must outlive the decomposition.
  Decomposition(const Node& node, const GraphWriter& writer) : node_(node), writer_(writer) {}

  // --- The node to replace.

  const Node& node() const { return node_; }
  ValueId Input(size_t i) const { return i < node_.inputs.size() ? node_.inputs[i] : kAbsent; }
  bool Has(size_t i) const { return Input(i) != kAbsent; }
  // Returns true if something reads the output. Outputs that nothing reads need not be made.
  bool IsOutputUsed(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] != kAbsent; }
  bool HasAttribute(std::string_view name) const;
  // These return the attribute, or the fallback if the node has none. An attribute of another type is an error. A
  // fallback that is a float is rounded to f32, because files store attributes as f32.
  int64_t Int(std::string_view name, int64_t fallback);
  double Float(std::string_view name, double fallback);
  std::string String(std::string_view name, std::string_view fallback);
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback);
  std::vector<double> Floats(std::string_view name, std::vector<double> fallback);
  std::vector<std::string> Strings(std::string_view name, std::vector<std::string> fallback);

  // --- Graphs in attributes.

  const std::vector<std::string>& Graphs() const { return writer_.graphs.names; }
  bool HasGraph(std::string_view name) const;
  // Writes the graph, which has one input and one output, with x for its input. Returns its output.
  ValueId Inline(std::string_view name, ValueId x);

  // --- Types and constants.

  const TensorType& Type(ValueId value) const;  // f32[] for kAbsent
  ir::DType ElementType(ValueId value) const { return Type(value).dtype; }
  size_t Rank(ValueId value) const { return Type(value).shape.size(); }
  // Returns the dimension as a number. A negative axis counts from the end. It is an error if there is no such
  // dimension, or if its extent is only known when the model runs: ask only for what must be a number, such as the size
  // of a head, never for the batch or the length of a sequence.
  int64_t Extent(ValueId value, int64_t axis);
  // Returns the dimension if it exists and is a number, else nullopt.
  std::optional<int64_t> KnownExtent(ValueId value, int64_t axis) const;
  // Returns true if both values have as many elements along these dimensions, whatever the number is.
  bool SameExtent(ValueId a, int64_t axis_a, ValueId b, int64_t axis_b) const;
  // Returns true if the elements are known when the model is compiled, or depend on nothing but dimensions.
  bool IsKnown(ValueId value);
  // Returns the elements as numbers, or nullopt if the value is not known at compile time. 64-bit integers beyond 2^53
  // are rounded.
  std::optional<std::vector<double>> Known(ValueId value);
  // Returns the integers of input i. It is an error if the input is absent, not constant or no integer.
  std::vector<int64_t> ConstantInts(size_t i);

  // --- Writing.

  // Adds an operator of ONNX (opset kOwnOpset), or of `domain`. Inputs may be kAbsent where they are optional.
  ValueId Op(std::string_view op, Values inputs, Attributes attributes = {}, std::string_view domain = "");
  // The same for an operator with several outputs.
  Values Ops(std::string_view op, Values inputs, size_t outputs, Attributes attributes = {},
             std::string_view domain = "");

  // Constants. A Number is a scalar, rounded once to its type; List has the shape [n].
  ValueId Number(ir::DType dtype, double number);
  ValueId Like(ValueId x, double number) { return Number(ElementType(x), number); }  // a Number of x's type
  ValueId List(const std::vector<int64_t>& integers);                                // i64
  ValueId Tensor(ir::DType dtype, std::vector<int64_t> shape, const std::vector<double>& numbers);

  // The common operators by name.
  ValueId Add(ValueId a, ValueId b) { return Op("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Op("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Op("Mul", {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Op("Div", {a, b}); }
  ValueId MatMul(ValueId a, ValueId b) { return Op("MatMul", {a, b}); }
  // Returns x itself if it has the type already.
  ValueId Cast(ValueId x, ir::DType dtype);
  // In `shape`, 0 keeps the dimension of x at the same place, and one -1 takes all that is left.
  ValueId Reshape(ValueId x, const std::vector<int64_t>& shape);
  ValueId Transpose(ValueId x, const std::vector<int64_t>& permutation);
  ValueId Unsqueeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId Squeeze(ValueId x, const std::vector<int64_t>& axes);
  ValueId Concat(Values parts, int64_t axis);
  // Cuts x into parts of these sizes along the axis.
  Values Split(ValueId x, int64_t axis, const std::vector<int64_t>& sizes);
  // The elements [begin, end) along the axis; both may be negative, and `end` may lie beyond the end.
  ValueId Slice(ValueId x, int64_t axis, int64_t begin, int64_t end);
  // i64[count]: the dimensions of x from `first` on. They may be known only when the model runs.
  ValueId ShapeOf(ValueId x, int64_t first, int64_t count);
  // i64[n]: 0, 1, ... for the n elements along the axis.
  ValueId Positions(ValueId x, int64_t axis);
  // Returns x broadcast to the shape that consists of these parts (i64 lists).
  ValueId Expand(ValueId x, Values shape_parts) { return Op("Expand", {x, Concat(std::move(shape_parts), 0)}); }
  // A size that a run computes: `count`, one i64, which is `min` to max.max(). Tensors may have it in their shapes.
  ir::Size ReadSize(ValueId count, const ir::Size& max, int64_t min = 0);
  // A list of integers as sizes. Elements that are no arithmetic on sizes, but known but for open sizes, become sizes
  // that the run reads; their ranges are those at the ends of the open sizes' ranges, and one more. nullopt if another
  // element is among them; nothing is written then.
  std::optional<ir::Shape> ReadSizes(ValueId list);
  ValueId SizeList(const ir::Shape& sizes);  // i64[n]
  // condition ? a : b
  ValueId Where(ValueId condition, ValueId a, ValueId b) { return Op("Where", {condition, a, b}); }

  // --- Errors.

  // Keeps the error unless there is one already.
  void Fail(absl::Status error) { status_.Update(error); }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  T Read(std::string_view name, T fallback, std::string_view wanted);

  const Node& node_;
  const GraphWriter& writer_;
  absl::Status status_;
};

// A rule returns the values that take the place of the node's outputs, in order; an input may be among them. The entry
// of an output that nothing reads may be kAbsent or, at the end, missing. Errors: InvalidArgument if the node is
// malformed, Unimplemented (with the reason) if Hone does not support it.
using Rule = absl::StatusOr<Values> (*)(Decomposition& b);

}  // namespace hone::graph::decompose

#endif  // HONE_COMPILER_GRAPH_DECOMPOSE_DECOMPOSITION_H_
