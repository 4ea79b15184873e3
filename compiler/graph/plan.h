// SPDX-License-Identifier: Apache-2.0
// The plan of a model: a list of kernel calls on tensors, and of actions between them that decide how the run goes on.
// It is the result of import, passes and fusion.
//
// `hone tune` makes a plan for its workloads; `hone compile` makes one for its calls and tensors as well. Start with
// BuildPlan.
#ifndef HONE_COMPILER_GRAPH_PLAN_H_
#define HONE_COMPILER_GRAPH_PLAN_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/fuse.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/workload.h"
#include "compiler/pass_runner.h"

namespace hone::graph {

using TensorId = int;

struct PlanTensor {
  std::string name;  // for graph inputs and outputs: the model's name
  TensorType type;
  TensorData data;  // set exactly if the tensor is a constant
  TensorId alias_of =
      -1;  // if not -1, this is a reshape: it shares the bytes of that tensor, which is itself not an alias
};

// One kernel call, or the call of a foreign part.
struct PlanCall {
  int workload;                      // index into Plan::workloads; -1 for a foreign part
  std::vector<TensorId> arguments;   // one per param of the workload, then one per output; or those of the part
  std::vector<ir::Size> sizes = {};  // one per open size of the workload: its value, in terms of the plan's sizes
  int foreign = -1;                  // index into Plan::foreign; -1 for a workload
  // The nodes of the file that it computes, wholly or in part, in the order of the file. A view is among them only if
  // the call computes nothing else. Empty if they are not known, and for a call that writes values of sizes.
  std::vector<Origin> origins = {};
};

// A part of the model that ONNX Runtime computes.
struct PlanForeign {
  std::string name;                // that of its node in the graph
  std::string model;               // an ONNX model, as bytes of a file
  size_t inputs = 0, outputs = 0;  // of the model, in its order: the arguments of the call
};

enum class ActionKind : uint8_t {
  kLabel,       // nothing; a place to jump to
  kReadSize,    // `size` gets the value of `source`, one element of type bool, i32 or i64
  kSetSize,     // `size` gets `value`
  kJump,        // the run goes on with action number `destination`
  kJumpIfZero,  // the same, if `value` is 0
  kCopy,        // `target` gets the elements of `source`
  kCopyRow,     // row number `value` of `target` gets the elements of `source`
  kRequire,  // the run fails unless `value` is 0: two dimensions of `source` and of what it is used with differ by it
  kSwap,     // `source` and `target`, of equal size in memory, exchange their memory
};

// What a run does between two calls. Sizes that an action gives a value have none before.
struct PlanAction {
  ActionKind kind = ActionKind::kLabel;
  int call = 0;  // the action comes before this call, after the actions before it; the number of calls: after the last
  std::string size = {};
  ir::Size value = {};
  TensorId source = -1, target = -1;
  int destination = -1;
};

// A call that may update an input in place: its only output equals the input except for some rows along an axis.
struct PlanUpdate {
  int call;                // index into Plan::calls
  TensorId input, output;  // of one type; the output is one of the plan's
  TensorId rows;           // the rows to write, compact
  TensorId starts;         // integers, one per entry of dimension 0: where the rows begin; -1: at 0
  int64_t axis;            // at least 1
};

// A value of the file that a tensor has the elements of, once it is written.
struct PlanValue {
  std::string name;
  TensorId tensor;
  std::vector<int64_t> axes;  // as FileValue::axes
};

struct Plan {
  std::vector<ir::OpenSize> sizes;  // the open sizes that tensors' shapes and actions use
  std::vector<PlanTensor> tensors;
  std::vector<TensorId> inputs,
      outputs;                          // an output may be an input, a constant or an alias; the runtime then copies it
  std::vector<ir::Workload> workloads;  // canonical; all digests differ
  std::vector<PlanForeign> foreign;     // each has one call
  std::vector<PlanCall> calls;          // in execution order, unless an action jumps
  std::vector<PlanAction> actions;      // by ascending call
  std::vector<PlanUpdate> updates;      // by ascending call
  std::map<TensorId, TensorData> defaults;  // the values of inputs that a run need not set, as in Graph
  // The nodes of the file that no call computes: computed at compile time, without effect, views, or control flow.
  std::vector<Origin> uncalled;
  std::vector<PlanValue> values;  // of tensors outside of loops and branches

