// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/passes.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;
using Values = std::vector<ValueId>;

// Longer pieces take more compile time than the saved launches are worth; pieces of half the length still pay for a
// launch each.
constexpr int64_t kPieceStepsMax = 32;

// Indices of the node's inputs.
enum Input : size_t {
  kData = 0,
  kWeights = 1,
  kRecurrentWeights = 2,
  kBias = 3,
  kLengths = 4,
  kHidden = 5,
  kPeephole = 7
};
// Indices of its outputs: all hidden states, the last hidden state, the last carry. Initial states are inputs from
// kHidden on in the same order.
enum Output : size_t { kSequence = 0, kFirstState = 1 };

bool IsRecurrence(const Node& node) { return Is(node, "RNN") || Is(node, "GRU") || Is(node, "LSTM"); }

bool IsBatchFirst(const Node& node) { return IntAttribute(node, "layout", 0) != 0; }
int64_t TimeAxis(const Node& node) { return IsBatchFirst(node) ? 1 : 0; }

const ir::Size& StepsOf(const Graph& graph, const Node& node) {
  return graph.values[node.inputs[kData]].type.shape[static_cast<size_t>(TimeAxis(node))];
}

// Chooses one length for all pieces if one divides the sequence.
int64_t StepsOfPiece(int64_t steps) {
  for (int64_t piece = kPieceStepsMax; piece >= kPieceStepsMax / 2; --piece) {
    if (steps % piece == 0) return piece;
  }
  const int64_t pieces = (steps + kPieceStepsMax - 1) / kPieceStepsMax;
  return (steps + pieces - 1) / pieces;
}

// Replaces the input, if the node has it, by its slice at the index of the axis.
absl::Status SliceInput(Graph& graph, Node& node, size_t input, int64_t axis, int64_t index) {
  if (!HasInput(node, input)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(node.inputs[input], AddSlice(graph, node.inputs[input], axis, index, index + 1));
  return absl::OkStatus();
}

// Reduces the sequence lengths of a piece by the steps before it. A length may become negative, which the operator
// treats as 0, or exceed the piece.
absl::Status SubtractLengths(Graph& graph, const Node& node, int64_t steps, Node& piece) {
  if (!HasInput(node, kLengths) || steps == 0) return absl::OkStatus();
  const ValueId done = AddConstant<int32_t>(graph, "done", ir::DType::kInt32, {1}, {static_cast<int32_t>(steps)});
  HONE_ASSIGN_OR_RETURN(piece.inputs[kLengths], AddOp(graph, "Sub", {node.inputs[kLengths], done}));
  return absl::OkStatus();
}

// Splits the value along the axis into parts of these extents.
absl::StatusOr<Values> CutAxis(Graph& graph, ValueId value, int64_t axis, const Ints& extents) {
  return AddNode(graph, {.name = {},
                         .op = "Split",
                         .domain = {},
                         .opset = kOwnOpset,
                         .inputs = {value, AddInts(graph, "sizes", extents)},
                         .outputs = Values(extents.size(), kNewValue),
                         .attributes = {{"axis", axis}}});
}

// The outputs of a chain for one direction. Each sequence is processed from its front; with `reversed`, the data's last
// steps come first.
absl::StatusOr<Values> Chain(Graph& graph, const Node& node, bool reversed) {
  const int64_t steps = StepsOf(graph, node).value();
  const size_t states = Is(node, "LSTM") ? 2 : 1;
  Ints sizes;  // in the order of the data
  for (int64_t left = steps; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, StepsOfPiece(steps)));
  HONE_ASSIGN_OR_RETURN(const Values data, CutAxis(graph, node.inputs[kData], TimeAxis(node), sizes));
  Node piece = node;
  piece.name.clear();
  piece.inputs.resize(std::max(piece.inputs.size(), kHidden + states), kAbsent);
  Values outputs, sequence;
  int64_t done = 0;
  for (size_t k = 0; k < data.size(); ++k) {
    piece.inputs[kData] = data[reversed ? data.size() - 1 - k : k];
    HONE_RETURN_IF_ERROR(SubtractLengths(graph, node, done, piece));
    piece.outputs.assign(kFirstState + states, kNewValue);
    HONE_ASSIGN_OR_RETURN(outputs, AddNode(graph, piece));
    sequence.push_back(outputs[kSequence]);
    std::copy(outputs.begin() + kFirstState, outputs.end(), piece.inputs.begin() + kHidden);
    done += sizes[k];
  }
  if (reversed) std::reverse(sequence.begin(), sequence.end());
  HONE_ASSIGN_OR_RETURN(outputs[kSequence], AddOp(graph, "Concat", sequence, {{"axis", TimeAxis(node)}}));
  return outputs;
}

