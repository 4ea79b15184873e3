// SPDX-License-Identifier: Apache-2.0
// The expected outputs are those of ONNX Runtime 1.30 (CPU), except where a test says that it computes them.
#include <cmath>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

using TreeAttributes = std::map<std::string, Attribute>;

const char kTreesDomain[] = "ai.onnx.ml";

// Two trees. Tree 0: node 0 compares x0 with 1; NaN is "yes". Tree 1: node 0 compares x1 with 0.5, and node 2, if that
// is "no", x0 with 2. The leaves are nodes 1 and 2 of tree 0 and nodes 1, 3 and 4 of tree 1.
TreeAttributes TwoTrees(const std::string& mode, const std::string& second, const std::string& third) {
  return {{"nodes_treeids", IntList({0, 0, 0, 1, 1, 1, 1, 1})},
          {"nodes_nodeids", IntList({0, 1, 2, 0, 1, 2, 3, 4})},
          {"nodes_featureids", IntList({0, 0, 0, 1, 0, 0, 0, 0})},
          {"nodes_modes", Texts({mode, "LEAF", "LEAF", second, "LEAF", third, "LEAF", "LEAF"})},
          {"nodes_values", Reals({1, 0, 0, 0.5, 0, 2, 0, 0})},
          {"nodes_truenodeids", IntList({1, 0, 0, 1, 0, 3, 0, 0})},
          {"nodes_falsenodeids", IntList({2, 0, 0, 2, 0, 4, 0, 0})},
          {"nodes_missing_value_tracks_true", IntList({1, 0, 0, 0, 0, 0, 0, 0})}};
}

TreeAttributes TwoTrees() { return TwoTrees("BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ"); }

// Adds one weight per leaf. `prefix` is "target" or "class".
TreeAttributes WithWeights(TreeAttributes trees, const std::string& prefix, Shape ids,
                           const std::vector<float>& weights) {
  trees[prefix + "_treeids"] = IntList({0, 0, 1, 1, 1});
  trees[prefix + "_nodeids"] = IntList({1, 2, 1, 3, 4});
  trees[prefix + "_ids"] = IntList(std::move(ids));
  trees[prefix + "_weights"] = Reals(weights);
  return trees;
}

Constant FiveRows() { return Floats({5, 2}, {1, 0.5, 2, 0.25, 3, 0.75, kNan, kNan, 2, 1}); }

OpCase RegressorCase(TreeAttributes attributes) {
  return {"TreeEnsembleRegressor", {FiveRows()}, std::move(attributes), 17, 1, kTreesDomain};
}

OpCase ClassifierCase(TreeAttributes attributes, Constant x = FiveRows()) {
  return {"TreeEnsembleClassifier", {std::move(x)}, std::move(attributes), 17, 2, kTreesDomain};
}

TEST(DecomposeMlTrees, RegressorOfMixedModes) {
  TreeAttributes trees =
      WithWeights(TwoTrees("BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ"), "target", {0, 0, 0, 0, 0}, {1, 2, 10, 20, 40});
  trees["base_values"] = Reals({0.5});
  ExpectDecomposed(RegressorCase(trees), {5, 1}, {41.5, 22.5, 12.5, 41.5, 12.5});
}

TEST(DecomposeMlTrees, RegressorOfOtherModes) {
  const TreeAttributes trees =
      WithWeights(TwoTrees("BRANCH_LT", "BRANCH_GTE", "BRANCH_NEQ"), "target", {0, 0, 0, 0, 0}, {1, 2, 10, 20, 40});
  ExpectDecomposed(RegressorCase(trees), {5, 1}, {12, 42, 12, 21, 12});
}

TEST(DecomposeMlTrees, TargetsAreAggregated) {
  TreeAttributes trees = WithWeights(TwoTrees(), "target", {0, 1, 0, 1, 1}, {1, 2, 10, 20, 40});
  trees["n_targets"] = Int(2);
  trees["aggregate_function"] = std::string("AVERAGE");
  ExpectDecomposed(RegressorCase(trees), {5, 2}, {5.5, 0, 5, 1, 0, 21, 0.5, 20, 0, 11});
  trees["aggregate_function"] = std::string("MIN");
  ExpectDecomposed(RegressorCase(trees), {5, 2}, {1, 0, 10, 2, 0, 2, 1, 40, 0, 2});
  trees["aggregate_function"] = std::string("MAX");
  ExpectDecomposed(RegressorCase(trees), {5, 2}, {10, 0, 10, 2, 0, 40, 1, 40, 0, 20});
}

