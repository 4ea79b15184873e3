// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/fuzz/recipes.h"

namespace hone::fuzz {
namespace {

using graph::kAbsent;
using ir::DType;

constexpr int64_t kSpaceMax = 11;

void MatMul(Grower& g) {
  ValueId a = g.Pick([&](ValueId id) { return g.RankOf(id) >= 1 && g.TypeOf(id).dtype != DType::kBool; });
  if (a == kAbsent || g.OneIn(4)) a = g.Operand(DType::kFloat32, g.Shape(2, 3));
  const Ints shape = g.ShapeOf(a);
  Ints other = g.OneIn(5) ? Ints{shape.back()} : Ints{shape.back(), g.Extent()};
  if (shape.size() > 2 && g.OneIn(2)) {  // batched
    other = {shape.back(), g.Extent()};
    for (size_t i = shape.size() - 2; i-- > 0;) {
      other.insert(other.begin(), g.OneIn(4) ? 1 : shape[i]);
      if (g.OneIn(3)) break;
    }
  }
  g.Grow("MatMul", {a, g.Operand(g.TypeOf(a).dtype, other)}, Effect::kRounds);
}

void Gemm(Grower& g) {
  const ValueId a = g.Pick([&](ValueId id) { return g.RankOf(id) == 2 && g.TypeOf(id).dtype != DType::kBool; });
  if (a == kAbsent) return;
  const bool turn_a = g.OneIn(2), turn_b = g.OneIn(2);
  const int64_t m = g.ShapeOf(a)[turn_a ? 1 : 0], k = g.ShapeOf(a)[turn_a ? 0 : 1], n = g.Extent();
  const DType dtype = g.TypeOf(a).dtype;
  std::vector<ValueId> inputs = {a, g.Operand(dtype, turn_b ? Ints{n, k} : Ints{k, n})};
  if (!g.OneIn(3))
    inputs.push_back(g.Operand(dtype, g.OneIn(2) ? Ints{n} : Ints{g.OneIn(2) ? m : 1, g.OneIn(2) ? n : 1}));
  Attributes attributes = {{"transA", static_cast<int64_t>(turn_a)}, {"transB", static_cast<int64_t>(turn_b)}};
  if (g.OneIn(2)) attributes["alpha"] = 0.5;
  if (g.OneIn(3)) attributes["beta"] = 2.0;
  g.Grow("Gemm", inputs, Effect::kRounds, attributes);
}

void Einsum(Grower& g) {
  struct Equation {
    std::string_view text, a, b;
  };
  constexpr Equation kEquations[] = {
      {"ij,jk->ik", "ij", "jk"}, {"bij,bkj->bik", "bij", "bkj"}, {"bhid,bhjd->bhij", "bhid", "bhjd"},
      {"ij,ij->j", "ij", "ij"},  {"i,j->ji", "i", "j"},          {"bij,jk->bki", "bij", "jk"}};
  const Equation& equation = g.OneOf(kEquations);
  std::map<char, int64_t> extents;
  const auto shape = [&](std::string_view letters) {
    Ints result;
    for (const char letter : letters) {
      if (!extents.contains(letter)) extents[letter] = g.Between(1, 7);
      result.push_back(extents[letter]);
    }
    return result;
  };
  const Ints a = shape(equation.a), b = shape(equation.b);
  g.Grow("Einsum", {g.Operand(DType::kFloat32, a), g.Operand(DType::kFloat32, b)}, Effect::kRounds,
         {{"equation", std::string(equation.text)}});
}

void IntegerMatMul(Grower& g) {
  const DType a = g.OneIn(2) ? DType::kUInt8 : DType::kInt8, b = g.OneIn(2) ? DType::kUInt8 : DType::kInt8;
  const int64_t k = g.Extent(), n = g.Extent();
  std::vector<ValueId> inputs = {g.Operand(a, {g.Extent(), k}), g.Operand(b, {k, n})};
  if (g.OneIn(2)) inputs.push_back(g.Scalar(a, 3));
  if (inputs.size() == 3 && g.OneIn(2)) inputs.push_back(g.OneIn(2) ? g.Scalar(b, 5) : g.Operand(b, {n}));
  g.Grow("MatMulInteger", inputs, Effect::kJumps);
}

// Returns an image [N, C, D1, ...] of floats. A new one has a multiple of `groups` channels.
ValueId Image(Grower& g, int64_t groups) {
  const ValueId there = g.PickFloat(3, 5);
  if (there != kAbsent && !g.OneIn(3)) return there;
  Ints shape = {g.Between(1, 2), groups * g.Between(1, 9)};
  const int64_t spatial = g.OneIn(3) ? 1 : g.OneIn(6) ? 3 : 2;
  for (int64_t i = 0; i < spatial; ++i) shape.push_back(g.Between(1, spatial == 3 ? 4 : kSpaceMax));
  return g.Operand(g.OneIn(8) ? DType::kFloat16 : DType::kFloat32, shape);
}

Attributes WindowOf(Grower& g, int64_t spatial, bool dilations) {
  Attributes attributes;
  const auto draw = [&](int64_t count, int64_t low, int64_t high) {
    Ints numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(g.Between(low, high));
    return numbers;
  };
  if (g.OneIn(2)) attributes["strides"] = draw(spatial, 1, 3);
  if (dilations && g.OneIn(3)) attributes["dilations"] = draw(spatial, 1, 2);
  if (g.OneIn(6)) {
    attributes["auto_pad"] = std::string(g.OneIn(2) ? "SAME_UPPER" : "SAME_LOWER");
  } else if (!g.OneIn(3)) {
    attributes["pads"] = draw(2 * spatial, 0, 2);
  }
  return attributes;
}

Ints Kernel(Grower& g, int64_t spatial) {
  Ints kernel;
  for (int64_t i = 0; i < spatial; ++i) kernel.push_back(g.OneIn(3) ? 1 : g.Between(1, 4));
  return kernel;
}

int64_t Groups(Grower& g, int64_t channels) {
  if (g.OneIn(4)) return channels;
  const int64_t groups = g.OneIn(2) ? 1 : g.Between(2, 3);
  return channels % groups == 0 ? groups : 1;
}

void Conv(Grower& g) {
  const ValueId x = Image(g, g.Between(1, 3));
  if (x == kAbsent) return;
  const int64_t channels = g.ShapeOf(x)[1], groups = Groups(g, channels), spatial = g.RankOf(x) - 2;
  Ints weights = {groups * g.Between(1, groups > 3 ? 2 : 9), channels / groups};
  const Ints kernel = Kernel(g, spatial);
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  Attributes attributes = WindowOf(g, spatial, true);
  if (groups > 1) attributes["group"] = groups;
  const DType dtype = g.TypeOf(x).dtype;
  std::vector<ValueId> inputs = {x, g.Operand(dtype, weights)};
  if (g.OneIn(2)) inputs.push_back(g.Operand(dtype, {weights[0]}));
  g.Grow("Conv", inputs, Effect::kRounds, attributes);
}

void ConvTranspose(Grower& g) {
  const ValueId x = Image(g, g.Between(1, 3));
  if (x == kAbsent) return;
  const int64_t channels = g.ShapeOf(x)[1], groups = Groups(g, channels), spatial = g.RankOf(x) - 2;
  Ints weights = {channels, g.Between(1, groups > 3 ? 2 : 9)};
  const Ints kernel = Kernel(g, spatial);
  weights.insert(weights.end(), kernel.begin(), kernel.end());
  Attributes attributes = WindowOf(g, spatial, true);
  if (groups > 1) attributes["group"] = groups;
  if (g.OneIn(4)) attributes["output_padding"] = Ints(static_cast<size_t>(spatial), 1);
  const DType dtype = g.TypeOf(x).dtype;
  std::vector<ValueId> inputs = {x, g.Operand(dtype, weights)};
  if (g.OneIn(2)) inputs.push_back(g.Operand(dtype, {weights[1] * groups}));
  g.Grow("ConvTranspose", inputs, Effect::kRounds, attributes);
}

void IntegerConv(Grower& g) {
  const int64_t channels = g.Between(1, 9);
  const Ints kernel = Kernel(g, 2);
  const DType weights = g.OneIn(2) ? DType::kUInt8 : DType::kInt8;
  std::vector<ValueId> inputs = {g.Operand(DType::kUInt8, {1, channels, g.Between(1, 9), g.Between(1, 9)}),
                                 g.Operand(weights, {g.Between(1, 20), channels, kernel[0], kernel[1]})};
  if (g.OneIn(2)) inputs.push_back(g.Scalar(DType::kUInt8, 3));
  g.Grow("ConvInteger", inputs, Effect::kJumps, WindowOf(g, 2, true));
}

void Pool(Grower& g) {
  constexpr std::string_view kOps[] = {"MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"};
  const ValueId x = Image(g, 1);
  if (x == kAbsent) return;
  const std::string_view op = g.OneOf(kOps);
  const int64_t spatial = g.RankOf(x) - 2;
  Attributes attributes = WindowOf(g, spatial, op == "MaxPool");
  attributes["kernel_shape"] = Kernel(g, spatial);
  if (g.OneIn(3)) attributes["ceil_mode"] = int64_t{1};
  if (op == "AveragePool" && g.OneIn(2)) attributes["count_include_pad"] = int64_t{1};
  const bool places = op == "MaxPool" && g.OneIn(3);
  g.Grow(op, {x},
         places            ? Effect::kJumps
         : op == "MaxPool" ? Effect::kMoves
                           : Effect::kRounds,
         attributes, places ? 2 : 1);
}

void GlobalPool(Grower& g) {
  constexpr std::string_view kOps[] = {"GlobalMaxPool", "GlobalAveragePool", "GlobalAveragePool", "GlobalLpPool"};
  const ValueId x = Image(g, 1);
  if (x != kAbsent) g.Grow(g.OneOf(kOps), {x}, Effect::kRounds);
}

constexpr Recipe kContractionRecipes[] = {{8, MatMul},        {3, Gemm}, {2, Einsum},
                                          {2, IntegerMatMul}, {9, Conv}, {4, ConvTranspose},
                                          {2, IntegerConv},   {4, Pool}, {2, GlobalPool}};

}  // namespace

std::span<const Recipe> ContractionRecipes() { return kContractionRecipes; }

}  // namespace hone::fuzz
