// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/passes/passes.h"
#include "compiler/graph/passes/permute.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

constexpr int64_t kNodeStepsMax = int64_t{1} << 25;    // interpreter steps for one node: about a second
constexpr int64_t kTotalStepsMax = int64_t{1} << 30;   // interpreter steps for all nodes in one run of the pass
constexpr int64_t kGrowthBytesMax = int64_t{1} << 20;  // maximum size of a result beyond its inputs

int64_t BytesOfValues(const Graph& graph, const std::vector<ValueId>& ids) {
  int64_t bytes = 0;
  for (ValueId id : ids) bytes += id == kAbsent ? 0 : ByteSize(graph.values[id].type);
  return bytes;
}

// Returns true for a cast of weights to a wider type. It is folded despite its size, because otherwise each run of the
// model would repeat it.
bool GrowsTooMuch(const Graph& graph, const Node& node) {
  int64_t most = 0;
  for (ValueId id : node.inputs) {
    if (id != kAbsent && graph.values[id].data != nullptr)
      most = std::max(most, graph.values[id].type.elements().value());
  }
  const auto more = [&](ValueId id) { return id != kAbsent && graph.values[id].type.elements().max() > most; };
  return std::any_of(node.outputs.begin(), node.outputs.end(), more) &&
         BytesOfValues(graph, node.outputs) > BytesOfValues(graph, node.inputs) + kGrowthBytesMax;
}

class ConstantFolder {
 public:
  ConstantFolder(Graph& graph, int64_t steps_max) : graph_(graph), readers_(graph), steps_left_(steps_max) {}

  absl::Status Run() {
    std::vector<Node> left;
    std::vector<Node> nodes = std::move(graph_.nodes);
    for (Node& node : nodes) {
      HONE_ASSIGN_OR_RETURN(const bool folded, FoldNode(node));
      if (folded) {
        readers_.Drop(graph_, node);
      } else {
        left.push_back(std::move(node));
      }
    }
    graph_.nodes = std::move(left);
    if (too_many_ > 0) {
      spdlog::warn(
          "folding constants takes too long: {} operators are left to the next pass, or to each run of the model",
          too_many_);
    }
    Tidy(graph_);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<bool> FoldNode(const Node& node) {
    HONE_ASSIGN_OR_RETURN(const bool known, IsKnown(graph_, node));
    if (!known) return false;
    if (IsView(node)) {
      graph_.values[node.outputs[0]].data = graph_.values[node.inputs[0]].data;
      return true;
    }
    if (Is(node, "Transpose")) {  // the interpreter gives the same result, but is slow on large weights
      const Value& source = graph_.values[node.inputs[0]];
      graph_.values[node.outputs[0]].data = Permute(source, TransposePerm(node, source.type.shape.size()));
      return true;
    }
    if (GrowsTooMuch(graph_, node)) return false;
    return Compute(node);
  }

  // Computes the node by the interpreter while steps are left.
  absl::StatusOr<bool> Compute(const Node& node) {
    int64_t steps = 0;
    absl::StatusOr<std::vector<Constant>> values = Evaluate(graph_, node, std::min(kNodeStepsMax, steps_left_), &steps);
    if (absl::IsResourceExhausted(values.status())) {
      if (steps <= kNodeStepsMax) ++too_many_;
      return false;
    }
    HONE_RETURN_IF_ERROR(values.status());
    steps_left_ -= steps;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kAbsent) graph_.values[node.outputs[i]].data = (*values)[i].data;
    }
    return true;
  }

  Graph& graph_;
  Readers readers_;
  int64_t steps_left_;
  int too_many_ = 0;  // nodes that were left for lack of steps
};

}  // namespace

absl::Status FoldConstants(Graph& graph) { return FoldConstants(graph, kTotalStepsMax); }

absl::Status FoldConstants(Graph& graph, int64_t steps_max) { return ConstantFolder(graph, steps_max).Run(); }

}  // namespace hone::graph
