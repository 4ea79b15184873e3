// SPDX-License-Identifier: Apache-2.0
// Operands of a tiled reduction: their layout, their size, and the stages that produce them.
#ifndef HONE_COMPILER_SPACE_SKETCH_OPERANDS_H_
#define HONE_COMPILER_SPACE_SKETCH_OPERANDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/space/sketch.h"
#include "compiler/space/sketch/analysis.h"

namespace hone::space {

// The axes of the reduction, outermost first, in an order in which operands that are not read as vectors (these lie
// along axis `vector`) are walked along memory.
std::vector<std::string> ReductionOrder(const ir::Stage& stage, const std::string& vector);
// The layout in which one step of the reduction reads its vectors side by side: outer dimensions, tiles of `width`
// elements, axes of the reduction in the given order, positions in a tile. Empty, so that nothing can be packed, if an
// index of the load is no plain axis (except in a dimension of extent 1), or if `vector` is not exactly one of the
// indices.
std::vector<schedule::PackDim> PackedOrder(const ir::Load& load, const std::string& vector, int64_t width,
                                           const std::vector<std::string>& reduce_order);
// Makes the stage read a packed copy of the load's buffer, in which the dimension that the axis moves is the last one.
// Nothing is done if the axis moves several dimensions, or none.
absl::Status PackLast(Sketch& sketch, const std::string& stage, const ir::Load& load, const std::string& axis);

// Stages without reduction (padding) that only this stage reads, no step has touched, and the kernel itself computes.
std::vector<std::string> OwnProducers(const schedule::State& state, const ir::Stage& stage);
// The sum of products that the element-wise stage reads in place, if no other stage reads it and no step has touched
// it; else "".
std::string SumsBehind(const schedule::State& state, const std::string& stage);
// Whether the stage reads sums of products in place, and only a product reads the stage, as the operand without
// vectors. Example: a depthwise convolution before a pointwise one.
bool FeedsProduct(const schedule::State& state, const std::string& stage);

// The number of elements along each dimension that the load reads while each axis runs through the given number of
// values. Axes that are not named have one value. RegionBytes counts no elements beyond an end of the buffer.
using AxisExtents = std::map<std::string, int64_t, std::less<>>;
std::vector<int64_t> RegionOf(const ir::Load& load, const ir::Ranges& ranges, const AxisExtents& extents);
int64_t RegionBytes(const ir::Load& load, const ir::Ranges& ranges, const AxisExtents& extents);
// The most bytes that a block of tiles may copy. They should stay in a core's cache, and leave room for other local
// buffers.
int64_t CopiedBytesMax(const target::Target& target);
// Whether the stage only converts floats to a wider type.
bool IsWidening(const ir::Stage& stage);
// Splits the last loop of a stage that is computed inside another stage into vectors of 4-byte elements. A few vectors
// are unrolled. Nothing is done for a single element.
absl::Status VectorizeCopy(Sketch& sketch, const std::string& producer);

}  // namespace hone::space

#endif  // HONE_COMPILER_SPACE_SKETCH_OPERANDS_H_
