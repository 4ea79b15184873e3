// SPDX-License-Identifier: Apache-2.0
// Rules for tree ensembles of ai.onnx.ml, in both forms: nodes that have names (versions 1 to 3), or splits and leaves
// (version 5).
//
// A forest becomes arrays of splits and leaves, which TreeWalk (ops/tree_walk.cc) reads, and a table with the weights
// of each leaf. All splits ask x <= threshold or, if need be, x == threshold; other comparisons exchange the children.
// What the specification leaves open about two classes is as in ONNX Runtime.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "compiler/graph/decompose/attributes.h"
#include "compiler/graph/decompose/ml_scores.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// --- A forest.

// Asks x[feature] <= threshold, or == with `equal`. Children: a split's index, or ~i for leaf i.
struct Split {
  int64_t feature = 0;
  double threshold = 0;
  bool equal = false;
  bool missing = false;  // the answer for NaN
  int64_t no = 0, yes = 0;
};

struct LeafWeight {
  int64_t leaf = 0, target = 0;
  double weight = 0;
};

struct Forest {
  DType dtype = DType::kFloat32;  // of features, thresholds and weights
  std::vector<Split> splits;
  std::vector<int64_t> roots;  // as the children of a split
  int64_t leaves = 0;
  std::vector<LeafWeight> weights;
};

enum class Comparison : uint8_t { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual, kMember };

// The largest number of the type below x.
double NumberBelow(DType dtype, double x) {
  if (x == -std::numeric_limits<double>::infinity()) return std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::kFloat64) return std::nextafter(x, -std::numeric_limits<double>::infinity());
  return std::nextafter(static_cast<float>(x), -std::numeric_limits<float>::infinity());
}

// Returns the split that asks `comparison` instead of <=. x < t is x <= the number below t; x > t is a "no" to x <= t.
Split WithComparison(Split split, Comparison comparison, DType dtype) {
  const bool exchanged = comparison == Comparison::kGreaterOrEqual || comparison == Comparison::kGreater ||
                         comparison == Comparison::kNotEqual;
  split.equal = comparison == Comparison::kEqual || comparison == Comparison::kNotEqual;
  if (comparison == Comparison::kLess || comparison == Comparison::kGreaterOrEqual) {
    split.threshold = NumberBelow(dtype, split.threshold);
  }
  if (!exchanged) return split;
  std::swap(split.no, split.yes);
  // NaN != t holds; NaN > t and NaN >= t do not
  split.missing = comparison == Comparison::kNotEqual ? false : !split.missing;
  return split;
}

// Returns the number of splits on the longest path from a root. InvalidArgument if a path returns to a split, or leads
// to one that does not exist.
absl::StatusOr<int64_t> DepthOf(const Forest& forest) {
  constexpr int64_t kUnknown = -1, kOpen = -2;
  const int64_t count = static_cast<int64_t>(forest.splits.size());
  std::vector<int64_t> depths(forest.splits.size(), kUnknown);
  int64_t deepest = 0;
  for (int64_t root : forest.roots) {
    std::vector<int64_t> path = {root};
    while (!path.empty()) {
      const int64_t at = path.back();
      if (at >= count || ~at >= forest.leaves) return Malformed("a tree refers to a node that does not exist");
      if (at < 0 || depths[static_cast<size_t>(at)] >= 0) {
        path.pop_back();
        continue;
      }
      int64_t& depth = depths[static_cast<size_t>(at)];
      const Split& split = forest.splits[static_cast<size_t>(at)];
      int64_t below = 0;
      bool complete = true;
      for (int64_t child : {split.no, split.yes}) {
        if (child >= count || ~child >= forest.leaves) return Malformed("a tree refers to a node that does not exist");
        const int64_t known = child < 0 ? 0 : depths[static_cast<size_t>(child)];
        if (known == kOpen) return Malformed("a tree has a cycle");
        if (known == kUnknown) {
          complete = false;
          path.push_back(child);
        }
        below = std::max(below, known);
      }
      depth = complete ? below + 1 : kOpen;
      if (complete) path.pop_back();
    }
    if (root >= 0) deepest = std::max(deepest, depths[static_cast<size_t>(root)]);
  }
  return deepest;
}