TEST(DecomposeMlTrees, ClassifierOfThreeClasses) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 1, 2, 0, 1}, {0.5, 0.75, 1, 0.25, 0.125});
  trees["classlabels_int64s"] = IntList({5, 3, 9});
  trees["base_values"] = Reals({0.1f, 0.2f, 0.3f});
  trees["post_transform"] = std::string("SOFTMAX");
  const OpCase test_case = ClassifierCase(trees);
  ExpectDecomposed(test_case, {5}, {9, 9, 3, 5, 3});
  ExpectDecomposed(test_case, {5, 3},
                   {0.27143872, 0.18195082, 0.54661041, 0.15015548, 0.35131082, 0.49853376, 0.2052305, 0.5441004,
                    0.25066909, 0.39993757, 0.30378142, 0.29628104, 0.26501659, 0.48289174, 0.25209162},
                   {}, 1);
}

TEST(DecomposeMlTrees, OnePositiveClassOfTwo) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 0, 0, 0, 0}, {0.25, 0.125, 0.125, 0.5, 0.25});
  trees["classlabels_int64s"] = IntList({5, 3});
  ExpectDecomposed(ClassifierCase(trees), {5}, {5, 5, 5, 5, 3});
  ExpectDecomposed(ClassifierCase(trees), {5, 2}, {0.625, 0.375, 0.75, 0.25, 0.625, 0.375, 0.5, 0.5, 0.375, 0.625}, {},
                   1);
}

TEST(DecomposeMlTrees, OneMixedClassOfTwoWithLogistic) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 0, 0, 0, 0}, {-1, 0.5, -0.25, 0.75, 1});
  trees["classlabels_int64s"] = IntList({5, 3});
  trees["base_values"] = Reals({0.25});
  trees["post_transform"] = std::string("LOGISTIC");
  const OpCase test_case = ClassifierCase(trees);
  ExpectDecomposed(test_case, {5}, {5, 3, 3, 3, 3});
  ExpectDecomposed(test_case, {5, 2},
                   {0.7310586, 0.2689414, 0.37754065, 0.62245935, 0.14804727, 0.85195273, 0.43782347, 0.56217653,
                    0.18242556, 0.81757444},
                   {}, 1);
}

// The label is that of the larger score, as the specification has it. ONNX Runtime gives label 1 here, whatever the
// labels are.
TEST(DecomposeMlTrees, BothClassesOfTwo) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 1, 0, 1, 0}, {0.5, 0.25, 0.125, 0.5, 0.75});
  trees["classlabels_int64s"] = IntList({5, 3});
  ExpectDecomposed(ClassifierCase(trees), {5}, {5, 3, 5, 5, 3});
  ExpectDecomposed(ClassifierCase(trees), {5, 2}, {0.625, 0, 0.125, 0.25, 0.75, 0.25, 1.25, 0, 0, 0.75}, {}, 1);
}

// Only class 1 has weights: the score of class 0 is 0.
TEST(DecomposeMlTrees, OnlyTheSecondClassOfTwo) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {1, 1, 1, 1, 1}, {0.25, 0.125, 0.125, 0.5, 0.25});
  trees["classlabels_int64s"] = IntList({5, 3});
  ExpectDecomposed(ClassifierCase(trees), {5}, {5, 5, 5, 5, 3});
  ExpectDecomposed(ClassifierCase(trees), {5, 2}, {0, 0.375, 0, 0.25, 0, 0.375, 0, 0.5, 0, 0.625}, {}, 1);
}

// Each base value is added to the score of its class, as the specification has it; ONNX Runtime gives other scores.
TEST(DecomposeMlTrees, TwoBaseValuesOfTwoClasses) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 0, 0, 0, 0}, {0.25, 0.125, 0.125, 0.5, 0.25});
  trees["classlabels_int64s"] = IntList({5, 3});
  trees["base_values"] = Reals({0.25, 0.75});
  ExpectDecomposed(ClassifierCase(trees), {5}, {3, 3, 3, 5, 5});
  ExpectDecomposed(ClassifierCase(trees), {5, 2}, {0.625, 0.75, 0.5, 0.75, 0.625, 0.75, 0.75, 0.75, 0.875, 0.75}, {},
                   1);
}

TEST(DecomposeMlTrees, DoublesAreComparedAsDoubles) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 1, 2, 0, 1}, {0.5, 0.75, 1, 0.25, 0.125});
  trees["classlabels_int64s"] = IntList({5, 3, 9});
  const OpCase test_case = ClassifierCase(trees, Doubles({2, 2}, {1.0000000001, 0.1, 1, 0.6}));
  ExpectDecomposed(test_case, {2}, {9, 5});
  ExpectDecomposed(test_case, {2, 3}, {0, 0.75, 1, 0.75, 0, 0}, {}, 1);
}

