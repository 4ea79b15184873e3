// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/pairwise.h"

#include <vector>

#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

constexpr int64_t kCoupledClassesMax = 16;
constexpr int kCouplingRounds = 8;

const Attributes kDropAxis1 = {{"keepdims", int64_t{0}}};

// The iteration for all rows at once. p and product are [rows, classes].
class Coupling {
 public:
  Coupling(Decomposition& b, ValueId pairwise, int64_t classes) : b_(b), classes_(classes) {
    // matrix[i][i] = sum of r[j][i]^2, matrix[i][j] = -r[j][i] * r[i][j], where r[i][j] is the probability of i in the
    // pair (i, j) and r[i][i] is 0.
    const ValueId transposed = b.Transpose(pairwise, {0, 2, 1});
    const ValueId diagonal = b.Op("ReduceSum", {b.Mul(pairwise, pairwise), b.List({1})}, kDropAxis1);
    std::vector<double> identity(static_cast<size_t>(classes * classes));
    for (int64_t i = 0; i < classes; ++i) identity[static_cast<size_t>(i * classes + i)] = 1;
    const ValueId on_diagonal =
        b.Mul(b.Tensor(ir::DType::kFloat32, {classes, classes}, identity), b.Unsqueeze(diagonal, {1}));
    matrix_ = b.Sub(on_diagonal, b.Mul(transposed, pairwise));
    diagonal_ = diagonal;
    p_ = b.Add(b.Mul(diagonal, b.Number(ir::DType::kFloat32, 0)),
               b.Number(ir::DType::kFloat32, 1 / static_cast<double>(classes)));
  }

  void Round() {
    product_ = b_.Squeeze(b_.MatMul(matrix_, b_.Unsqueeze(p_, {2})), {2});
    total_ = b_.Op("ReduceSum", {b_.Mul(p_, product_), b_.List({1})});
    const ValueId error =
        b_.Op("ReduceMax", {b_.Op("Abs", {b_.Sub(product_, total_)})}, {{"axes", std::vector<int64_t>{1}}});
    const ValueId limit = b_.Number(ir::DType::kFloat32, 0.005f / static_cast<float>(classes_));
    const ValueId done = b_.Op("Less", {error, limit});
    const ValueId before = p_;
    for (int64_t i = 0; i < classes_; ++i) Step(i);
    // A row that was done keeps its value in all later rounds, because its error stays the same.
    p_ = b_.Op("Where", {done, before, p_});
  }

  ValueId p() const { return p_; }

 private:
  void Step(int64_t i) {
    const auto column = [&](ValueId x) { return b_.Slice(x, 1, i, i + 1); };
    const ValueId own = column(diagonal_);
    const ValueId change = b_.Div(b_.Sub(total_, column(product_)), own);
    const ValueId scale = b_.Add(b_.Number(ir::DType::kFloat32, 1), change);
    const ValueId twice = b_.Mul(column(product_), b_.Number(ir::DType::kFloat32, 2));
    const ValueId grown = b_.Add(total_, b_.Mul(change, b_.Add(b_.Mul(change, own), twice)));
    total_ = b_.Div(b_.Div(grown, scale), scale);
    const ValueId row = b_.Squeeze(b_.Slice(matrix_, 1, i, i + 1), {1});
    product_ = b_.Div(b_.Add(product_, b_.Mul(change, row)), scale);
    std::vector<double> place(static_cast<size_t>(classes_));
    place[static_cast<size_t>(i)] = 1;
    const ValueId added = b_.Mul(change, b_.Tensor(ir::DType::kFloat32, {classes_}, place));
    p_ = b_.Div(b_.Add(p_, added), scale);
  }

  Decomposition& b_;
  const int64_t classes_;
  ValueId matrix_ = kAbsent, diagonal_ = kAbsent, p_ = kAbsent, product_ = kAbsent, total_ = kAbsent;
};

// [rows, classes, classes]: at (i, j) the probability of class i in the pair of i and j; 0 on the diagonal.
ValueId PairProbabilities(Decomposition& b, ValueId scores, int64_t classes) {
  const std::vector<double> slopes = b.Floats("prob_a", {}), offsets = b.Floats("prob_b", {});
  const size_t pairs = static_cast<size_t>(classes * (classes - 1) / 2);
  if (slopes.size() != pairs || offsets.size() != pairs) {
    b.Fail(Malformed(fmt::format("attributes prob_a and prob_b must have {} numbers", pairs)));
    return kAbsent;
  }
  const auto list = [&](const std::vector<double>& numbers) {
    return b.Tensor(ir::DType::kFloat32, {static_cast<int64_t>(pairs)}, numbers);
  };
  // 1 - logistic(score * a + b), kept away from 0 and 1
  const ValueId logit = b.Add(b.Mul(scores, list(slopes)), list(offsets));
  const ValueId one = b.Number(ir::DType::kFloat32, 1);
  ValueId first = b.Sub(one, b.Op("Sigmoid", {logit}));
  first = b.Op("Clip", {first, b.Number(ir::DType::kFloat32, 1e-7), b.Number(ir::DType::kFloat32, 1 - 1e-7)});
  const ValueId zero = b.Mul(b.Slice(scores, 1, 0, 1), b.Number(ir::DType::kFloat32, 0));
  const ValueId all = b.Concat({first, b.Sub(one, first), zero}, 1);
  std::vector<int64_t> places(static_cast<size_t>(classes * classes), static_cast<int64_t>(2 * pairs));
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      places[static_cast<size_t>(i * classes + j)] = pair;
      places[static_cast<size_t>(j * classes + i)] = static_cast<int64_t>(pairs) + pair;
    }
  }
  return b.Reshape(b.Op("Gather", {all, b.List(places)}, {{"axis", int64_t{1}}}), {0, classes, classes});
}

}  // namespace

ValueId ClassProbabilities(Decomposition& b, ValueId scores, int64_t classes) {
  if (classes > kCoupledClassesMax) {
    b.Fail(
        Unsupported(fmt::format("it makes probabilities of {} classes by pairwise coupling; at most {} are supported",
                                classes, kCoupledClassesMax)));
    return kAbsent;
  }
  Coupling coupling(b, PairProbabilities(b, scores, classes), classes);
  for (int round = 0; round < kCouplingRounds; ++round) coupling.Round();
  return coupling.p();
}

}  // namespace hone::graph::decompose
