// SPDX-License-Identifier: Apache-2.0
// What an import (importer.h) makes of If, Loop and Scan whose course a run decides: the nodes of control_flow.h.
//
// The importer imports the bodies. Here is what is done with them: the branches of an If get the same inputs, and the
// states of a loop get shapes that hold for all steps.
#ifndef HONE_COMPILER_GRAPH_IMPORT_CONTROL_H_
#define HONE_COMPILER_GRAPH_IMPORT_CONTROL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/onnx_reader.h"

namespace hone::graph {

// Makes a name that is unique in the model out of a similar one.
using NameSource = std::function<std::string(const std::string& name)>;

// The graph inside a node. Its inputs are its own, then one per capture.
struct ImportedBody {
  Graph graph;
  std::vector<ValueId> captures;  // values of the graph outside
};

// Adds an If to the graph; its outputs are those of the bodies. Returns them.
absl::StatusOr<std::vector<ValueId>> AddIf(Graph& graph, const std::string& name, ValueId condition,
                                           ImportedBody then_body, ImportedBody else_body,
                                           const std::vector<std::string>& output_names, const NameSource& unique);

// The names of a loop's outputs. Those that nothing reads get one as well, because states are needed by the steps.
std::vector<std::string> LoopOutputNames(const RawNode& node, const std::string& name, size_t outputs,
                                         const NameSource& unique);

// A loop before its body is imported.
struct LoopForm {
  std::string name;
  ValueId steps = kAbsent, condition = kAbsent;  // as inputs 0 and 1 of a Loop of control_flow.h
  std::vector<ValueId> states;                   // their first values
  size_t rows = 0;                               // outputs that stack rows
  ir::OpenSize counter;                          // the number of the step, in the body
  int64_t steps_max = 0;                         // the most steps there may be
  int64_t unknown_steps_max = 0;                 // ImportOptions::loop_steps
  bool has_unknown_steps = false;                // the model does not state how many steps there may be
};

// Imports the body for states of these types. Its outputs: the condition, the next states, the rows.
using ImportLoopBody = std::function<absl::StatusOr<ImportedBody>(const std::vector<TensorType>& states)>;

// Sets the counter of a loop, and for how many steps it is, from its number of steps.
void AddCounter(const Graph& graph, const std::string& name, LoopForm& form);

// Whether the memory for the outputs of the loop is for form.unknown_steps_max steps.
bool HasAssumedSteps(const Graph& graph, const LoopForm& form, const std::vector<ValueId>& outputs);

// Finds the shapes of the states, importing the body as often as that takes, and adds a Loop to the graph. Returns its
// outputs.
absl::StatusOr<std::vector<ValueId>> AddLoop(Graph& graph, const LoopForm& form, const ImportLoopBody& import_body,
                                             const std::vector<std::string>& output_names, const NameSource& unique);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_IMPORT_CONTROL_H_
