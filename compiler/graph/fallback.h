// SPDX-License-Identifier: Apache-2.0
// Chooses which nodes of a model ONNX Runtime computes (ImportOptions::fallback): those that Hone cannot compile, in as
// few parts as the order of the nodes allows.
//
// It works on the file's nodes, before the import, and tries imports to find out what is refused. A node of control
// flow or a call of a function goes as a whole. A node that reads a value whose shape the file does not state joins the
// node that makes the value. Each part becomes one node (RawNode::part), which the import turns into a node Foreign
// (control_flow.h). Not here: the model of a part (foreign_model.h). Start with MoveRefused.
#ifndef HONE_COMPILER_GRAPH_FALLBACK_H_
#define HONE_COMPILER_GRAPH_FALLBACK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/graph/import_report.h"
#include "compiler/graph/onnx_reader.h"
#include "compiler/graph/plan.h"

namespace hone::graph {

// Nodes of a file that become one. The bytes are those of the file.
struct RawPart {
  std::vector<std::string> nodes;         // in an order in which they can run
  std::vector<std::string> initializers;  // those that a Constant cannot hold
  std::vector<std::string> functions;     // all of the model
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;
  std::vector<Origin> members;    // the nodes
  std::vector<RawInput> outputs;  // as the file declares them; without a shape where it does not
};

// Replaces the nodes that an import of the model would refuse, as far as another runtime may take them (MayFallBack).
// The model must have been read with ReadOptions::keeps_sources. Returns the parts; problems that remain are left to
// the import. Does nothing without ImportOptions::fallback.
std::vector<ForeignNodes> MoveRefused(RawModel& model, const ImportOptions& options);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_FALLBACK_H_
