// SPDX-License-Identifier: Apache-2.0
// Everything that stands between a model and its compilation: the result of an import that does not stop at the first
// problem (onnx_import.h).
#ifndef HONE_COMPILER_GRAPH_IMPORT_REPORT_H_
#define HONE_COMPILER_GRAPH_IMPORT_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace hone::graph {

enum class ProblemKind : uint8_t {
  kOperator,      // Hone does not have the operator
  kControlFlow,   // a loop, or a branch whose condition only a run brings
  kUnknownValue,  // a value must be known at compile time and is not
  kOpenShape,     // the size of an input's dimension is not known
  kOpset,         // the opset is outside the supported range
  kInvalid,       // the file violates the specification of ONNX
  kUnsupported,   // valid, but Hone does not support it: an element type, an attribute's value, ...
};

// What to do about an operator of the standard that neither a file of operators can define nor ONNX Runtime computes;
// "" for all other operators.
std::string_view AdviceOnOperator(std::string_view domain, std::string_view op);

// The kind as one word for tables and JSON, and a sentence that says what the user can do about it.
std::string_view NameOf(ProblemKind kind);
std::string_view AdviceOn(ProblemKind kind);

struct ImportProblem {
  ProblemKind kind = ProblemKind::kInvalid;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::string node, op, domain;  // empty if the problem is not about a node; domain "" also means ai.onnx
  int64_t opset = 0;             // of the node's domain; 0 if unknown or not about a node
  std::string text;              // names the node or input, and states the reason
  // Which of the model's own nodes it is about: the node, or the node whose body or function has it. -1: none.
  int64_t place = -1;
};

// Whether another runtime may compute the node that has the problem (--fallback): the file is valid, and Hone lacks
// something.
bool MayFallBack(const ImportProblem& problem);

// Nodes that ONNX Runtime computes together, because Hone cannot compile some of them.
struct ForeignNodes {
  std::vector<std::string> nodes;      // their names, in order
  std::vector<ImportProblem> reasons;  // for those that Hone cannot compile. The others are there because they follow a
                                       // value whose shape the file does not state, or lie between two that do.
};
std::string Print(const ForeignNodes& nodes);  // in one line

// A dimension of an input for which the file states no size.
struct OpenDimension {
  std::string input;
  size_t index = 0;    // of the dimension in the input's shape
  std::string symbol;  // inputs with the same symbol have the same size; empty if the dimension shares none
  std::string range;   // the values that the check took, "1..8"; empty if the check took none
};

struct ImportReport {
  std::vector<ImportProblem> problems;  // in the order of the file; what only follows from another one is left out
  std::vector<ForeignNodes> fallbacks;  // with ImportOptions::fallback; their reasons are not among the problems
  std::vector<std::string> warnings;    // the file violates the specification, but its meaning is certain
  std::vector<OpenDimension> open_dimensions;
  // The ranges that the check took for open dimensions, as texts of --shape (ShapeTexts); empty if none was open.
  std::vector<std::string> assumed_shapes;
  // Nodes whose number of steps the model does not state, so that there is memory for ImportOptions::loop_steps.
  std::vector<std::string> loops_of_assumed_steps;
  int64_t nodes = 0;  // nodes and constants, those of functions and branches counted once per use
};

// The error of an import that failed for these reasons: the text of the only one, or a list, which is cut off after a
// fixed number of lines and states how many there are. The code is that of the first one. `problems` is not empty.
// offers_fallback: if one of them may fall back, the text says how.
absl::Status RefusalOf(const std::vector<ImportProblem>& problems, bool offers_fallback);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_REPORT_H_
