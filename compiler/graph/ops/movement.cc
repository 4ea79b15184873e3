// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

OpResult Transpose(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const size_t rank = Rank(x);
  Dims order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = static_cast<int64_t>(rank - 1 - d);
  order = args.Ints("perm", order);
  HONE_ASSIGN_OR_RETURN(Dims sorted, NormalizeAxes(order, rank));
  if (sorted.size() != rank) return Malformed(fmt::format("attribute perm has {} axes, not {}", sorted.size(), rank));
  Shape shape(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (order[d] < 0) order[d] += static_cast<int64_t>(rank);
    shape[d] = x->shape[static_cast<size_t>(order[d])];
  }
  return Buffers{Map(builder, "transpose", x->dtype, shape, [&](Indices i) {
    Exprs source(rank);
    for (size_t d = 0; d < rank; ++d) source[static_cast<size_t>(order[d])] = i[d];
    return Read(x, std::move(source));
  })};
}

// Reads the element at i of the parts, concatenated along `axis`: a balanced tree of Selects over [begin, end).
Expr ReadConcat(std::span<const Buffer> parts, std::span<const Size> offsets, size_t axis, Indices i) {
  if (parts.size() == 1) {
    Exprs source(i.begin(), i.end());
    if (offsets[0] != 0) source[axis] = source[axis] - Expr(offsets[0]);
    return Read(parts[0], std::move(source));
  }
  const size_t half = parts.size() / 2;
  return MakeSelect(i[axis] < Expr(offsets[half]), ReadConcat(parts.first(half), offsets.first(half), axis, i),
                    ReadConcat(parts.subspan(half), offsets.subspan(half), axis, i));
}

OpResult Concat(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  if (args.node.opset >= 4 && !HasAttribute(args, "axis")) return Malformed("attribute axis is missing");
  Shape shape = args.inputs[0]->shape;
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 1), shape.size()));
  const size_t a = static_cast<size_t>(axis);
  Buffers parts;
  Shape offsets;
  shape[a] = 0;
  for (size_t k = 0; k < args.inputs.size(); ++k) {
    if (!args.Has(k)) return Malformed(fmt::format("input {} is missing", k));
    Shape other = args.inputs[k]->shape;
    const Size extent = other.size() > a ? other[a] : 0;
    if (other.size() > a) other[a] = shape[a];
    if (other != shape) {
      return Malformed(fmt::format("input {} has shape [{}], which differs from input 0 outside axis {}", k,
                                   fmt::join(args.inputs[k]->shape, ","), axis));
    }
    if (extent != 0) {
      parts.push_back(args.inputs[k]);
      offsets.push_back(shape[a]);
    }
    shape[a] += extent;
  }
  if (parts.empty()) return Buffers{args.inputs[0]};
  if (parts.size() == 1) return Buffers{parts[0]};
  return Buffers{
      Map(builder, "concat", parts[0]->dtype, shape, [&](Indices i) { return ReadConcat(parts, offsets, a, i); })};
}

// The sizes of the parts: from the attribute, from the input (opset 13), or equal ones, of which the last may be
// smaller.
absl::StatusOr<Shape> SplitSizes(const OpArgs& args, const Size& extent) {
  const int64_t count = static_cast<int64_t>(args.node.outputs.size());
  if (count == 0) return Malformed("there are no outputs");
  Shape sizes;
  if (HasAttribute(args, "split")) {
    sizes = args.Ints("split", {});
  } else if (args.Has(1)) {
    HONE_ASSIGN_OR_RETURN(sizes, args.ConstantSizes(1));
  } else {
    const bool uneven = HasAttribute(args, "num_outputs");
    if (!uneven && !Divides(count, extent))
      return Malformed(fmt::format("a dimension of {} does not split into {} equal parts", extent, count));
    const Size chunk = uneven ? CeilDiv(extent, count) : ExactQuotient(extent, count);
    Size left = extent;
    for (int64_t k = 0; k < count; ++k, left -= sizes.back()) sizes.push_back(Min(chunk, left));
  }
  bool fits = static_cast<int64_t>(sizes.size()) == count;
  Size left = extent;
  for (const Size& size : sizes) {
    fits = fits && size.min() >= 0 && AlwaysAtMost(size, left);
    if (fits) left -= size;
  }
  if (!fits || left != 0) {
    return Malformed(
        fmt::format("the split [{}] is not {} sizes that sum to {}", fmt::join(sizes, ","), count, extent));
  }
  return sizes;
}

