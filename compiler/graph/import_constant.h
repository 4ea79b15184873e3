// SPDX-License-Identifier: Apache-2.0
// The value of a Constant node of an ONNX file, in any of the forms that its attributes allow.
#ifndef HONE_COMPILER_GRAPH_IMPORT_CONSTANT_H_
#define HONE_COMPILER_GRAPH_IMPORT_CONSTANT_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

// Errors: InvalidArgument if the node does not have exactly one attribute and one output; Unimplemented for strings and
// sparse tensors.
absl::StatusOr<Constant> ConstantOf(const RawNode& node);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_CONSTANT_H_
