// SPDX-License-Identifier: Apache-2.0
// Small types (small_types.h) at the border of a model, and operators that make them.
//
// A program has no tensors of these types. An input or output of such a type is u8 and has the bytes that ONNX stores:
// one per element for 8 bits, with the shape of the tensor; else packed, as a list. Inside, elements are unpacked, and
// ImportGraph::small remembers their type. Start with PortTypeOf.
#ifndef HONE_COMPILER_GRAPH_IMPORT_SMALL_H_
#define HONE_COMPILER_GRAPH_IMPORT_SMALL_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/import_graph.h"
#include "compiler/graph/small_types.h"

namespace hone::graph {

// The type of an input or output whose elements have the small type. Unimplemented if the elements share bytes and the
// shape is open.
absl::StatusOr<TensorType> PortTypeOf(const SmallType& small, const ir::Shape& shape);

// Adds the nodes that unpack the bytes of an input to a tensor of this shape, of type small.stored.
absl::StatusOr<ValueId> UnpackInput(ImportGraph& at, const SmallType& small, ValueId bytes, const ir::Shape& shape);
// Adds the nodes that pack such a tensor for an output.
absl::StatusOr<ValueId> PackOutput(ImportGraph& at, const SmallType& small, ValueId value);

// The small type that the node gives its results: Cast, CastLike and QuantizeLinear may. Null: none.
const SmallType* SmallTypeMadeBy(const ImportGraph& at, const Node& node);
// Adds nodes with the meaning of such a node, and notes the type of the result.
absl::StatusOr<ValueId> AddMakerOfSmall(ImportGraph& at, const SmallType& small, const Node& node);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_SMALL_H_
