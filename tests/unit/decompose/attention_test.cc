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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Attributes = std::map<std::string, Attribute>;

// 2 entries, 3 positions, width 4, 2 heads of 2.
const Shape kInput = {2, 3, 4};

struct AttentionCase {
  Constant x = RandomTensor(kInput, 1), weights = RandomTensor({4, 12}, 2), bias = RandomTensor({12}, 3);
  Constant mask = Absent(), past = Absent(), attention_bias = Absent();
  Attributes attributes = {};

  OpCase Case(int outputs = 1) const {
    Attributes all = attributes;
    all.insert({"num_heads", Int(2)});
    return {.op = "Attention",
            .inputs = {x, weights, bias, mask, past, attention_bias},
            .attributes = all,
            .outputs = outputs};
  }
};

TEST(DecomposeAttention, Attention) {
  ExpectAsOnnxRuntime("attention", AttentionCase().Case());
  ExpectAsOnnxRuntime("attention_causal", AttentionCase{.attributes = {{"unidirectional", Int(1)}}}.Case());
  ExpectAsOnnxRuntime("attention_scale", AttentionCase{.attributes = {{"scale", 0.3}}}.Case());
  ExpectAsOnnxRuntime("attention_bias", AttentionCase{.attention_bias = RandomTensor({1, 2, 3, 3}, 4)}.Case());
}

TEST(DecomposeAttention, AttentionWithAnotherWidthOfValues) {
  ExpectAsOnnxRuntime("attention_widths", AttentionCase{.weights = RandomTensor({4, 14}, 2),
                                                        .bias = RandomTensor({14}, 3),
                                                        .attributes = {{"qkv_hidden_sizes", IntList({4, 4, 6})}}}
                                              .Case());
}

TEST(DecomposeAttention, MasksOfAttention) {
  ExpectAsOnnxRuntime("attention_mask", AttentionCase{.mask = Int32s({2, 3}, {1, 1, 0, 0, 1, 1})}.Case());
  ExpectAsOnnxRuntime("attention_ends", AttentionCase{.mask = Int32s({2}, {2, 3})}.Case());
  ExpectAsOnnxRuntime("attention_ends_and_starts", AttentionCase{.mask = Int32s({4}, {3, 2, 1, 0})}.Case());
  const Constant queries = Int32s({2, 3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1});
  ExpectAsOnnxRuntime("attention_mask_queries", AttentionCase{.mask = queries}.Case());
  ExpectAsOnnxRuntime("attention_mask_value",
                      AttentionCase{.mask = Int32s({2, 3}, {1, 1, 0, 0, 1, 1}),
                                    .attributes = {{"mask_filter_value", -0.5}, {"unidirectional", Int(1)}}}
                          .Case());
}

TEST(DecomposeAttention, AttentionWithAPast) {
  const Constant past = RandomTensor({2, 2, 2, 2, 2}, 5);  // 2 positions
  ExpectAsOnnxRuntime("attention_past", AttentionCase{.past = past}.Case(2));
  ExpectAsOnnxRuntime("attention_past_causal", AttentionCase{.mask = Int32s({2, 5}, {0, 1, 1, 1, 1, 1, 1, 1, 1, 0}),
                                                             .past = past,
                                                             .attributes = {{"unidirectional", Int(1)}}}
                                                   .Case(2));
}

// ONNX Runtime's CPU kernel has no such mask.
TEST(DecomposeAttention, AMaskForTheLongestSequenceIsCut) {
  std::vector<double> numbers(32, 0);
  for (size_t entry = 0; entry < 2; ++entry) {
    for (size_t row = 0; row < 3; ++row) {
      for (size_t column = 0; column <= row; ++column) numbers[entry * 16 + row * 4 + column] = 1;
    }
  }
  const auto causal = RunDecomposed(AttentionCase{.attributes = {{"unidirectional", Int(1)}}}.Case());
  ASSERT_TRUE(causal.ok());
  ExpectDecomposed(AttentionCase{.mask = Int32s({2, 1, 4, 4}, numbers)}.Case(), kInput, Numbers((*causal)[0]));
}

