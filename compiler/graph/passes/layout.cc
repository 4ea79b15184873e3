// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/status.h"
#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/passes/channels_last.h"
#include "compiler/graph/passes/passes.h"
#include "spdlog/spdlog.h"

namespace hone::graph {
namespace {

// The cost model. In NHWC the vectors of a convolution run along its output channels, in NCHW along its pixels; the
// unused part of the last vector is wasted. NHWC is otherwise about a tenth faster. A convolution with full vectors
// reaches about three quarters of the peak. A Transpose at a border takes as long as moving its tensor through memory
// once.
constexpr double kPeakShare = 3.0 / 4, kGain = 1.0 / 10;
// The time with a tensor instruction relative to the time without, and the number of channels below which the
// instruction gains nothing.
constexpr double kInstructionShare = 1.0 / 4;
constexpr int64_t kInstructionChannelsMin = 3;
// Winograd convolution F(4x4, 3x3) needs this share of the products. Transforming a vector of channels into or out of a
// tile takes about 10 cycles (measured) for each of the tile's 36 elements. Source: Lavin, Gray, "Fast Algorithms for
// Convolutional Neural Networks", CVPR 2016.
constexpr int64_t kWinogradTile = 4, kWinogradWindow = 3;
constexpr double kWinogradProducts = 1.0 / 4, kWinogradTransforms = 10;
// Winograd counts as a gain only if at most this share of the time remains. With few channels the gain is lost at the
// borders, whose Transposes are then slower than memory (17 channels of 56x56 took 1.3 times as long).
constexpr double kWinogradShareMax = 1.0 / 2;
// Slowdown of a transposed convolution with a stride whose sums contain divisions.
constexpr double kDivisions = 30;

// Bytes through a Transpose that take as long as one operation of a convolution.
double BytesPerOperation(const target::Target& target) {
  const double peak = 2 * target.core.multiply_adds * target.VectorWidth(4);  // operations per cycle
  return target.core.memory_bytes / (kPeakShare * peak);
}

// Slowdown of vectors of this width along an axis of this extent: padded extent / extent.
double VectorCost(int64_t extent, int64_t width) {
  return static_cast<double>((extent + width - 1) / width * width) / static_cast<double>(std::max<int64_t>(extent, 1));
}

// The number of pixels of a shape [N, C, ...]. The costs are those of the largest sizes.
int64_t Pixels(const ir::Shape& shape) { return ir::Product(std::span(shape).subspan(2)).max(); }

// The input index of a convolution's weights; 0 if the node is no convolution.
size_t WeightsOf(const Node& node) {
  if (Is(node, "QLinearConv")) return 3;
  return Is(node, "Conv") || Is(node, "ConvTranspose") || Is(node, "ConvInteger") ? 1 : 0;
}

// Tensor instructions read several consecutive channels of integers, which are adjacent only in NHWC.
bool TakesInstruction(const Graph& graph, const Node& node) {
  const bool integers = Is(node, "QLinearConv") || Is(node, "ConvInteger");
  return integers && !graph.target.tensor_instructions.empty() &&
         graph.values[node.inputs[WeightsOf(node)]].type.shape[1].max() >= kInstructionChannelsMin;
}

// Returns true if all values from index `from` on equal `wanted`.
bool All(const std::vector<int64_t>& values, size_t from, int64_t wanted) {
  return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(std::min(from, values.size())), values.end(),
                     [&](int64_t v) { return v == wanted; });
}

bool IsPointwise(const Graph& graph, const Node& node) {
  return All(ir::MaxValues(graph.values[node.inputs[WeightsOf(node)]].type.shape), 2, 1) &&
         All(IntsAttribute(node, "strides"), 0, 1) && All(IntsAttribute(node, "pads"), 0, 0) &&
         IntAttribute(node, "group", 1) == 1;
}

// The time of a convolution in NHWC relative to the direct algorithm, if Winograd can compute it; 1 if Winograd does
// not apply or does not pay. Winograd needs adjacent channels.
double WinogradShare(const Graph& graph, const Node& node) {
  const Value& output = graph.values[node.outputs[0]];
  const std::vector<int64_t> weights = ir::MaxValues(graph.values[node.inputs[WeightsOf(node)]].type.shape);
  const std::vector<int64_t> shape = ir::MaxValues(output.type.shape);
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
  return share <= kWinogradShareMax ? share : 1;
}

// The time of a convolution in NCHW minus that in NHWC, relative to its time with full vectors.
double GainOf(const Graph& graph, const Node& node) {
  const ir::Shape& shape = graph.values[node.outputs[0]].type.shape;
  const std::vector<int64_t> output = ir::MaxValues(shape);
  const int64_t width = graph.target.VectorWidth(4);
  const double share = TakesInstruction(graph, node) ? kInstructionShare : WinogradShare(graph, node);
  // A vector stays within one group, because the channels of a group share inputs, unless every group has one channel.
  const int64_t groups = graph.target.facts().vector_stays_in_group ? IntAttribute(node, "group", 1) : 1;
  const double last = VectorCost(output[1] > groups ? output[1] / groups : output[1], width) * share - kGain;
  if (Is(node, "ConvTranspose")) {
    const std::vector<int64_t> strides = IntsAttribute(node, "strides");
    const bool strided = std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s > 1; });
    if (strided) return kDivisions - last;  // only NHWC has a form without divisions: see lower_conv_transpose.h
  }
  // In a pointwise convolution all pixels form one axis.
  return VectorCost(IsPointwise(graph, node) ? Pixels(shape) : output.back(), width) - last;
}

