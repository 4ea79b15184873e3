// SPDX-License-Identifier: Apache-2.0
// Rules for the domain ai.onnx.preview.training: one step of an optimizer.
//
// Inputs: the learning rate, the number of earlier updates, then n tensors, n gradients and one or two lists of n
// states. Outputs: the new tensors, and the new states in the order of the inputs.
#include <string>

#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"

namespace hone::graph::decompose {
namespace {

// What the three optimizers share.
struct Update {
  ValueId rate, steps;  // scalars; `steps` as a float
  size_t count = 0;     // of tensors

  ValueId Tensor(const Decomposition& b, size_t list, size_t i) const { return b.Input(2 + list * count + i); }
  // The gradient with weight decay.
  ValueId Gradient(Decomposition& b, size_t i, double decay) const {
    const ValueId x = Tensor(b, 0, i);
    return b.Add(b.Mul(b.Like(x, decay), x), Tensor(b, 1, i));
  }
};

absl::StatusOr<Update> ReadUpdate(Decomposition& b, size_t lists) {
  const size_t tensors = b.node().inputs.size() - 2;
  if (tensors == 0 || tensors % lists != 0) return Malformed("the number of inputs does not fit the operator");
  for (size_t i = 0; i < tensors; ++i) {
    if (!b.Has(2 + i)) return Malformed("an input is missing");
  }
  return Update{b.Input(0), b.Cast(b.Input(1), b.ElementType(b.Input(0))), tensors / lists};
}

// Returns the lists one after the other.
Values Joined(std::vector<Values> lists) {
  Values all;
  for (const Values& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

absl::StatusOr<Values> Adagrad(Decomposition& b) {
  HONE_ASSIGN_OR_RETURN(const Update update, ReadUpdate(b, 3));
  const ValueId one = b.Like(update.rate, 1);
  const ValueId decay = b.Mul(update.steps, b.Like(update.rate, b.Float("decay_factor", 0)));
  const ValueId rate = b.Div(update.rate, b.Add(one, decay));
  Values tensors, squares;
  for (size_t i = 0; i < update.count; ++i) {
    const ValueId gradient = update.Gradient(b, i, b.Float("norm_coefficient", 0));
    squares.push_back(b.Add(update.Tensor(b, 2, i), b.Mul(gradient, gradient)));
    const ValueId root = b.Add(b.Op("Sqrt", {squares.back()}), b.Like(gradient, b.Float("epsilon", 1e-6)));
    tensors.push_back(b.Sub(update.Tensor(b, 0, i), b.Div(b.Mul(rate, gradient), root)));
  }
  return Joined({tensors, squares});
}

// (1 - weight) * new + weight * old
ValueId Blend(Decomposition& b, double weight, ValueId old_value, ValueId new_value) {
  return b.Add(b.Mul(b.Like(old_value, weight), old_value), b.Mul(b.Like(old_value, 1 - weight), new_value));
}

absl::StatusOr<Values> Adam(Decomposition& b) {
  HONE_ASSIGN_OR_RETURN(const Update update, ReadUpdate(b, 4));
  const double alpha = b.Float("alpha", 0.9), beta = b.Float("beta", 0.999);
  const ValueId one = b.Like(update.rate, 1);
  const auto bias = [&](double weight) {  // 1 - weight^steps
    return b.Sub(one, b.Op("Pow", {b.Like(update.rate, weight), update.steps}));
  };
  const ValueId corrected = b.Div(b.Mul(update.rate, b.Op("Sqrt", {bias(beta)})), bias(alpha));
  const ValueId has_steps = b.Op("Greater", {update.steps, b.Like(update.rate, 0)});
  const ValueId rate = b.Where(has_steps, corrected, update.rate);
  Values tensors, means, squares;
  for (size_t i = 0; i < update.count; ++i) {
    const ValueId gradient = update.Gradient(b, i, b.Float("norm_coefficient", 0));
    means.push_back(Blend(b, alpha, update.Tensor(b, 2, i), gradient));
    squares.push_back(Blend(b, beta, update.Tensor(b, 3, i), b.Mul(gradient, gradient)));
    const ValueId root = b.Add(b.Op("Sqrt", {squares.back()}), b.Like(gradient, b.Float("epsilon", 1e-6)));
    const ValueId moved = b.Sub(update.Tensor(b, 0, i), b.Div(b.Mul(rate, means.back()), root));
    tensors.push_back(b.Mul(b.Like(moved, 1 - b.Float("norm_coefficient_post", 0)), moved));
  }
  return Joined({tensors, means, squares});
}

absl::StatusOr<Values> Momentum(Decomposition& b) {
  HONE_ASSIGN_OR_RETURN(const Update update, ReadUpdate(b, 3));
  const std::string mode = b.String("mode", "standard");
  if (mode != "standard" && mode != "nesterov") return Malformed("attribute mode must be standard or nesterov");
  const ValueId has_steps = b.Op("Greater", {update.steps, b.Like(update.rate, 0)});
  const ValueId beta = b.Where(has_steps, b.Like(update.rate, b.Float("beta", 0)), b.Like(update.rate, 1));
  Values tensors, momenta;
  for (size_t i = 0; i < update.count; ++i) {
    const ValueId gradient = update.Gradient(b, i, b.Float("norm_coefficient", 0)), old = update.Tensor(b, 2, i);
    const ValueId alpha = b.Like(old, b.Float("alpha", 0));
    momenta.push_back(b.Add(b.Mul(alpha, old), b.Mul(beta, gradient)));
    const ValueId direction = mode == "standard" ? momenta.back() : b.Add(gradient, b.Mul(alpha, momenta.back()));
    tensors.push_back(b.Sub(update.Tensor(b, 0, i), b.Mul(update.rate, direction)));
  }
  return Joined({tensors, momenta});
}

constexpr Row kTrainingRows[] = {{"Adagrad", Adagrad, 2}, {"Adam", Adam, 2}, {"Momentum", Momentum, 2}};

}  // namespace

std::span<const Row> TrainingRows() { return kTrainingRows; }

}  // namespace hone::graph::decompose