TEST(DecomposeAttention, UnsupportedFormsAreNamed) {
  const auto message = [](const AttentionCase& attention) {
    return std::string(RunDecomposed(attention.Case()).status().message());
  };
  EXPECT_THAT(message({.attributes = {{"do_rotary", Int(1)}}}), HasSubstr("do_rotary is not supported"));
  EXPECT_THAT(message({.mask = Int32s({8}, std::vector<double>(8, 0))}), HasSubstr("cumulative lengths"));
  EXPECT_THAT(message({.attributes = {{"num_heads", Int(0)}}}), HasSubstr("num_heads is 0"));
  EXPECT_THAT(message({.attributes = {{"qkv_hidden_sizes", IntList({4, 4, 6})}}}), HasSubstr("qkv_hidden_sizes"));
}

OpCase MultiHead(std::vector<Constant> inputs, Attributes attributes = {}, int outputs = 1) {
  attributes.insert({"num_heads", Int(2)});
  return {
      .op = "MultiHeadAttention", .inputs = std::move(inputs), .attributes = std::move(attributes), .outputs = outputs};
}

const Constant kNone = Absent();

TEST(DecomposeAttention, MultiHeadAttention) {
  const Constant q = RandomTensor(kInput, 1), k = RandomTensor({2, 4, 4}, 2), v = RandomTensor({2, 4, 6}, 3);
  const Constant bias = RandomTensor({14}, 4);
  ExpectAsOnnxRuntime("multi_head", MultiHead({q, k, v}));
  ExpectAsOnnxRuntime("multi_head_bias", MultiHead({q, k, v, bias}, {{"scale", 0.4}}));
  ExpectAsOnnxRuntime("multi_head_causal", MultiHead({q, q, q}, {{"unidirectional", Int(1)}}));
  ExpectAsOnnxRuntime("multi_head_scores", MultiHead({q, k, v}, {}, 4), {.unused = {1, 2}});
}

// [batch, positions, heads, parts, size] of parts [batch, positions, heads * size], with 2 heads of 2.
Constant PackParts(const std::vector<Constant>& parts) {
  const Shape shape = ir::Values(parts[0].type.shape);
  std::vector<double> numbers;
  for (size_t head = 0; head < static_cast<size_t>(shape[0] * shape[1]) * 2; ++head) {
    for (const Constant& part : parts) {
      for (size_t element = 0; element < 2; ++element) numbers.push_back(Numbers(part)[head * 2 + element]);
    }
  }
  return Floats({shape[0], shape[1], 2, static_cast<int64_t>(parts.size()), 2}, numbers);
}

// ONNX Runtime's CPU kernel does not have these forms.
TEST(DecomposeAttention, PackedInputsOfMultiHeadAttention) {
  const Constant q = RandomTensor(kInput, 1), k = RandomTensor(kInput, 2), v = RandomTensor(kInput, 3);
  const auto expected = RunDecomposed(MultiHead({q, k, v}));
  ASSERT_TRUE(expected.ok()) << expected.status();
  ExpectDecomposed(MultiHead({PackParts({q, k, v})}), kInput, Numbers((*expected)[0]));
  ExpectDecomposed(MultiHead({q, PackParts({k, v})}), kInput, Numbers((*expected)[0]));
}

TEST(DecomposeAttention, MasksOfMultiHeadAttention) {
  const Constant q = RandomTensor(kInput, 1), k = RandomTensor({2, 4, 4}, 2), v = RandomTensor({2, 4, 4}, 3);
  ExpectAsOnnxRuntime("multi_head_mask", MultiHead({q, k, v, kNone, Int32s({2, 4}, {1, 1, 0, 1, 0, 1, 1, 1})}));
  ExpectAsOnnxRuntime("multi_head_lengths", MultiHead({q, k, v, kNone, Int32s({2}, {2, 4})}));
  ExpectAsOnnxRuntime("multi_head_mask_queries",
                      MultiHead({q, k, v, kNone, Int32s({2, 3, 4}, {1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0,
                                                                    1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1})}));
  ExpectAsOnnxRuntime("multi_head_attention_bias", MultiHead({q, k, v, kNone, kNone, RandomTensor({2, 1, 3, 4}, 5)}));
}

