// SPDX-License-Identifier: Apache-2.0
// Collects the problems and warnings of one import, so that the import goes on after a problem.
//
// A value that is unknown because of a problem has the status Reported(). What only follows from such a value is not
// reported again. Not here: the result (import_report.h).
#ifndef HONE_COMPILER_GRAPH_IMPORT_LOG_H_
#define HONE_COMPILER_GRAPH_IMPORT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/bind_inputs.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/import_report.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

absl::Status Reported();
bool IsReported(const absl::Status& status);
// As Annotate, for a status that may be Reported(), which stays as it is.
absl::Status AddContext(const absl::Status& status, std::string_view context);

class ImportLog {
 public:
  // Does nothing if the status is OK or Reported(). Without `kind`, the kind follows from the status.
  void AddProblem(const absl::Status& status, std::optional<ProblemKind> kind = std::nullopt);
  // The same for a problem of a node. where: prefix of the text. Returns OK if the status is OK, else Reported().
  absl::Status AddNodeProblem(const absl::Status& status, const RawNode& node, size_t index, int64_t opset,
                              const std::string& where, std::optional<ProblemKind> kind);
  // Which of the model's own nodes the following problems are about (ImportProblem::place).
  void SetPlace(int64_t place) { place_ = place; }
  // The same for an input that could not be bound to a type and value; also notes its open dimensions.
  absl::Status AddInputProblem(const absl::Status& status, const RawInput& input, const DimRanges& symbols);

  // Adds a problem if the tensor's external data cannot be read: one for each file and reason.
  void AddDataProblem(const RawInitializer& tensor);

  void Warn(std::string text) { report_.warnings.push_back(std::move(text)); }
  // Warnings of one text are counted and shown with the first node.
  void WarnOfNode(const std::string& node, const std::string& text);

  // Notes a loop for which there is memory for ImportOptions::loop_steps steps.
  void NoteAssumedSteps(const std::string& node) { assumed_steps_.insert(node); }

  // Warns if inputs have default values, because a weight among them is slower than a constant.
  void WarnOfDefaults(const Graph& graph);

  // Compares the type that the file states for a value with the one that its operator gives. As in ONNX Runtime,
  // another element type is an error, and another shape is a warning.
  void CompareDeclared(const RawInput& declared, const TensorType& type);

  // Ends the collection.
  ImportReport TakeReport();

 private:
  ImportReport report_;
  int64_t place_ = -1;
  std::map<std::string, std::pair<std::string, int64_t>> node_warnings_;  // by text: the first node, and how many
  std::set<std::string> data_problems_;                                   // those that are added, without the tensor
  std::set<std::string> assumed_steps_;
  std::vector<std::string> other_shapes_;  // values whose declared shape is wrong
};

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_LOG_H_
