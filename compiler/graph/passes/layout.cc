// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/passes/layout.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/channels_last.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

// In NHWC the vectors of a convolution lie along its output channels, in NCHW along its pixels; what the last vector
// has no use for is lost. Beyond that NHWC gains about a tenth. A convolution whose vectors are full runs at about
// three quarters of the peak; a Transpose at a border takes as long as memory does to give its tensor once.
constexpr double kPeakShare = 3.0 / 4, kGain = 1.0 / 10;
// Of its time without, where a tensor instruction makes the sums; fewer channels than this it does not gain on.
constexpr double kInstructionShare = 1.0 / 4;
constexpr int64_t kFewestChannels = 3;
// Winograd's way, by tiles of 4x4 outputs, has this share of a convolution's products; a vector of channels that goes
// into a tile or out of it takes about 10 cycles (measured) for each of the 36 elements of the tile in its transformed
// form. Source: Lavin, Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.
constexpr int64_t kWinogradTile = 4, kWinogradWindow = 3;
constexpr double kWinogradProducts = 1.0 / 4, kWinogradTransforms = 10;
// It counts where it leaves no more of the time than this: what it gains with few channels goes to the borders, whose
// Transposes are then slower than memory (17 channels of 56x56 took 1.3 times as long).
constexpr double kMostWinogradShare = 1.0 / 2;
// How many times as long a transposed convolution with a stride takes where its sums divide.
constexpr double kDivisions = 30;

// Bytes through a Transpose that take as long as one operation of a convolution.
double BytesPerOperation(const target::Target& target) {
  const double peak = 2 * target.core.multiply_adds * target.VectorWidth(4);  // operations a cycle
  return target.core.memory_bytes / (kPeakShare * peak);
}

// How many times as long it takes where vectors of that width run along an axis of this extent.
double VectorCost(int64_t extent, int64_t width) {
  return static_cast<double>((extent + width - 1) / width * width) / static_cast<double>(std::max<int64_t>(extent, 1));
}

// In [N, C, ...].
int64_t Pixels(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin() + 2, shape.end(), int64_t{1}, std::multiplies<>());
}

// Which input of a convolution its weights are; 0 if the node is none.
size_t WeightsOf(const Node& node) {
  if (Is(node, "QLinearConv")) return 3;
  return Is(node, "Conv") || Is(node, "ConvTranspose") || Is(node, "ConvInteger") ? 1 : 0;
}

// Tensor instructions take several channels of integers at once, which only NHWC has side by side.
bool TakesInstruction(const Graph& graph, const Node& node) {
  const bool integers = Is(node, "QLinearConv") || Is(node, "ConvInteger");
  return integers && !graph.target.tensor_instructions.empty() &&
         graph.values[node.inputs[WeightsOf(node)]].type.shape[1] >= kFewestChannels;
}

// Whether all values from the one at `from` on are as wanted.
bool All(const std::vector<int64_t>& values, size_t from, int64_t wanted) {
  return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(std::min(from, values.size())), values.end(),
                     [&](int64_t v) { return v == wanted; });
}

bool IsPointwise(const Graph& graph, const Node& node) {
  return All(graph.values[node.inputs[WeightsOf(node)]].type.shape, 2, 1) &&
         All(IntsAttribute(node, "strides"), 0, 1) && All(IntsAttribute(node, "pads"), 0, 0) &&
         IntAttribute(node, "group", 1) == 1;
}

// Of its time without, where a convolution in NHWC can be made in Winograd's way, which needs channels side by side; 1
// where it cannot, or where that does not pay.
double WinogradShare(const Graph& graph, const Node& node) {
  const Value& output = graph.values[node.outputs[0]];
  const std::vector<int64_t>& weights = graph.values[node.inputs[WeightsOf(node)]].type.shape;
  const std::vector<int64_t>& shape = output.type.shape;
  const bool window = weights.size() == 4 && weights[2] == kWinogradWindow && weights[3] == kWinogradWindow;
  if (!graph.target.facts().winograd_needs_channels_last || !Is(node, "Conv")) return 1;
  if (!window || output.type.dtype != ir::DType::kFloat32) return 1;
  if (!All(IntsAttribute(node, "strides"), 0, 1) || !All(IntsAttribute(node, "dilations"), 0, 1)) return 1;
  if (IntAttribute(node, "group", 1) != 1 || shape[2] == 1 || shape[3] == 1) return 1;
  constexpr double kElements = 36, kDirect = kWinogradTile * kWinogradTile * kWinogradWindow * kWinogradWindow;
  const double channels = 1.0 / static_cast<double>(weights[0]) + 1.0 / static_cast<double>(weights[1]);
  const double transforms = kWinogradTransforms * kElements / kDirect * graph.target.core.multiply_adds * channels;
  const double tiles = VectorCost(shape[2], kWinogradTile) * VectorCost(shape[3], kWinogradTile);
  const double share = (kWinogradProducts + transforms) * tiles;
  return share <= kMostWinogradShare ? share : 1;
}

