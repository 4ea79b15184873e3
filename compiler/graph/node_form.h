// SPDX-License-Identifier: Apache-2.0
// Checks the form of a node before it is imported: its attributes and the number of its inputs and outputs.
//
// A file that violates the specification is refused here rather than read generously, because a misspelt attribute
// would silently change the result. Not here: element types, shapes and values, which the operator functions check.
#ifndef HONE_COMPILER_GRAPH_NODE_FORM_H_
#define HONE_COMPILER_GRAPH_NODE_FORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

// Compares the node, an operator of ai.onnx at this opset version, with its signature (ops/signatures.h) and converts
// attributes of nearly right type (convert_attribute.h). References of attributes must be resolved before. Operators
// without a signature, and those of other domains, are left as they are.
//
// InvalidArgument with all reasons: the operator is newer than the opset, the node has an attribute that the operator
// does not have, or too many inputs or outputs. Appends to `warnings` what is outside the specification and has a
// certain meaning nevertheless.
absl::Status CheckNodeForm(RawNode& node, int64_t opset, std::vector<std::string>& warnings);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_NODE_FORM_H_
