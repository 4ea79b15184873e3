// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/ml_scores.h"

#include <string>
#include <utility>

#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {

using ir::DType;

ValueId RowsOf(Decomposition& b, bool keep_f64) {
  ValueId x = b.Input(0);
  if (!keep_f64 || b.ElementType(x) != DType::kFloat64) x = b.Cast(x, DType::kFloat32);
  return b.Rank(x) == 1 ? b.Reshape(x, {1, -1}) : x;
}

PostTransform ReadPostTransform(Decomposition& b) {
  const std::string name = b.String("post_transform", "NONE");
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  b.Fail(Malformed(fmt::format(
      "attribute post_transform is '{}'; it must be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT", name)));
  return PostTransform::kNone;
}

namespace {

// sqrt(2) * erfinv(2 * p - 1), by ONNX Runtime's approximation of the inverse error function (S. Winitzki).
ValueId Probit(Decomposition& b, ValueId p) {
  const auto number = [&](double value) { return b.Like(p, static_cast<float>(value)); };
  const ValueId x = b.Sub(b.Mul(p, number(2)), number(1));
  const ValueId log = b.Op("Log", {b.Mul(b.Sub(number(1), x), b.Add(number(1), x))});
  const ValueId half = b.Add(number(2 / (3.14159 * 0.147)), b.Mul(log, number(0.5)));
  const ValueId root = b.Op("Sqrt", {b.Sub(b.Mul(half, half), b.Mul(log, number(1 / 0.147)))});
  const ValueId magnitude = b.Op("Sqrt", {b.Sub(root, half)});
  const ValueId inverse = b.Op("Where", {b.Op("Less", {x, number(0)}), b.Op("Neg", {magnitude}), magnitude});
  return b.Mul(inverse, number(1.41421356));
}

// The softmax over the scores that are not almost 0; others are multiplied by exp(-max) and do not count in the sum.
ValueId SoftmaxWithoutZeros(Decomposition& b, ValueId scores) {
  const ValueId highest = b.Op("ReduceMax", {scores}, {{"axes", std::vector<int64_t>{-1}}});
  const ValueId counts = b.Op("Greater", {b.Op("Abs", {scores}), b.Like(scores, 1e-7f)});
  const ValueId exponential = b.Op("Exp", {b.Sub(scores, highest)});
  const ValueId counted = b.Op("Where", {counts, exponential, b.Like(scores, 0)});
  const ValueId sum = b.Op("ReduceSum", {counted, b.List({-1})});
  const ValueId other = b.Mul(scores, b.Op("Exp", {b.Op("Neg", {highest})}));
  return b.Div(b.Op("Where", {counts, exponential, other}), sum);
}

}  // namespace

ValueId Transformed(Decomposition& b, ValueId scores, PostTransform transform) {
  if (transform == PostTransform::kNone) return scores;
  if (transform == PostTransform::kProbit) return Probit(b, scores);
  if (b.Extent(scores, 1) == 1) return scores;
  if (transform == PostTransform::kSoftmax) return b.Op("Softmax", {scores}, {{"axis", int64_t{-1}}});
  if (transform == PostTransform::kLogistic) return b.Op("Sigmoid", {scores});
  return SoftmaxWithoutZeros(b, scores);
}

ValueId TwoScores(Decomposition& b, ValueId score, SecondScore second, PostTransform transform) {
  if (transform == PostTransform::kProbit) return Probit(b, score);
  const bool logistic = transform == PostTransform::kLogistic;
  if (second == SecondScore::kComplement && !logistic) return b.Concat({b.Sub(b.Like(score, 1), score), score}, 1);
  const ValueId both = b.Concat({b.Op("Neg", {score}), score}, 1);
  return logistic ? b.Op("Sigmoid", {both}) : both;
}

ClassLabels ReadClassLabels(Decomposition& b, std::string_view ints, std::string_view strings) {
  ClassLabels labels{.ints = b.Ints(ints, {})};
  const size_t names = b.Strings(strings, {}).size();
  if (names > 0) labels.ints.clear();
  labels.count = names > 0 ? names : labels.ints.size();
  if (labels.count == 0) b.Fail(Malformed(fmt::format("attribute {} or {} is missing", ints, strings)));
  return labels;
}

ValueId LabelsAt(Decomposition& b, const ClassLabels& labels, ValueId indices) {
  if (!b.IsOutputUsed(0)) return kAbsent;
  if (labels.ints.empty()) {
    b.Fail(
        Unsupported("its labels are strings, which are not supported; remove the nodes that read output 0, or the "
                    "output of the model, and use the scores"));
    return kAbsent;
  }
  return b.Op("Gather", {b.List(labels.ints), indices});
}

ValueId LabelsOfLargest(Decomposition& b, const ClassLabels& labels, ValueId scores) {
  if (!b.IsOutputUsed(0)) return kAbsent;
  return LabelsAt(b, labels, b.Op("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}));
}

ValueId LabelsWhere(Decomposition& b, const ClassLabels& labels, ValueId condition) {
  if (!b.IsOutputUsed(0)) return kAbsent;
  return LabelsAt(b, labels, b.Cast(b.Squeeze(condition, {1}), DType::kInt64));
}

}  // namespace hone::graph::decompose
