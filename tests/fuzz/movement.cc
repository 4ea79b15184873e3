// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <span>

#include "tests/fuzz/recipes.h"

namespace hone::fuzz {
namespace {

using graph::kAbsent;
using ir::DType;

int64_t AxisOf(Grower& g, ValueId x) { return g.Between(-g.RankOf(x), g.RankOf(x) - 1); }
int64_t& At(Ints& shape, int64_t axis) {
  return shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
}

void Transpose(Grower& g) {
  const ValueId x = g.PickAny();
  Ints order(g.ShapeOf(x).size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(g.Below(static_cast<int64_t>(i)))]);
  g.Grow("Transpose", {x}, Effect::kMoves, {{"perm", order}});
}

// Returns another shape with the same number of elements, made by splitting and joining dimensions at random.
Ints OtherShape(Grower& g, const TensorType& type) {
  Ints shape;
  for (int64_t rest = type.elements().value(); shape.size() < 4;) {
    Ints divisors;
    for (int64_t d = 1; d <= rest; ++d) {
      if (rest % d == 0) divisors.push_back(d);
    }
    shape.push_back(g.OneIn(3) ? rest : g.OneOf(std::span<const int64_t>(divisors)));
    rest /= shape.back();
    if (rest == 1 && g.OneIn(2)) return shape;
    if (shape.size() == 4) shape.back() *= rest;
  }
  return shape;
}

void Reshape(Grower& g) {
  const ValueId x = g.PickAny();
  Ints shape = OtherShape(g, g.TypeOf(x));
  if (g.HasOpenSizes()) {  // a size of 0 would mean the input's dimension
    g.Grow("Reshape", {x, g.Numbers(shape)}, Effect::kMoves, {{"allowzero", int64_t{1}}});
    return;
  }
  if (g.OneIn(3)) shape[static_cast<size_t>(g.Below(static_cast<int64_t>(shape.size())))] = -1;
  g.Grow("Reshape", {x, g.Numbers(shape)}, Effect::kMoves);
}

void Flatten(Grower& g) {
  const ValueId x = g.PickAny();
  g.Grow("Flatten", {x}, Effect::kMoves, {{"axis", g.Between(0, g.RankOf(x))}});
}

void Unsqueeze(Grower& g) {
  const ValueId x = g.PickAny();
  g.Grow("Unsqueeze", {x, g.Numbers({g.Between(-g.RankOf(x) - 1, g.RankOf(x))})}, Effect::kMoves);
}

void Squeeze(Grower& g) {
  const ValueId x = g.Pick([&](ValueId id) { return std::ranges::count(g.ShapeOf(id), 1) > 0; });
  if (x == kAbsent) return;
  if (g.OneIn(2)) {
    g.Grow("Squeeze", {x}, Effect::kMoves);
  } else {
    const Ints shape = g.ShapeOf(x);
    g.Grow("Squeeze", {x, g.Numbers({std::ranges::find(shape, 1) - shape.begin()})}, Effect::kMoves);
  }
}

void Slice(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  Ints starts, ends, axes, steps;
  for (int64_t axis = 0; axis < g.RankOf(x); ++axis) {
    if (g.OneIn(2)) continue;
    const int64_t extent = g.ShapeOf(x)[static_cast<size_t>(axis)], step = g.Between(1, 3);
    const int64_t begin = g.Below(extent), end = g.Between(begin + 1, extent + 2);
    const bool back = g.OneIn(3);
    axes.push_back(g.OneIn(3) ? axis - g.RankOf(x) : axis);
    starts.push_back(back ? end - 1 : g.OneIn(3) ? begin - extent : begin);
    ends.push_back(back ? begin - 1 - extent : end);
    steps.push_back(back ? -step : step);
  }
  if (!axes.empty()) {
    g.Grow("Slice", {x, g.Numbers(starts), g.Numbers(ends), g.Numbers(axes), g.Numbers(steps)}, Effect::kMoves);
  }
}

void Concat(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  const int64_t axis = AxisOf(g, x);
  std::vector<ValueId> parts = {x};
  while (parts.size() < 2 || g.OneIn(3)) {
    Ints shape = g.ShapeOf(x);
    if (g.OneIn(2)) At(shape, axis) = g.Between(1, 5);
    parts.push_back(g.Operand(g.TypeOf(x).dtype, shape));
  }
  if (g.OneIn(2)) std::swap(parts.front(), parts.back());
  g.Grow("Concat", parts, Effect::kMoves, {{"axis", axis}});
}

void Split(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  const int64_t axis = AxisOf(g, x);
  Ints shape = g.ShapeOf(x), sizes;
  int64_t rest = At(shape, axis);
  while (rest > 0 && sizes.size() < 3) {
    sizes.push_back(sizes.size() == 2 ? rest : g.Between(1, rest));
    rest -= sizes.back();
  }
  g.Grow("Split", {x, g.Numbers(sizes)}, Effect::kMoves, {{"axis", axis}}, sizes.size());
}

void Pad(Grower& g) {
  constexpr std::string_view kModes[] = {"constant", "constant", "reflect", "edge", "wrap"};
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  const std::string mode(g.OneOf(kModes));
  Ints pads;
  for (int64_t i = 0; i < 2 * g.RankOf(x); ++i)
    pads.push_back(g.OneIn(2) ? 0 : g.Between(mode == "constant" ? -1 : 0, 3));
  std::vector<ValueId> inputs = {x, g.Numbers(pads)};
  if (mode == "constant" && g.OneIn(2)) inputs.push_back(g.Scalar(g.TypeOf(x).dtype, 1));
  g.Grow("Pad", inputs, Effect::kMoves, {{"mode", mode}});
}

void Expand(Grower& g) {
  const ValueId x = g.PickAny();
  Ints shape = g.ShapeOf(x);
  for (int64_t& extent : shape) {
    if (extent == 1) extent = g.Extent();
  }
  if (g.OneIn(2)) shape.insert(shape.begin(), g.Between(1, 3));
  g.Grow("Expand", {x, g.Numbers(shape)}, Effect::kMoves);
}

void Tile(Grower& g) {
  const ValueId x = g.PickAny();
  Ints repeats;
  for (int64_t i = 0; i < g.RankOf(x); ++i) repeats.push_back(g.OneIn(2) ? 1 : g.Between(1, 3));
  g.Grow("Tile", {x, g.Numbers(repeats)}, Effect::kMoves);
}

// Returns indices of this shape into an axis with at least `extent` elements; negative ones count from the end.
ValueId Indices(Grower& g, const Ints& shape, int64_t extent) {
  if (g.OneIn(4)) return g.Operand(DType::kInt64, shape);
  return g.Constant(g.OneIn(2) ? DType::kInt64 : DType::kInt32, shape, static_cast<double>(-extent),
                    static_cast<double>(extent - 1));
}

void Gather(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  const int64_t axis = AxisOf(g, x);
  Ints least = g.LeastShapeOf(x);
  if (At(least, axis) == 0) return;
  g.Grow("Gather", {x, Indices(g, g.Shape(0, 2), At(least, axis))}, Effect::kMoves, {{"axis", axis}});
}

void GatherElements(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  const int64_t axis = AxisOf(g, x);
  Ints shape = g.ShapeOf(x), least = g.LeastShapeOf(x);
  const int64_t extent = At(least, axis);
  if (extent == 0) return;
  At(shape, axis) = g.Between(1, 5);
  g.Grow("GatherElements", {x, Indices(g, shape, extent)}, Effect::kMoves, {{"axis", axis}});
}

void GatherND(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  Ints shape = g.Shape(1, 2);
  shape.back() = g.Between(1, g.RankOf(x));
  const Ints least = g.LeastShapeOf(x);
  if (std::ranges::count(std::span(least).first(static_cast<size_t>(shape.back())), 0) > 0) return;
  g.Grow("GatherND", {x, Indices(g, shape, 1)}, Effect::kMoves);
}

void ScatterElements(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  const int64_t axis = AxisOf(g, x);
  Ints shape = g.ShapeOf(x), least = g.LeastShapeOf(x);
  const int64_t extent = At(least, axis);
  if (extent == 0) return;
  At(shape, axis) = g.Between(1, 4);
  g.Grow("ScatterElements", {x, Indices(g, shape, extent), g.Operand(g.TypeOf(x).dtype, shape)}, Effect::kMoves,
         {{"axis", axis}});
}

void Blocks(Grower& g) {
  const ValueId x = g.PickAny(4);
  if (x == kAbsent) return;
  const int64_t block = g.Between(2, 3);
  if (g.OneIn(2)) {
    g.Grow("SpaceToDepth", {x}, Effect::kMoves, {{"blocksize", block}});
  } else {
    g.Grow("DepthToSpace", {x}, Effect::kMoves,
           {{"blocksize", block}, {"mode", std::string(g.OneIn(2) ? "DCR" : "CRD")}});
  }
}

void Trilu(Grower& g) {
  const ValueId x = g.PickAny(2);
  if (x == kAbsent) return;
  const ValueId k = g.Scalar(DType::kInt64, static_cast<double>(g.Between(-3, 3)));
  g.Grow("Trilu", {x, k}, Effect::kMoves, {{"upper", g.Below(2)}});
}

void CenterCropPad(Grower& g) {
  const ValueId x = g.PickAny(1);
  if (x == kAbsent) return;
  Ints shape = g.ShapeOf(x);
  for (int64_t& extent : shape) extent = std::max<int64_t>(1, extent + g.Between(-3, 3));
  g.Grow("CenterCropPad", {x, g.Numbers(shape)}, Effect::kMoves);
}

void ReverseSequence(Grower& g) {
  const ValueId x = g.PickAny(2);
  if (x == kAbsent) return;
  const int64_t batch = g.Below(2);
  const Ints shape = g.ShapeOf(x);
  const auto time = static_cast<double>(shape[static_cast<size_t>(1 - batch)]);
  const ValueId lengths = g.Constant(DType::kInt64, {shape[static_cast<size_t>(batch)]}, 1, time);
  g.Grow("ReverseSequence", {x, lengths}, Effect::kMoves, {{"batch_axis", batch}, {"time_axis", 1 - batch}});
}

void OneHot(Grower& g) {
  const ValueId depth = g.Scalar(DType::kInt64, static_cast<double>(g.Between(1, 9)));
  const ValueId values = g.Constant(DType::kFloat32, {2}, -1, 1);
  g.Grow("OneHot", {Indices(g, g.Shape(0, 3), 9), depth, values}, Effect::kMoves, {{"axis", g.Between(-1, 0)}});
}

void Resize(Grower& g) {
  constexpr std::string_view kModes[] = {"nearest", "linear", "linear", "cubic"};
  constexpr std::string_view kTransforms[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
  const ValueId x = g.PickFloat(3, 4);
  if (x == kAbsent) return;
  Ints sizes = g.ShapeOf(x);
  for (size_t i = 2; i < sizes.size(); ++i) sizes[i] = g.Between(1, 9);
  g.Grow(
      "Resize", {x, kAbsent, kAbsent, g.Numbers(sizes)}, Effect::kRounds,
      {{"mode", std::string(g.OneOf(kModes))}, {"coordinate_transformation_mode", std::string(g.OneOf(kTransforms))}});
}

constexpr Recipe kMovementRecipes[] = {{6, Transpose},       {5, Reshape},  {1, Flatten},
                                       {2, Unsqueeze},       {2, Squeeze},  {4, Slice},
                                       {4, Concat},          {3, Split},    {4, Pad},
                                       {2, Expand},          {2, Tile},     {3, Gather},
                                       {1, GatherElements},  {1, GatherND}, {1, ScatterElements},
                                       {2, Blocks},          {1, Trilu},    {1, CenterCropPad},
                                       {1, ReverseSequence}, {1, OneHot},   {2, Resize}};

}  // namespace

std::span<const Recipe> MovementRecipes() { return kMovementRecipes; }

}  // namespace hone::fuzz
