// SPDX-License-Identifier: Apache-2.0
// Resolves a model's inputs before import: their shapes without symbolic dimensions, and the values of inputs that the
// caller fixes at compile time ("bound" inputs).
//
// Not here: reading the model file (onnx_reader.h), making the graph (onnx_import.h).
#ifndef HONE_COMPILER_GRAPH_BIND_INPUTS_H_
#define HONE_COMPILER_GRAPH_BIND_INPUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// Returns one type per input, in the order of `inputs`, with every dimension known. If the shape given for one input
// decides a symbolic dimension, it decides that dimension for all inputs. InvalidArgument if a dimension stays unknown,
// or if the options contradict the model or name an input that the model does not have.
absl::StatusOr<std::vector<TensorType>> BindInputTypes(const std::vector<RawInput>& inputs,
                                                       const ImportOptions& options);

// Returns per input its bound value in row-major order, or nullptr for an input that stays a run-time input. `types` is
// the result of BindInputTypes. InvalidArgument, stating the expected type and shape, if a value does not fit its
// input.
absl::StatusOr<std::vector<TensorData>> BindInputValues(const std::vector<RawInput>& inputs,
                                                        const std::vector<TensorType>& types,
                                                        const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_BIND_INPUTS_H_
