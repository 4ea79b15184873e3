// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Shape kRows = {2, 2, 4}, kRow = {4};

TEST(DecomposeNorm, SkipLayerNormalization) {
  const Constant x = RandomTensor(kRows, 1), skip = RandomTensor(kRows, 2), scale = RandomTensor(kRow, 3);
  const Constant shift = RandomTensor(kRow, 4), bias = RandomTensor(kRow, 5);
  ExpectAsOnnxRuntime("skip_layer_norm", {"SkipLayerNormalization", {x, skip, scale}});
  ExpectAsOnnxRuntime("skip_layer_norm_shift", {"SkipLayerNormalization", {x, skip, scale, shift}, {{"epsilon", 0.1}}});
  const OpCase all{.op = "SkipLayerNormalization", .inputs = {x, skip, scale, shift, bias}, .outputs = 4};
  ExpectAsOnnxRuntime("skip_layer_norm_all", all, {.unused = {1, 2}});
  const Constant one_skip = RandomTensor({1, 2, 4}, 6), flat_skip = RandomTensor({2, 4}, 6);
  ExpectAsOnnxRuntime("skip_layer_norm_one", {"SkipLayerNormalization", {x, one_skip, scale, Absent(), bias}});
  ExpectAsOnnxRuntime("skip_layer_norm_flat", {"SkipLayerNormalization", {x, flat_skip, scale}});
}

// ONNX Runtime's CPU kernel leaves these outputs unset.
TEST(DecomposeNorm, SkipLayerNormalizationMakesItsStatistics) {
  const OpCase all{.op = "SkipLayerNormalization",
                   .inputs = {Floats({1, 1, 2}, {1, 2}), Floats({1, 1, 2}, {2, 5}), Floats({2}, {1, 1})},
                   .attributes = {{"epsilon", 0.75}},
                   .outputs = 4};
  ExpectDecomposed(all, {1, 1, 1}, {5}, {}, 1);             // of 3 and 7
  ExpectDecomposed(all, {1, 1, 1}, {1 / 2.179449}, {}, 2);  // 1 / sqrt(4 + 0.75)
  ExpectDecomposed(all, {1, 1, 2}, {3, 7}, {}, 3);
}

TEST(DecomposeNorm, SimplifiedLayerNormalization) {
  const Constant x = RandomTensor(kRows, 1), scale = RandomTensor(kRow, 3);
  const OpCase without_domain{.op = "SimplifiedLayerNormalization",
                              .inputs = {x, scale},
                              .attributes = {{"axis", Int(-1)}, {"epsilon", 1e-3}, {"stash_type", Int(1)}},
                              .outputs = 2,
                              .domain = "ai.onnx"};
  OpCase plain = without_domain;
  plain.domain = "";
  ExpectDecomposed({"SimplifiedLayerNormalization", {Floats({1, 2}, {3, 4}), Floats({2}, {1, 2})}, {{"epsilon", 0.0}}},
                   {1, 2}, {3 / 3.5355339, 8 / 3.5355339});
  plain.inputs = {Floats({1, 2}, {3, 4}), Floats({2}, {1, 2})};
  plain.attributes = {{"epsilon", 3.5}};
  ExpectDecomposed(plain, {1, 1}, {0.25}, {}, 1);
}

TEST(DecomposeNorm, SkipSimplifiedLayerNormalization) {
  const Constant x = RandomTensor(kRows, 1), skip = RandomTensor(kRows, 2), scale = RandomTensor(kRow, 3);
  const Constant bias = RandomTensor(kRow, 5);
  ExpectAsOnnxRuntime("skip_rms_norm", {"SkipSimplifiedLayerNormalization", {x, skip, scale}});
  const OpCase all{.op = "SkipSimplifiedLayerNormalization",
                   .inputs = {x, skip, scale, bias},
                   .attributes = {{"epsilon", 1e-2}},
                   .outputs = 4};
  ExpectAsOnnxRuntime("skip_rms_norm_all", all, {.unused = {1, 2}});
  EXPECT_THAT(RunDecomposed(all).status().message(), HasSubstr("output 1 (the mean) is not made"));
}

