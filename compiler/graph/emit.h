// SPDX-License-Identifier: Apache-2.0
// Runs operator functions (OpDef::emit) for nodes of a graph: their stages, output types, and constant results.
//
// This is the only caller of OpDef::emit. Import and passes use InferTypes and Evaluate; building workloads uses
// EmitInto. Start with EmitNode.
#ifndef HONE_COMPILER_GRAPH_EMIT_H_
#define HONE_COMPILER_GRAPH_EMIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"

namespace hone::graph {

// Appends the operator's stages to builder. `inputs` has one buffer per node input, nullptr where the input is absent.
// Returns one buffer per node output, nullptr exactly where the output is kAbsent. Errors name node and operator.
// Unimplemented if the operator is unknown, or does not produce an output that the node has.
absl::StatusOr<std::vector<ir::Buffer>> EmitInto(const Graph& graph, const Node& node, std::vector<ir::Buffer> inputs,
                                                 StageBuilder& builder);

struct EmittedNode {
  std::vector<ir::Buffer>
      inputs;  // one per node input; if the node reads a value twice, both entries are the same buffer
  std::vector<ir::Stage> stages;
  std::vector<ir::Buffer> outputs;  // one per node output; may be one of `inputs`; nullptr where absent
};
absl::StatusOr<EmittedNode> EmitNode(const Graph& graph, const Node& node);

// Returns one type per node output; that of an absent output is TensorType(). The sizes of all tensors are checked
// (CheckSize), including those of intermediate stages.
absl::StatusOr<std::vector<TensorType>> InferTypes(const Graph& graph, const Node& node);

// Returns true if Evaluate can compute the node at compile time: every value that its stages read is a constant, and
// nothing depends on an open size. (The stages of a Shape read nothing, so it is known if the shape is fixed.)
absl::StatusOr<bool> IsKnown(const Graph& graph, const Node& node);

// Computes the node's outputs with the interpreter; the entry of an absent output is empty. IsKnown must hold for the
// node. ResourceExhausted, before anything is computed, if it would take more than steps_max evaluations of a stage's
// value. `steps`, unless nullptr, receives the number of evaluations needed in both cases.
absl::StatusOr<std::vector<Constant>> Evaluate(const Graph& graph, const Node& node, int64_t steps_max,
                                               int64_t* steps = nullptr);

// InvalidArgument if a dimension is, or may be, negative or the tensor may take more than 1 TiB. A dimension of 0
// counts as 1 here, so no product of the dimensions of an accepted type overflows. Every tensor of a model must pass
// this check.
absl::Status CheckSize(const TensorType& type);
// Size in bytes of a value of this type, for its largest sizes.
int64_t ByteSize(const TensorType& type);
std::string Print(const TensorType& type);  // "f32[2,3]"

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_EMIT_H_
