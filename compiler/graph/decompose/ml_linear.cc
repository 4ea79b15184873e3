// SPDX-License-Identifier: Apache-2.0
// Rules for linear models and support vector machines of ai.onnx.ml.
//
// Scores, labels and their special cases are those of ONNX Runtime. Not here: trees (ml_trees.cc).
#include <algorithm>
#include <utility>

#include "compiler/graph/decompose/ml_scores.h"
#include "compiler/graph/decompose/pairwise.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

int64_t CountOf(const std::vector<double>& numbers) { return static_cast<int64_t>(numbers.size()); }

// A matrix [rows, n] of f32 from an attribute; the attribute's size must be a multiple of the rows.
ValueId MatrixOf(Decomposition& b, const std::vector<double>& numbers, int64_t rows, std::string_view name) {
  if (rows <= 0 || numbers.empty() || CountOf(numbers) % rows != 0) {
    b.Fail(
        Malformed(fmt::format("attribute {} has {} numbers, which is no multiple of {}", name, numbers.size(), rows)));
    return kAbsent;
  }
  return b.Tensor(DType::kFloat32, {rows, CountOf(numbers) / rows}, numbers);
}

// x * coefficients' + intercepts, [rows, count].
ValueId LinearScores(Decomposition& b, ValueId x, int64_t count) {
  const ValueId matrix = MatrixOf(b, b.Floats("coefficients", {}), count, "coefficients");
  const std::vector<double> intercepts = b.Floats("intercepts", {});
  if (intercepts.empty()) return b.Op("Gemm", {x, matrix}, {{"transB", int64_t{1}}});
  const ValueId bias = b.Tensor(DType::kFloat32, {CountOf(intercepts)}, intercepts);
  return b.Op("Gemm", {x, matrix, bias}, {{"transB", int64_t{1}}});
}

absl::StatusOr<Values> LinearRegressor(Decomposition& b) {
  return Values{Transformed(b, LinearScores(b, RowsOf(b), b.Int("targets", 1)), ReadPostTransform(b))};
}

// Outputs: labels, scores. With one score per row, label 1 is chosen where it is positive.
absl::StatusOr<Values> LinearClassifier(Decomposition& b) {
  const ClassLabels labels = ReadClassLabels(b, "classlabels_ints", "classlabels_strings");
  const PostTransform transform = ReadPostTransform(b);
  const std::vector<double> intercepts = b.Floats("intercepts", {});
  const int64_t count = intercepts.empty() ? static_cast<int64_t>(labels.count) : CountOf(intercepts);
  const ValueId scores = LinearScores(b, RowsOf(b), count);
  if (count > 1) return Values{LabelsOfLargest(b, labels, scores), Transformed(b, scores, transform)};
  const ValueId positive = b.Op("Greater", {scores, b.Like(scores, 0)});
  if (labels.count == 2) {
    return Values{LabelsWhere(b, labels, positive), TwoScores(b, scores, SecondScore::kComplement, transform)};
  }
  return Values{LabelsWhere(b, {.ints = {0, 1}, .count = 2}, positive), Transformed(b, scores, transform)};
}

// --- Support vector machines.

// The kernel of each row with each support vector, [rows, vectors].
ValueId KernelProducts(Decomposition& b, ValueId x, ValueId vectors, const std::string& kernel) {
  const std::vector<double> params = b.Floats("kernel_params", {0, 0, 0});
  if (params.size() < 3) {
    b.Fail(Malformed("attribute kernel_params must have 3 numbers: gamma, coef0 and degree"));
    return kAbsent;
  }
  const auto number = [&](double value) { return b.Like(x, value); };
  if (kernel == "RBF") {
    const ValueId difference = b.Sub(b.Unsqueeze(x, {1}), b.Unsqueeze(vectors, {0}));
    const ValueId distance =
        b.Op("ReduceSum", {b.Mul(difference, difference), b.List({2})}, {{"keepdims", int64_t{0}}});
    return b.Op("Exp", {b.Mul(distance, number(-params[0]))});
  }
  const ValueId product = b.Op("Gemm", {x, vectors}, {{"transB", int64_t{1}}});
  if (kernel == "LINEAR") return product;
  const ValueId affine = b.Add(b.Mul(product, number(params[0])), number(params[1]));
  if (kernel == "POLY") return b.Op("Pow", {affine, number(params[2])});
  if (kernel == "SIGMOID") return b.Op("Tanh", {affine});
  b.Fail(Malformed(fmt::format("attribute kernel_type is '{}'; it must be LINEAR, POLY, RBF or SIGMOID", kernel)));
  return kAbsent;
}

