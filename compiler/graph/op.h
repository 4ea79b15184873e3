// SPDX-License-Identifier: Apache-2.0
// What an operator means: one function per operator that writes its outputs as tensor expressions.
//
// The same function serves shape and type inference (the types of the buffers it returns), constant folding (its
// stages, interpreted) and code generation (its stages, fused into a workload). There is no second definition.
// The functions are in ops/, one file per family, each with a table; FindOp looks through the tables.
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

// Collects stages; hands out names that are unique within the workload being built.
class StageBuilder {
 public:
  // A stage of shape `shape` without reduction; value(index vars) is called once with one index Expr per dimension.
  using Body = std::function<ir::Expr(std::span<const ir::Expr>)>;
  ir::Buffer Compute(std::string_view hint, ir::DType dtype, std::vector<int64_t> shape, const Body& value);
  // With a reduction over reduce_extents; value gets the indices and the reduction indices.
  using ReduceBody = std::function<ir::Expr(std::span<const ir::Expr>, std::span<const ir::Expr>)>;
  ir::Buffer Reduce(std::string_view hint, ir::DType dtype, std::vector<int64_t> shape,
                    std::vector<int64_t> reduce_extents, ir::Reduction reduction, const ReduceBody& value);
  std::span<const ir::Stage> stages() const { return stages_; }
  std::vector<ir::Stage> TakeStages() { return std::move(stages_); }

 private:
  std::vector<ir::Stage> stages_;
  int next_ = 0;
};

// What an operator function sees: the node, its input buffers (nullptr if absent) and the values of constant inputs.
struct OpArgs {
  const Node& node;
  std::vector<ir::Buffer> inputs;
  std::vector<TensorData> constants;  // per input; null where the value is not known at compile time
  // The first attribute found with a wrong type; who calls the operator function checks it afterwards, and before what
  // the function returns.
  mutable absl::Status attribute_error = absl::OkStatus();

  // Why input i, whose value is not known, had to be.
  static std::string MustBeKnown(size_t i);
  bool Has(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  // The attribute, or the fallback where the node has none. A wrong type sets attribute_error (InvalidArgument, naming
  // the attribute) and yields the fallback.
  int64_t Int(std::string_view name, int64_t fallback) const;
  double Float(std::string_view name, double fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback) const;
  // Sets attribute_error, unless it is set: the attribute must be what was wanted, "an integer" say.
  void WrongType(std::string_view name, std::string_view wanted) const;
  // The integers of input i (int32 or int64), which must be constant (shapes, axes, pads); else InvalidArgument.
  absl::StatusOr<std::vector<int64_t>> ConstantInts(size_t i) const;
};

// Appends stages and returns the operator's outputs in order (one may be an input buffer: Identity). What the node
// leaves out may be there, null or, at the end, missing. Errors: InvalidArgument when the node is malformed,
// Unimplemented (with the reason) when we do not support it.
using OpFn = absl::StatusOr<std::vector<ir::Buffer>> (*)(const OpArgs& args, StageBuilder& builder);

struct OpDef {
  std::string_view name;
  OpFn emit;
  OpFacts facts = {};
  // Gives the range of values that makes sense for inputs on made-up data where [-1, 1] does not; else null.
  void (*input_range)(const OpArgs& args, size_t input, double* low, double* high) = nullptr;
};

// nullptr if there is no such operator.
const OpDef* FindOp(std::string_view domain, std::string_view name);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OP_H_