TEST(DecomposeMlTrees, SplitsAndLeaves) {
  const OpCase test_case = {"TreeEnsemble",
                            {Doubles({3, 2}, {1.2, 3.4, -0.12, 1.66, 4.14, 1.77})},
                            {{"n_targets", Int(2)},
                             {"aggregate_function", Int(1)},
                             {"post_transform", Int(0)},
                             {"tree_roots", IntList({0})},
                             {"nodes_modes", U8({3}, {0, 0, 0})},
                             {"nodes_featureids", IntList({0, 0, 0})},
                             {"nodes_splits", Doubles({3}, {3.14, 1.2, 4.2})},
                             {"nodes_truenodeids", IntList({1, 0, 1})},
                             {"nodes_trueleafs", IntList({0, 1, 1})},
                             {"nodes_falsenodeids", IntList({2, 2, 3})},
                             {"nodes_falseleafs", IntList({0, 1, 1})},
                             {"leaf_targetids", IntList({0, 1, 0, 1})},
                             {"leaf_weights", Doubles({4}, {5.23, 12.12, -12.23, 7.21})}},
                            17,
                            1,
                            kTreesDomain};
  ExpectDecomposed(test_case, {3, 2}, {5.23, 0, 5.23, 0, 0, 12.12});
}

TEST(DecomposeMlTrees, SetMembership) {
  const OpCase test_case = {"TreeEnsemble",
                            {Floats({6, 1}, {1.2, 3.4000001, -0.12, kNan, 12, 7})},
                            {{"n_targets", Int(4)},
                             {"aggregate_function", Int(1)},
                             {"post_transform", Int(0)},
                             {"tree_roots", IntList({0})},
                             {"membership_values", Floats({8}, {1.2, 3.7, 8, 9, kNan, 12, 7, kNan})},
                             {"nodes_modes", U8({3}, {0, 6, 6})},
                             {"nodes_featureids", IntList({0, 0, 0})},
                             {"nodes_splits", Floats({3}, {11, 232344, kNan})},
                             {"nodes_truenodeids", IntList({1, 0, 1})},
                             {"nodes_trueleafs", IntList({0, 1, 1})},
                             {"nodes_falsenodeids", IntList({2, 2, 3})},
                             {"nodes_falseleafs", IntList({1, 0, 1})},
                             {"leaf_targetids", IntList({0, 1, 2, 3})},
                             {"leaf_weights", Floats({4}, {1, 10, 1000, 100})}},
                            17,
                            1,
                            kTreesDomain};
  ExpectDecomposed(test_case, {6, 4},
                   {1, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 100, 0, 0, 1000, 0, 0, 0, 1000, 0, 0, 10, 0, 0});
}

// A tree that is one leaf, and one whose nodes the rule must find by name: the numbers of nodes have gaps.
TEST(DecomposeMlTrees, TreesMayBeLeaves) {
  const TreeAttributes trees = {
      {"nodes_treeids", IntList({4, 9, 9, 9})},      {"nodes_nodeids", IntList({7, 5, 2, 0})},
      {"nodes_featureids", IntList({0, 1, 0, 0})},   {"nodes_modes", Texts({"LEAF", "BRANCH_LEQ", "LEAF", "LEAF"})},
      {"nodes_values", Reals({0, 0.5, 0, 0})},       {"nodes_truenodeids", IntList({0, 0, 0, 0})},
      {"nodes_falsenodeids", IntList({0, 2, 0, 0})}, {"target_treeids", IntList({4, 9, 9})},
      {"target_nodeids", IntList({7, 2, 0})},        {"target_ids", IntList({0, 0, 0})},
      {"target_weights", Reals({100, 1, 2})}};
  ExpectDecomposed(RegressorCase(trees), {5, 1}, {102, 102, 101, 101, 101});  // computed here
}