OpResult Split(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(args.Int("axis", 0), Rank(x)));
  const size_t a = static_cast<size_t>(axis);
  HONE_ASSIGN_OR_RETURN(const Shape sizes, SplitSizes(args, x->shape[a]));
  Buffers outputs;
  Size offset = 0;
  for (size_t k = 0; k < sizes.size(); ++k) {
    Shape shape = x->shape;
    shape[a] = sizes[k];
    const auto part = [&] {
      return Map(builder, "split", x->dtype, shape, [&](Indices i) {
        Exprs source(i.begin(), i.end());
        if (offset != 0) source[a] = source[a] + Expr(offset);
        return Read(x, std::move(source));
      });
    };
    outputs.push_back(!IsOutputUsed(args, k) ? nullptr : shape == x->shape ? x : part());
    offset += sizes[k];
  }
  return outputs;
}

// Attributes before opset 10, constant inputs since.
absl::StatusOr<Shape> SlicePart(const OpArgs& args, std::string_view name, size_t input) {
  if (HasAttribute(args, name)) return Shape(args.Ints(name, {}));
  if (args.Has(input)) return args.ConstantSizes(input);
  return Shape{};
}

struct Range {
  Size start;
  int64_t step;
  Size length;
};

Size Clamp(const Size& value, const Size& low, const Size& high) { return Max(Min(value, high), low); }

// As Python slices: negative positions count from the end, and all are clamped. One difference: a start before the
// first element is clamped to the first element for negative steps too, as ONNX specifies; Python's slice is empty.
absl::StatusOr<Range> SliceRange(Size start, Size end, int64_t step, const Size& extent) {
  for (Size* position : {&start, &end}) {
    if (position->max() < 0) {
      *position += extent;
    } else if (position->min() < 0) {
      return Unsupported(fmt::format("position {} may be negative or not, depending on an open size", *position));
    }
  }
  if (step > 0) {
    start = Clamp(start, 0, extent);
    end = Clamp(end, 0, extent);
    return Range{start, step, CeilDiv(Max(end - start, 0), step)};
  }
  start = Clamp(start, Min(0, extent - 1), extent - 1);
  end = Clamp(end, -1, extent - 1);
  return Range{start, step, CeilDiv(Max(start - end, 0), -step)};
}

OpResult Slice(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const Shape starts, SlicePart(args, "starts", 1));
  HONE_ASSIGN_OR_RETURN(const Shape ends, SlicePart(args, "ends", 2));
  HONE_ASSIGN_OR_RETURN(const Shape given_axes, SlicePart(args, "axes", 3));
  HONE_ASSIGN_OR_RETURN(const Shape given_steps, SlicePart(args, "steps", 4));
  HONE_ASSIGN_OR_RETURN(Dims axes, FixedSizes(given_axes, "an axis"));
  HONE_ASSIGN_OR_RETURN(Dims steps, FixedSizes(given_steps, "a step"));
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    return Malformed("starts, ends, axes and steps differ in length");
  }
  HONE_RETURN_IF_ERROR(NormalizeAxes(axes, Rank(x)).status());
  Shape shape = x->shape;
  std::vector<Range> ranges;
  for (const Size& extent : shape) ranges.push_back({0, 1, extent});
  for (size_t k = 0; k < axes.size(); ++k) {
    if (steps[k] == 0 || steps[k] == std::numeric_limits<int64_t>::min()) {
      return Malformed(fmt::format("a step of {} is not allowed", steps[k]));
    }
    const size_t d = static_cast<size_t>(axes[k] < 0 ? axes[k] + static_cast<int64_t>(Rank(x)) : axes[k]);
    HONE_ASSIGN_OR_RETURN(ranges[d], SliceRange(starts[k], ends[k], steps[k], x->shape[d]));
    shape[d] = ranges[d].length;
  }
  const bool all =
      std::all_of(ranges.begin(), ranges.end(), [](const Range& r) { return r.start == 0 && r.step == 1; });
  if (all && shape == x->shape) return Buffers{x};
  return Buffers{Map(builder, "slice", x->dtype, shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    for (size_t d = 0; d < source.size(); ++d) {
      if (ranges[d].step != 1) source[d] = source[d] * Expr(ranges[d].step);
      if (ranges[d].start != 0) source[d] = source[d] + Expr(ranges[d].start);
    }
    return Read(x, std::move(source));
  })};
}

