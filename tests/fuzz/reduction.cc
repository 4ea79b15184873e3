// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/fuzz/recipes.h"

namespace hone::fuzz {
namespace {

using graph::kAbsent;
using ir::DType;

// Small deviations of equal values are mostly rounding errors, and a norm must not amplify them.
constexpr double kEpsilon = 0.125;

Attributes ReduceAxes(Grower& g, ValueId x) {
  Attributes attributes = {{"keepdims", g.Below(2)}};
  Ints axes;
  for (int64_t axis = 0; axis < g.RankOf(x); ++axis) {
    if (g.OneIn(2)) axes.push_back(g.OneIn(3) ? axis - g.RankOf(x) : axis);
  }
  if (!axes.empty()) attributes["axes"] = axes;
  return attributes;
}

void Reduce(Grower& g) {
  constexpr std::string_view kOps[] = {"ReduceSum", "ReduceSum", "ReduceMean",      "ReduceMean",     "ReduceProd",
                                       "ReduceL1",  "ReduceL2",  "ReduceSumSquare", "ReduceLogSumExp"};
  const ValueId x = g.PickNumber();
  g.Grow(g.OneOf(kOps), {x}, Effect::kRounds, ReduceAxes(g, x));
}

void ReduceExtreme(Grower& g) {
  const ValueId x = g.PickAny();
  g.Grow(g.OneIn(2) ? "ReduceMax" : "ReduceMin", {x}, Effect::kMoves, ReduceAxes(g, x));
}

void ArgExtreme(Grower& g) {
  const ValueId x = g.Pick([&](ValueId id) { return g.IsExact(id) && g.RankOf(id) >= 1; });
  if (x == kAbsent) return;
  g.Grow(g.OneIn(2) ? "ArgMax" : "ArgMin", {x}, Effect::kJumps,
         {{"axis", g.Below(g.RankOf(x))}, {"keepdims", g.Below(2)}, {"select_last_index", g.Below(2)}});
}

void CumSum(Grower& g) {
  const ValueId x = g.Pick([&](ValueId id) { return g.RankOf(id) >= 1 && g.TypeOf(id).dtype != DType::kBool; });
  if (x == kAbsent) return;
  g.Grow("CumSum", {x, g.Scalar(DType::kInt64, static_cast<double>(g.Below(g.RankOf(x))))}, Effect::kRounds,
         {{"exclusive", g.Below(2)}, {"reverse", g.Below(2)}});
}

void Softmax(Grower& g) {
  const ValueId x = g.PickFloat(1);
  if (x == kAbsent) return;
  g.Grow(g.OneIn(3) ? "LogSoftmax" : "Softmax", {x}, Effect::kRounds,
         {{"axis", g.Between(-g.RankOf(x), g.RankOf(x) - 1)}});
}

void Hardmax(Grower& g) {
  const ValueId x = g.PickExactFloat();
  if (g.RankOf(x) > 0) g.Grow("Hardmax", {x}, Effect::kJumps, {{"axis", g.Below(g.RankOf(x))}});
}

void TopK(Grower& g) {
  const ValueId x = g.PickExactFloat();
  if (g.RankOf(x) == 0) return;
  const int64_t axis = g.Below(g.RankOf(x));
  const int64_t k = g.Between(1, std::min<int64_t>(4, g.ShapeOf(x)[static_cast<size_t>(axis)]));
  g.Grow("TopK", {x, g.Numbers({k})}, Effect::kJumps, {{"axis", axis}, {"largest", g.Below(2)}}, 2);
}

void LayerNorm(Grower& g) {
  const ValueId x = g.PickFloat(1);
  if (x == kAbsent) return;
  const int64_t axis = g.Below(g.RankOf(x));
  Ints shape = g.ShapeOf(x);
  shape.erase(shape.begin(), shape.begin() + axis);
  const DType dtype = g.TypeOf(x).dtype;
  const std::string_view op = g.OneIn(3) ? "RMSNormalization" : "LayerNormalization";
  std::vector<ValueId> inputs = {x, g.Operand(dtype, shape)};
  if (op == "LayerNormalization" && g.OneIn(2)) inputs.push_back(g.Operand(dtype, shape));
  g.Grow(op, inputs, Effect::kRounds, {{"axis", axis}, {"epsilon", kEpsilon}});
}

void ChannelNorm(Grower& g) {
  const ValueId x = g.PickFloat(3, 5);
  if (x == kAbsent) return;
  const DType dtype = g.TypeOf(x).dtype;
  const Ints channels = {g.ShapeOf(x)[1]};
  const ValueId scale = g.Operand(dtype, channels), bias = g.Operand(dtype, channels);
  if (g.OneIn(3)) {
    g.Grow("InstanceNormalization", {x, scale, bias}, Effect::kRounds, {{"epsilon", kEpsilon}});
  } else if (g.OneIn(3)) {
    g.Grow("GroupNormalization", {x, scale, bias}, Effect::kRounds,
           {{"epsilon", kEpsilon}, {"num_groups", channels[0]}});
  } else {
    const ValueId mean = g.Operand(dtype, channels), variance = g.Constant(dtype, channels, 0.5, 2);
    g.Grow("BatchNormalization", {x, scale, bias, mean, variance}, Effect::kRounds);
  }
}

void LRN(Grower& g) {
  const ValueId x = g.PickFloat(3, 4);
  if (x != kAbsent) g.Grow("LRN", {x}, Effect::kRounds, {{"size", g.Between(1, 5)}, {"alpha", 0.25}});
}

constexpr Recipe kReductionRecipes[] = {
    {6, Reduce},  {3, ReduceExtreme}, {2, ArgExtreme}, {1, CumSum},      {4, Softmax},
    {1, Hardmax}, {1, TopK},          {3, LayerNorm},  {4, ChannelNorm}, {1, LRN}};

}  // namespace

std::span<const Recipe> ReductionRecipes() { return kReductionRecipes; }

}  // namespace hone::fuzz