// The number of the leaf that each row reaches in each tree: i32 [rows, trees].
ValueId WalkTrees(Decomposition& b, ValueId x, Forest forest) {
  const absl::StatusOr<int64_t> depth = DepthOf(forest);
  if (!depth.ok()) {
    b.Fail(depth.status());
    return kAbsent;
  }
  if (forest.splits.empty()) forest.splits.push_back({.no = ~int64_t{0}, .yes = ~int64_t{0}});  // TreeWalk wants one
  const int64_t count = static_cast<int64_t>(forest.splits.size());
  const auto place = [&](int64_t node) { return static_cast<double>(node < 0 ? count + ~node : node); };
  std::vector<double> features, thresholds, children, equal, missing, roots;
  for (const Split& split : forest.splits) {
    features.push_back(static_cast<double>(split.feature));
    thresholds.push_back(split.threshold);
    children.insert(children.end(), {place(split.no), place(split.yes)});
    equal.push_back(split.equal ? 1 : 0);
    missing.push_back(split.missing ? 1 : 0);
    if (split.feature < 0 || split.feature >= b.Extent(x, 1)) {
      b.Fail(Malformed(fmt::format("a tree refers to feature {}, and input 0 has {}", split.feature, b.Extent(x, 1))));
    }
  }
  for (int64_t root : forest.roots) roots.push_back(place(root));
  const auto list = [&](DType dtype, const std::vector<double>& numbers) {
    return b.Tensor(dtype, {static_cast<int64_t>(numbers.size())}, numbers);
  };
  const auto flags = [&](const std::vector<double>& bools) {
    return std::count(bools.begin(), bools.end(), 1.0) == 0 ? kAbsent : list(DType::kBool, bools);
  };
  return b.Op("TreeWalk",
              {x, list(DType::kInt32, features), list(forest.dtype, thresholds), list(DType::kInt32, children),
               list(DType::kInt32, roots), flags(equal), flags(missing)},
              {{"depth", *depth}}, "hone");
}

// --- Scores.

enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

// The aggregated weights of the leaves that each row reaches, [rows, targets]; 0 where no leaf has a weight.
ValueId ForestScores(Decomposition& b, ValueId x, const Forest& forest, int64_t targets, Aggregate aggregate) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr int64_t kLeafWeightsMax = int64_t{1} << 28;
  if (targets > kLeafWeightsMax / std::max<int64_t>(forest.leaves, 1)) {
    b.Fail(Unsupported(fmt::format("{} leaves with {} targets need more than {} weights, the limit", forest.leaves,
                                   targets, kLeafWeightsMax)));
    return kAbsent;
  }
  const double none = aggregate == Aggregate::kMin ? kInfinity : aggregate == Aggregate::kMax ? -kInfinity : 0;
  std::vector<double> table(static_cast<size_t>(std::max<int64_t>(forest.leaves, 1) * targets), none);
  for (const LeafWeight& weight : forest.weights) {
    if (weight.target < 0 || weight.target >= targets) {
      b.Fail(
          Malformed(fmt::format("a leaf has a weight for target or class {}; there are {}", weight.target, targets)));
      return kAbsent;
    }
    double& entry = table[static_cast<size_t>(weight.leaf * targets + weight.target)];
    entry = (aggregate == Aggregate::kMin || aggregate == Aggregate::kMax) ? weight.weight : entry + weight.weight;
  }
  const ValueId weights = b.Tensor(forest.dtype, {std::max<int64_t>(forest.leaves, 1), targets}, table);
  const ValueId reached = b.Op("Gather", {weights, WalkTrees(b, x, forest)});  // [rows, trees, targets]
  const Attributes over_trees = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
  if (aggregate == Aggregate::kMin || aggregate == Aggregate::kMax) {
    const ValueId found = b.Op(aggregate == Aggregate::kMin ? "ReduceMin" : "ReduceMax", {reached}, over_trees);
    return b.Op("Where", {b.Op("Equal", {found, b.Like(found, none)}), b.Like(found, 0), found});
  }
  const ValueId sum = b.Op("ReduceSum", {reached, b.List({1})}, {{"keepdims", int64_t{0}}});
  if (aggregate == Aggregate::kSum) return sum;
  return b.Div(sum, b.Like(sum, static_cast<double>(forest.roots.size())));
}

