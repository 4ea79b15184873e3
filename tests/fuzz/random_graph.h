// SPDX-License-Identifier: Apache-2.0
// Small random graphs over the operators, element types, odd shapes and views.
#ifndef HONE_TESTS_FUZZ_RANDOM_GRAPH_H_
#define HONE_TESTS_FUZZ_RANDOM_GRAPH_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::fuzz {

// Makes a legal graph of 5 to 15 nodes, or a few more if a node needs others before it. The same seed gives the same
// graph on every machine. open: some dimensions are open sizes. An error is a bug of an operator that failed other than
// by refusing a node, or that has other shapes at some sizes than its open ones give.
absl::StatusOr<graph::Graph> MakeRandomGraph(uint64_t seed, bool open = false);

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_RANDOM_GRAPH_H_
