// SPDX-License-Identifier: Apache-2.0
// Attention of ai.onnx against plain loops in f64.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/opsets/import_case.h"

namespace hone::graph {
namespace {

using ir::DType;

// Sizes of a case. Keys are those of the past and the new ones.
struct AttentionSizes {
  int64_t batch = 2, heads = 4, kv_heads = 2, queries = 3, new_keys = 5, past = 0, size = 4, value_size = 3;
  int64_t keys() const { return past + new_keys; }
};

struct AttentionCase {
  AttentionSizes sizes;
  bool joined = false;  // inputs have 3 dimensions
  bool causal = false;
  std::optional<Constant> mask;   // bool or float
  std::vector<double> counts;     // nonpad_kv_seqlen; empty: absent
  double softcap = 0, scale = 0;  // 0: the defaults
  DType dtype = DType::kFloat32;
  int64_t score_mode = 0;
};

// Numbers in [-1, 1], different for each seed.
std::vector<double> Wave(int64_t count, double seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(std::sin(seed + 1.7 * static_cast<double>(i)));
  return numbers;
}

// Moves [batch, heads, positions, size] to [batch, positions, heads * size].
std::vector<double> Joined(const std::vector<double>& x, int64_t batch, int64_t heads, int64_t positions,
                           int64_t size) {
  std::vector<double> result(x.size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t p = 0; p < positions; ++p) {
        for (int64_t d = 0; d < size; ++d) {
          result[((b * positions + p) * heads + h) * size + d] = x[((b * heads + h) * positions + p) * size + d];
        }
      }
    }
  }
  return result;
}

struct AttentionResult {
  std::vector<double> output, scores;
};

class PlainAttention {
 public:
  explicit PlainAttention(const AttentionCase& c)
      : c_(c),
        s_(c.sizes),
        query_(Wave(s_.batch * s_.heads * s_.queries * s_.size, 1)),
        new_key_(Wave(s_.batch * s_.kv_heads * s_.new_keys * s_.size, 2)),
        new_value_(Wave(s_.batch * s_.kv_heads * s_.new_keys * s_.value_size, 3)),
        past_key_(Wave(s_.batch * s_.kv_heads * s_.past * s_.size, 4)),
        past_value_(Wave(s_.batch * s_.kv_heads * s_.past * s_.value_size, 5)) {}

  OpCase Node() const {
    const auto input = [&](const std::vector<double>& x, int64_t heads, int64_t positions, int64_t size) {
      if (!c_.joined) return Tensor(c_.dtype, {s_.batch, heads, positions, size}, x);
      return Tensor(c_.dtype, {s_.batch, positions, heads * size}, Joined(x, s_.batch, heads, positions, size));
    };
    OpCase node{"Attention",
                {input(query_, s_.heads, s_.queries, s_.size), input(new_key_, s_.kv_heads, s_.new_keys, s_.size),
                 input(new_value_, s_.kv_heads, s_.new_keys, s_.value_size)}};
    node.inputs.push_back(c_.mask ? *c_.mask : Absent());
    const bool past = s_.past > 0;
    const Shape key_shape = {s_.batch, s_.kv_heads, s_.past, s_.size};
    const Shape value_shape = {s_.batch, s_.kv_heads, s_.past, s_.value_size};
    node.inputs.push_back(past ? Tensor(c_.dtype, key_shape, past_key_) : Absent());
    node.inputs.push_back(past ? Tensor(c_.dtype, value_shape, past_value_) : Absent());
    if (!c_.counts.empty()) node.inputs.push_back(Ints({s_.batch}, c_.counts));
    if (c_.joined) node.attributes = {{"q_num_heads", Int(s_.heads)}, {"kv_num_heads", Int(s_.kv_heads)}};
    if (c_.causal) node.attributes["is_causal"] = Int(1);
    if (c_.softcap != 0) node.attributes["softcap"] = c_.softcap;
    if (c_.scale != 0) node.attributes["scale"] = c_.scale;
    node.attributes["qk_matmul_output_mode"] = Int(c_.score_mode);
    node.opset = 24;
    node.outputs = 4;
    return node;
  }

  double Key(int64_t b, int64_t h, int64_t k, int64_t d) const {
    const int64_t head = b * s_.kv_heads + h;
    if (k < s_.past) return past_key_[(head * s_.past + k) * s_.size + d];
    return new_key_[(head * s_.new_keys + k - s_.past) * s_.size + d];
  }
  double Value(int64_t b, int64_t h, int64_t k, int64_t d) const {
    const int64_t head = b * s_.kv_heads + h;
    if (k < s_.past) return past_value_[(head * s_.past + k) * s_.value_size + d];
    return new_value_[(head * s_.new_keys + k - s_.past) * s_.value_size + d];
  }