// --- The form of versions 1 to 3.

// Returns attribute `name`, or the tensor in attribute `name` + "_as_tensor".
std::vector<double> FloatsOrTensor(Decomposition& b, const std::string& name) {
  const Constant* tensor = FindTensorAttribute(b, name + "_as_tensor");
  return tensor == nullptr ? b.Floats(name, {}) : NumbersOf(*tensor);
}

absl::StatusOr<Comparison> ComparisonOf(std::string_view mode) {
  if (mode == "BRANCH_LEQ") return Comparison::kLessOrEqual;
  if (mode == "BRANCH_LT") return Comparison::kLess;
  if (mode == "BRANCH_GTE") return Comparison::kGreaterOrEqual;
  if (mode == "BRANCH_GT") return Comparison::kGreater;
  if (mode == "BRANCH_EQ") return Comparison::kEqual;
  if (mode == "BRANCH_NEQ") return Comparison::kNotEqual;
  return Malformed(fmt::format("attribute nodes_modes has '{}', which is no mode of a node", mode));
}

using NodeName = std::pair<int64_t, int64_t>;  // tree, node

// The nodes of the attributes as they are, and where each is in the forest (as a child of a split).
struct NamedNodes {
  std::vector<int64_t> trees, ids, features, yes, no, missing;
  std::vector<std::string> modes;
  std::vector<double> values;
  std::map<NodeName, int64_t> places;
};

absl::StatusOr<NamedNodes> ReadNamedNodes(Decomposition& b) {
  NamedNodes nodes{.trees = b.Ints("nodes_treeids", {}),
                   .ids = b.Ints("nodes_nodeids", {}),
                   .features = b.Ints("nodes_featureids", {}),
                   .yes = b.Ints("nodes_truenodeids", {}),
                   .no = b.Ints("nodes_falsenodeids", {}),
                   .missing = b.Ints("nodes_missing_value_tracks_true", {}),
                   .modes = b.Strings("nodes_modes", {}),
                   .values = FloatsOrTensor(b, "nodes_values"),
                   .places = {}};
  const size_t count = nodes.ids.size();
  if (nodes.missing.empty()) nodes.missing.assign(count, 0);
  for (size_t size : {nodes.trees.size(), nodes.features.size(), nodes.yes.size(), nodes.no.size(),
                      nodes.missing.size(), nodes.modes.size(), nodes.values.size()}) {
    if (size != count) return Malformed("the attributes that start with nodes_ must be of one length");
  }
  int64_t splits = 0, leaves = 0;
  for (size_t i = 0; i < count; ++i) {
    const int64_t place = nodes.modes[i] == "LEAF" ? ~leaves++ : splits++;
    if (!nodes.places.emplace(NodeName(nodes.trees[i], nodes.ids[i]), place).second) {
      return Malformed(fmt::format("tree {} has two nodes {}", nodes.trees[i], nodes.ids[i]));
    }
  }
  return nodes;
}

absl::StatusOr<int64_t> FindPlace(const NamedNodes& nodes, int64_t tree, int64_t id) {
  auto it = nodes.places.find({tree, id});
  if (it != nodes.places.end()) return it->second;
  return Malformed(fmt::format("tree {} has no node {}", tree, id));
}

