// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using Attributes = std::map<std::string, Attribute>;

// Cosines and sines of angles for 16 positions.
Constant Angles(int64_t pairs, bool cosines) {
  std::vector<double> numbers;
  for (int64_t position = 0; position < 16; ++position) {
    for (int64_t k = 0; k < pairs; ++k) {
      const double angle = static_cast<double>(position) / std::pow(10.0, static_cast<double>(k));
      numbers.push_back(cosines ? std::cos(angle) : std::sin(angle));
    }
  }
  return Floats({16, pairs}, numbers);
}

TEST(DecomposeRotary, RotaryEmbedding) {
  const Constant x = RandomTensor({2, 3, 8}, 1), cosines = Angles(2, true), sines = Angles(2, false);
  const Constant ids = Ints({2, 3}, {3, 1, 2, 7, 8, 9}), first = Ints({1}, {5});
  ExpectAsOnnxRuntime("rotary", {"RotaryEmbedding", {x, ids, cosines, sines}});
  ExpectAsOnnxRuntime("rotary_first", {"RotaryEmbedding", {x, first, cosines, sines}});
  ExpectAsOnnxRuntime("rotary_interleaved", {"RotaryEmbedding", {x, ids, cosines, sines}, {{"interleaved", Int(1)}}});
  const Constant heads = RandomTensor({2, 2, 3, 4}, 2);
  ExpectAsOnnxRuntime("rotary_heads", {"RotaryEmbedding", {heads, ids, cosines, sines}});
  ExpectAsOnnxRuntime("rotary_heads_first", {"RotaryEmbedding", {heads, first, cosines, sines}});
}

TEST(DecomposeRotary, PartOfAHead) {
  const Constant x = RandomTensor({2, 3, 8}, 1), ids = Ints({2, 3}, {3, 1, 2, 7, 8, 9});
  const Attributes attributes = {{"rotary_embedding_dim", Int(2)}, {"num_heads", Int(2)}};
  ExpectAsOnnxRuntime("rotary_part", {"RotaryEmbedding", {x, ids, Angles(1, true), Angles(1, false)}, attributes});
}

TEST(DecomposeRotary, ThreeStreamsOfPositions) {
  const Constant x = RandomTensor({1, 2, 12}, 1);  // one head of 6 pairs
  const Constant ids = Ints({3, 1, 2}, {1, 2, 5, 6, 9, 11});
  for (const int64_t layout : {0, 1}) {
    // The pair of a column turns by the position of its stream.
    const std::vector<size_t> streams =
        layout == 0 ? std::vector<size_t>{0, 0, 0, 1, 1, 2} : std::vector<size_t>{0, 1, 2, 0, 1, 0};
    const std::vector<double> numbers = Numbers(x), positions = Numbers(ids);
    const std::vector<double> cosines = Numbers(Angles(6, true)), sines = Numbers(Angles(6, false));
    std::vector<double> expected(24);
    for (size_t row = 0; row < 2; ++row) {
      for (size_t pair = 0; pair < 6; ++pair) {
        const size_t angle = static_cast<size_t>(positions[streams[pair] * 2 + row]) * 6 + pair;
        const double a = numbers[row * 12 + pair], b = numbers[row * 12 + pair + 6];
        expected[row * 12 + pair] = a * cosines[angle] - b * sines[angle];
        expected[row * 12 + pair + 6] = a * sines[angle] + b * cosines[angle];
      }
    }
    const Attributes attributes = {{"mrope_section", IntList({3, 2, 1})}, {"mrope_layout", Int(layout)}};
    ExpectDecomposed({"MRotaryEmbedding", {x, ids, Angles(6, true), Angles(6, false)}, attributes}, {1, 2, 12},
                     expected);
  }
  EXPECT_THAT(
      RunDecomposed(
          {"MRotaryEmbedding", {x, ids, Angles(6, true), Angles(6, false)}, {{"mrope_section", IntList({3, 2, 2})}}})
          .status()
          .message(),
      HasSubstr("sum is 6"));
}

TEST(DecomposeRotary, HalvesExchangedBefore) {
  const auto half = [](std::vector<double> numbers) { return Tensor(ir::DType::kFloat16, {1, 1, 1, 2}, numbers); };
  const OpCase gemma{.op = "GemmaRotaryEmbedding",
                     .inputs = {Floats({1, 1, 2}, {0.5, 1}), half({1, 2}), half({-2, 1}), half({3, 4}), half({-4, 3})},
                     .outputs = 2};
  const double c0 = std::cos(0.5), c1 = std::cos(1), s0 = std::sin(0.5), s1 = std::sin(1);
  ExpectDecomposed(gemma, {1, 1, 1, 2}, {c0 - 2 * s0, 2 * c1 + s1}, {}, 0, 2e-3);
  ExpectDecomposed(gemma, {1, 1, 1, 2}, {3 * c0 - 4 * s0, 4 * c1 + 3 * s1}, {}, 1, 2e-3);
}