// Walks of random trees, beside a walk node by node.
TEST(DecomposeMlTrees, DeepTreesAreWalkedToTheirLeaves) {
  constexpr int kNodes = 201, kRows = 40;  // a path of 100 splits with a leaf at each
  Random random(5);
  std::vector<int64_t> ids, yes, no, features, leaf_ids;
  std::vector<float> values, weights;
  std::vector<std::string> modes;
  for (int i = 0; i < kNodes; ++i) {
    const bool leaf = i % 2 == 1 || i == kNodes - 1;
    ids.push_back(i);
    modes.push_back(leaf ? "LEAF" : "BRANCH_LEQ");
    features.push_back(leaf ? 0 : static_cast<int64_t>(random.Below(2)));
    values.push_back(static_cast<float>(random.Uniform()));
    yes.push_back(leaf ? 0 : i + (i % 4 == 0 ? 2 : 1));
    no.push_back(leaf ? 0 : i + (i % 4 == 0 ? 1 : 2));
    if (leaf) leaf_ids.push_back(i);
    if (leaf) weights.push_back(static_cast<float>(i));
  }
  std::vector<double> x, expected;
  for (int row = 0; row < kRows; ++row) {
    x.insert(x.end(), {random.Uniform() * 0.2 + (row % 2), random.Uniform() * 0.2 + (row % 3)});
    size_t node = 0;
    while (modes[node] != "LEAF") {
      const float value = static_cast<float>(x[x.size() - 2 + static_cast<size_t>(features[node])]);
      node = static_cast<size_t>(value <= values[node] ? yes[node] : no[node]);
    }
    expected.push_back(static_cast<double>(node));
  }
  const Shape zeros(leaf_ids.size(), 0);
  const OpCase test_case = {"TreeEnsembleRegressor",
                            {Floats({kRows, 2}, x)},
                            {{"nodes_treeids", IntList(Shape(kNodes, 0))},
                             {"nodes_nodeids", IntList(ids)},
                             {"nodes_featureids", IntList(features)},
                             {"nodes_modes", Texts(modes)},
                             {"nodes_values", Reals(values)},
                             {"nodes_truenodeids", IntList(yes)},
                             {"nodes_falsenodeids", IntList(no)},
                             {"target_treeids", IntList(zeros)},
                             {"target_nodeids", IntList(leaf_ids)},
                             {"target_ids", IntList(zeros)},
                             {"target_weights", Reals(weights)}},
                            17,
                            1,
                            kTreesDomain};
  ExpectDecomposed(test_case, {kRows, 1}, expected);
}

TEST(DecomposeMlTrees, BrokenTreesAreErrors) {
  const auto error = [](TreeAttributes trees) {
    return std::string(RunDecomposed(RegressorCase(std::move(trees))).status().message());
  };
  const TreeAttributes good = WithWeights(TwoTrees(), "target", {0, 0, 0, 0, 0}, {1, 2, 10, 20, 40});
  TreeAttributes bad = good;
  bad["nodes_truenodeids"] = IntList({9, 0, 0, 1, 0, 3, 0, 0});
  EXPECT_THAT(error(bad), HasSubstr("tree 0 has no node 9"));
  bad = good;
  bad["nodes_truenodeids"] = IntList({1, 0, 0, 1, 0, 2, 0, 0});
  EXPECT_THAT(error(bad), HasSubstr("tree 1 has two roots"));  // nothing leads to node 3, as node 2 leads to itself
  bad = good;
  bad["nodes_featureids"] = IntList({0, 0, 0, 2, 0, 0, 0, 0});
  EXPECT_THAT(error(bad), HasSubstr("feature 2"));
  bad = good;
  bad["target_ids"] = IntList({0, 0, 1, 0, 0});
  EXPECT_THAT(error(bad), HasSubstr("target or class 1"));
  bad = good;
  bad["nodes_modes"] = Texts({"BRANCH_LEQ", "LEAF"});
  EXPECT_THAT(error(bad), HasSubstr("one length"));
  const TreeAttributes cycle = {{"tree_roots", IntList({0})},
                                {"nodes_featureids", IntList({0, 0})},
                                {"nodes_modes", U8({2}, {0, 0})},
                                {"nodes_splits", Floats({2}, {1, 2})},
                                {"nodes_truenodeids", IntList({1, 0})},
                                {"nodes_trueleafs", IntList({0, 0})},
                                {"nodes_falsenodeids", IntList({0, 0})},
                                {"nodes_falseleafs", IntList({1, 1})},
                                {"leaf_targetids", IntList({0})},
                                {"leaf_weights", Floats({1}, {1})}};
  const OpCase cyclic = {"TreeEnsemble", {FiveRows()}, cycle, 17, 1, kTreesDomain};
  EXPECT_THAT(RunDecomposed(cyclic).status().message(), HasSubstr("cycle"));
}

TEST(DecomposeMlTrees, LabelsThatAreStringsAreRefusedOnlyIfTheyAreRead) {
  TreeAttributes trees = WithWeights(TwoTrees(), "class", {0, 1, 2, 0, 1}, {0.5, 0.75, 1, 0.25, 0.125});
  trees["classlabels_strings"] = Texts({"a", "b", "c"});
  EXPECT_THAT(RunDecomposed(ClassifierCase(trees)).status().message(), HasSubstr("labels are strings"));
  ExpectDecomposed(ClassifierCase(trees), {5, 3}, {0.5, 0, 1, 0, 0.75, 1, 0, 0.875, 0, 0.5, 0.125, 0, 0.25, 0.75, 0},
                   {.unused = {0}}, 1);
}

}  // namespace
}  // namespace hone::graph
