// SPDX-License-Identifier: Apache-2.0
// The plan: what is left of a model after import, passes and fusion. A straight line of kernel calls on tensors.
//
// Made once by `hone tune` (which needs the workloads) and once by `hone compile` (which also needs calls and tensors).
// Start with BuildPlan.
#ifndef HONE_COMPILER_GRAPH_PLAN_H_
#define HONE_COMPILER_GRAPH_PLAN_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/workload.h"
#include "compiler/pass_runner.h"

namespace hone::graph {

using TensorId = int;

struct PlanTensor {
  std::string name;  // of graph inputs and outputs: as the model names them
  TensorType type;
  TensorData data;         // set iff constant
  TensorId alias_of = -1;  // a reshape: same bytes as that tensor (which is not itself an alias), other shape
};

// One kernel call: the workload's params, then its outputs.
struct PlanCall {
  int workload;  // index into Plan::workloads
  std::vector<TensorId> arguments;
};

struct Plan {
  std::vector<PlanTensor> tensors;
  std::vector<TensorId> inputs, outputs;  // an output may be an input, a constant or an alias: the runtime copies
  std::vector<ir::Workload> workloads;    // canonical and distinct by digest
  std::vector<PlanCall> calls;            // in execution order
};

struct ImportOptions {
  // Shapes for inputs with symbolic dimensions, by input name.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Inputs fixed at compile time, by name: they become constants (an input that decides a shape must be one), also in
  // place of the model's default for them.
  std::map<std::string, Constant> bound_inputs;
  // The same as text, "2,3": numbers in row-major order, read as the type and shape of the model's input.
  std::map<std::string, std::string> bound_texts;
  // Asked before a file with external data is read; an error ends the import. Empty: all may be read.
  std::function<absl::Status(const std::string& path)> may_read;
};

// Reads the ONNX file (external data is looked for beside it), runs the passes for this target, fuses. Errors name
// file, node, operator and reason; a file that cannot be read or is damaged is InvalidArgument or NotFound.
// passes: how the passes are run (pass_runner.h).
absl::StatusOr<Plan> BuildPlan(const std::string& onnx_path, const ImportOptions& options, const target::Target& target,
                               const PassOptions<Graph>& passes = {});
// The last step alone: fuses a tidy graph (graph_edit.h) as it is, without passes.
absl::StatusOr<Plan> BuildPlan(const Graph& graph);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PLAN_H_
