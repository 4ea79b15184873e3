// SPDX-License-Identifier: Apache-2.0
// The text form of a graph, for users, tests and reproducers: printer and parser. docs/IR.md has the grammar.
//
// ParseGraph(Print(g)) has the meaning of g. Two things are lost: the names of nodes (a parsed node has the name of its
// first output), and values that nothing reads.
#ifndef HONE_COMPILER_GRAPH_TEXT_H_
#define HONE_COMPILER_GRAPH_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::graph {

// Prints the complete graph; large constants are hexadecimal.
std::string Print(const Graph& graph);
// Prints constants of more than 16 elements as `omitted "<digest>"`, unless all their elements are equal. Such text can
// be parsed, but these constants get other values, which depend on the digest alone: floats from [-1, 1), 0 or 1 for
// the other types.
std::string PrintBrief(const Graph& graph);

// Parses a graph. Checks that names are defined and that constants fit their types; all other rules are checked by
// Verify (verify.h). Errors: InvalidArgument with line and column.
absl::StatusOr<Graph> ParseGraph(std::string_view text);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_TEXT_H_