TEST(DecomposeAttention, MultiHeadAttentionWithAPast) {
  const Constant q = RandomTensor({2, 1, 4}, 1), k = RandomTensor({2, 1, 4}, 2), v = RandomTensor({2, 1, 4}, 3);
  const Constant past_k = RandomTensor({2, 2, 3, 2}, 5), past_v = RandomTensor({2, 2, 3, 2}, 6);
  ExpectAsOnnxRuntime("multi_head_past", MultiHead({q, k, v, kNone, kNone, kNone, past_k, past_v}, {}, 3));
  // Keys and values of another node, with 4 dimensions.
  ExpectAsOnnxRuntime("multi_head_cross", MultiHead({q, past_k, past_v}));
}

// The past is a buffer for 5 positions, of which 3 are filled: the fourth is written and the fifth is not seen.
TEST(DecomposeAttention, APastOfFixedCapacity) {
  const Constant q = RandomTensor({2, 1, 4}, 1), k = RandomTensor({2, 1, 4}, 2), v = RandomTensor({2, 1, 4}, 3);
  const auto buffer = [](const Constant& past) {  // [2, 2, 3, 2] to [2, 2, 5, 2], filled with 7
    const std::vector<double> numbers = Numbers(past);
    std::vector<double> filled;
    for (size_t row = 0; row < 4; ++row) {
      filled.insert(filled.end(), numbers.begin() + static_cast<std::ptrdiff_t>(row * 6),
                    numbers.begin() + static_cast<std::ptrdiff_t>(row * 6 + 6));
      filled.insert(filled.end(), 4, 7);
    }
    return Floats({2, 2, 5, 2}, filled);
  };
  const Constant past_k = RandomTensor({2, 2, 3, 2}, 5), past_v = RandomTensor({2, 2, 3, 2}, 6);
  const auto appended = RunDecomposed(MultiHead({q, k, v, kNone, kNone, kNone, past_k, past_v}));
  ASSERT_TRUE(appended.ok());
  const Constant length = Int32s({1}, {3});
  const OpCase shared = MultiHead({q, k, v, kNone, kNone, kNone, buffer(past_k), buffer(past_v), length}, {}, 3);
  ExpectDecomposed(shared, {2, 1, 4}, Numbers((*appended)[0]));
  const auto results = RunDecomposed(shared);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ((*results)[1].type.shape, (Shape{2, 2, 5, 2}));
  EXPECT_EQ(Numbers((*results)[1])[6], Numbers(k)[0]);
  EXPECT_EQ(Numbers((*results)[1])[8], 7);
  OpCase decoder = shared;
  decoder.op = "DecoderMaskedMultiHeadAttention";
  decoder.inputs = {q, k, v, kNone, kNone, buffer(past_k), buffer(past_v), length};
  decoder.attributes["past_present_share_buffer"] = Int(1);
  ExpectDecomposed(decoder, {2, 1, 4}, Numbers((*appended)[0]));
}

// Sequences of 1 and 3 positions. The same numbers as padded sequences.
TEST(DecomposeAttention, PackedAttention) {
  const Constant padded = RandomTensor(kInput, 1), weights = RandomTensor({4, 12}, 2), bias = RandomTensor({12}, 3);
  const std::vector<double> numbers = Numbers(padded);
  std::vector<double> tokens(numbers.begin(), numbers.begin() + 4);
  tokens.insert(tokens.end(), numbers.begin() + 12, numbers.end());
  const auto expected = RunDecomposed(AttentionCase{.mask = Int32s({2}, {1, 3})}.Case());
  ASSERT_TRUE(expected.ok());
  const std::vector<double> all = Numbers((*expected)[0]);
  std::vector<double> of_tokens(all.begin(), all.begin() + 4);
  of_tokens.insert(of_tokens.end(), all.begin() + 12, all.end());
  const Constant places = Int32s({2, 3}, {0, 3, 4, 5, 1, 2}), ends = Int32s({3}, {0, 1, 4});
  ExpectDecomposed({"PackedAttention", {Floats({4, 4}, tokens), weights, bias, places, ends}, {{"num_heads", Int(2)}}},
                   {4, 4}, of_tokens);
}

