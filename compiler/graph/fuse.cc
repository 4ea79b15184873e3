// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/fuse.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "compiler/graph/control_flow.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/op_facts.h"
#include "compiler/graph/post_dominator.h"
#include "compiler/graph/traits.h"

namespace hone::graph {
namespace {

constexpr int kNone = -1;
constexpr size_t kClusterNodesMax = 64;  // per cluster; longer chains gain nothing and make the kernel slow to compile

constexpr size_t kMovedPartsMax = 16;  // most tensors from which one kernel of movements alone takes its elements

// The fusion algorithm. It starts at a node and grows the cluster to include the node where all its consumers meet
// again (its post-dominator) and all nodes on the paths to it, if all of them fit. A cluster therefore always has one
// exit. The steps run in this order:
//   - reductions take the element-wise nodes that follow them, but not a last one that makes f32 of bytes;
//   - row computations between two matrix products join both, and depthwise convolutions the product after them;
//   - chains without reductions form, and join the reductions that read every element once;
//   - permutations of a matrix join the matrix-vector product that reads it;
//   - a node that makes f32 of bytes joins its maker if no reader took it.
class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph),
        producers_(Producers(graph)),
        consumers_(Consumers(graph)),
        meets_(ImmediatePostDominators(graph)) {}

  absl::StatusOr<std::vector<Cluster>> Run(Fusion fusion) {
    const int count = static_cast<int>(graph_.nodes.size());
    for (const Node& node : graph_.nodes) {
      traits_.emplace_back();
      if (!IsView(node)) {
        HONE_ASSIGN_OR_RETURN(traits_.back(), FindTraits(graph_, node));
      }
    }
    cluster_.resize(graph_.nodes.size());
    std::iota(cluster_.begin(), cluster_.end(), 0);
    members_.resize(graph_.nodes.size());
    for (int i = 0; i < count; ++i) members_[i] = {i};
    if (fusion == Fusion::kNone) return Collect();
    for (int i = 0; i < count; ++i) {
      if (traits_[i].reduces && members_[cluster_[i]].size() == 1) GrowReduction(i);
    }
    for (int i = 0; i < count && graph_.target.facts().joins_products; ++i) {
      if (traits_[i].row) JoinProducts(cluster_[i]);
      if (traits_[i].row_operand.has_value()) JoinDepthwise(i);
    }
    // Backwards, so that a chain is complete before its producers are considered.
    for (int i = count - 1; i >= 0; --i) {
      const Node& node = graph_.nodes[i];
      if (!traits_[i].reduces && Single(i) && !IsView(node) && !IsControlFlow(node)) GrowChain(i);
    }
    for (int i = 0; i < count; ++i) {
      if (Single(i) && Widens(i)) JoinMaker(i);
    }
    return Collect();
  }

 private:
  bool Single(int node) const { return members_[cluster_[node]].size() == 1; }

  // The node's only output, or kAbsent if it has several.
  ValueId OnlyOutput(int node) const {
    ValueId only = kAbsent;
    for (ValueId id : graph_.nodes[node].outputs) {
      if (id == kAbsent) continue;
      if (only != kAbsent) return kAbsent;
      only = id;
    }
    return only;
  }

  const ir::Shape& ShapeOf(int node) const { return graph_.values[OnlyOutput(node)].type.shape; }

  // Returns all nodes on paths from `from` (exclusive) to its post-dominator `to` (inclusive), ascending.
  std::vector<int> Between(int from, int to) const {
    std::set<int> seen;
    std::vector<int> pending = {from};
    while (!pending.empty()) {
      const int node = pending.back();
      pending.pop_back();
      for (ValueId id : graph_.nodes[node].outputs) {
        if (id == kAbsent) continue;
        for (int consumer : consumers_[id]) {
          if (seen.insert(consumer).second && consumer != to) pending.push_back(consumer);
        }
      }
      if (seen.size() > kClusterNodesMax) break;
    }
    return {seen.begin(), seen.end()};
  }

