// SPDX-License-Identifier: Apache-2.0
// Small random graphs over the operators, element types, odd shapes and views.
#ifndef HONE_TESTS_FUZZ_RANDOM_GRAPH_H_
#define HONE_TESTS_FUZZ_RANDOM_GRAPH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::fuzz {

// 5 to 15 nodes (a few more where a node needs others before it), legal and tidy; the same for the same seed on every
// machine. An error is a fault of an operator, which failed in another way than by refusing a node.
absl::StatusOr<graph::Graph> MakeRandomGraph(uint64_t seed);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_RANDOM_GRAPH_H_