TEST(DecomposeAttention, PackedMultiHeadAttention) {
  const Constant q = RandomTensor({4, 4}, 1), k = RandomTensor({4, 4}, 2), v = RandomTensor({4, 4}, 3);
  const Constant places = Int32s({2, 2}, {0, 1, 2, 3}), ends = Int32s({3}, {0, 2, 4});  // no padding
  const auto batch = [](const Constant& x) { return Floats({2, 2, 4}, Numbers(x)); };
  const auto expected = RunDecomposed(MultiHead({batch(q), batch(k), batch(v)}));
  ASSERT_TRUE(expected.ok());
  const Attributes attributes = {{"num_heads", Int(2)}};
  ExpectDecomposed({"PackedMultiHeadAttention", {q, k, v, kNone, places, ends}, attributes}, {4, 4},
                   Numbers((*expected)[0]));
  Constant packed = PackParts({batch(q), batch(k), batch(v)});
  packed.type.shape = {4, 2, 3, 2};
  ExpectDecomposed({"PackedMultiHeadAttention", {packed, kNone, kNone, kNone, places, ends}, attributes}, {4, 4},
                   Numbers((*expected)[0]));
}

TEST(DecomposeAttention, HalfPrecision) {
  const auto half = [](const Constant& x) { return Tensor(ir::DType::kFloat16, ir::Values(x.type.shape), Numbers(x)); };
  const Constant q = RandomTensor(kInput, 1);
  const auto expected = RunDecomposed(MultiHead({q, q, q}, {{"unidirectional", Int(1)}}));
  ASSERT_TRUE(expected.ok());
  ExpectDecomposed(MultiHead({half(q), half(q), half(q)}, {{"unidirectional", Int(1)}}), kInput,
                   Numbers((*expected)[0]), {}, 0, 2e-3);
}

// The same kernels as attention that is written in ONNX's operators.
TEST(DecomposeAttention, FusesAsTheOperatorsOfOnnx) {
  GraphBuilder b;
  for (const char* name : {"q", "k", "v"}) b.Input(name, {1, 16, 32});
  b.Node("MultiHeadAttention", {"q", "k", "v"}, {"y"}, {Attr("num_heads", 4)}, "com.microsoft").Output("y");
  EXPECT_THAT(CallLabels(PlanOf(ExpectPassesKeepMeaning(b.Model()))), Contains("attention"));
  GraphBuilder plain;
  for (const char* name : {"q", "k", "v"}) plain.Input(name, {1, 16, 32});
  plain.Ints("split", {0, 0, 4, 8}).Ints("join", {0, 0, 32}).Floats("scale", {}, {1 / std::sqrt(8.0f)});
  const std::vector<int64_t> heads = {0, 2, 1, 3}, turned = {0, 2, 3, 1};
  plain.Node("Reshape", {"q", "split"}, {"q4"}).Node("Transpose", {"q4"}, {"qh"}, {Attr("perm", heads)});
  plain.Node("Reshape", {"k", "split"}, {"k4"}).Node("Transpose", {"k4"}, {"kt"}, {Attr("perm", turned)});
  plain.Node("Reshape", {"v", "split"}, {"v4"}).Node("Transpose", {"v4"}, {"vh"}, {Attr("perm", heads)});
  plain.Node("MatMul", {"qh", "kt"}, {"p"}).Node("Mul", {"p", "scale"}, {"s"}).Node("Softmax", {"s"}, {"w"});
  plain.Node("MatMul", {"w", "vh"}, {"o"}).Node("Transpose", {"o"}, {"ot"}, {Attr("perm", heads)});
  plain.Node("Reshape", {"ot", "join"}, {"y"}).Output("y");
  const Plan expected = PlanOf(Optimize(plain.Model())), plan = PlanOf(Optimize(b.Model()));
  EXPECT_EQ(CallLabels(plan), CallLabels(expected));
  const auto digests = [](const Plan& of) {
    std::vector<std::string> all;
    for (const ir::Workload& workload : of.workloads) all.push_back(ir::WorkloadDigest(workload));
    return all;
  };
  EXPECT_EQ(digests(plan), digests(expected));
}

}  // namespace
}  // namespace hone::graph
