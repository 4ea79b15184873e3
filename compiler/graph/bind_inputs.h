// SPDX-License-Identifier: Apache-2.0
// The shapes of a model's inputs, and the values of those that are bound, from what the model declares and what the
// caller says.
#ifndef HONE_COMPILER_GRAPH_BIND_INPUTS_H_
#define HONE_COMPILER_GRAPH_BIND_INPUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// One type per input, every dimension known. A symbol that one input's shape decides is decided for all inputs.
// InvalidArgument if a dimension stays unknown, if options contradict the model or name an input that is not there.
absl::StatusOr<std::vector<TensorType>> BindInputTypes(const std::vector<RawInput>& inputs,
                                                       const ImportOptions& options);

// Per input its bound value, or nullptr. types: from BindInputTypes. InvalidArgument, with what is wanted, if a value
// is not of its input's type and shape.
absl::StatusOr<std::vector<TensorData>> BindInputValues(const std::vector<RawInput>& inputs,
                                                        const std::vector<TensorType>& types,
                                                        const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_BIND_INPUTS_H_