OpResult Expand(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(Shape shape, args.ConstantSizes(1));
  HONE_RETURN_IF_ERROR(CheckNotNegative(shape));
  HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(x->shape, shape));
  if (shape == x->shape) return Buffers{x};
  return Buffers{Map(builder, "expand", x->dtype, shape, [&](Indices i) { return ReadBroadcast(x, i); })};
}

OpResult Tile(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const Shape repeats, args.ConstantSizes(1));
  if (repeats.size() != Rank(x)) {
    return Malformed(fmt::format("the repeats (input 1) are {} numbers, not {}", repeats.size(), Rank(x)));
  }
  Shape shape = x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d].min() < 0)
      return Malformed(fmt::format("the repeats (input 1) contain {}; they must not be negative", repeats[d]));
    shape[d] *= repeats[d];
  }
  if (shape == x->shape) return Buffers{x};
  return Buffers{Map(builder, "tile", x->dtype, shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    for (size_t d = 0; d < source.size(); ++d) {
      const Size extent = x->shape[d];
      if (repeats[d] != 1) source[d] = extent.max() <= 1 ? Expr(0) : FloorMod(i[d], Expr(extent));
    }
    return Read(x, std::move(source));
  })};
}

struct Padding {
  Shape before, after;  // per dimension; negative numbers crop
};

absl::StatusOr<Padding> ReadPadding(const OpArgs& args) {
  const size_t rank = Rank(args.inputs[0]);
  const bool first_version = HasAttribute(args, "paddings");
  HONE_ASSIGN_OR_RETURN(const Shape pads, SlicePart(args, first_version ? "paddings" : "pads", 1));
  Dims axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (args.Has(3)) {
    HONE_ASSIGN_OR_RETURN(axes, args.ConstantInts(3));
    HONE_RETURN_IF_ERROR(NormalizeAxes(axes, rank).status());
  }
  if (pads.size() != 2 * axes.size()) {
    return Malformed(fmt::format("there are {} pads for {} axes; two per axis are needed", pads.size(), axes.size()));
  }
  for (const Size& pad : pads) {
    if (pad.min() < -kDimensionMax || pad.max() > kDimensionMax)
      return Malformed(
          fmt::format("the pads contain {}; they must be from {} to {}", pad, -kDimensionMax, kDimensionMax));
  }
  Padding padding{Shape(rank, 0), Shape(rank, 0)};
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t d = static_cast<size_t>(axes[k] < 0 ? axes[k] + static_cast<int64_t>(rank) : axes[k]);
    padding.before[d] = pads[k];
    padding.after[d] = pads[axes.size() + k];
    const Size extent = args.inputs[0]->shape[d];
    // Padding on one side does not compensate for cropping on the other.
    if ((extent + Min(padding.before[d], 0) + Min(padding.after[d], 0)).min() < 0) {
      return Malformed(
          fmt::format("pads {} and {} take more than dimension {} has", pads[k], pads[axes.size() + k], d));
    }
  }
  return padding;
}

// Returns the position in [0, extent) that an outside position is mapped to; `position` itself if mode is constant.
// pad_max: the most elements on a side. If it is less than the extent (wrap: not more), no remainder is computed. Its
// division by an open extent would take ten times as long as the copy.
Expr PadSource(const std::string& mode, const Expr& position, const Size& extent, int64_t pad_max) {
  if (mode == "edge") return Min(Max(position, Expr(0)), Expr(extent - 1));
  if (mode == "wrap") {
    if (pad_max > extent.min()) return FloorMod(position, Expr(extent));
    const Expr beyond = MakeSelect(position >= Expr(extent), position - Expr(extent), position);
    return MakeSelect(position < Expr(0), position + Expr(extent), beyond);
  }
  if (mode == "reflect") {
    if (extent == 1) return Expr(0);
    const Expr round(2 * (extent - 1));
    const Expr folded = pad_max < extent.min() ? Max(position, Expr(0) - position) : FloorMod(position, round);
    return Min(folded, round - folded);
  }
  return position;
}