  // -infinity where the query does not see the key.
  double Bias(int64_t b, int64_t h, int64_t q, int64_t k) const {
    double bias = 0;
    if (c_.mask) {
      const Shape shape = ir::Values(c_.mask->type.shape);
      const int64_t columns = shape.back();
      if (k >= columns) return -kInf;
      const int64_t place[] = {b, h, q, k};
      int64_t index = 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t at = shape[d] == 1 ? 0 : place[4 - shape.size() + d];
        index = index * shape[d] + at;
      }
      const double number = Numbers(*c_.mask)[static_cast<size_t>(index)];
      bias = c_.mask->type.dtype == DType::kBool ? (number != 0 ? 0 : -kInf) : number;
    }
    int64_t last = s_.keys() - 1;
    if (!c_.counts.empty()) last = std::min(last, static_cast<int64_t>(c_.counts[b]) - 1);
    if (c_.causal) {
      const int64_t offset = c_.counts.empty() ? s_.past : static_cast<int64_t>(c_.counts[b]) - s_.queries;
      last = std::min(last, q + offset);
    }
    return k > last ? -kInf : bias;
  }

  AttentionResult Run() const {
    AttentionResult result;
    const double scale = c_.scale != 0 ? c_.scale : 1 / std::sqrt(static_cast<double>(s_.size));
    result.output.resize(s_.batch * s_.heads * s_.queries * s_.value_size);
    for (int64_t b = 0; b < s_.batch; ++b) {
      for (int64_t h = 0; h < s_.heads; ++h) {
        for (int64_t q = 0; q < s_.queries; ++q) Row(b, h, q, scale, result);
      }
    }
    if (c_.joined) result.output = Joined(result.output, s_.batch, s_.heads, s_.queries, s_.value_size);
    return result;
  }

 private:
  void Row(int64_t b, int64_t h, int64_t q, double scale, AttentionResult& result) const {
    const int64_t kv = h / (s_.heads / s_.kv_heads), row = (b * s_.heads + h) * s_.queries + q;
    std::vector<double> masked, weights;
    double sum = 0;
    for (int64_t k = 0; k < s_.keys(); ++k) {
      double score = 0;
      for (int64_t d = 0; d < s_.size; ++d) score += query_[row * s_.size + d] * Key(b, kv, k, d) * scale;
      if (c_.score_mode == 0) result.scores.push_back(score);
      if (c_.softcap != 0) score = std::tanh(score / c_.softcap) * c_.softcap;
      if (c_.score_mode == 1) result.scores.push_back(score);
      masked.push_back(score + Bias(b, h, q, k));
      sum += std::exp(masked.back());
    }
    for (const double x : masked) weights.push_back(sum == 0 ? 0 : std::exp(x) / sum);
    if (c_.score_mode == 2) result.scores.insert(result.scores.end(), masked.begin(), masked.end());
    if (c_.score_mode == 3) result.scores.insert(result.scores.end(), weights.begin(), weights.end());
    for (int64_t d = 0; d < s_.value_size; ++d) {
      for (int64_t k = 0; k < s_.keys(); ++k) {
        result.output[row * s_.value_size + d] += weights[static_cast<size_t>(k)] * Value(b, kv, k, d);
      }
    }
  }

  const AttentionCase& c_;
  const AttentionSizes& s_;
  const std::vector<double> query_, new_key_, new_value_, past_key_, past_value_;
};

// Compares all four outputs.
void ExpectAttention(const AttentionCase& c, const ImportOf& import = {}) {
  const AttentionSizes& s = c.sizes;
  const PlainAttention plain(c);
  const AttentionResult expected = plain.Run();
  const OpCase node = plain.Node();
  const double tolerance = c.dtype == DType::kFloat32 ? 1e-5 : c.dtype == DType::kFloat16 ? 4e-3 : 3e-2;
  const Shape shape =
      c.joined ? Shape{s.batch, s.queries, s.heads * s.value_size} : Shape{s.batch, s.heads, s.queries, s.value_size};
  ExpectImported(node, shape, expected.output, import, 0, tolerance);
  std::vector<double> keys, values;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.kv_heads; ++h) {
      for (int64_t k = 0; k < s.keys(); ++k) {
        for (int64_t d = 0; d < s.size; ++d) keys.push_back(plain.Key(b, h, k, d));
        for (int64_t d = 0; d < s.value_size; ++d) values.push_back(plain.Value(b, h, k, d));
      }
    }
  }
  ExpectImported(node, {s.batch, s.kv_heads, s.keys(), s.size}, keys, import, 1, tolerance);
  ExpectImported(node, {s.batch, s.kv_heads, s.keys(), s.value_size}, values, import, 2, tolerance);
  ExpectImported(node, {s.batch, s.heads, s.queries, s.keys()}, expected.scores, import, 3, tolerance);
}

