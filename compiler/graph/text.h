// SPDX-License-Identifier: Apache-2.0
// The graph as text, for people, tests and reproducers: printer and parser. docs/IR.md has the grammar.
//
// ParseGraph(Print(g)) means what g means. Not kept: the names of nodes (a parsed node is called as its first output
// is), and values that nothing reads.
#ifndef HONE_COMPILER_GRAPH_TEXT_H_
#define HONE_COMPILER_GRAPH_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Everything, large constants in hexadecimal.
std::string Print(const Graph& graph);
// Constants of more than 16 elements only by digest, as `omitted "<digest>"`, unless all elements are equal. Such text
// reads back with other values in their place: drawn from [-1, 1) for floats, 0 and 1 for the rest, the same for the
// same digest.
std::string PrintBrief(const Graph& graph);

// Checks that names are known and that constants fit their types; everything else is Verify's work (verify.h). Errors:
// InvalidArgument with line and column.
absl::StatusOr<Graph> ParseGraph(std::string_view text);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_TEXT_H_
