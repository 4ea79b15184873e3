// SPDX-License-Identifier: Apache-2.0
// CropAndResize of com.microsoft: regions of images, each resized to one size.
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

absl::StatusOr<Dims> ReadCropSize(const OpArgs& args) {
  if (Rank(args.inputs[0]) != 4) return Malformed("input 0 must be [batch, channels, height, width]");
  const Shape& regions = args.inputs[1]->shape;
  if (regions.size() != 2 || regions[1] != 4 || args.inputs[1]->dtype != args.inputs[0]->dtype) {
    return Malformed("the regions (input 1) must be 4 numbers each, of the type of input 0");
  }
  if (args.inputs[2]->shape != Shape{regions[0]} || !ir::IsInt(args.inputs[2]->dtype)) {
    return Malformed("the batch indices (input 2) must be one integer per region");
  }
  HONE_ASSIGN_OR_RETURN(const Dims size, args.ConstantInts(3));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kDimensionMax || size[1] > kDimensionMax) {
    return Malformed("the size (input 3) must be a positive height and width");
  }
  HONE_RETURN_IF_ERROR(CheckConstantIndices(args, 2, {args.inputs[0]->shape[0]}));
  return size;
}

// Inputs: x, regions [n, 4] (y1, x1, y2, x2 in fractions of the last row and column), batch indices [n], size of the
// crops. Samples outside the image are attribute extrapolation_value.
OpResult CropAndResize(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const Dims size, ReadCropSize(args));
  const std::string mode = args.String("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest") {
    return Malformed(fmt::format("attribute mode is '{}'; it must be bilinear or nearest", mode));
  }
  const Buffer& x = args.inputs[0];
  if (Product(x->shape) == 0) return Malformed("input 0 is empty");
  const DType wide = ComputeType(x->dtype);
  const double outside = args.Float("extrapolation_value", 0);
  const auto coordinate = [&](const Expr& region, size_t axis, const Expr& place) {
    const Expr low = Read(args.inputs[1], {region, Expr(static_cast<int64_t>(axis))});
    const Expr high = Read(args.inputs[1], {region, Expr(static_cast<int64_t>(axis) + 2)});
    const Expr last = Number(wide, x->shape[axis + 2] - 1);
    if (size[axis] == 1) return Number(wide, 0.5) * (low + high) * last;
    const Expr step = (high - low) * last / Number(wide, static_cast<double>(size[axis] - 1));
    return low * last + To(wide, place) * step;
  };
  const auto index = [&](const Expr& position, size_t axis) {
    const Expr last(x->shape[axis + 2] - 1);
    return Min(Max(To(DType::kInt64, position), Expr(0)), last);
  };
  const Shape shape = {args.inputs[1]->shape[0], x->shape[1], size[0], size[1]};
  return Buffers{Map(builder, "crop", x->dtype, shape, [&](Indices i) {
    const Expr batch = ReadIndex(args.inputs[2], {i[0]}, x->shape[0]);
    const Expr y = coordinate(i[0], 0, i[2]), column = coordinate(i[0], 1, i[3]);
    const auto inside = [&](const Expr& position, size_t axis) {
      return position >= Number(wide, 0) && position <= Number(wide, x->shape[axis + 2] - 1);
    };
    const auto read = [&](const Expr& row, const Expr& col) {
      return Read(x, {batch, i[1], index(row, 0), index(col, 1)});
    };
    const auto floor = [](const Expr& v) { return MakeUnary(ir::UnaryOp::kFloor, v); };
    const auto ceil = [](const Expr& v) { return MakeUnary(ir::UnaryOp::kCeil, v); };
    Expr value;
    if (mode == "nearest") {
      const Expr half = Number(wide, 0.5);
      value = read(floor(y + half), floor(column + half));
    } else {
      const Expr down = y - floor(y), right = column - floor(column);
      const auto mix = [&](const Expr& a, const Expr& b, const Expr& part) { return a + (b - a) * part; };
      const Expr top = mix(read(floor(y), floor(column)), read(floor(y), ceil(column)), right);
      const Expr bottom = mix(read(ceil(y), floor(column)), read(ceil(y), ceil(column)), right);
      value = mix(top, bottom, down);
    }
    return MakeSelect(inside(y, 0) && inside(column, 1), value, Number(wide, outside));
  })};
}

// The range for random test data: regions inside the image, batch indices in range.
void CropRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input == 0) return;
  *low = 0;
  if (input == 1) return;
  *high = Rank(args.inputs[0]) == 4 ? static_cast<double>(std::max<int64_t>(args.inputs[0]->shape[0].max() - 1, 0)) : 0;
}

constexpr OpDef kCropOps[] = {
    {"CropAndResize", Checked<CropAndResize, 4, Elements::kFloat>, {}, CropRange},
};

}  // namespace

std::span<const OpDef> CropOps() { return kCropOps; }

}  // namespace hone::graph
