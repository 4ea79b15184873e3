// SPDX-License-Identifier: Apache-2.0
// Asking an operator function what a node means: its stages, its output types, its value if the inputs are constant.
//
// The only caller of OpDef::emit. Import and passes use InferTypes and Evaluate; building workloads uses EmitInto.
// Start with EmitNode.
#ifndef HONE_COMPILER_GRAPH_EMIT_H_
#define HONE_COMPILER_GRAPH_EMIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"

namespace hone::graph {

// The operator's stages appended to builder, reading from inputs (one buffer per node input, nullptr if absent).
// Returns one buffer per node output, nullptr exactly where the output is kAbsent. Errors name node and operator;
// Unimplemented if we do not have it, or if it does not make an output that the node has.
absl::StatusOr<std::vector<ir::Buffer>> EmitInto(const Graph& graph, const Node& node, std::vector<ir::Buffer> inputs,
                                                 StageBuilder& builder);

struct EmittedNode {
  std::vector<ir::Buffer> inputs;  // per node input; the same handle where the node reads a value twice
  std::vector<ir::Stage> stages;
  std::vector<ir::Buffer> outputs;  // per node output; may be an input; nullptr where absent
};
absl::StatusOr<EmittedNode> EmitNode(const Graph& graph, const Node& node);

// Types of node.outputs (of those present). Sizes are checked, of what lies between inputs and outputs as well.
absl::StatusOr<std::vector<TensorType>> InferTypes(const Graph& graph, const Node& node);

// True if the values of the outputs can be known now: whatever the stages read is a constant. (A Shape reads nothing.)
absl::StatusOr<bool> IsKnown(const Graph& graph, const Node& node);

// The node's outputs (empty where absent) computed by the interpreter; the node must be known. ResourceExhausted
// (nothing was computed) if it would take more than max_steps evaluations of a stage's value. `steps`, where it is
// given, gets how many it takes either way.
absl::StatusOr<std::vector<Constant>> Evaluate(const Graph& graph, const Node& node, int64_t max_steps,
                                               int64_t* steps = nullptr);

// InvalidArgument if a dimension is negative or the tensor would take more than 1 TiB. A dimension of 0 counts as 1: in
// what passes, no product of dimensions overflows. Every tensor that a model names goes through it.
absl::Status CheckSize(const TensorType& type);
// The bytes that a value of this type takes.
int64_t ByteSize(const TensorType& type);
std::string Print(const TensorType& type);  // "f32[2,3]"

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_EMIT_H_
