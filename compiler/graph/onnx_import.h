// SPDX-License-Identifier: Apache-2.0
// Imports an ONNX file as a Graph: resolves names, binds symbolic dimensions, infers types, inlines functions and
// branches with constant conditions, and folds arithmetic on shapes.
//
// Not here: reading the file's bytes (onnx_reader.h), ranges for open dimensions and reports (check_onnx.h), making the
// graph faster (passes/).
#ifndef HONE_COMPILER_GRAPH_ONNX_IMPORT_H_
#define HONE_COMPILER_GRAPH_ONNX_IMPORT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/default_ranges.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// Imports the file at `path`. Errors name file, node, operator and all reasons: NotFound, InvalidArgument (damaged
// file, unbound dimension, malformed node) or Unimplemented (a feature of ONNX that Hone does not support).
absl::StatusOr<Graph> ImportOnnx(const std::string& path, const ImportOptions& options);
// The same for a model in memory; external data is read from `folder`.
absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options);

// The report of an import of a model that is already read, and the memory that its values take. Not an import for use.
TriedImport TryImportOnnx(const RawModel& model, const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_ONNX_IMPORT_H_
