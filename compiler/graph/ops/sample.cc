// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Sampling of images at real-valued positions that the data determines.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Reduction;

Expr Floor(Expr x) { return MakeUnary(ir::UnaryOp::kFloor, std::move(x)); }
Expr Index(const Expr& x) { return To(DType::kInt64, x); }

// --- GridSample

enum class GridPadding { kZeros, kBorder, kReflection };
enum class Interpolation { kNearest, kLinear, kCubic };

struct Grid {
  GridPadding padding = GridPadding::kZeros;
  Interpolation interpolation = Interpolation::kLinear;
  bool align_corners = false;
};

absl::StatusOr<Grid> ReadGrid(const OpArgs& args) {
  Grid grid;
  const std::string mode = args.String("mode", "linear");
  if (mode == "nearest") {
    grid.interpolation = Interpolation::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    grid.interpolation = Interpolation::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return Malformed(fmt::format("attribute mode is '{}'; it must be nearest, linear or cubic", mode));
  }
  const std::string padding = args.String("padding_mode", "zeros");
  if (padding == "border") {
    grid.padding = GridPadding::kBorder;
  } else if (padding == "reflection") {
    grid.padding = GridPadding::kReflection;
  } else if (padding != "zeros") {
    return Malformed(fmt::format("attribute padding_mode is '{}'; it must be zeros, border or reflection", padding));
  }
  grid.align_corners = args.Int("align_corners", 0) != 0;
  return grid;
}

// Maps x into the image of `extent` elements by the padding mode; mode zeros leaves it unchanged.
Expr PadCoordinate(const Grid& grid, const Expr& x, const Size& extent) {
  if (grid.padding == GridPadding::kZeros) return x;
  const Expr last = Number(x.type().dtype, extent - 1);
  Expr folded = x;
  if (grid.padding == GridPadding::kReflection) {
    const double low = grid.align_corners ? 0 : -0.5;
    const Size span = grid.align_corners ? extent - 1 : extent;
    if (span == 0) return Like(x, 0);
    // A triangle wave of period 2 * span. A span of 0 counts as 1, because division by 0 has no result.
    Expr period = Number(x.type().dtype, 2 * Max(span, 1));
    Expr phase = x - Like(x, low);
    phase = phase - Floor(phase / period) * period;
    folded = Min(phase, period - phase) + Like(x, low);
  }
  return Min(Max(folded, Like(x, 0)), last);
}

// The element at integral (float) coordinates; 0 outside the image.
Expr Pixel(const Grid& grid, const Buffer& x, Indices i, const Exprs& coordinates) {
  Exprs place = {i[0], i[1]};
  Expr inside;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    const Size extent = x->shape[2 + d];
    Expr here =
        coordinates[d] >= Like(coordinates[d], 0) && coordinates[d] <= Number(coordinates[d].type().dtype, extent - 1);
    inside = inside.defined() ? inside && here : here;
    place.push_back(Min(Max(Index(coordinates[d]), Expr(0)), Expr(extent - 1)));  // NaN is mapped inside as well
  }
  Expr value = ReadAs(coordinates[0].type().dtype, x, std::move(place));
  return grid.padding == GridPadding::kZeros ? MakeSelect(inside, value, Like(value, 0)) : value;
}

// Weights of the taps around x: at floor(x) - 1 .. + 2 for cubic, floor(x) .. + 1 for linear.
Exprs TapWeights(Interpolation interpolation, const Expr& fraction) {
  const Expr one = Like(fraction, 1);
  if (interpolation == Interpolation::kLinear) return {one - fraction, fraction};
  const double a = -0.75;
  auto near = [&](const Expr& d) { return ((Like(d, a + 2) * d - Like(d, a + 3)) * d) * d + Like(d, 1); };
  auto far = [&](const Expr& d) {
    return ((Like(d, a) * d - Like(d, 5 * a)) * d + Like(d, 8 * a)) * d - Like(d, 4 * a);
  };
  return {far(fraction + one), near(fraction), near(one - fraction), far(Like(fraction, 2) - fraction)};
}