// 4 heads of queries and 2 of keys, 16 elements each.
OpCase Grouped(std::vector<Constant> inputs, Attributes attributes = {}, int outputs = 1) {
  attributes.insert({{"num_heads", Int(4)}, {"kv_num_heads", Int(2)}});
  return {.op = "GroupQueryAttention",
          .inputs = std::move(inputs),
          .attributes = std::move(attributes),
          .outputs = outputs};
}

const Constant kLeftOut = Absent();

struct Prompt {
  Constant q = RandomTensor({1, 3, 64}, 1), k = RandomTensor({1, 3, 32}, 2), v = RandomTensor({1, 3, 32}, 3);
  Constant past = Floats({1, 2, 0, 16}, {}), last = Int32s({1}, {2}), total = Int32s({1}, {3});

  std::vector<Constant> Inputs() const { return {q, k, v, past, past, last, total}; }
};

TEST(DecomposeGroupQuery, Prompt) {
  const Prompt prompt;
  ExpectAsOnnxRuntime("grouped", Grouped(prompt.Inputs(), {}, 3), {.constants = {6}});
  ExpectAsOnnxRuntime("grouped_scale", Grouped(prompt.Inputs(), {{"scale", 0.2}}), {.constants = {6}});
  ExpectAsOnnxRuntime("grouped_softcap", Grouped(prompt.Inputs(), {{"softcap", 0.3}}), {.constants = {6}});
  ExpectAsOnnxRuntime("grouped_window", Grouped(prompt.Inputs(), {{"local_window_size", Int(1)}}), {.constants = {6}});
  ExpectAsOnnxRuntime("grouped_smooth", Grouped(prompt.Inputs(), {{"smooth_softmax", Int(1)}}), {.constants = {6}});
  const std::vector<Constant> packed = {
      RandomTensor({1, 3, 128}, 4), kLeftOut, kLeftOut, prompt.past, prompt.past, prompt.last, prompt.total};
  ExpectAsOnnxRuntime("grouped_packed", Grouped(packed), {.constants = {6}});
}

TEST(DecomposeGroupQuery, TheTotalMayBeKnownOnlyAtRun) {
  ExpectAsOnnxRuntime("grouped", Grouped(Prompt().Inputs(), {}, 3));
}

TEST(DecomposeGroupQuery, NotCausal) {
  ExpectAsOnnxRuntime("grouped_both_ways", Grouped(Prompt().Inputs(), {{"causal", Int(0)}}), {.constants = {6}});
  EXPECT_THAT(
      RunDecomposed(Grouped(Prompt().Inputs(), {{"causal", Int(0)}, {"local_window_size", Int(1)}})).status().message(),
      HasSubstr("needs causal attention"));
}

TEST(DecomposeGroupQuery, RotatedPrompt) {
  std::vector<Constant> inputs = Prompt().Inputs();
  inputs.insert(inputs.end(), {Angles(8, true), Angles(8, false)});
  ExpectAsOnnxRuntime("grouped_rotated", Grouped(inputs, {{"do_rotary", Int(1)}}, 3), {.constants = {6}});
  ExpectAsOnnxRuntime("grouped_interleaved", Grouped(inputs, {{"do_rotary", Int(1)}, {"rotary_interleaved", Int(1)}}),
                      {.constants = {6}});
}

TEST(DecomposeGroupQuery, BiasAndSink) {
  std::vector<Constant> inputs = Prompt().Inputs();
  inputs.insert(inputs.end(), {kLeftOut, kLeftOut, kLeftOut, RandomTensor({1, 1, 3, 3}, 7)});
  ExpectAsOnnxRuntime("grouped_bias", Grouped(inputs, {{"softcap", 0.5}}), {.constants = {6}});
  inputs[10] = RandomTensor({1, 4, 3, 3}, 8);
  ExpectAsOnnxRuntime("grouped_bias_heads", Grouped(inputs), {.constants = {6}});
  inputs[10] = kLeftOut;
  inputs.push_back(RandomTensor({4}, 9));
  ExpectAsOnnxRuntime("grouped_sink", Grouped(inputs), {.constants = {6}});
}

TEST(DecomposeGroupQuery, Probabilities) {
  ExpectAsOnnxRuntime("grouped_probabilities", Grouped(Prompt().Inputs(), {{"qk_output", Int(2)}}, 4),
                      {.constants = {6}, .unused = {1, 2}});
}

