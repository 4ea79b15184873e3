// SPDX-License-Identifier: Apache-2.0
// Gives a workload open sizes of its own: a product such as batch * sequence becomes one size.
//
// The same layer then has the same workload wherever it stands in a model, and its loops have plain extents. Not here:
// canonical names (compiler/ir/workload.h).
#ifndef HONE_COMPILER_GRAPH_ABSTRACT_SIZES_H_
#define HONE_COMPILER_GRAPH_ABSTRACT_SIZES_H_

#include <vector>

#include "compiler/ir/workload.h"

namespace hone::graph {

// Replaces expressions of open sizes by new ones where the workload uses the expressions only as wholes. Returns one
// size per entry of workload.sizes afterwards: what it stands for, in terms of the sizes before.
std::vector<ir::Size> AbstractSizes(ir::Workload& workload);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_ABSTRACT_SIZES_H_