// `prefix` is that of the attributes of weights: "target" or "class".
absl::StatusOr<Forest> ReadForest(Decomposition& b, DType dtype, const std::string& prefix) {
  HONE_ASSIGN_OR_RETURN(const NamedNodes nodes, ReadNamedNodes(b));
  Forest forest{.dtype = dtype};
  std::set<NodeName> children;
  for (size_t i = 0; i < nodes.ids.size(); ++i) {
    if (nodes.modes[i] == "LEAF") {
      ++forest.leaves;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const Comparison comparison, ComparisonOf(nodes.modes[i]));
    Split split{.feature = nodes.features[i], .threshold = nodes.values[i], .missing = nodes.missing[i] != 0};
    HONE_ASSIGN_OR_RETURN(split.yes, FindPlace(nodes, nodes.trees[i], nodes.yes[i]));
    HONE_ASSIGN_OR_RETURN(split.no, FindPlace(nodes, nodes.trees[i], nodes.no[i]));
    children.insert({nodes.trees[i], nodes.yes[i]});
    children.insert({nodes.trees[i], nodes.no[i]});
    forest.splits.push_back(WithComparison(split, comparison, dtype));
  }
  std::set<int64_t> trees;
  for (size_t i = 0; i < nodes.ids.size(); ++i) {
    const NodeName name(nodes.trees[i], nodes.ids[i]);
    if (children.contains(name)) continue;
    if (!trees.insert(name.first).second) return Malformed(fmt::format("tree {} has two roots", name.first));
    forest.roots.push_back(nodes.places.at(name));
  }
  if (trees.size() != std::set<int64_t>(nodes.trees.begin(), nodes.trees.end()).size()) {
    return Malformed("a tree has a cycle: it has no root");
  }
  const std::vector<int64_t> weight_trees = b.Ints(prefix + "_treeids", {}),
                             weight_nodes = b.Ints(prefix + "_nodeids", {}), targets = b.Ints(prefix + "_ids", {});
  const std::vector<double> weights = FloatsOrTensor(b, prefix + "_weights");
  if (weight_trees.size() != targets.size() || weight_nodes.size() != targets.size() ||
      weights.size() != targets.size()) {
    return Malformed(fmt::format("the attributes that start with {}_ must be of one length", prefix));
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const int64_t place, FindPlace(nodes, weight_trees[i], weight_nodes[i]));
    if (place >= 0) continue;  // a weight of a node that is no leaf has no effect
    forest.weights.push_back({~place, targets[i], weights[i]});
  }
  return forest;
}

// Adds one number per score, or none. ONNX Runtime takes one number for two scores, too: it is for the first.
ValueId WithBaseValues(Decomposition& b, ValueId scores, std::vector<double> base, int64_t count) {
  if (base.empty()) return scores;
  if (base.size() == 1 && count == 2) base.push_back(0);
  if (static_cast<int64_t>(base.size()) != count) {
    b.Fail(Malformed(fmt::format("attribute base_values has {} numbers; there are {} scores", base.size(), count)));
    return kAbsent;
  }
  return b.Add(scores, b.Tensor(b.ElementType(scores), {count}, base));
}

absl::StatusOr<Values> TreeEnsembleRegressor(Decomposition& b) {
  const ValueId x = RowsOf(b, true);
  const int64_t targets = b.Int("n_targets", 1);
  if (targets < 1) return Malformed("attribute n_targets must be at least 1");
  const std::string name = b.String("aggregate_function", "SUM");
  if (name != "SUM" && name != "AVERAGE" && name != "MIN" && name != "MAX") {
    return Malformed(fmt::format("attribute aggregate_function is '{}'; it must be SUM, AVERAGE, MIN or MAX", name));
  }
  const Aggregate aggregate = name == "SUM"       ? Aggregate::kSum
                              : name == "AVERAGE" ? Aggregate::kAverage
                              : name == "MIN"     ? Aggregate::kMin
                                                  : Aggregate::kMax;
  HONE_ASSIGN_OR_RETURN(const Forest forest, ReadForest(b, b.ElementType(x), "target"));
  const ValueId scores =
      WithBaseValues(b, ForestScores(b, x, forest, targets, aggregate), FloatsOrTensor(b, "base_values"), targets);
  return Values{b.Cast(Transformed(b, scores, ReadPostTransform(b)), DType::kFloat32)};
}