// The weighted sum over the taps of dimension `d` and all after it.
Expr Interpolate(const Grid& grid, const Buffer& x, Indices i, const Exprs& position, size_t d, Exprs& coordinates) {
  if (d == position.size()) return Pixel(grid, x, i, coordinates);
  Expr base = Floor(position[d]);
  const Exprs weights = TapWeights(grid.interpolation, position[d] - base);
  const double first = grid.interpolation == Interpolation::kCubic ? -1 : 0;
  Expr sum;
  for (size_t tap = 0; tap < weights.size(); ++tap) {
    Expr coordinate = base + Like(base, first + static_cast<double>(tap));
    // Cubic padding applies to each tap; linear padding applies to the position as a whole.
    if (grid.interpolation == Interpolation::kCubic) coordinate = PadCoordinate(grid, coordinate, x->shape[2 + d]);
    coordinates.push_back(coordinate);
    Expr term = weights[tap] * Interpolate(grid, x, i, position, d + 1, coordinates);
    coordinates.pop_back();
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

// The sampling positions in elements, outermost dimension first; the same for all channels. If padding does not apply
// to each tap, it is applied to the position here.
Buffer EmitPositions(StageBuilder& builder, const Grid& grid, const Buffer& x, const Buffer& places, DType work) {
  const int64_t space = places->shape.back().value();
  return builder.Compute("positions", work, places->shape, [&](Indices i) {
    Exprs values;
    for (int64_t d = 0; d < space; ++d) {
      Exprs source(i.begin(), i.end());
      source.back() = Expr(space - 1 - d);  // the grid has x before y
      Expr g = ReadAs(work, places, std::move(source));
      const Size size = x->shape[static_cast<size_t>(2 + d)];
      const auto scaled = [&](const Size& value, double factor) {
        if (value.IsFixed()) return Like(g, static_cast<double>(value.value()) * factor);
        return Number(work, value) * Like(g, factor);
      };
      Expr place = grid.align_corners ? (g + Like(g, 1)) * scaled(size - 1, 0.5)
                                      : ((g + Like(g, 1)) * scaled(size, 1) - Like(g, 1)) * Like(g, 0.5);
      if (grid.interpolation != Interpolation::kCubic) place = PadCoordinate(grid, place, size);
      if (grid.interpolation == Interpolation::kNearest) place = MakeUnary(ir::UnaryOp::kRound, place);
      values.push_back(place);
    }
    return Choose(i[i.size() - 1], values);
  });
}

OpResult GridSample(const OpArgs& args, StageBuilder& builder) {
  const Buffer& x = args.inputs[0];
  const Buffer& places = args.inputs[1];
  HONE_ASSIGN_OR_RETURN(Grid grid, ReadGrid(args));
  const size_t space = Rank(x) < 3 ? 0 : Rank(x) - 2;
  if (space < 1 || space > 3 || Rank(places) != Rank(x) || places->shape.back() != static_cast<int64_t>(space) ||
      places->shape[0] != x->shape[0] || !ir::IsFloat(places->dtype)) {
    return Malformed("the grid (input 1) must be [batch, place..., coordinates] to match input 0");
  }
  if (Product(x->shape) == 0 && Product(places->shape) != 0) return Malformed("input 0 has no elements to read");
  Shape shape = {x->shape[0], x->shape[1]};
  shape.insert(shape.end(), places->shape.begin() + 1, places->shape.end() - 1);
  const DType work = x->dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Buffer positions = EmitPositions(builder, grid, x, places, work);
  return Buffers{Map(builder, "grid_sample", x->dtype, shape, [&](Indices i) {
    Exprs source = {i[0]}, position, coordinates;
    source.insert(source.end(), i.begin() + 2, i.end());
    source.push_back(Expr(0));
    for (size_t d = 0; d < space; ++d) {
      source.back() = Expr(static_cast<int64_t>(d));
      position.push_back(Read(positions, source));
    }
    if (grid.interpolation == Interpolation::kNearest) return Pixel(grid, x, i, position);
    return Interpolate(grid, x, i, position, 0, coordinates);
  })};
}

// --- RoiAlign

struct Roi {
  int64_t height, width, samples;
  double scale, offset;
};

absl::StatusOr<Roi> ReadRoi(const OpArgs& args) {
  const Buffer& x = args.inputs[0];
  const Buffer& rois = args.inputs[1];
  if (Rank(x) != 4) return Malformed("input 0 must have 4 dimensions");
  if (Rank(rois) != 2 || rois->shape[1] != 4 || rois->dtype != x->dtype) {
    return Malformed("the regions (input 1) must be [regions, 4], of the type of input 0");
  }
  if (args.inputs[2]->shape != Shape{rois->shape[0]} || !ir::IsInt(args.inputs[2]->dtype)) {
    return Malformed("the batch indices (input 2) must be one integer per region");
  }
  if (Product(x->shape) == 0) return Malformed("input 0 has no elements to read");
  Roi roi;
  roi.height = args.Int("output_height", 1);
  roi.width = args.Int("output_width", 1);
  roi.samples = args.Int("sampling_ratio", 0);
  roi.scale = args.Float("spatial_scale", 1);
  if (roi.height < 1 || roi.width < 1) return Malformed("output_height and output_width must be positive");
  if (roi.samples < 1)
    return Unsupported(
        "attribute sampling_ratio is 0, which is not supported: the amount of work would depend on the data");
  // Opset 16 introduced the half-pixel shift.
  const std::string transform =
      args.String("coordinate_transformation_mode", args.node.opset >= 16 ? "half_pixel" : "output_half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel") {
    return Malformed(fmt::format(
        "attribute coordinate_transformation_mode is '{}'; it must be half_pixel or output_half_pixel", transform));
  }
  roi.offset = transform == "half_pixel" ? -0.5 : 0;
  return roi;
}

// A sample along one dimension: its two neighbouring rows and its distance from the first. A sample outside [-1,
// extent] is 0.
struct Sample {
  Expr low, high, fraction, inside;
};

Sample SampleAt(const Expr& coordinate, const Size& extent) {
  const DType dtype = coordinate.type().dtype;
  const Expr last = Number(dtype, extent - 1);
  Expr clamped = Min(Max(coordinate, Like(coordinate, 0)), last);
  Expr base = Floor(clamped);
  Sample sample;
  sample.low = Min(Max(Index(base), Expr(0)), Expr(extent - 1));
  sample.high = Min(sample.low + Expr(1), Expr(extent - 1));
  sample.fraction = clamped - base;
  sample.inside = coordinate >= Like(coordinate, -1) && coordinate <= Number(dtype, extent);
  return sample;
}

// Mode avg is the mean of the interpolated samples. Mode max is the largest neighbour of any sample, each multiplied by
// its weight, as in ONNX's reference and test cases and in ONNX Runtime.
OpResult RoiAlign(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(Roi roi, ReadRoi(args));
  const Buffer& x = args.inputs[0];
  const Buffer& rois = args.inputs[1];
  const std::string mode = args.String("mode", "avg");
  if (mode != "avg" && mode != "max")
    return Malformed(fmt::format("attribute mode is '{}'; it must be avg or max", mode));
  const DType wide = ComputeType(x->dtype);
  // The coordinate of a sample: corner + (bin + (sample + 0.5) / samples) * bin size.
  auto coordinate = [&](const Expr& region, int64_t corner, int64_t bins, const Expr& bin, const Expr& sample) {
    auto edge = [&](int64_t k) {
      return Read(rois, {region, Expr(k)}) * Number(wide, roi.scale) + Number(wide, roi.offset);
    };
    Expr size = edge(corner + 2) - edge(corner);
    if (roi.offset == 0) size = Max(size, Number(wide, 1));
    size = size / Number(wide, static_cast<double>(bins));
    Expr step = (To(wide, sample) + Number(wide, 0.5)) / Number(wide, static_cast<double>(roi.samples));
    return edge(corner) + (To(wide, bin) + step) * size;
  };
  const Shape shape = {rois->shape[0], x->shape[1], roi.height, roi.width};
  Buffer combined = builder.Reduce(
      "samples", wide, shape, {roi.samples, roi.samples}, mode == "avg" ? Reduction::kSum : Reduction::kMax,
      [&](Indices i, Indices r) {
        const Sample y = SampleAt(coordinate(i[0], 1, roi.height, i[2], r[0]), x->shape[2]);
        const Sample column = SampleAt(coordinate(i[0], 0, roi.width, i[3], r[1]), x->shape[3]);
        Expr batch = ReadIndex(args.inputs[2], {i[0]}, x->shape[0]);
        auto read = [&](const Expr& row, const Expr& col) { return Read(x, {batch, i[1], row, col}); };
        const Expr one = Number(wide, 1);
        const auto join = [&](Expr a, Expr b) { return mode == "avg" ? a + b : Max(a, b); };
        Expr top = join(read(y.low, column.low) * (one - column.fraction), read(y.low, column.high) * column.fraction);
        Expr bottom =
            join(read(y.high, column.low) * (one - column.fraction), read(y.high, column.high) * column.fraction);
        Expr value = join(top * (one - y.fraction), bottom * y.fraction);
        return MakeSelect(y.inside && column.inside, value, Number(wide, 0));
      });
  const double count = mode == "avg" ? static_cast<double>(roi.samples) * static_cast<double>(roi.samples) : 1;
  return Buffers{Map(builder, "roi_align", x->dtype, shape,
                     [&](Indices i) { return ReadHere(combined, i) / Number(wide, count); })};
}

// The ranges for random test data: regions inside the image, batch indices in range.
void RegionRange(const OpArgs& args, size_t input, double* low, double* high) {
  if (input == 0) return;
  *low = 0;
  const Shape& shape = args.inputs[0]->shape;
  if (shape.size() != 4) return;
  *high = static_cast<double>(input == 1 ? std::min(shape[2].max(), shape[3].max())
                                         : std::max<int64_t>(shape[0].max() - 1, 0));
}

constexpr OpDef kSampleOps[] = {
    {"GridSample", Checked<GridSample, 2, Elements::kNumber>},
    {"RoiAlign", Checked<RoiAlign, 3, Elements::kFloat>, {}, RegionRange},
};

}  // namespace

std::span<const OpDef> SampleOps() { return kSampleOps; }

}  // namespace hone::graph