// One new position after a past of 3.
struct Step {
  Constant q = RandomTensor({2, 1, 64}, 1), k = RandomTensor({2, 1, 32}, 2), v = RandomTensor({2, 1, 32}, 3);
  Constant past_k = RandomTensor({2, 2, 3, 16}, 4), past_v = RandomTensor({2, 2, 3, 16}, 5);
  Constant last = Int32s({2}, {3, 3}), total = Int32s({1}, {4});

  std::vector<Constant> Inputs() const {
    return {q, k, v, past_k, past_v, last, total, Angles(8, true), Angles(8, false)};
  }
};

TEST(DecomposeGroupQuery, StepWithAGrowingPast) {
  const Attributes rotary = {{"do_rotary", Int(1)}};
  ExpectAsOnnxRuntime("grouped_step", Grouped(Step().Inputs(), rotary, 3), {.constants = {6}});
  Attributes window = rotary;
  window["local_window_size"] = Int(2);
  ExpectAsOnnxRuntime("grouped_step_window", Grouped(Step().Inputs(), window, 3), {.constants = {6}});
}

// The entries of the batch have pasts of 1 and 3 positions in a cache for 3 or more.
TEST(DecomposeGroupQuery, StepWithPastsOfSeveralLengths) {
  Step step;
  step.last = Int32s({2}, {1, 3});
  const auto results = RunDecomposed(Grouped(step.Inputs(), {{"do_rotary", Int(1)}}, 3), {.constants = {6}});
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<double> k = Numbers((*results)[1]), past = Numbers(step.past_k), v = Numbers((*results)[2]);
  EXPECT_EQ((*results)[1].type.shape, (Shape{2, 2, 4, 16}));
  for (size_t element = 0; element < 16; ++element) {
    EXPECT_EQ(k[element], past[element]) << "the past stays";
    EXPECT_EQ(v[16 + element], Numbers(step.v)[element]) << "the new position follows the past of 1";
    EXPECT_EQ(v[128 + 48 + element], Numbers(step.v)[32 + element]) << "the new position follows the past of 3";
  }
}

// A cache for 6 positions keeps its size.
TEST(DecomposeGroupQuery, StepWithACacheOfFixedCapacity) {
  const Step step;
  const auto cached = [](const Constant& past) {
    const std::vector<double> numbers = Numbers(past);
    std::vector<double> filled;
    for (size_t row = 0; row < 4; ++row) {
      filled.insert(filled.end(), numbers.begin() + static_cast<std::ptrdiff_t>(row * 48),
                    numbers.begin() + static_cast<std::ptrdiff_t>(row * 48 + 48));
      filled.insert(filled.end(), 48, 9);
    }
    return Floats({2, 2, 6, 16}, filled);
  };
  const auto grown = RunDecomposed(Grouped(step.Inputs(), {{"do_rotary", Int(1)}}, 3), {.constants = {6}});
  ASSERT_TRUE(grown.ok()) << grown.status();
  std::vector<Constant> inputs = step.Inputs();
  inputs[3] = cached(step.past_k);
  inputs[4] = cached(step.past_v);
  for (const std::set<size_t>& constants : {std::set<size_t>{}, std::set<size_t>{6}}) {
    const OpCase shared = Grouped(inputs, {{"do_rotary", Int(1)}}, 3);
    ExpectDecomposed(shared, {2, 1, 64}, Numbers((*grown)[0]), {.constants = constants});
    const auto results = RunDecomposed(shared, {.constants = constants});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[1].type.shape, (Shape{2, 2, 6, 16}));
    EXPECT_EQ(Numbers((*results)[1])[48], Numbers((*grown)[1])[48]) << "the new key";
    EXPECT_EQ(Numbers((*results)[1])[64], 9) << "the position after it keeps what it holds";
  }
  EXPECT_THAT(DecomposedOps(Grouped(inputs), {.constants = {6}}), testing::Not(Contains("Pad")));
}

// A norm of the heads, which ONNX Runtime has on other devices only: the same as a norm before the operator.
TEST(DecomposeGroupQuery, NormalizedHeads) {
  const Prompt prompt;
  const Constant weights = RandomTensor({16}, 6);
  const auto normalized = [&](const Constant& x) {
    Constant rows = x;
    rows.type.shape = {x.type.elements() / 16, 16};
    const auto results = RunDecomposed({"SimplifiedLayerNormalization", {rows, weights}, {{"epsilon", 1e-6}}});
    EXPECT_TRUE(results.ok()) << results.status();
    return Constant{x.type, (*results)[0].data};
  };
  std::vector<Constant> inputs = prompt.Inputs();
  inputs[0] = normalized(prompt.q);
  inputs[1] = normalized(prompt.k);
  const auto expected = RunDecomposed(Grouped(inputs), {.constants = {6}});
  ASSERT_TRUE(expected.ok()) << expected.status();
  inputs = prompt.Inputs();
  inputs.resize(14, kLeftOut);
  inputs.insert(inputs.end(), {weights, weights});
  ExpectDecomposed(Grouped(inputs), {1, 3, 64}, Numbers((*expected)[0]), {.constants = {6}});
}