TEST(DecomposeNorm, EmbedLayerNormalization) {
  const Constant ids = Int32s({2, 3}, {1, 4, 0, 2, 2, 3}), segments = Int32s({2, 3}, {0, 0, 1, 1, 0, 1});
  const Constant words = RandomTensor({5, 4}, 1), places = RandomTensor({6, 4}, 2), kinds = RandomTensor({2, 4}, 3);
  const Constant scale = RandomTensor(kRow, 4), shift = RandomTensor(kRow, 5);
  const Constant mask = Int32s({2, 3}, {1, 1, 0, 1, 1, 1}), positions = Int32s({2, 3}, {5, 4, 3, 0, 1, 2});
  ExpectAsOnnxRuntime("embed_layer_norm",
                      {.op = "EmbedLayerNormalization",
                       .inputs = {ids, segments, words, places, kinds, scale, shift, mask, positions},
                       .attributes = {{"epsilon", 1e-3}},
                       .outputs = 3});
  ExpectAsOnnxRuntime("embed_layer_norm_least", {.op = "EmbedLayerNormalization",
                                                 .inputs = {ids, Absent(), words, places, Absent(), scale, shift},
                                                 .outputs = 2});
}

double SwishOf(double x) { return x / (1 + std::exp(-x)); }

// ONNX Runtime has no CPU kernel for these. 2 groups of 1 channel: each channel of an image is normalized on its own.
TEST(DecomposeNorm, GroupNorm) {
  const Constant x = Floats({1, 1, 2, 2}, {1, 10, 3, 30});  // channels last: 1, 3 and 10, 30
  const Constant scale = Floats({2}, {1, 2}), shift = Floats({2}, {0, 0.5});
  const std::map<std::string, Attribute> attributes = {{"groups", Int(2)}, {"activation", Int(0)}, {"epsilon", 0.0}};
  ExpectDecomposed({"GroupNorm", {x, scale, shift}, attributes}, {1, 1, 2, 2}, {-1, -1.5, 1, 2.5});
  std::map<std::string, Attribute> swish = attributes;
  swish["activation"] = Int(1);
  ExpectDecomposed({"GroupNorm", {x, scale, shift}, swish}, {1, 1, 2, 2},
                   {SwishOf(-1), SwishOf(-1.5), SwishOf(1), SwishOf(2.5)});
  std::map<std::string, Attribute> first = attributes;
  first["channels_last"] = Int(0);
  ExpectDecomposed({"GroupNorm", {Floats({1, 2, 1, 2}, {1, 3, 10, 30}), scale, shift}, first}, {1, 2, 1, 2},
                   {-1, 1, -1.5, 2.5});
  const OpCase skip{.op = "SkipGroupNorm",
                    .inputs = {x, scale, shift, Floats({1, 2}, {1, 2}), Floats({2}, {0, 3})},
                    .attributes = attributes,
                    .outputs = 2};
  ExpectDecomposed(skip, {1, 1, 2, 2}, {-1, -1.5, 1, 2.5});
  ExpectDecomposed(skip, {1, 1, 2, 2}, {2, 15, 4, 35}, {}, 1);
}

// The same kernels as ONNX's operators.
TEST(DecomposeNorm, FusesAsTheOperatorsOfOnnx) {
  GraphBuilder fused, plain;
  for (GraphBuilder* b : {&fused, &plain}) {
    b->Input("x", {2, 4, 8}).Input("skip", {2, 4, 8}).Floats("scale", {8}, RandomFloats(8, 1));
    b->Floats("shift", {8}, RandomFloats(8, 2)).Output("y");
  }
  fused.Node("SkipLayerNormalization", {"x", "skip", "scale", "shift"}, {"y"}, {Attr("epsilon", 1e-5f)},
             "com.microsoft");
  plain.Node("Add", {"x", "skip"}, {"sum"}).Node("LayerNormalization", {"sum", "scale", "shift"}, {"y"});
  EXPECT_THAT(CallLabels(PlanOf(Optimize(fused.Model()))), ElementsAre("layer_norm"));
  EXPECT_EQ(PlanOf(Optimize(fused.Model())).workloads.size(), PlanOf(Optimize(plain.Model())).workloads.size());
  ExpectPassesKeepMeaning(fused.Model());
}

}  // namespace
}  // namespace hone::graph
