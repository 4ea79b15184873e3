// SPDX-License-Identifier: Apache-2.0
// MaxRoiPool: the maxima of a grid of bins in regions that the data gives. RoiAlign, which interpolates, is in
// sample.cc.
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

// Rounds halves away from zero.
Expr RoundAway(const Expr& x) {
  const Expr half = Like(x, 0.5);
  const auto floor = [](Expr value) { return MakeUnary(ir::UnaryOp::kFloor, std::move(value)); };
  return MakeSelect(x < Like(x, 0), Negate(floor(half - x)), floor(x + half));
}

// The elements [begin, end) of one dimension that a bin covers; empty outside the image.
struct BinRange {
  Expr begin, end;
};

// `first` is the column of the region's first coordinate along this dimension; the last is two columns on.
BinRange RangeOfBin(const Buffer& rois, const Expr& region, int64_t first, double scale, int64_t bins, const Expr& bin,
                    const Size& extent) {
  const auto corner = [&](int64_t column) {
    const Expr value = Read(rois, {region, Expr(column)});
    return RoundAway(value * Like(value, scale));
  };
  const Expr start = corner(first), wide = Like(start, 1);
  const Expr size = Max(corner(first + 2) - start + wide, wide) / Like(start, static_cast<double>(bins));
  const DType dtype = start.type().dtype;
  const auto clip = [&](const Expr& value) {
    return To(DType::kInt64, Min(Max(value + start, Like(start, 0)), Number(start.type().dtype, extent)));
  };
  const Expr low = MakeUnary(ir::UnaryOp::kFloor, To(dtype, bin) * size);
  const Expr high = MakeUnary(ir::UnaryOp::kCeil, To(dtype, bin + Expr(1)) * size);
  return {clip(low), clip(high)};
}

// Inputs: x [batch, channels, height, width], rois [regions, 5]: index of the batch, x and y of the first corner, x and
// y of the last. Rows are reduced before columns, because a bin is the product of both ranges.
OpResult MaxRoiPool(const OpArgs& args, StageBuilder& builder) {
  HONE_RETURN_IF_ERROR(CheckSameTypes(args));
  const Buffer& x = args.inputs[0];
  const Buffer& rois = args.inputs[1];
  const Dims pooled = args.Ints("pooled_shape", {});
  const double scale = args.Float("spatial_scale", 1);
  if (Rank(x) != 4 || Product(x->shape) == 0) return Malformed("input 0 must have 4 dimensions that are not 0");
  if (Rank(rois) != 2 || rois->shape[1] != 5) return Malformed("the regions (input 1) must be [regions, 5]");
  if (pooled.size() != 2 || std::min(pooled[0], pooled[1]) < 1 || std::max(pooled[0], pooled[1]) > kDimensionMax) {
    return Malformed("attribute pooled_shape must be two positive numbers");
  }
  const DType wide = ComputeType(x->dtype);
  const Expr lowest = ir::Identity(Reduction::kMax, {wide, 1});
  const auto rows = [&](const Expr& region, const Expr& bin) {
    return RangeOfBin(rois, region, 2, scale, pooled[0], bin, x->shape[2]);
  };
  const auto columns = [&](const Expr& region, const Expr& bin) {
    return RangeOfBin(rois, region, 1, scale, pooled[1], bin, x->shape[3]);
  };
  const Shape shape = {rois->shape[0], x->shape[1], pooled[0], pooled[1]};
  const Buffer by_row = builder.Reduce("rows", wide, {shape[0], shape[1], pooled[0], x->shape[3]}, {x->shape[2]},
                                       Reduction::kMax, [&](Indices i, Indices r) {
                                         const BinRange range = rows(i[0], i[2]);
                                         const Expr batch = ReadIndex(rois, {i[0], Expr(0)}, x->shape[0]);
                                         return MakeSelect(r[0] >= range.begin && r[0] < range.end,
                                                           Read(x, {batch, i[1], r[0], i[3]}), lowest);
                                       });
  const Buffer maxima =
      builder.Reduce("maxima", wide, shape, {x->shape[3]}, Reduction::kMax, [&](Indices i, Indices r) {
        const BinRange range = columns(i[0], i[3]);
        return MakeSelect(r[0] >= range.begin && r[0] < range.end, Read(by_row, {i[0], i[1], i[2], r[0]}), lowest);
      });
  return Buffers{Map(builder, "max_roi_pool", x->dtype, shape, [&](Indices i) {
    const BinRange row = rows(i[0], i[2]), column = columns(i[0], i[3]);
    const Expr empty = row.end <= row.begin || column.end <= column.begin;
    return MakeSelect(empty, Number(wide, 0), ReadHere(maxima, i));
  })};
}

// The range for random test data: regions inside the image, of which the first column is the batch.
void RegionPoolRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input != 1) return;
  const Shape& shape = args.inputs[0]->shape;
  *low = 0;
  *high = shape.size() == 4 ? static_cast<double>(std::min({shape[0].min(), shape[2].min(), shape[3].min()}) - 1) : 0;
}

constexpr OpDef kRegionPoolOps[] = {
    {"MaxRoiPool", Checked<MaxRoiPool, 2, Elements::kFloat>, {}, RegionPoolRange},
};

}  // namespace

std::span<const OpDef> RegionPoolOps() { return kRegionPoolOps; }

}  // namespace hone::graph
