// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/onnx_import.h"

#include <utility>

#include "base/status.h"
#include "compiler/graph/fallback.h"
#include "compiler/graph/importer.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {
namespace {

ReadOptions ReadFor(const ImportOptions& options) {
  return {.may_read = options.may_read, .keeps_sources = options.fallback};
}

absl::StatusOr<Graph> ImportRead(RawModel model, const ImportOptions& options) {
  for (const ForeignNodes& part : MoveRefused(model, options)) {
    if (options.warn) options.warn(Print(part));
  }
  return Importer(model).Run(options);
}

}  // namespace

absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(RawModel model, ReadOnnxBytes(bytes, folder, ReadFor(options)));
  return ImportRead(std::move(model), options);
}

absl::StatusOr<Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  HONE_ASSIGN_OR_RETURN(RawModel model, ReadOnnxFile(path, ReadFor(options)));
  absl::StatusOr<Graph> graph = ImportRead(std::move(model), options);
  return graph.ok() ? std::move(graph) : Annotate(graph.status(), path);
}

TriedImport TryImportOnnx(const RawModel& model, const ImportOptions& options) {
  ImportOptions quiet = options;
  quiet.warn = nullptr;  // the report has the warnings
  Importer importer(model);
  const absl::StatusOr<Graph> graph = importer.Run(quiet);
  return {importer.report(), graph.ok() ? LargestLiveBytes(*graph) : 0};
}

}  // namespace hone::graph
