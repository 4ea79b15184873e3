// SPDX-License-Identifier: Apache-2.0
// From the ONNX file to a Graph: names resolved, symbolic dimensions bound, types inferred, constant branches and
// functions inlined, arithmetic on shapes folded.
//
// Not here: reading bytes (onnx_reader.h), making the graph faster (passes/).
#ifndef HONE_COMPILER_GRAPH_ONNX_IMPORT_H_
#define HONE_COMPILER_GRAPH_ONNX_IMPORT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// Errors name file, node, operator and reason: NotFound, InvalidArgument (damaged file, unbound dimension, malformed
// node), Unimplemented (what we do not support).
absl::StatusOr<Graph> ImportOnnx(const std::string& path, const ImportOptions& options);
// The same from memory; external data is looked for in `folder`.
absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_ONNX_IMPORT_H_
