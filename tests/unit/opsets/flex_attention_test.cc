// SPDX-License-Identifier: Apache-2.0
// FlexAttention of ai.onnx.preview against the formulas of its specification.
#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/opsets/import_case.h"

namespace hone::graph {
namespace {

using ir::DType;

// What a graph does to the number at [batch, head, query, key].
using Change = std::function<double(double x, int64_t h, int64_t q, int64_t k)>;

struct FlexCase {
  int64_t batch = 2, heads = 4, kv_heads = 4, queries = 3, keys = 5, size = 4, value_size = 2;
  DType dtype = DType::kFloat32;
  double scale = 0;  // 0: attribute scale is left out
  Change score_mod = {}, prob_mod = {};
};

std::vector<double> Waves(int64_t count, double seed) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(std::sin(seed + 1.7 * static_cast<double>(i)));
  return numbers;
}

OpCase NodeOf(const FlexCase& c) {
  OpCase node{"FlexAttention",
              {Tensor(c.dtype, {c.batch, c.heads, c.queries, c.size}, Waves(c.batch * c.heads * c.queries * c.size, 1)),
               Tensor(c.dtype, {c.batch, c.kv_heads, c.keys, c.size}, Waves(c.batch * c.kv_heads * c.keys * c.size, 2)),
               Tensor(c.dtype, {c.batch, c.kv_heads, c.keys, c.value_size},
                      Waves(c.batch * c.kv_heads * c.keys * c.value_size, 3))}};
  node.opset = 26;
  node.domain = "ai.onnx.preview";
  if (c.scale != 0) node.attributes["scale"] = c.scale;
  return node;
}

// The weights of the keys for one query of one head, which is row `q` of the queries and block `k` of the keys.
std::vector<double> PlainWeights(const FlexCase& c, const std::vector<double>& q, const std::vector<double>& k,
                                 int64_t h, int64_t i) {
  std::vector<double> weights;
  double sum = 0;
  for (int64_t j = 0; j < c.keys; ++j) {
    double score = 0;
    for (int64_t d = 0; d < c.size; ++d) score += q[static_cast<size_t>(d)] * k[static_cast<size_t>(j * c.size + d)];
    score *= c.scale != 0 ? c.scale : 1 / std::sqrt(static_cast<double>(c.size));
    if (c.score_mod) score = c.score_mod(score, h, i, j);
    weights.push_back(std::exp(score));
    sum += weights.back();
  }
  for (int64_t j = 0; j < c.keys; ++j) {
    double& weight = weights[static_cast<size_t>(j)];
    weight /= sum;
    if (c.prob_mod) weight = c.prob_mod(weight, h, i, j);
  }
  return weights;
}

std::vector<double> PlainFlexAttention(const FlexCase& c, const OpCase& node) {
  const std::vector<double> q = Numbers(node.inputs[0]), k = Numbers(node.inputs[1]), v = Numbers(node.inputs[2]);
  std::vector<double> output;
  for (int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) {
    const int64_t b = row / (c.heads * c.queries), h = row / c.queries % c.heads, i = row % c.queries;
    const int64_t block = b * c.kv_heads + h / (c.heads / c.kv_heads);
    const auto of_query = q.begin() + row * c.size, of_keys = k.begin() + block * c.keys * c.size;
    const std::vector<double> weights =
        PlainWeights(c, {of_query, of_query + c.size}, {of_keys, of_keys + c.keys * c.size}, h, i);
    for (int64_t m = 0; m < c.value_size; ++m) {
      double sum = 0;
      for (int64_t j = 0; j < c.keys; ++j) {
        sum += weights[static_cast<size_t>(j)] * v[static_cast<size_t>((block * c.keys + j) * c.value_size + m)];
      }
      output.push_back(sum);
    }
  }
  return output;
}

void ExpectFlexAttention(const FlexCase& c, const ImportOf& import = {}, std::vector<Constant> captured = {},
                         double tolerance = 1e-5) {
  OpCase node = NodeOf(c);
  const std::vector<double> expected = PlainFlexAttention(c, node);
  node.inputs.insert(node.inputs.end(), captured.begin(), captured.end());
  ExpectImported(node, {c.batch, c.heads, c.queries, c.value_size}, expected, import, 0, tolerance);
}

// A graph with one node, which reads what the attention gives it as "s" and writes "r".
std::string OneNode(const std::string& attribute, const std::string& op, const std::vector<std::string>& inputs,
                    int dtype = kFloat) {
  GraphBuilder b;
  b.Input("s", Dims({std::string("B"), std::string("H"), std::string("L"), std::string("S")}), dtype);
  b.Floats("two", {}, {2}).Node(op, inputs, {"r"}).Output("r");
  return GraphAttr(attribute, b.bytes());
}

// score_mod that hides the keys after a query, as exporters write it: the positions come from the shape of the scores.
std::string CausalMask() {
  GraphBuilder b;
  b.Input("s", Dims({std::string("B"), std::string("H"), std::string("L"), std::string("S")}));
  b.Initializer(Tensor<int64_t>("zero", kInt64, {}, {0})).Initializer(Tensor<int64_t>("one", kInt64, {}, {1}));
  b.Initializer(Tensor<int64_t>("i2", kInt64, {}, {2})).Initializer(Tensor<int64_t>("i3", kInt64, {}, {3}));
  b.Ints("column", {-1, 1}).Floats("none", {}, {-std::numeric_limits<float>::infinity()});
  b.Node("Shape", {"s"}, {"shape"}).Node("Gather", {"shape", "i2"}, {"l"}).Node("Gather", {"shape", "i3"}, {"n"});
  b.Node("Range", {"zero", "l", "one"}, {"rows"}).Node("Range", {"zero", "n", "one"}, {"k"});
  b.Node("Reshape", {"rows", "column"}, {"q"}).Node("GreaterOrEqual", {"q", "k"}, {"seen"});
  b.Node("Where", {"seen", "s", "none"}, {"r"}).Output("r");
  return GraphAttr("score_mod", b.bytes());
}

TEST(FlexAttention, WithoutGraphsIsAttention) {
  ExpectFlexAttention({});
  ExpectFlexAttention({.scale = 0.3});
  ExpectFlexAttention({.kv_heads = 2});
  ExpectFlexAttention({.heads = 3, .kv_heads = 1, .queries = 1, .keys = 1, .scale = 2});
}

TEST(FlexAttention, GraphsChangeScoresAndProbabilities) {
  const Change twice = [](double x, int64_t, int64_t, int64_t) { return 2 * x; };
  for (const int64_t kv_heads : {4, 2}) {
    ExpectFlexAttention({.kv_heads = kv_heads, .score_mod = twice},
                        {.graphs = {OneNode("score_mod", "Mul", {"s", "two"})}});
    ExpectFlexAttention({.kv_heads = kv_heads, .prob_mod = twice},
                        {.graphs = {OneNode("prob_mod", "Mul", {"s", "two"})}});
    ExpectFlexAttention(
        {.kv_heads = kv_heads, .score_mod = twice, .prob_mod = twice},
        {.graphs = {OneNode("score_mod", "Mul", {"s", "two"}), OneNode("prob_mod", "Mul", {"s", "two"})}});
    const Change causal = [](double x, int64_t, int64_t q, int64_t k) {
      return k <= q ? x : -std::numeric_limits<double>::infinity();
    };
    ExpectFlexAttention({.kv_heads = kv_heads, .score_mod = causal}, {.graphs = {CausalMask()}});
  }
}

TEST(FlexAttention, GraphsReadValuesAroundTheNode) {
  const std::vector<double> slopes = {0.5, -1, 2, 0};
  const Change by_head = [&](double x, int64_t h, int64_t, int64_t) { return x * slopes[static_cast<size_t>(h)]; };
  ExpectFlexAttention({.kv_heads = 2, .score_mod = by_head},
                      {.graphs = {OneNode("score_mod", "Mul", {"s", "x3"})}, .captured = {3}},
                      {Floats({4, 1, 1}, slopes)});
}

TEST(FlexAttention, TypesAndPrecision) {
  ExpectFlexAttention({.dtype = DType::kFloat64}, {}, {}, 1e-12);
  ExpectFlexAttention({.dtype = DType::kFloat16}, {}, {}, 2e-3);
  ExpectFlexAttention({.dtype = DType::kBFloat16}, {}, {}, 2e-2);
  // The graphs get f32 for 16-bit floats, unless the node states a precision.
  const Change twice = [](double x, int64_t, int64_t, int64_t) { return 2 * x; };
  ExpectFlexAttention({.dtype = DType::kFloat16, .score_mod = twice},
                      {.graphs = {OneNode("score_mod", "Mul", {"s", "two"})}}, {}, 2e-3);
  OpCase wide = NodeOf({.score_mod = twice});
  wide.attributes["softmax_precision"] = Int(kDouble);
  GraphBuilder b;
  b.Input("s", Dims({1, 1, 1, 1}), kDouble).Node("Add", {"s", "s"}, {"r"}).Output("r");
  ExpectImported(wide, {2, 4, 3, 2}, PlainFlexAttention({.score_mod = twice}, wide),
                 {.graphs = {GraphAttr("score_mod", b.bytes())}});
}

TEST(FlexAttention, MalformedNodesAreRefused) {
  const auto code = absl::StatusCode::kInvalidArgument;
  OpCase node = NodeOf({});
  ExpectRefused(node, code, "score_mod must return a tensor of the type and shape that it gets",
                {.graphs = {OneNode("score_mod", "Greater", {"s", "two"})}});
  ExpectRefused(node, absl::StatusCode::kUnimplemented, "attribute mask_mod is not supported",
                {.graphs = {OneNode("mask_mod", "Mul", {"s", "two"})}});
  ExpectRefused(node, absl::StatusCode::kUnimplemented, "Unknown",
                {.graphs = {OneNode("score_mod", "Unknown", {"s", "two"})}});
  ExpectRefused(NodeOf({.heads = 3, .kv_heads = 2}), code, "3 heads of queries do not divide into 2 heads of keys");
  node.inputs[2] = Floats({2, 4, 4, 2}, Waves(64, 1));
  ExpectRefused(node, code, "the same number of heads and of positions");
  node.inputs[2] = Floats({4, 4, 2}, Waves(32, 1));
  ExpectRefused(node, code, "must have 4 dimensions");
}

}  // namespace
}  // namespace hone::graph