  bool MadeIn(ValueId id, const std::vector<int>& nodes) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
      const std::vector<ValueId>& outputs = graph_.nodes[node].outputs;
      return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
    });
  }

  // Returns true for an element-wise node on tensors of this shape that reads the cluster's results element by element.
  bool FitsElementwise(int node, const ir::Shape& shape, const std::vector<int>& inside) const {
    return traits_[node].elementwise && Single(node) && FitsAsMember(node, shape, inside);
  }

  // Returns true for a computation on the same rows, or an element-wise node on complete rows or on their reduced
  // values.
  bool FitsRow(int node, const NodeTraits& row, const std::vector<int>& inside) const {
    const NodeTraits& traits = traits_[node];
    if (!Single(node) || OnlyOutput(node) == kAbsent) return false;
    if (traits.row) return traits.row_shape == row.row_shape && traits.row_outer == row.row_outer;
    if (!traits.elementwise) return false;
    const ir::Shape& shape = ShapeOf(node);
    if (shape != row.row_shape && !IsRowReduced(shape, row.row_shape, row.row_outer)) return false;
    for (size_t i = 0; i < traits.access.size(); ++i) {
      const ValueId id = graph_.nodes[node].inputs[i];
      if (id == kAbsent || traits.access[i] != Access::kBroadcast || !MadeIn(id, inside)) continue;
      // Broadcasting a reduced value back over its row requires that all dimensions are kept.
      const ir::Shape& from = graph_.values[id].type.shape;
      if (from.size() != shape.size() || !IsRowReduced(from, row.row_shape, row.row_outer)) return false;
    }
    return true;
  }

  void Merge(int into, const std::vector<int>& nodes) {
    for (int node : nodes) {
      const int old = cluster_[node];
      if (old == into) continue;
      for (int member : members_[old]) cluster_[member] = into;
      members_[into].insert(members_[into].end(), members_[old].begin(), members_[old].end());
      members_[old].clear();
    }
    std::sort(members_[into].begin(), members_[into].end());
  }

  template <typename Fits>
  bool GrowBy(int seed, int exit, const Fits& fits) {
    const int meet = meets_[exit];
    if (meet == kNone) return false;
    const std::vector<int> between = Between(exit, meet);
    std::vector<int> inside = members_[cluster_[seed]];
    inside.insert(inside.end(), between.begin(), between.end());
    if (inside.size() > kClusterNodesMax) return false;
    for (int node : between) {
      if (!fits(node, inside)) return false;
    }
    Merge(cluster_[seed], between);
    return true;
  }

  // Grows a cluster beyond a reduction: element-wise nodes on its result, or more computations on the same rows.
  void GrowReduction(int seed) {
    int exit = seed;
    while (OnlyOutput(exit) != kAbsent) {
      const NodeTraits row = traits_[seed];
      const ir::Shape shape = ShapeOf(exit);
      const bool grown = GrowBy(seed, exit, [&](int node, const std::vector<int>& inside) {
        return FitsElementwise(node, shape, inside) || (row.row && FitsRow(node, row, inside));
      });
      if (!grown) break;
      exit = meets_[exit];
    }
    if (exit != seed && Widens(exit)) Leave(exit);
  }

  // Whether the node makes f32 of bytes, element by element, as DequantizeLinear does. Its result takes four times the
  // memory of what it reads.
  bool Widens(int node) const {
    const std::vector<ValueId>& inputs = graph_.nodes[node].inputs;
    if (!traits_[node].elementwise || inputs.empty() || inputs[0] == kAbsent) return false;
    for (size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i] != kAbsent && graph_.values[inputs[i]].data == nullptr) return false;
    }
    const auto size = [&](ValueId id) { return ir::SizeOf(graph_.values[id].type.dtype); };
    return traits_[node].access[0] == Access::kSame && size(inputs[0]) == 1 && size(OnlyOutput(node)) == 4;
  }

  // Takes the last node out of its cluster. It reads one value of it alone.
  void Leave(int node) {
    std::vector<int>& members = members_[cluster_[node]];
    const int old = cluster_[node];
    members.pop_back();
    if (old == node) {  // the cluster was named after it
      for (const int member : members) cluster_[member] = members.front();
      members_[members.front()] = std::move(members);
    }
    cluster_[node] = node;
    members_[node] = {node};
  }

  void JoinMaker(int node) {
    const ValueId read = graph_.nodes[node].inputs[0];
    const int maker = producers_[read];
    if (maker == kNone || consumers_[read].size() != 1 || IsOutput(graph_, read)) return;
    const std::vector<int>& members = members_[cluster_[maker]];
    if (members.size() > 1 && members.back() == maker && members.size() < kClusterNodesMax)
      Merge(cluster_[maker], {node});
  }

  // Joins a softmax with the products before and after it, as in attention, so that the rows between them need no
  // memory. `rows` is a cluster of computations on rows.
  void JoinProducts(int rows) {
    const int exit = members_[rows].back();
    const ValueId made = OnlyOutput(exit);
    if (ProductsIn(rows) > 0 || made == kAbsent || IsOutput(graph_, made) || consumers_[made].size() != 1) return;
    const int second = consumers_[made][0];
    const std::optional<size_t> place = traits_[second].row_operand;
    if (!place.has_value() || graph_.nodes[second].inputs[*place] != made || ProductsIn(cluster_[second]) != 1) return;
    const int first = ScoresOf(rows, ShapeOf(exit));
    if (first == kNone) return;
    std::vector<int> joined = members_[first];
    joined.insert(joined.end(), members_[rows].begin(), members_[rows].end());
    if (joined.size() + members_[cluster_[second]].size() <= kClusterNodesMax) Merge(cluster_[second], joined);
  }

  // Joins a depthwise convolution with the product that sums over the channels of its pixels, so that the convolution's
  // result needs no memory. The product must read unreshaped pixels, as lower_matmul.h leaves them.
  void JoinDepthwise(int product) {
    const ValueId made = graph_.nodes[product].inputs[*traits_[product].row_operand];
    const int maker = producers_[made];
    if (maker == kNone || consumers_[made].size() != 1 || IsOutput(graph_, made)) return;
    const std::vector<int> first = members_[cluster_[maker]];
    if (first.back() != maker || ProductsIn(cluster_[product]) != 1) return;
    const auto reduces = [&](int node) { return traits_[node].reduces; };
    const auto apart = [&](int node) { return traits_[node].sums_per_channel; };
    if (std::ranges::count_if(first, reduces) != 1 || std::ranges::none_of(first, apart)) return;
    if (first.size() + members_[cluster_[product]].size() <= kClusterNodesMax) Merge(cluster_[product], first);
  }

  int64_t ProductsIn(int cluster) const {
    return std::ranges::count_if(members_[cluster], [&](int node) { return traits_[node].row_operand.has_value(); });
  }

  // Returns the cluster of the sum of products whose result only these rows read; kNone if there is none.
  int ScoresOf(int rows, const ir::Shape& shape) const {
    for (const int node : members_[rows]) {
      for (const ValueId id : graph_.nodes[node].inputs) {
        const int maker = id == kAbsent ? kNone : producers_[id];
        if (maker == kNone || cluster_[maker] == rows || OnlyOutput(maker) != id || ShapeOf(maker) != shape) continue;
        const bool product = ProductsIn(cluster_[maker]) == 1 && members_[cluster_[maker]].back() == maker;
        const bool inside = std::ranges::all_of(consumers_[id], [&](int c) { return cluster_[c] == rows; });
        if (product && inside && !IsOutput(graph_, id)) return cluster_[maker];
      }
    }
    return kNone;
  }

  // Grows an element-wise or data-movement cluster to readers that use its result element by element or, at least, each
  // element once.
  void GrowChain(int seed) {
    if (OnlyOutput(seed) == kAbsent || meets_[seed] == kNone) return;
    const int meet = meets_[seed];
    const ir::Shape shape = ShapeOf(seed);
    std::vector<int> between = Between(seed, meet);
    if (between.size() > kClusterNodesMax) return;
    std::vector<int> inside = between;
    inside.push_back(seed);
    for (int node : between) {
      if (node == meet) continue;
      const bool free = Single(node) || cluster_[node] == cluster_[meet];
      if (!free || !traits_[node].elementwise || !FitsAsMember(node, shape, inside)) return;
    }
    if (!AcceptsChain(meet, seed, shape, inside)) return;
    const size_t total = members_[cluster_[meet]].size() + between.size();
    if (total <= kClusterNodesMax) {
      between.push_back(seed);
      Merge(cluster_[meet], between);
    }
  }

  // Returns true if the cluster of `meet` may compute `seed` and the nodes between them on the fly.
  bool AcceptsChain(int meet, int seed, const ir::Shape& shape, const std::vector<int>& inside) const {
    const NodeTraits& traits = traits_[meet];
    const std::vector<int>& members = members_[cluster_[meet]];
    const bool anchored = std::any_of(members.begin(), members.end(), [&](int m) { return traits_[m].reduces; });
    if (!anchored) {
      if (traits.elementwise) return FitsAsMember(meet, shape, inside);
      if (!traits.moves_once) return false;
      return traits_[seed].elementwise || (traits_[seed].moves_once && ReadsOfChain(meet, seed) <= kMovedPartsMax);
    }
    if (traits.streamed_operand.has_value() && traits_[seed].permutes && ProductsIn(cluster_[meet]) == 1) {
      return graph_.nodes[meet].inputs[*traits.streamed_operand] == OnlyOutput(seed);
    }
    if (!traits_[seed].elementwise) return false;
    if (traits.window && !traits.row && !traits.reads_once && Widens(seed)) {
      return graph_.nodes[meet].inputs[0] == OnlyOutput(seed) && inside.size() == 2;
    }
    if (traits.reduces) return traits.row ? shape == traits.row_shape : traits.reads_once;
    // A window reads elements several times, and takes no more than the step from bytes.
    const bool in_window = Widens(meet) && std::ranges::any_of(members, [&](int m) { return traits_[m].window; });
    return traits.elementwise && !in_window && FitsAsMember(meet, shape, inside);
  }

  // The number of tensors that the cluster of `meet` would read if `seed` joined it. Constants do not count.
  size_t ReadsOfChain(int meet, int seed) const {
    std::vector<int> nodes = members_[cluster_[meet]];
    nodes.push_back(seed);
    std::set<ValueId> reads;
    for (const int node : nodes) {
      for (const ValueId id : graph_.nodes[node].inputs) {
        if (id != kAbsent && graph_.values[id].data == nullptr && !MadeIn(id, nodes)) reads.insert(id);
      }
    }
    return reads.size();
  }

  // FitsElementwise for an element-wise node that may already be in a cluster.
  bool FitsAsMember(int node, const ir::Shape& shape, const std::vector<int>& inside) const {
    if (ShapeOf(node) != shape) return false;
    for (size_t i = 0; i < traits_[node].access.size(); ++i) {
      const ValueId id = graph_.nodes[node].inputs[i];
      if (id != kAbsent && traits_[node].access[i] == Access::kBroadcast && MadeIn(id, inside)) return false;
    }
    return true;
  }

  // Returns the clusters sorted by exit: a cluster reads only results of clusters with earlier exits.
  std::vector<Cluster> Collect() const {
    std::vector<Cluster> clusters;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const std::vector<int>& members = members_[cluster_[i]];
      if (members.back() == i && !IsView(graph_.nodes[i])) clusters.push_back({members, Label(members)});
    }
    return clusters;
  }

  std::string Label(const std::vector<int>& members) const;

  const Graph& graph_;
  const std::vector<int> producers_;
  const std::vector<std::vector<int>> consumers_;
  const std::vector<int> meets_;
  std::vector<NodeTraits> traits_;
  std::vector<int> cluster_;               // per node: its cluster, identified by one of the cluster's nodes
  std::vector<std::vector<int>> members_;  // per cluster id: its nodes, ascending; empty if the id is not in use
};

std::string Fuser::Label(const std::vector<int>& members) const {
  const int64_t products = ProductsIn(cluster_[members[0]]);
  if (products > 1) return "attention";
  if (products == 1 && std::ranges::any_of(members, [&](int node) { return traits_[node].sums_per_channel; })) {
    return "separable_conv";
  }
  // A normalization or softmax gives the cluster its label even if a plain reduction comes first.
  for (const bool plain : {false, true}) {
    for (int node : members) {
      if (traits_[node].reduces && traits_[node].reads_once == plain) return LabelOf(graph_, graph_.nodes[node]);
    }
  }
  for (int node : members) {
    if (!traits_[node].elementwise) return LabelOf(graph_, graph_.nodes[node]);
  }
  return "elementwise";
}

}  // namespace

absl::StatusOr<std::vector<Cluster>> Fuse(const Graph& graph, Fusion fusion) { return Fuser(graph).Run(fusion); }

}  // namespace hone::graph
