// SPDX-License-Identifier: Apache-2.0
// The meaning of operators: one function per operator, which writes its outputs as tensor expressions.
//
// The same function serves shape and type inference (the types of the buffers it returns), constant folding (its
// stages, interpreted) and code generation (its stages, fused into a workload). There is no second definition. The
// functions are in ops/, one file per family, each with a table; FindOp searches the tables.
#ifndef HONE_COMPILER_GRAPH_OP_H_
#define HONE_COMPILER_GRAPH_OP_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/op_facts.h"
#include "compiler/ir/workload.h"

namespace hone::graph {

// Collects the stages of a workload and gives them names that are unique in it.
class StageBuilder {
 public:
  // Adds a stage of this shape without reduction. Calls `value` once, with one index expression per dimension.
  using Body = std::function<ir::Expr(std::span<const ir::Expr>)>;
  ir::Buffer Compute(std::string_view hint, ir::DType dtype, ir::Shape shape, const Body& value);
  // Adds a stage with a reduction over reduce_extents. `value` gets the indices and the reduction indices.
  using ReduceBody = std::function<ir::Expr(std::span<const ir::Expr>, std::span<const ir::Expr>)>;
  ir::Buffer Reduce(std::string_view hint, ir::DType dtype, ir::Shape shape, ir::Shape reduce_extents,
                    ir::Reduction reduction, const ReduceBody& value);
  std::span<const ir::Stage> stages() const { return stages_; }
  std::vector<ir::Stage> TakeStages() { return std::move(stages_); }

 private:
  std::vector<ir::Stage> stages_;
  int next_ = 0;
};

// The arguments of an operator function: the node, its input buffers (nullptr if absent) and the values of constant
// inputs.
struct OpArgs {
  const Node& node;
  std::vector<ir::Buffer> inputs;
  std::vector<TensorData> constants;  // one per input; null if the value is not known at compile time
  // One per input: its elements as expressions of open sizes; null unless the value is known but for these sizes.
  std::vector<ElementExprs> elements = {};
  std::span<const ir::OpenSize> sizes = {};  // those of the graph
  // Set by the attribute getters below to the first attribute of a wrong type. EmitInto (emit.h) checks it after the
  // operator function has run, before it looks at the function's result.
  mutable absl::Status attribute_error = absl::OkStatus();

  // The error text for input i if its value must be known at compile time and is not.
  static std::string NotConstantMessage(size_t i);
  bool Has(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  // These return the attribute, or the fallback if the node has none. An attribute of a wrong type sets attribute_error
  // (InvalidArgument, naming the attribute) and yields the fallback.
  int64_t Int(std::string_view name, int64_t fallback) const;
  double Float(std::string_view name, double fallback) const;  // rounded to f32, as ONNX stores float attributes
  std::string String(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback) const;
  // Sets attribute_error, unless it is already set. `wanted` is the expected type in words: "an integer".
  void WrongType(std::string_view name, std::string_view wanted) const;
  // Returns the elements of input i (int32 or int64: shapes, axes, pads). Unimplemented if it is not constant.
  absl::StatusOr<std::vector<int64_t>> ConstantInts(size_t i) const;
  // Returns the elements of input i as sizes. InvalidArgument if it is not known at compile time but for open sizes.
  absl::StatusOr<ir::Shape> ConstantSizes(size_t i) const;
};

// An operator function appends stages and returns one buffer per output, in order. A returned buffer may be an input
// buffer (Identity). For an output that the node omits, the entry may be present, null or, at the end, missing. Errors:
// InvalidArgument if the node is malformed, Unimplemented (with the reason) if Hone does not support it.
using OpFn = absl::StatusOr<std::vector<ir::Buffer>> (*)(const OpArgs& args, StageBuilder& builder);

struct OpDef {
  std::string_view name;
  OpFn emit;
  OpFacts facts = {};
  // Sets the range from which random test and timing data for an input is drawn, for operators that need another range
  // than [-1, 1]; else null.
  void (*input_range)(const OpArgs& args, size_t input, double* low, double* high) = nullptr;
};

// Returns nullptr if there is no such operator.
const OpDef* FindOp(std::string_view domain, std::string_view name);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OP_H_