// rho has one number for all results of a regression or a linear model.
ValueId FirstRho(Decomposition& b) {
  const std::vector<double> rho = b.Floats("rho", {});
  if (rho.empty()) b.Fail(Malformed("attribute rho is missing"));
  return b.Number(DType::kFloat32, rho.empty() ? 0 : rho[0]);
}

// post_transform has no effect in ONNX Runtime.
absl::StatusOr<Values> SvmRegressor(Decomposition& b) {
  const ValueId x = RowsOf(b);
  const std::vector<double> coefficients = b.Floats("coefficients", {});
  const int64_t vectors = b.Int("n_supports", 0);
  ValueId y = kAbsent;
  if (vectors > 0) {
    const ValueId matrix = MatrixOf(b, b.Floats("support_vectors", {}), vectors, "support_vectors");
    const ValueId products = KernelProducts(b, x, matrix, b.String("kernel_type", "LINEAR"));
    y = b.MatMul(products, b.Tensor(DType::kFloat32, {CountOf(coefficients), 1}, coefficients));
  } else {
    y = KernelProducts(b, x, MatrixOf(b, coefficients, 1, "coefficients"), "LINEAR");
  }
  y = b.Add(y, FirstRho(b));
  if (b.Int("one_class", 0) == 0) return Values{y};
  return Values{b.Op("Where", {b.Op("Greater", {y, b.Like(y, 0)}), b.Like(y, 1), b.Like(y, -1)})};
}

// A linear model: one score per class.
Values LinearSvm(Decomposition& b, ValueId x, const ClassLabels& labels, PostTransform transform) {
  const std::vector<double> coefficients = b.Floats("coefficients", {});
  const int64_t classes = static_cast<int64_t>(labels.count);
  const ValueId scores =
      b.Add(KernelProducts(b, x, MatrixOf(b, coefficients, classes, "coefficients"), "LINEAR"), FirstRho(b));
  ValueId chosen = kAbsent;
  if (classes != 2) {
    chosen = LabelsOfLargest(b, labels, scores);
  } else if (b.IsOutputUsed(0)) {
    const bool positive = std::all_of(coefficients.begin(), coefficients.end(), [](double c) { return c >= 0; });
    const ValueId highest = b.Op("ReduceMax", {scores}, {{"axes", std::vector<int64_t>{1}}});
    const ValueId limit = b.Like(scores, positive ? 0.5 : 0);
    const ValueId above = b.Op(positive ? "GreaterOrEqual" : "Greater", {highest, limit});
    const ValueId second = b.Op("Greater", {b.Slice(scores, 1, 1, 2), b.Slice(scores, 1, 0, 1)});
    chosen = LabelsWhere(b, labels, b.Op("Or", {above, second}));
  }
  return {chosen, Transformed(b, scores, transform)};
}

// One classifier per pair of classes i < j, in the order (0, 1), (0, 2), ...; it votes for i if its score is positive.
struct Pairs {
  std::vector<double> weights;                    // [vectors, pairs]
  std::vector<double> votes_first, votes_second;  // [pairs, classes]: 1 for the class that a vote is for
  int64_t count = 0;
};

absl::StatusOr<Pairs> ReadPairs(const std::vector<double>& coefficients,
                                const std::vector<int64_t>& vectors_per_class) {
  const int64_t classes = static_cast<int64_t>(vectors_per_class.size());
  std::vector<int64_t> starts = {0};
  for (int64_t vectors : vectors_per_class) {
    if (vectors < 0 || vectors > CountOf(coefficients)) {
      return Malformed("attribute vectors_per_class has a number that is negative or larger than that of coefficients");
    }
    starts.push_back(starts.back() + vectors);
  }
  const int64_t vectors = starts.back();
  if (CountOf(coefficients) < (classes - 1) * vectors) {
    return Malformed(fmt::format("attribute coefficients has {} numbers; {} classes with {} vectors need {}",
                                 coefficients.size(), classes, vectors, (classes - 1) * vectors));
  }
  Pairs pairs;
  pairs.count = classes * (classes - 1) / 2;
  constexpr int64_t kPairWeightsMax = int64_t{1} << 27;
  if (vectors * pairs.count > kPairWeightsMax) {
    return Unsupported(
        fmt::format("{} classes with {} support vectors are not supported: they need a matrix of {} weights", classes,
                    vectors, vectors * pairs.count));
  }
  pairs.weights.resize(static_cast<size_t>(vectors * pairs.count));
  pairs.votes_first.resize(static_cast<size_t>(pairs.count * classes));
  pairs.votes_second = pairs.votes_first;
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      const auto copy = [&](int64_t of, int64_t row) {
        for (int64_t v = starts[static_cast<size_t>(of)]; v < starts[static_cast<size_t>(of) + 1]; ++v) {
          pairs.weights[static_cast<size_t>(v * pairs.count + pair)] =
              coefficients[static_cast<size_t>(row * vectors + v)];
        }
      };
      copy(i, j - 1);
      copy(j, i);
      pairs.votes_first[static_cast<size_t>(pair * classes + i)] = 1;
      pairs.votes_second[static_cast<size_t>(pair * classes + j)] = 1;
    }
  }
  return pairs;
}