// Two classes, of which the leaves have weights for `only` (0 or 1). Outputs: label 1 where the score is above 1/2 (if
// no weight is negative) or above 0, and two scores. The score of class 1 is made from that of class 0; the score of
// class 0 is 0. `base` has at most one number, which only class 0 uses.
Values OneWeightedClass(Decomposition& b, const ClassLabels& labels, ValueId x, Forest forest, int64_t only,
                        const std::vector<double>& base) {
  const PostTransform transform = ReadPostTransform(b);
  for (LeafWeight& leaf : forest.weights) leaf.target = 0;
  ValueId score = ForestScores(b, x, forest, 1, Aggregate::kSum);
  if (only == 0 && !base.empty()) score = b.Add(score, b.Like(score, base[0]));
  const bool positive = std::all_of(forest.weights.begin(), forest.weights.end(),
                                    [](const LeafWeight& leaf) { return leaf.weight >= 0; });
  const ValueId chosen = b.Op("Greater", {score, b.Like(score, positive ? 0.5 : 0)});
  ValueId scores = kAbsent;
  if (only == 0) {
    scores = TwoScores(b, score, positive ? SecondScore::kComplement : SecondScore::kNegation, transform);
  } else {
    scores = Transformed(b, b.Concat({b.Mul(score, b.Like(score, 0)), score}, 1), transform);
  }
  return {LabelsWhere(b, labels, chosen), b.Cast(scores, DType::kFloat32)};
}

// Outputs: labels, scores. The label is that of the largest score.
absl::StatusOr<Values> TreeEnsembleClassifier(Decomposition& b) {
  const ValueId x = RowsOf(b, true);
  const ClassLabels labels = ReadClassLabels(b, "classlabels_int64s", "classlabels_strings");
  HONE_ASSIGN_OR_RETURN(const Forest forest, ReadForest(b, b.ElementType(x), "class"));
  std::set<int64_t> weighted;
  for (const LeafWeight& leaf : forest.weights) weighted.insert(leaf.target);
  const int64_t classes = static_cast<int64_t>(labels.count);
  const std::vector<double> base = FloatsOrTensor(b, "base_values");
  if (classes == 2 && weighted.size() == 1 && *weighted.begin() >= 0 && *weighted.begin() < 2 && base.size() < 2) {
    return OneWeightedClass(b, labels, x, forest, *weighted.begin(), base);
  }
  const ValueId scores = WithBaseValues(b, ForestScores(b, x, forest, classes, Aggregate::kSum),
                                        FloatsOrTensor(b, "base_values"), classes);
  return Values{LabelsOfLargest(b, labels, scores),
                b.Cast(Transformed(b, scores, ReadPostTransform(b)), DType::kFloat32)};
}

// --- The form of version 5.

// Replaces the split by a chain that compares with one member of the set after the other.
void AddMemberChain(Forest& forest, size_t place, const std::vector<double>& members) {
  const Split asked = forest.splits[place];
  size_t at = place;
  for (size_t k = 0; k < members.size(); ++k) {
    const bool last = k + 1 == members.size();
    const int64_t next = last ? asked.no : static_cast<int64_t>(forest.splits.size());
    forest.splits[at] = {.feature = asked.feature,
                         .threshold = members[k],
                         .equal = true,
                         .missing = k == 0 && asked.missing,
                         .no = next,
                         .yes = asked.yes};
    if (last) break;
    at = forest.splits.size();
    forest.splits.emplace_back();
  }
}