double ConvOperations(const Graph& graph, const Node& node) {
  if (WeightsOf(node) == 0) return 0;
  const std::vector<int64_t> weights = ir::MaxValues(graph.values[node.inputs[WeightsOf(node)]].type.shape);
  // Operations per pixel of the larger side. Convolutions have weights [outputs, inputs / group, ...], ConvTranspose
  // [inputs, outputs / group, ...].
  const ValueId pixels = Is(node, "ConvTranspose") ? node.inputs[0] : node.outputs[0];
  double operations = 2.0 * static_cast<double>(graph.values[pixels].type.elements().max());
  for (size_t d = 1; d < weights.size(); ++d) operations *= static_cast<double>(weights[d]);
  return operations;
}

// With channels last, one group of lanes sums over all channels of an image.
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
        HONE_ASSIGN_OR_RETURN(replacements[node.outputs[k]], AddOp(graph_, "Transpose", {outputs[k]},
                                                                   {{"perm", ToChannelsFirst(RankOf(outputs[k]))}}));
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
  // Returns true if the node, once moved, reads the value with channels last.
  bool Follows(int node, ValueId id) const {
    return movable_[node] && ReadsChannelsLast(graph_, graph_.nodes[node], id);
  }

  // Joins into one region all movable nodes that touch a value.
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

  // Returns true if a value that a movable node produces is also needed in NCHW.
  bool LeavesRegion(ValueId id) const {
    if (IsOutput(graph_, id)) return true;
    for (int consumer : consumers_[id]) {
      if (!Follows(consumer, id)) return true;
    }
    return false;
  }

  // The cost in bytes of a Transpose of the value; 0 if it moves nothing, or cancels with another Transpose.
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
    std::map<int, double> gain;  // per region, in bytes of Transposes that it may cost
    for (size_t i = 0; i < movable_.size(); ++i) {
      if (!movable_[i]) continue;
      const Node& node = graph_.nodes[i];
      const double operations = ConvOperations(graph_, node);
      if (operations > 0) gain[Region(static_cast<int>(i))] += bytes_per_operation * operations * GainOf(graph_, node);
      // In NCHW the kernel itself brings the instruction's operands side by side, which costs a Transpose as well.
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
    spdlog::debug("layout: {} of {} regions change to NHWC", chosen_.size(), gain.size());
  }

  // Returns the NHWC form of a value; adds a Transpose if the value enters a region.
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
