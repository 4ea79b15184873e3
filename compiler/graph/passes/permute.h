// SPDX-License-Identifier: Apache-2.0
// Transposes constants directly in memory, for passes that change weights. Also: arithmetic on permutations.
#ifndef HONE_COMPILER_GRAPH_PASSES_PERMUTE_H_
#define HONE_COMPILER_GRAPH_PASSES_PERMUTE_H_

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"

namespace hone::graph {

using Perm = std::vector<int64_t>;

// Returns the attribute perm of a Transpose of a value of this rank; if it is absent, the reversing permutation.
Perm TransposePerm(const Node& node, size_t rank);
// result[d] = dims[perm[d]]: the shape after a Transpose. The same for numbers.
ir::Shape PermuteDims(const ir::Shape& dims, const Perm& perm);
Perm PermuteDims(const Perm& dims, const Perm& perm);
Perm Inverse(const Perm& perm);
// Returns the bytes of the transposed constant. perm has one entry per dimension.
TensorData Permute(const Value& constant, const Perm& perm);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PASSES_PERMUTE_H_