// The time of a convolution in NCHW less that in NHWC, as a share of its time with full vectors.
double GainOf(const Graph& graph, const Node& node) {
  const std::vector<int64_t>& output = graph.values[node.outputs[0]].type.shape;
  const int64_t width = graph.target.VectorWidth(4);
  const double share = TakesInstruction(graph, node) ? kInstructionShare : WinogradShare(graph, node);
  // Groups of one channel each count as one group, because their vectors lie across them.
  const int64_t groups = graph.target.facts().vector_stays_in_group ? IntAttribute(node, "group", 1) : 1;
  const double last = VectorCost(output[1] > groups ? output[1] / groups : output[1], width) * share - kGain;
  if (Is(node, "ConvTranspose")) {
    const std::vector<int64_t> strides = IntsAttribute(node, "strides");
    const bool strided = std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; });
    if (strided) return kDivisions - last;  // only NHWC has a form without: see lower_conv_transpose.h
  }
  // Pointwise, all pixels are one axis.
  return VectorCost(IsPointwise(graph, node) ? Pixels(output) : output.back(), width) - last;
}

double ConvOperations(const Graph& graph, const Node& node) {
  if (WeightsOf(node) == 0) return 0;
  const std::vector<int64_t>& weights = graph.values[node.inputs[WeightsOf(node)]].type.shape;
  // Per pixel of the larger side: convolutions have [outputs, inputs / group, ...], ConvTranspose [inputs, outputs /
  // group, ...].
  const ValueId pixels = Is(node, "ConvTranspose") ? node.inputs[0] : node.outputs[0];
  double operations = 2.0 * static_cast<double>(graph.values[pixels].type.elements());
  for (size_t d = 1; d < weights.size(); ++d) operations *= static_cast<double>(weights[d]);
  return operations;
}

// With channels last, one group of lanes would have to sum all channels of an image.
bool StaysChannelsFirst(const Graph& graph, const Node& node) {
  return graph.target.facts().sums_planes_in_groups && Is(node, "InstanceNormalization");
}