// The class with the most votes; the first of several.
ValueId LabelsByVotes(Decomposition& b, const ClassLabels& labels, const Pairs& pairs, ValueId scores) {
  if (!b.IsOutputUsed(0)) return kAbsent;
  const auto matrix = [&](const std::vector<double>& votes) {
    return b.Tensor(DType::kFloat32, {pairs.count, static_cast<int64_t>(labels.count)}, votes);
  };
  const ValueId first = b.Cast(b.Op("Greater", {scores, b.Like(scores, 0)}), DType::kFloat32);
  const ValueId second = b.Sub(b.Like(scores, 1), first);
  return LabelsOfLargest(
      b, labels, b.Add(b.MatMul(first, matrix(pairs.votes_first)), b.MatMul(second, matrix(pairs.votes_second))));
}

// Outputs: labels, and one probability per class if prob_a and prob_b are given, else one score per pair of classes
// (for two classes one per class).
absl::StatusOr<Values> SvmClassifier(Decomposition& b) {
  const ClassLabels labels = ReadClassLabels(b, "classlabels_ints", "classlabels_strings");
  const PostTransform transform = ReadPostTransform(b);
  const std::vector<int64_t> per_class = b.Ints("vectors_per_class", {});
  const ValueId x = RowsOf(b);
  if (std::all_of(per_class.begin(), per_class.end(), [](int64_t n) { return n == 0; })) {
    return LinearSvm(b, x, labels, transform);
  }
  if (per_class.size() != labels.count || labels.count < 2) {
    return Malformed("attribute vectors_per_class must have one number for each of at least two classes");
  }
  HONE_ASSIGN_OR_RETURN(const Pairs pairs, ReadPairs(b.Floats("coefficients", {}), per_class));
  const int64_t vectors = CountOf(pairs.weights) / pairs.count;
  const std::vector<double> rho = b.Floats("rho", {});
  if (CountOf(rho) < pairs.count) return Malformed(fmt::format("attribute rho must have {} numbers", pairs.count));
  const ValueId matrix = MatrixOf(b, b.Floats("support_vectors", {}), vectors, "support_vectors");
  const ValueId products = KernelProducts(b, x, matrix, b.String("kernel_type", "LINEAR"));
  const ValueId bias = b.Tensor(DType::kFloat32, {pairs.count}, {rho.begin(), rho.begin() + pairs.count});
  const ValueId weights = b.Tensor(DType::kFloat32, {vectors, pairs.count}, pairs.weights);
  const ValueId scores = b.Op("Gemm", {products, weights, bias});
  Values outputs = {LabelsByVotes(b, labels, pairs, scores)};
  if (!b.IsOutputUsed(1)) return outputs;
  if (b.HasAttribute("prob_a")) {
    outputs.push_back(Transformed(b, ClassProbabilities(b, scores, static_cast<int64_t>(labels.count)), transform));
  } else if (labels.count > 2) {
    outputs.push_back(Transformed(b, scores, transform));
  } else {
    const SecondScore second = transform == PostTransform::kNone ? SecondScore::kNegation : SecondScore::kComplement;
    outputs.push_back(TwoScores(b, scores, second, transform));
  }
  return outputs;
}

constexpr Row kMlLinearRows[] = {
    {"LinearClassifier", LinearClassifier},
    {"LinearRegressor", LinearRegressor},
    {"SVMClassifier", SvmClassifier},
    {"SVMRegressor", SvmRegressor},
};

}  // namespace

std::span<const Row> MlLinearRows() { return kMlLinearRows; }

}  // namespace hone::graph::decompose