OpResult PadBy(const OpArgs& args, StageBuilder& builder, const std::string& mode, const Padding& padding,
               const Expr& fill) {
  const Buffer& x = args.inputs[0];
  Shape shape = x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    shape[d] += padding.before[d] + padding.after[d];
    if (mode != "constant" && x->shape[d].min() == 0 && shape[d] != 0) {
      return Malformed(fmt::format("mode {} needs at least one element in dimension {}", mode, d));
    }
  }
  const auto none = [](const Shape& pads) {
    return std::all_of(pads.begin(), pads.end(), [](const Size& n) { return n == 0; });
  };
  if (none(padding.before) && none(padding.after)) return Buffers{x};
  return Buffers{Map(builder, "pad", x->dtype, shape, [&](Indices i) {
    Exprs source(i.begin(), i.end());
    Expr inside;
    auto require = [&](Expr condition) { inside = inside.defined() ? inside && condition : condition; };
    for (size_t d = 0; d < shape.size(); ++d) {
      const Size &before = padding.before[d], &after = padding.after[d];
      if (before != 0) source[d] = source[d] - Expr(before);
      if (before.max() <= 0 && after.max() <= 0) continue;
      if (mode == "constant") {
        if (before.max() > 0) require(source[d] >= Expr(0));
        if (after.max() > 0) require(source[d] < Expr(x->shape[d]));
      }
      source[d] = PadSource(mode, source[d], x->shape[d], std::max(before.max(), after.max()));
    }
    if (!inside.defined()) return Read(x, std::move(source));
    return MakeSelect(inside, Read(x, std::move(source)), fill);
  })};
}

OpResult Pad(const OpArgs& args, StageBuilder& builder) {
  const std::string mode = args.String("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return Malformed(fmt::format("attribute mode is '{}'; it must be constant, reflect, edge or wrap", mode));
  }
  if (args.Has(2) && (args.inputs[2]->dtype != args.inputs[0]->dtype || Product(args.inputs[2]->shape) != 1)) {
    return Malformed("the constant_value (input 2) must be one element of the type of input 0");
  }
  HONE_ASSIGN_OR_RETURN(Padding padding, ReadPadding(args));
  const DType dtype = ComputeType(args.inputs[0]->dtype);
  const Expr fill = args.Has(2) ? ReadScalar(args.inputs[2]) : Number(dtype, args.Float("value", 0));
  return PadBy(args, builder, mode, padding, fill);
}

OpResult CenterCropPad(const OpArgs& args, StageBuilder& builder) {
  const Shape& from = args.inputs[0]->shape;
  HONE_ASSIGN_OR_RETURN(const Shape target, args.ConstantSizes(1));
  Dims axes(from.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = args.Ints("axes", axes);
  HONE_RETURN_IF_ERROR(NormalizeAxes(axes, from.size()).status());
  if (axes.size() != target.size()) return Malformed("the shape (input 1) must have one number per axis");
  Padding padding{Shape(from.size(), 0), Shape(from.size(), 0)};
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t d = static_cast<size_t>(axes[k] < 0 ? axes[k] + static_cast<int64_t>(from.size()) : axes[k]);
    if (target[k].min() < 0)
      return Malformed(fmt::format("the shape (input 1) contains {}; sizes must not be negative", target[k]));
    const Size change = target[k] - from[d];
    // Rounds towards zero, so that a crop starts at floor(surplus / 2) as well.
    if (change.min() < 0 && change.max() > 0) {
      return Unsupported(fmt::format("dimension {} is cropped or padded, depending on an open size", d));
    }
    padding.before[d] = change.max() > 0 ? change / 2 : 0 - (0 - change) / 2;
    padding.after[d] = change - padding.before[d];
  }
  return PadBy(args, builder, "constant", padding, Number(ComputeType(args.inputs[0]->dtype), 0));
}