class LayoutChooser {
 public:
  explicit LayoutChooser(Graph& graph)
      : graph_(graph), producers_(Producers(graph)), consumers_(Consumers(graph)), region_(graph.nodes.size()) {
    std::iota(region_.begin(), region_.end(), 0);
    for (const Node& node : graph.nodes)
      movable_.push_back(HasChannelsLastForm(graph, node) && !StaysChannelsFirst(graph, node));
    for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) Connect(id);
  }

  absl::Status Run() {
    Decide();
    std::map<ValueId, ValueId> replacements;
    const size_t count = movable_.size();
    for (size_t i = 0; i < count; ++i) {
      if (!Moves(static_cast<int>(i))) continue;
      const Node node = graph_.nodes[i];
      HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs,
                            AddChannelsLast(graph_, node, [&](ValueId id) { return Converted(id); }));
      for (size_t k = 0; k < outputs.size(); ++k) {
        if (outputs[k] == kAbsent) continue;
        converted_[node.outputs[k]] = outputs[k];
        ValueId& replacement = replacements[node.outputs[k]];
        replacement = outputs[k];  // unless it leaves, only nodes that go away still read the value in NCHW
        if (!LeavesRegion(node.outputs[k])) continue;
        HONE_ASSIGN_OR_RETURN(
            replacement, AddOp(graph_, "Transpose", {outputs[k]}, {{"perm", ToChannelsFirst(RankOf(outputs[k]))}}));
      }
    }
    ReplaceUses(graph_, replacements);
    Tidy(graph_);
    return absl::OkStatus();
  }

 private:
  size_t RankOf(ValueId id) const { return graph_.values[id].type.shape.size(); }

  int Region(int node) const {
    while (region_[node] != node) node = region_[node];
    return node;
  }

  bool Movable(int node) const { return node >= 0 && movable_[node]; }
  // Whether the node reads the value with its channels last when it moves.
  bool Follows(int node, ValueId id) const {
    return movable_[node] && ReadsChannelsLast(graph_, graph_.nodes[node], id);
  }

  // All movable nodes that touch a value change together.
  void Connect(ValueId id) {
    if (!HasLayout(graph_, id)) return;
    int first = Movable(producers_[id]) ? producers_[id] : -1;
    for (int consumer : consumers_[id]) {
      if (!Follows(consumer, id)) continue;
      if (first < 0) first = consumer;
      region_[Region(consumer)] = Region(first);
    }
  }

  bool Moves(int node) const { return movable_[node] && chosen_.contains(Region(node)); }

  // Whether a value that a movable node makes is wanted in NCHW, too.
  bool LeavesRegion(ValueId id) const {
    if (IsOutput(graph_, id)) return true;
    for (int consumer : consumers_[id]) {
      if (!Follows(consumer, id)) return true;
    }
    return false;
  }

  // Bytes that a Transpose of the value counts for: none if it does nothing, or meets another one and cancels.
  double TransposeBytes(ValueId id, bool leaving) const {
    const TensorType& type = graph_.values[id].type;
    if (type.shape[1] == 1 || Pixels(type.shape) == 1) return 0;
    if (!leaving && producers_[id] >= 0 && Is(graph_.nodes[producers_[id]], "Transpose")) return 0;
    if (leaving && consumers_[id].size() == 1 && Is(graph_.nodes[consumers_[id][0]], "Transpose")) return 0;
    return static_cast<double>(ByteSize(type));
  }

  double EnteringBytes(const Node& node) const {
    const ValueId data = node.inputs[0];
    return Movable(producers_[data]) ? 0 : static_cast<double>(ByteSize(graph_.values[data].type));
  }

  void Decide() {
    const double bytes_per_operation = BytesPerOperation(graph_.target);
    std::map<int, double> gain;  // per region, in bytes that it may cost
    for (size_t i = 0; i < movable_.size(); ++i) {
      if (!movable_[i]) continue;
      const Node& node = graph_.nodes[i];
      const double operations = ConvOperations(graph_, node);
      if (operations > 0) gain[Region(static_cast<int>(i))] += bytes_per_operation * operations * GainOf(graph_, node);
      // In NCHW, what the instruction takes is brought side by side by the kernel itself, which is a Transpose, too.
      if (TakesInstruction(graph_, node)) gain[Region(static_cast<int>(i))] += EnteringBytes(node);
    }
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id) {
      if (!HasLayout(graph_, id)) continue;
      const int producer = producers_[id];
      if (Movable(producer)) {
        if (LeavesRegion(id)) gain[Region(producer)] -= TransposeBytes(id, true);
        continue;
      }
      for (int consumer : consumers_[id]) {
        if (!Follows(consumer, id)) continue;
        gain[Region(consumer)] -= TransposeBytes(id, false);
        break;
      }
    }
    for (const auto& [region, bytes] : gain) {
      if (bytes > 0) chosen_.insert(region);
    }
    spdlog::debug("layout: {} of {} regions go to NHWC", chosen_.size(), gain.size());
  }

  // The NHWC form of a value; made by a Transpose where it enters.
  absl::StatusOr<ValueId> Converted(ValueId id) {
    auto it = converted_.find(id);
    if (it != converted_.end()) return it->second;
    HONE_ASSIGN_OR_RETURN(const ValueId entered,
                          AddOp(graph_, "Transpose", {id}, {{"perm", ToChannelsLast(RankOf(id))}}));
    converted_[id] = entered;
    return entered;
  }

  Graph& graph_;
  const std::vector<int> producers_;
  const std::vector<std::vector<int>> consumers_;
  std::vector<bool> movable_;
  std::vector<int> region_;  // a union-find forest over nodes
  std::set<int> chosen_;
  std::map<ValueId, ValueId> converted_;
};

}  // namespace

absl::Status ChooseLayouts(Graph& graph) { return LayoutChooser(graph).Run(); }

}  // namespace hone::graph