TEST(DecomposeGroupQuery, HalfPrecision) {
  std::vector<Constant> inputs = Step().Inputs(), half;
  for (const Constant& input : inputs) {
    const bool floats = ir::IsFloat(input.type.dtype);
    half.push_back(floats ? Tensor(ir::DType::kFloat16, ir::Values(input.type.shape), Numbers(input)) : input);
  }
  const auto expected = RunDecomposed(Grouped(inputs, {{"do_rotary", Int(1)}}), {.constants = {6}});
  ASSERT_TRUE(expected.ok()) << expected.status();
  ExpectDecomposed(Grouped(half, {{"do_rotary", Int(1)}}), {2, 1, 64}, Numbers((*expected)[0]), {.constants = {6}}, 0,
                   4e-3);
}

TEST(DecomposeGroupQuery, UnsupportedFormsAreNamed) {
  const auto message = [](const Attributes& attributes) {
    Attributes all = attributes;
    return std::string(RunDecomposed(Grouped(Prompt().Inputs(), all)).status().message());
  };
  EXPECT_THAT(message({{"sliding_window_cache", Int(1)}}), HasSubstr("sliding_window_cache is not supported"));
  EXPECT_THAT(message({{"k_quant_type", std::string("PER_TENSOR")}}), HasSubstr("quantized cache"));
  EXPECT_THAT(message({{"num_heads", Int(3)}}), HasSubstr("must divide"));
}

// As exporters write it: the total length is a dimension of a mask, and the last position is a sum of the mask.
TEST(DecomposeGroupQuery, TheTotalMayBeADimension) {
  for (const int64_t total : {4, 3}) {  // 3: the past is a buffer that already has room
    GraphBuilder b;
    b.Input("q", {1, 1, 32}).Input("k", {1, 1, 16}).Input("v", {1, 1, 16});
    b.Input("past_k", {1, 2, 3, 8}).Input("past_v", {1, 2, 3, 8}).Input("mask", {1, static_cast<int>(total)}, kInt64);
    b.Ints("one", {1}).Ints("second", {1});
    b.Node("Shape", {"mask"}, {"shape"}).Node("Gather", {"shape", "second"}, {"length"});
    b.Node("Cast", {"length"}, {"total"}, {Attr("to", kInt32)}).Node("ReduceSum", {"mask", "one"}, {"sum"});
    b.Node("Sub", {"sum", "one"}, {"less"}).Node("Cast", {"less"}, {"last"}, {Attr("to", kInt32)});
    b.Node("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "last", "total"}, {"y", "present_k", "present_v"},
           {Attr("num_heads", 4), Attr("kv_num_heads", 2)}, "com.microsoft");
    b.Output("y").Output("present_k").Output("present_v");
    const Graph graph = Import(b.Model());
    ASSERT_EQ(graph.outputs.size(), 3u);
    EXPECT_EQ(graph.values[static_cast<size_t>(graph.outputs[1])].type.shape, (Shape{1, 2, total, 8}));
    EXPECT_EQ(CountOps(graph, "TensorScatter"), 2);
    EXPECT_EQ(CountOps(graph, "Pad"), total == 4 ? 2 : 0);
  }
}

// Rows of queries that share keys stay one kernel with the softmax between the products.
TEST(DecomposeGroupQuery, FusesToOneKernel) {
  GraphBuilder b;
  b.Input("q", {1, 16, 32}).Input("k", {1, 16, 16}).Input("v", {1, 16, 16});
  b.Initializer(Tensor<int32_t>("last", kInt32, {1}, {15})).Initializer(Tensor<int32_t>("total", kInt32, {1}, {16}));
  b.Node("GroupQueryAttention", {"q", "k", "v", "", "", "last", "total"}, {"y"},
         {Attr("num_heads", 4), Attr("kv_num_heads", 2)}, "com.microsoft");
  b.Output("y");
  EXPECT_THAT(CallLabels(PlanOf(ExpectPassesKeepMeaning(b.Model()))), Contains("attention"));
}

}  // namespace
}  // namespace hone::graph