  // The tensor whose memory this one is: its alias_of, or itself.
  TensorId Root(TensorId id) const { return tensors[id].alias_of >= 0 ? tensors[id].alias_of : id; }
  // The arguments that the call reads, and those that it writes. They refer to the call.
  std::span<const TensorId> InputsOf(const PlanCall& call) const {
    return std::span(call.arguments).first(CountInputs(call));
  }
  std::span<const TensorId> OutputsOf(const PlanCall& call) const {
    return std::span(call.arguments).subspan(CountInputs(call));
  }

 private:
  size_t CountInputs(const PlanCall& call) const {
    return call.foreign >= 0 ? foreign[static_cast<size_t>(call.foreign)].inputs
                             : workloads[static_cast<size_t>(call.workload)].params.size();
  }
};

// The values that a dimension may have: multiples of `step` from `min` to `max`, both included. One number is a range,
// too.
struct DimRange {
  int64_t min = 1, max = 1, step = 1;
  DimRange() = default;
  DimRange(int64_t value) : min(value), max(value) {}  // NOLINT: a number is a range
  DimRange(int64_t min, int64_t max, int64_t step = 1) : min(min), max(max), step(step) {}
  bool operator==(const DimRange&) const = default;
};
std::string Print(const DimRange& range);  // "128", "1..512", "224..640:32"
// By the name of the dimension: the file's, or INPUT.INDEX if the file has none.
using DimRanges = std::map<std::string, DimRange>;

struct CustomOperators;

struct ImportOptions {
  // Operators that files beside the model define; they take precedence over those of the model and of Hone. May be
  // null.
  std::shared_ptr<const CustomOperators> operators;
  // Shapes of inputs with symbolic dimensions, by input name. A dimension with several values becomes an open size.
  std::map<std::string, std::vector<DimRange>> shapes;
  // The same for dimensions of inputs that `shapes` does not have. A name that a shape decides is not looked up here.
  DimRanges ranges;
  // Values of inputs that are fixed at compile time, by name; they become constants. An input whose value decides a
  // shape must be bound. A bound value also replaces the model's default for the input.
  std::map<std::string, Constant> bound_inputs;
  // The same as text, "2,3": numbers in row-major order, converted to the type and shape of the model's input.
  // If an input is in both maps, the value of bound_inputs is used.
  std::map<std::string, std::string> bound_texts;
  // Called before a file with external data is read; an error ends the import. If empty, every file may be read.
  std::function<absl::Status(const std::string& path)> may_read;
  // True: an input with a default value in the file is a constant. False: it stays an input (Graph::defaults).
  bool defaults_are_constants = false;
  // True: tensors that an operator combines element by element must have sizes that are equal for all values of the
  // open sizes. False: sizes that may be equal are taken, and a run requires that they are.
  bool proves_sizes = false;
  // True: nodes that Hone cannot compile become parts that ONNX Runtime computes (Plan::foreign), and nodes that
  // depend on a value of theirs whose shape the file does not state join them. False: they are errors.
  bool fallback = false;
  // The most steps of a loop whose number of steps the model does not state, if memory depends on it: the loop stacks
  // rows, or a state grows. A run that needs more fails.
  int64_t loop_steps = 1024;
  // Called with each warning of a successful import (the file violates the specification, but its meaning is certain),
  // and, before the import, with each part that ONNX Runtime computes. If empty, both are dropped.
  std::function<void(const std::string& text)> warn;
};

// Imports the ONNX file (external data is read from its folder), runs the passes for the target, and fuses. Errors name
// file, node, operator and reason; a file that cannot be read or is damaged is InvalidArgument or NotFound. `passes`
// are the options of the pass runner (pass_runner.h).
absl::StatusOr<Plan> BuildPlan(const std::string& onnx_path, const ImportOptions& options, const target::Target& target,
                               const PassOptions<Graph>& passes = {});
// The error for a part that ONNX Runtime would compute beside a device with lanes.
absl::Status ForeignNeedsCpu(const std::string& name);
// The last step alone: fuses a tidy graph (graph_edit.h) without running passes.
absl::StatusOr<Plan> BuildPlan(const Graph& graph, Fusion fusion = Fusion::kFull);

}  // namespace hone::graph

#endif  // HONE_COMPILER_GRAPH_PLAN_H_