absl::StatusOr<Forest> ReadForestOfSplits(Decomposition& b, DType dtype) {
  Forest forest{.dtype = dtype, .splits = {}, .roots = b.Ints("tree_roots", {})};
  const std::vector<int64_t> features = b.Ints("nodes_featureids", {}), yes = b.Ints("nodes_truenodeids", {}),
                             yes_leaf = b.Ints("nodes_trueleafs", {}), no = b.Ints("nodes_falsenodeids", {}),
                             no_leaf = b.Ints("nodes_falseleafs", {}), targets = b.Ints("leaf_targetids", {});
  std::vector<int64_t> missing = b.Ints("nodes_missing_value_tracks_true", {});
  const std::vector<double> modes = TensorAttribute(b, "nodes_modes"), values = TensorAttribute(b, "nodes_splits"),
                            weights = TensorAttribute(b, "leaf_weights"),
                            members = TensorAttribute(b, "membership_values");
  const size_t count = features.size();
  if (missing.empty()) missing.assign(count, 0);
  for (size_t size :
       {yes.size(), yes_leaf.size(), no.size(), no_leaf.size(), missing.size(), modes.size(), values.size()}) {
    if (size != count) return Malformed("the attributes that start with nodes_ must be of one length");
  }
  if (targets.size() != weights.size()) return Malformed("the attributes that start with leaf_ must be of one length");
  forest.leaves = static_cast<int64_t>(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    forest.weights.push_back({static_cast<int64_t>(i), targets[i], weights[i]});
  }
  auto member = members.begin();
  std::vector<std::pair<size_t, std::vector<double>>> chains;
  for (size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6))
      return Malformed(fmt::format("attribute nodes_modes has {}; modes are 0 to 6", modes[i]));
    const Comparison comparison = static_cast<Comparison>(modes[i]);
    const Split split{.feature = features[i],
                      .threshold = values[i],
                      .missing = missing[i] != 0,
                      .no = no_leaf[i] != 0 ? ~no[i] : no[i],
                      .yes = yes_leaf[i] != 0 ? ~yes[i] : yes[i]};
    forest.splits.push_back(comparison == Comparison::kMember ? split : WithComparison(split, comparison, dtype));
    if (comparison != Comparison::kMember) continue;
    auto end = std::find_if(member, members.end(), [](double value) { return std::isnan(value); });
    if (end == member) return Malformed("attribute membership_values has too few sets, or an empty one");
    chains.emplace_back(i, std::vector<double>(member, end));
    member = end == members.end() ? end : end + 1;
  }
  for (const auto& [place, set] : chains) AddMemberChain(forest, place, set);
  return forest;
}

absl::StatusOr<Values> TreeEnsemble(Decomposition& b) {
  const ValueId x = RowsOf(b, true);
  const int64_t targets = b.Int("n_targets", 1), aggregate = b.Int("aggregate_function", 1),
                transform = b.Int("post_transform", 0);
  if (targets < 1 || aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4) {
    return Malformed("attribute n_targets, aggregate_function or post_transform is out of its range");
  }
  constexpr PostTransform kTransforms[] = {PostTransform::kNone, PostTransform::kSoftmax, PostTransform::kLogistic,
                                           PostTransform::kSoftmaxZero, PostTransform::kProbit};
  HONE_ASSIGN_OR_RETURN(const Forest forest, ReadForestOfSplits(b, b.ElementType(x)));
  const ValueId scores = ForestScores(b, x, forest, targets, static_cast<Aggregate>(aggregate));
  return Values{b.Cast(Transformed(b, scores, kTransforms[transform]), b.ElementType(b.Input(0)))};
}

constexpr Row kMlTreeRows[] = {
    {"TreeEnsemble", TreeEnsemble},
    {"TreeEnsembleClassifier", TreeEnsembleClassifier},
    {"TreeEnsembleRegressor", TreeEnsembleRegressor},
};

}  // namespace

std::span<const Row> MlTreeRows() { return kMlTreeRows; }

}  // namespace hone::graph::decompose
