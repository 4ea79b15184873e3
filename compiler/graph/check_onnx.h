// SPDX-License-Identifier: Apache-2.0
// Questions about an ONNX file that need no compilation: what keeps it from being imported, and which ranges its open
// dimensions get by default.
//
// Large external data stays unread, so that the answers are fast. Not here: the import itself (onnx_import.h).
#ifndef HONE_COMPILER_GRAPH_CHECK_ONNX_H_
#define HONE_COMPILER_GRAPH_CHECK_ONNX_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/import_report.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// Tells all that an import of the file would miss, with these options and the ranges of ChooseOpenRanges. If the rank
// of an input is open, or if an open dimension can have no range, the check assumes numbers: problems that another size
// may solve are then left out. Errors: the file cannot be read or is damaged.
absl::StatusOr<ImportReport> CheckOnnx(const std::string& path, const ImportOptions& options);

struct OpenRanges {
  DimRanges ranges;                  // for ImportOptions::ranges
  std::vector<std::string> shapes;   // the same as texts of --shape; empty if no dimension is open
  std::vector<std::string> numbers;  // texts of --shape with a number for each open dimension
};
// Chooses ranges for the dimensions that the file and the options leave open (default_ranges.h has the rule). Errors:
// those of ReadOnnxFile and of ChooseRanges.
absl::StatusOr<OpenRanges> ChooseOpenRanges(const std::string& path, const ImportOptions& options);

// The names of the model's inputs, in the order of the file; initializers are not among them. Errors: the file cannot
// be read or is damaged.
absl::StatusOr<std::vector<std::string>> InputNames(const std::string& path);
// The paths of the files with the model's external data, by the locations that the model states. Errors: the same.
absl::StatusOr<std::map<std::string, std::string>> ExternalFiles(const std::string& path);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_CHECK_ONNX_H_