// Bools of which about two thirds are true.
Constant SomeBools(const Shape& shape, int64_t seed) {
  std::vector<double> numbers(static_cast<size_t>(Counting(shape).type.elements().value()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = (i * 7 + static_cast<size_t>(seed)) % 3 != 0 ? 1 : 0;
  return Bools(shape, numbers);
}

TEST(Attention, HeadsOfQueriesShareHeadsOfKeys) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    for (const bool joined : {false, true}) ExpectAttention({.sizes = {.kv_heads = kv_heads}, .joined = joined});
  }
}

TEST(Attention, SixteenBitFloats) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    ExpectAttention({.sizes = {.past = 2}, .causal = true, .dtype = dtype});
  }
}

TEST(Attention, MasksOfAllShapes) {
  const Shape shapes[] = {{5}, {3, 5}, {1, 5}, {4, 3, 5}, {1, 3, 5}, {2, 1, 3, 5}, {2, 4, 3, 5}, {2, 1, 1, 5}};
  for (const Shape& shape : shapes) {
    ExpectAttention({.mask = SomeBools(shape, 1)});
    ExpectAttention({.joined = true, .mask = Floats(shape, Wave(Counting(shape).type.elements().value(), 9))});
  }
  // A mask that is shorter than the keys hides the others.
  ExpectAttention({.mask = SomeBools({3, 4}, 2)});
  ExpectAttention({.mask = Floats({2, 1, 3, 2}, Wave(12, 3))});
}

TEST(Attention, MasksThatAreConstantsOfTheModel) {
  ExpectAttention({.causal = true, .mask = SomeBools({3, 5}, 1)}, {.constants = {3}});
}

TEST(Attention, CausalWithAndWithoutPast) {
  ExpectAttention({.causal = true});
  ExpectAttention({.sizes = {.new_keys = 3, .past = 4}, .causal = true});
  ExpectAttention({.sizes = {.queries = 1, .new_keys = 1, .past = 6}, .joined = true, .causal = true});
  ExpectAttention({.sizes = {.new_keys = 3, .past = 4}, .causal = true, .mask = SomeBools({3, 7}, 5)});
}

TEST(Attention, CachesWithCounts) {
  ExpectAttention({.counts = {5, 2}});
  ExpectAttention({.causal = true, .counts = {5, 3}});
  ExpectAttention({.sizes = {.queries = 1}, .causal = true, .mask = SomeBools({1, 5}, 4), .counts = {4, 2}});
}

TEST(Attention, AQueryThatSeesNoKeyHasNoOutput) {
  ExpectAttention({.mask = Bools({3, 5}, {1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}), .score_mode = 3});
  ExpectAttention({.causal = true, .counts = {2, 5}, .score_mode = 3});  // the first query precedes all keys
  ExpectAttention({.mask = Floats({3, 1}, {0, -kInf, 0}), .score_mode = 3});
}

TEST(Attention, CapsAndScales) {
  ExpectAttention({.causal = true, .softcap = 0.5});
  ExpectAttention({.scale = 2.0});
  ExpectAttention({.mask = Floats({3, 5}, Wave(15, 2)), .softcap = 0.5, .scale = 0.1});
}

TEST(Attention, ScoresOfEachStage) {
  for (const int64_t mode : {0, 1, 2, 3}) {
    ExpectAttention({.causal = true, .mask = Floats({3, 5}, Wave(15, 2)), .softcap = 0.5, .score_mode = mode});
  }
}

TEST(Attention, SoftmaxInAnotherPrecision) {
  OpCase node = PlainAttention(AttentionCase{}).Node();
  node.attributes["softmax_precision"] = Int(11);
  ExpectImported(node, {2, 4, 3, 3}, PlainAttention(AttentionCase{}).Run().output);
}

TEST(Attention, MalformedNodesAreRefused) {
  AttentionCase c;
  c.sizes.heads = 3;
  ExpectRefused(PlainAttention(c).Node(), absl::StatusCode::kInvalidArgument, "3 heads of queries");
  OpCase lonely = PlainAttention(AttentionCase{.sizes = {.past = 1}}).Node();
  lonely.inputs[5] = Absent();
  ExpectRefused(lonely, absl::StatusCode::kInvalidArgument, "must be given together");
}

}  // namespace
}  // namespace hone::graph
