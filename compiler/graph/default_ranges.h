// SPDX-License-Identifier: Apache-2.0
// Ranges for the dimensions of inputs that neither the file nor the user states.
//
// A batch is 1 to 8. Any other dimension is 1 to the largest power of two, 32 to 512, with which the graph can be
// imported and its values that exist at one time take at most 1 GiB. A dimension that the operators tie to one number
// gets that number, and all dimensions but batches begin at 8 or 32, or are multiples of 8 or 32, if the graph can be
// imported only so. A dimension named as a past begins at 0 if it can. Ranges are found by trying to import. Not here:
// how a range becomes a size (bind_inputs.h). Start with ChooseRanges.
#ifndef HONE_COMPILER_GRAPH_DEFAULT_RANGES_H_
#define HONE_COMPILER_GRAPH_DEFAULT_RANGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/import_report.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

struct RawModel;  // onnx_reader.h

// The result of an import with some ranges.
struct TriedImport {
  ImportReport report;
  int64_t live_bytes = 0;  // LargestLiveBytes of the graph; 0 if there are problems
};
using TryImport = std::function<TriedImport(const ImportOptions&)>;

// Returns options.ranges with a range for every open dimension of `model` in addition. InvalidArgument if the graph
// cannot be imported with one of them open: names it, and shapes with which the import works. Problems of the import
// that all sizes have in common are left to the caller.
absl::StatusOr<DimRanges> ChooseRanges(const RawModel& model, const ImportOptions& options, const TryImport& import);

// A number for every open dimension, perhaps one that the graph cannot have: a batch of 1, images of 224 x 224,
// else 64.
DimRanges AssumedNumbers(const RawModel& model, const ImportOptions& options);
// The same numbers, but within the ranges.
DimRanges ExampleNumbers(const RawModel& model, const DimRanges& ranges);

// Texts for --shape that say the same as `ranges`: "ids=1..8,1..512". Inputs all of whose sizes are stated by an
// earlier input, or by --shape already, are left out.
std::vector<std::string> ShapeTexts(const RawModel& model, const ImportOptions& options, const DimRanges& ranges);

// The most bytes of values that exist at one time, if the nodes run in order and all sizes are largest. Constants are
// left out.
int64_t LargestLiveBytes(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_DEFAULT_RANGES_H_
