// SPDX-License-Identifier: Apache-2.0
// Images read at positions that the data gives by an affine map or by offsets: AffineGrid, DeformConv.
#include <algorithm>

#include "compiler/graph/ops/bias.h"
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/window.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// --- AffineGrid

// Inputs: theta [batch, 2, 3] or [batch, 3, 4], size [batch, channels, (depth,) height, width]. The grid has, per place
// of the output, theta times its coordinates in [-1, 1], x before y before z, and 1.
OpResult AffineGrid(const OpArgs& args, StageBuilder& builder) {
  const Buffer& theta = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const Dims size, args.ConstantInts(1));
  HONE_RETURN_IF_ERROR(CheckNotNegative(size));
  if (size.size() != 4 && size.size() != 5) return Malformed("the size (input 1) must be 4 or 5 numbers");
  const size_t space = size.size() - 2;
  const int64_t axes = static_cast<int64_t>(space);
  if (theta->shape != Shape{size[0], axes, axes + 1}) {
    return Malformed(fmt::format("theta (input 0) must be [{}, {}, {}] for this size", size[0], axes, axes + 1));
  }
  const bool align_corners = args.Int("align_corners", 0) != 0;
  const DType wide = ComputeType(theta->dtype);
  Dims shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  return Buffers{Map(builder, "affine_grid", theta->dtype, shape, [&](Indices i) {
    Expr sum = Read(theta, {i[0], i.back(), Expr(axes)});
    for (size_t k = 0; k < space; ++k) {  // coordinate k, x first, belongs to the dimension k from the end
      const size_t d = space - 1 - k;
      const double extent = static_cast<double>(size[2 + d]);
      const double step = 2 / (align_corners ? std::max(extent - 1, 1.0) : extent);
      const Expr place = To(wide, i[1 + d]) * Number(wide, step) + Number(wide, align_corners ? -1 : step / 2 - 1);
      sum = sum + Read(theta, {i[0], i.back(), Expr(static_cast<int64_t>(k))}) * place;
    }
    return sum;
  })};
}

// --- DeformConv

struct DeformedConvolution {
  Window window;
  int64_t groups, offset_groups, group_in, group_out;
};

// Inputs: x [batch, channels, space...], weights [out, in of a group, kernel...], offsets [batch, offset groups * taps
// * dimensions, output...], bias (optional), mask [batch, offset groups * taps, output...] (optional).
absl::StatusOr<DeformedConvolution> ReadDeformedConvolution(const OpArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  HONE_ASSIGN_OR_RETURN(const Dims w, FixedSizes(args.inputs[1]->shape, "the weights"));
  if (x.size() < 3 || w.size() != x.size()) return Malformed("inputs 0 and 1 must have one rank of 3 or more");
  DeformedConvolution conv;
  conv.groups = args.Int("group", 1);
  conv.offset_groups = args.Int("offset_group", 1);
  if (conv.groups < 1 || w[0] % conv.groups != 0 || x[1] != w[1] * conv.groups || conv.offset_groups < 1 ||
      !Divides(conv.offset_groups, x[1])) {
    return Malformed(fmt::format("{} channels do not fit weights [{}, {}, ...] in {} groups and {} offset groups", x[1],
                                 w[0], w[1], conv.groups, conv.offset_groups));
  }
  conv.group_in = w[1];
  conv.group_out = w[0] / conv.groups;
  const Dims kernel(w.begin() + 2, w.end());
  if (args.Ints("kernel_shape", kernel) != kernel) {
    return Malformed("attribute kernel_shape differs from the shape of the weights");
  }
  HONE_ASSIGN_OR_RETURN(conv.window, ReadWindow(args, Shape(x.begin() + 2, x.end()), kernel));
  Shape offsets = {x[0], conv.offset_groups * conv.window.taps() * static_cast<int64_t>(kernel.size())};
  offsets.insert(offsets.end(), conv.window.output.begin(), conv.window.output.end());
  if (args.inputs[2]->shape != offsets) return Malformed("the offsets (input 2) do not fit kernel and output");
  offsets[1] = conv.offset_groups * conv.window.taps();
  if (args.Has(4) && args.inputs[4]->shape != offsets) return Malformed("the mask (input 4) does not fit the output");
  HONE_RETURN_IF_ERROR(CheckBias(args, 3, w[0]));
  return conv;
}

