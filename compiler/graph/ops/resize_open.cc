// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/resize_open.h"

#include <cmath>

#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

constexpr DType kCoordinate = DType::kFloat32;  // as in ONNX, so that the same neighbours are chosen

Expr OpenNumber(double value) { return Number(kCoordinate, value); }

// The coordinate in the input of output position o, as in ONNX's formulas.
Expr OpenCoordinate(const OpenResize& resize, const OpenAxis& axis, const Expr& o) {
  const Expr x = To(kCoordinate, o), in = Number(kCoordinate, axis.in), out = Number(kCoordinate, axis.out);
  const Expr scale = axis.scale.has_value() ? OpenNumber(*axis.scale) : out / in;
  const Expr half = OpenNumber(0.5), one = OpenNumber(1);
  const auto unless_one = [&](const Expr& value) { return MakeSelect(out > one, value, OpenNumber(0)); };
  if (resize.transform == "asymmetric") return x / scale;
  if (resize.transform == "tf_half_pixel_for_nn") return (x + half) / scale;
  if (resize.transform == "align_corners") return unless_one(x * (in - one) / Max(out - one, one));
  const Expr centered = (x + half) / scale - half;
  if (resize.transform == "pytorch_half_pixel") return unless_one(centered);
  if (resize.transform == "half_pixel_symmetric") return in * half * (one - out / (scale * in)) + centered;
  return centered;
}

Expr RoundedCoordinate(const std::string& rounding, const Expr& x) {
  if (rounding == "floor") return MakeUnary(ir::UnaryOp::kFloor, x);
  if (rounding == "ceil") return MakeUnary(ir::UnaryOp::kCeil, x);
  if (rounding == "round_prefer_ceil") return MakeUnary(ir::UnaryOp::kFloor, x + OpenNumber(0.5));
  return MakeUnary(ir::UnaryOp::kCeil, x - OpenNumber(0.5));
}

// The whole number s with out == s * in and sources o // s; nullopt if there is none.
std::optional<int64_t> Repetition(const OpenResize& resize, const OpenAxis& axis) {
  if (!ir::Divides(axis.in, axis.out)) return std::nullopt;
  const Size factor = ir::ExactQuotient(axis.out, axis.in);
  if (!factor.IsFixed() || (axis.scale.has_value() && *axis.scale != static_cast<double>(factor.value()))) {
    return std::nullopt;
  }
  const bool centered = resize.transform == "half_pixel" || resize.transform == "pytorch_half_pixel";
  const bool nearest = resize.rounding == "round_prefer_floor" || resize.rounding == "round_prefer_ceil";
  const bool floors = resize.transform == "asymmetric" && resize.rounding == "floor";
  return (centered && nearest) || floors ? std::optional(factor.value()) : std::nullopt;
}

Expr WithinAxis(const Expr& position, const OpenAxis& axis) {
  return Min(Max(To(DType::kInt64, position), Expr(0)), Expr(axis.in - 1));
}

Buffer EmitNearestAxis(StageBuilder& builder, const Buffer& x, const OpenResize& resize, const OpenAxis& axis) {
  Shape shape = x->shape;
  shape[axis.dim] = axis.out;
  const std::optional<int64_t> repetition = Repetition(resize, axis);
  return Map(builder, "resize", x->dtype, shape, [&](Indices i) {
    Exprs place(i.begin(), i.end());
    const Expr& o = i[axis.dim];
    place[axis.dim] = repetition.has_value()
                          ? FloorDiv(o, Expr(*repetition))
                          : WithinAxis(RoundedCoordinate(resize.rounding, OpenCoordinate(resize, axis, o)), axis);
    return Read(x, std::move(place));
  });
}

Buffer EmitLinearAxis(StageBuilder& builder, const Buffer& x, const OpenResize& resize, const OpenAxis& axis) {
  const DType work = ComputeType(x->dtype);
  Shape shape = x->shape;
  shape[axis.dim] = axis.out;
  return Map(builder, "resize", x->dtype, shape, [&](Indices i) {
    const Expr coordinate = OpenCoordinate(resize, axis, i[axis.dim]);
    const Expr base = MakeUnary(ir::UnaryOp::kFloor, coordinate);
    const Expr fraction = To(work, coordinate - base);
    Exprs low(i.begin(), i.end()), high = low;
    low[axis.dim] = WithinAxis(base, axis);
    high[axis.dim] = WithinAxis(base + OpenNumber(1), axis);
    return (Like(fraction, 1) - fraction) * Read(x, std::move(low)) + fraction * Read(x, std::move(high));
  });
}

}  // namespace

absl::StatusOr<Size> ScaledSize(const Size& extent, double scale) {
  constexpr int64_t kDenominatorMax = 64, kExactMax = int64_t{1} << 24;
  for (int64_t denominator = 1; denominator <= kDenominatorMax; ++denominator) {
    const double numerator = scale * static_cast<double>(denominator);
    if (numerator != std::floor(numerator)) continue;
    const Size product = extent * static_cast<int64_t>(numerator);
    if (product.max() > kExactMax) break;
    return FloorDiv(product, denominator);
  }
  return Unsupported(
      fmt::format("a scale of {} for the open size {} is not supported; give the model fixed shapes with "
                  "--shape",
                  scale, extent));
}

Buffer EmitOpenResize(StageBuilder& builder, const Buffer& x, const OpenResize& resize,
                      const std::vector<OpenAxis>& axes) {
  Buffer current = x;
  for (const OpenAxis& axis : axes) {
    current = resize.nearest ? EmitNearestAxis(builder, current, resize, axis)
                             : EmitLinearAxis(builder, current, resize, axis);
  }
  return current;
}

}  // namespace hone::graph