absl::StatusOr<int64_t> BlockSize(const OpArgs& args) {
  const int64_t block = args.Int("blocksize", 0);
  if (Rank(args.inputs[0]) != 4) return Malformed("input 0 must have 4 dimensions");
  if (block < 1 || block > kDimensionMax)
    return Malformed(fmt::format("attribute blocksize is {}; it must be from 1 to {}", block, kDimensionMax));
  return block;
}

OpResult DepthToSpace(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(int64_t block, BlockSize(args));
  const Buffer& x = args.inputs[0];
  const std::string mode = args.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return Malformed(fmt::format("attribute mode is '{}', not DCR or CRD", mode));
  if (!Divides(block * block, x->shape[1])) return Malformed("the channels do not divide into blocks");
  const Size channels = x->shape[1] / (block * block);
  const Shape shape = {x->shape[0], channels, x->shape[2] * block, x->shape[3] * block};
  return Buffers{Map(builder, "depth_to_space", x->dtype, shape, [&](Indices i) {
    const Expr size(block);
    Expr within = FloorMod(i[2], size) * size + FloorMod(i[3], size);
    Expr channel = mode == "DCR" ? within * Expr(channels) + i[1] : i[1] * Expr(block * block) + within;
    return Read(x, {i[0], channel, FloorDiv(i[2], size), FloorDiv(i[3], size)});
  })};
}

OpResult SpaceToDepth(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(int64_t block, BlockSize(args));
  const Buffer& x = args.inputs[0];
  if (!Divides(block, x->shape[2]) || !Divides(block, x->shape[3]))
    return Malformed("the plane does not divide into blocks");
  const Size channels = x->shape[1];
  const Shape shape = {x->shape[0], channels * (block * block), x->shape[2] / block, x->shape[3] / block};
  return Buffers{Map(builder, "space_to_depth", x->dtype, shape, [&](Indices i) {
    const Expr size(block);
    Expr within = FloorDiv(i[1], Expr(channels));
    return Read(x, {i[0], FloorMod(i[1], Expr(channels)), i[2] * size + FloorDiv(within, size),
                    i[3] * size + FloorMod(within, size)});
  })};
}

OpResult Trilu(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  if (Rank(x) < 2) return Malformed("input 0 must be at least a matrix");
  if (args.Has(1) && Product(args.inputs[1]->shape) != 1) return Malformed("k (input 1) must be one number");
  const bool upper = args.Int("upper", 1) != 0;
  return Buffers{Map(builder, "trilu", x->dtype, x->shape, [&](Indices i) {
    Expr diagonal = args.Has(1) ? To(DType::kInt64, ReadScalar(args.inputs[1])) : Expr(0);
    Expr distance = i[i.size() - 1] - i[i.size() - 2];
    return MakeSelect(upper ? distance >= diagonal : distance <= diagonal, ReadHere(x, i),
                      Number(ComputeType(x->dtype), 0));
  })};
}

constexpr OpDef kMovementOps[] = {
    {"CenterCropPad", Checked<CenterCropPad, 2>, {.movement = Movement::kOnce}},
    {"Concat", Checked<Concat, 1>, {.axes = {AxisForm::kAxis, 1}, .movement = Movement::kOnce}},
    {"DepthToSpace", Checked<DepthToSpace, 1>, {.movement = Movement::kOnce}},
    {"Expand", Checked<Expand, 2>},
    {"Pad", Checked<Pad, 1>, {.axes = {AxisForm::kPads}, .movement = Movement::kOnce}},
    {"Slice", Checked<Slice, 1>, {.axes = {AxisForm::kSlice}, .movement = Movement::kOnce}},
    {"SpaceToDepth", Checked<SpaceToDepth, 1>, {.movement = Movement::kOnce}},
    {"Split", Checked<Split, 1>, {.axes = {AxisForm::kAxis}, .movement = Movement::kOnce}},
    {"Tile", Checked<Tile, 2>},
    {"Transpose", Checked<Transpose, 1>, {.movement = Movement::kOnce}},
    {"Trilu", Checked<Trilu, 1>},
};

}  // namespace

std::span<const OpDef> MovementOps() { return kMovementOps; }

}  // namespace hone::graph