// As Chain, for a reverse direction with different sequence lengths: each sequence is reversed before the chain, and
// the results are reversed after it.
absl::StatusOr<Values> ChainOfDirection(Graph& graph, Node node) {
  const bool reversed = StringAttribute(node, "direction", "forward") == "reverse";
  if (!reversed || !HasInput(node, kLengths)) return Chain(graph, node, reversed);
  const ValueId lengths = node.inputs[kLengths];
  const auto reverse = [&](ValueId value) {
    const int64_t time = TimeAxis(node);
    return AddOp(graph, "ReverseSequence", {value, lengths}, {{"time_axis", time}, {"batch_axis", 1 - time}});
  };
  HONE_ASSIGN_OR_RETURN(node.inputs[kData], reverse(node.inputs[kData]));
  node.attributes["direction"] = std::string("forward");
  HONE_ASSIGN_OR_RETURN(Values outputs, Chain(graph, node, false));
  // Y has the shape [time, directions, batch, units], or [batch, time, directions, units].
  const ir::Shape shape = graph.values[outputs[kSequence]].type.shape;
  const ir::Shape flat = {shape[0], shape[IsBatchFirst(node) ? 1 : 2], shape[3]};
  HONE_ASSIGN_OR_RETURN(ValueId sequence, AddReshape(graph, outputs[kSequence], flat));
  HONE_ASSIGN_OR_RETURN(sequence, reverse(sequence));
  HONE_ASSIGN_OR_RETURN(outputs[kSequence], AddReshape(graph, sequence, shape));
  return outputs;
}

// Extracts one direction of a node with two.
absl::StatusOr<Node> TakeDirection(Graph& graph, Node node, int64_t direction) {
  node.attributes["direction"] = std::string(direction == 0 ? "forward" : "reverse");
  const auto activations = node.attributes.find("activations");
  auto* names =
      activations == node.attributes.end() ? nullptr : std::get_if<std::vector<std::string>>(&activations->second);
  if (names != nullptr) {
    const auto middle = names->begin() + static_cast<std::ptrdiff_t>(names->size() / 2);
    *names = direction == 0 ? std::vector<std::string>(names->begin(), middle)
                            : std::vector<std::string>(middle, names->end());
  }
  const int64_t state_axis = IsBatchFirst(node) ? 1 : 0;
  const std::pair<size_t, int64_t> kParts[] = {{kWeights, 0},  {kRecurrentWeights, 0}, {kBias, 0},
                                               {kPeephole, 0}, {kHidden, state_axis},  {kHidden + 1, state_axis}};
  for (const auto& [input, axis] : kParts) {
    HONE_RETURN_IF_ERROR(SliceInput(graph, node, input, axis, direction));
  }
  return node;
}

bool CanSplit(const Graph& graph, const Node& node) {
  if (!IsRecurrence(node) || !StepsOf(graph, node).IsFixed()) return false;
  if (StepsOf(graph, node).value() <= kPieceStepsMax) return false;
  return StringAttribute(node, "direction", "forward") != "bidirectional" ||
         (!node.attributes.contains("activation_alpha") && !node.attributes.contains("activation_beta"));
}

absl::StatusOr<Values> SplitRecurrence(Graph& graph, const Node& node) {
  if (!CanSplit(graph, node)) return Values{};
  if (StringAttribute(node, "direction", "forward") != "bidirectional") return ChainOfDirection(graph, node);
  Values outputs[2];
  for (int64_t direction : {0, 1}) {
    HONE_ASSIGN_OR_RETURN(Node one, TakeDirection(graph, node, direction));
    HONE_ASSIGN_OR_RETURN(outputs[direction], ChainOfDirection(graph, std::move(one)));
  }
  for (size_t k = 0; k < outputs[0].size(); ++k) {
    const int64_t axis = (k == kSequence ? 1 : 0) + (IsBatchFirst(node) ? 1 : 0);
    HONE_ASSIGN_OR_RETURN(outputs[0][k], AddOp(graph, "Concat", {outputs[0][k], outputs[1][k]}, {{"axis", axis}}));
  }
  return outputs[0];
}

}  // namespace

absl::Status SplitRecurrences(Graph& graph) { return ReplaceNodes(graph, SplitRecurrence); }

}  // namespace hone::graph
