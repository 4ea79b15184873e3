// SPDX-License-Identifier: Apache-2.0
// Graphs, plans and workloads with open sizes, at numbers for these sizes.
#ifndef HONE_TESTS_FUZZ_SIZES_H_
#define HONE_TESTS_FUZZ_SIZES_H_

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/plan.h"
#include "tests/unit/space/problem.h"

namespace hone::fuzz {

// Numbers for the sizes: the largest, the smallest, and random ones between them. One empty map if there are no sizes.
std::vector<tests::SizeMap> DrawSizes(const std::vector<ir::OpenSize>& sizes, uint64_t seed);

// The graph or plan with numbers for its open sizes. Types follow from the open ones, so that a verifier of the result
// also compares them with those of the operators.
graph::Graph AtSizes(graph::Graph graph, const tests::SizeMap& sizes);
graph::Plan AtSizes(const graph::Plan& plan, const tests::SizeMap& sizes);

// The numbers that the plan's first call of a workload gives to the workload's own sizes, for each of the plan's.
// Without repetitions.
std::vector<tests::SizeMap> SizesOfWorkload(const graph::Plan& plan, int workload,
                                            const std::vector<tests::SizeMap>& sizes);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_SIZES_H_