// The linear interpolation of the plane of x that `place` begins with, at these positions; 0 outside. `place` has an
// index for batch, channel and the dimensions before the first of `positions`.
Expr InterpolateAt(const Buffer& x, std::span<const Expr> positions, Exprs place) {
  if (positions.empty()) return Read(x, std::move(place));
  const Expr& position = positions[0];
  const Size extent = x->shape[place.size()];
  const Expr base = MakeUnary(ir::UnaryOp::kFloor, position), fraction = position - base;
  Expr sum;
  for (int64_t side = 0; side < 2; ++side) {
    const Expr at = base + Like(base, static_cast<double>(side));
    Exprs next = place;
    next.push_back(Min(Max(To(DType::kInt64, at), Expr(0)), Expr(extent - 1)));  // NaN is mapped inside as well
    const Expr value = InterpolateAt(x, positions.subspan(1), std::move(next));
    const Expr inside = at >= Like(at, 0) && at <= Number(at.type().dtype, extent - 1);
    const Expr weight = side == 0 ? Like(fraction, 1) - fraction : fraction;
    const Expr term = MakeSelect(inside, value * weight, Like(value, 0));
    sum = side == 0 ? term : sum + term;
  }
  return sum;
}

// The value under each tap of each window: [batch, channels, kernel..., output...].
Buffer EmitDeformedColumns(const OpArgs& args, StageBuilder& builder, const DeformedConvolution& conv) {
  const Buffer& x = args.inputs[0];
  const Window& window = conv.window;
  const size_t space = window.kernel.size();
  const DType wide = ComputeType(x->dtype);
  Shape shape = {x->shape[0], x->shape[1]};
  shape.insert(shape.end(), window.kernel.begin(), window.kernel.end());
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  const Expr per_group(x->shape[1] / conv.offset_groups), taps(window.taps());
  return Map(builder, "columns", wide, shape, [&](Indices i) {
    const Indices tap = i.subspan(2, space), output = i.subspan(2 + space);
    const Expr row = FloorDiv(i[1], per_group) * taps + Flatten(tap, window.kernel);
    const auto at_output = [&](const Buffer& buffer, Expr channel) {
      Exprs place = {i[0], std::move(channel)};
      place.insert(place.end(), output.begin(), output.end());
      return Read(buffer, std::move(place));
    };
    Exprs positions;
    for (size_t d = 0; d < space; ++d) {
      const Expr start = output[d] * Expr(window.strides[d]) - Expr(window.before[d]);
      const Expr channel = row * Expr(static_cast<int64_t>(space)) + Expr(static_cast<int64_t>(d));
      positions.push_back(To(wide, start + tap[d] * Expr(window.dilations[d])) + at_output(args.inputs[2], channel));
    }
    const Expr value = InterpolateAt(x, positions, {i[0], i[1]});
    return args.Has(4) ? value * at_output(args.inputs[4], row) : value;
  });
}

OpResult DeformConv(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  HONE_ASSIGN_OR_RETURN(const DeformedConvolution conv, ReadDeformedConvolution(args));
  const Buffer& x = args.inputs[0];
  if (Product(x->shape) == 0) return Malformed("input 0 has no elements to read");
  const Buffer columns = EmitDeformedColumns(args, builder, conv);
  Shape shape = {x->shape[0], args.inputs[1]->shape[0]};
  shape.insert(shape.end(), conv.window.output.begin(), conv.window.output.end());
  Dims extents = conv.window.kernel;
  extents.insert(extents.begin(), conv.group_in);
  const Buffer sum =
      builder.Reduce("deform_conv", ComputeType(x->dtype), shape, extents, Reduction::kSum, [&](Indices i, Indices r) {
        Exprs place = {i[0], FloorDiv(i[1], Expr(conv.group_out)) * Expr(conv.group_in) + r[0]}, weight = {i[1], r[0]};
        for (Exprs* indices : {&place, &weight}) indices->insert(indices->end(), r.begin() + 1, r.end());
        place.insert(place.end(), i.begin() + 2, i.end());
        return Read(columns, std::move(place)) * Read(args.inputs[1], std::move(weight));
      });
  return Buffers{Map(builder, "bias", x->dtype, shape, [&](Indices i) {
    return args.Has(3) ? ReadHere(sum, i) + Read(args.inputs[3], {i[1]}) : ReadHere(sum, i);
  })};
}

constexpr OpDef kWarpOps[] = {
    {"AffineGrid", Checked<AffineGrid, 2, Elements::kFloat>},
    {"DeformConv", Checked<DeformConv, 3, Elements::kFloat>},
};

}  // namespace

std::span<const OpDef> WarpOps() { return kWarpOps; }

}  // namespace hone::graph
