// SPDX-License-Identifier: Apache-2.0
// Makes a node Foreign (control_flow.h) of nodes that ONNX Runtime computes (fallback.h): writes them as an ONNX model.
#ifndef HONE_COMPILER_GRAPH_FOREIGN_MODEL_H_
#define HONE_COMPILER_GRAPH_FOREIGN_MODEL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/fallback.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/import_graph.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// The node for a part, without outputs. inputs: the values that the part reads, in the order of raw.inputs. Those that
// are constants go into the model; the others are the node's inputs. InvalidArgument: an input is not defined, a node
// of the part is damaged, or all is larger than a file may be. Unimplemented: an input has another type in the file.
absl::StatusOr<Node> MakeForeign(const ImportGraph& at, const RawNode& raw, const std::vector<ValueId>& inputs);

// The type of an output of a part. symbols: the ranges of the open dimensions of the model's inputs. InvalidArgument if
// the file does not state it; some exporters write 0 for an unknown extent.
absl::StatusOr<TensorType> TypeOfForeign(const RawInput& output, const DimRanges& symbols,
                                         const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_FOREIGN_MODEL_H_
