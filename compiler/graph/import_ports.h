// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs of a model during its import (importer.h). Inputs get their types and values, and what is
// no plain tensor in the file becomes tensors: sequences, optional values, elements of small types.
//
// Not here: which shapes and values the options give (bind_inputs.h). Start with AddInputs.
#ifndef HONE_COMPILER_GRAPH_IMPORT_PORTS_H_
#define HONE_COMPILER_GRAPH_IMPORT_PORTS_H_

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/import_control.h"
#include "compiler/graph/import_graph.h"
#include "compiler/graph/import_log.h"
#include "compiler/graph/import_scope.h"
#include "compiler/graph/import_sequence.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

class ImportPorts {
 public:
  // Everything must outlive the object.
  ImportPorts(const RawGraph& graph, const ImportOptions& options, ImportGraph& at, ImportLog& log,
              Sequences& sequences, NameSource unique)
      : graph_(graph), options_(options), at_(at), log_(log), sequences_(sequences), unique_(std::move(unique)) {}

  // Defines the inputs that the scope does not have, and returns the ranges of their open dimensions by name.
  // `defaulted`: those that need not be set at run time.
  absl::StatusOr<DimRanges> AddInputs(const std::set<std::string>& defaulted, Scope& scope);
  void AddOutputs(const Scope& scope);

 private:
  ValueId Named(const std::string& name, TensorType type, TensorData data);
  absl::StatusOr<ValueId> AddInput(const RawInput& input, const DimRanges& symbols);
  absl::StatusOr<ValueId> AddContainer(const RawInput& input, const DimRanges& symbols);
  absl::StatusOr<ValueId> AddSmallInput(const RawInput& input, const ir::Shape& shape);
  absl::StatusOr<ValueId> AddDefaulted(const RawInput& input);
  absl::Status AddOutput(const std::string& name, const Scope& scope, std::set<std::string>& seen);
  absl::Status AddTensorOutput(const std::string& name, ValueId id, std::set<std::string>& seen);

  const RawGraph& graph_;
  const ImportOptions& options_;
  ImportGraph& at_;
  ImportLog& log_;
  Sequences& sequences_;
  NameSource unique_;
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_PORTS_H_
