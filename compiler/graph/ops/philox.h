// SPDX-License-Identifier: Apache-2.0
// Random numbers as tensor expressions, by the generator Philox 2x32-10 (Salmon et al., "Parallel Random Numbers: As
// Easy as 1, 2, 3", 2011).
//
// The generator has no state: element n of a tensor is the block that key and counter n give. Every run of a model
// therefore has the same numbers, on every target. Not here: the operators (random.cc). Start with EmitUniform.
#ifndef HONE_COMPILER_GRAPH_OPS_PHILOX_H_
#define HONE_COMPILER_GRAPH_OPS_PHILOX_H_

#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph {

// The key of a node: the bits of its attribute seed as f32, or, without that attribute, a hash of the node's name.
uint32_t PhiloxKey(const OpArgs& args);

// Appends stages for a buffer u64[shape] of random bits, a block of two 32-bit words per element.
ir::Buffer EmitRandomBits(StageBuilder& builder, uint32_t key, const Shape& shape);

// Appends stages for uniform numbers in [0, 1), of type f32 or f64. They are multiples of 2^-24 and 2^-53.
ir::Buffer EmitUniform(StageBuilder& builder, uint32_t key, ir::DType dtype, const Shape& shape);

// Appends stages for normal numbers with mean 0 and deviation 1, of type f32 or f64.
ir::Buffer EmitNormal(StageBuilder& builder, uint32_t key, ir::DType dtype, const Shape& shape);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_OPS_PHILOX_H_
