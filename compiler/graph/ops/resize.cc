// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/resize_open.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

// Resize, one dimension after the other. Sizes and scales are constant. The sources of nearest-neighbour resizing are
// therefore computed here, exactly, and then expressed as index arithmetic; linear and cubic weights are expressions of
// the coordinate.

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

// Limit on positions: coordinates are floats, which represent integers exactly up to this number.
constexpr int64_t kPositionsMax = 1 << 24;

enum class Mode { kNearest, kLinear, kCubic };

struct Settings {
  Mode mode = Mode::kNearest;
  std::string transform = "half_pixel";
  std::string rounding = "round_prefer_floor";
  bool shrinks_by_ceil = false;  // if true, ceil replaces the mode on axes with a scale below 1
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
  double extrapolation = 0;
};

// One dimension: out = resize(in) by `scale`. crop_start and crop_end are for tf_crop_and_resize.
struct Axis {
  size_t dim = 0;
  int64_t in = 0, out = 0;
  float scale = 1;
  float crop_start = 0, crop_end = 1;
};

// The coordinate in the input of output position o. It is computed in floats, like the scales, to select the same
// neighbours as other implementations.
float Coordinate(const Settings& settings, const Axis& axis, int64_t o) {
  const float x = static_cast<float>(o), in = static_cast<float>(axis.in), out = static_cast<float>(axis.out);
  const std::string& transform = settings.transform;
  if (transform == "asymmetric") return x / axis.scale;
  if (transform == "tf_half_pixel_for_nn") return (x + 0.5f) / axis.scale;
  if (transform == "align_corners") return axis.out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (transform == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (transform == "tf_crop_and_resize") {
    if (axis.out == 1) return 0.5f * (axis.crop_start + axis.crop_end) * (in - 1);
    return axis.crop_start * (in - 1) + x * (axis.crop_end - axis.crop_start) * (in - 1) / (out - 1);
  }
  float offset = 0;
  if (transform == "half_pixel_symmetric") offset = in / 2 * (1 - out / (axis.scale * in));
  return offset + (x + 0.5f) / axis.scale - 0.5f;
}

// --- Nearest neighbour

float Rounded(const std::string& rounding, float x) {
  if (rounding == "floor") return std::floor(x);
  if (rounding == "ceil") return std::ceil(x);
  if (rounding == "round_prefer_ceil") return std::floor(x + 0.5f);
  return std::ceil(x - 0.5f);
}

Dims NearestSources(const Settings& settings, const Axis& axis) {
  Dims sources;
  const std::string rounding = settings.shrinks_by_ceil && axis.scale < 1 ? "ceil" : settings.rounding;
  for (int64_t o = 0; o < axis.out; ++o) {
    // Clamped before the conversion: an infinity has no integer value, and max turns NaN into 0.
    const float source = std::max(0.0f, Rounded(rounding, Coordinate(settings, axis, o)));
    sources.push_back(static_cast<int64_t>(std::min(source, static_cast<float>(axis.in - 1))));
  }
  return sources;
}

// Finds c with sources[o] == clamp(floor((in * o + c) / out)) for all o, if there is one. A clamped source bounds c
// from one side only.
std::optional<int64_t> FindOffset(const Dims& sources, int64_t in, int64_t out, int64_t last) {
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  for (size_t k = 0; k < sources.size(); ++k) {
    const int64_t start = out * sources[k] - in * static_cast<int64_t>(k);
    if (sources[k] > 0) low = std::max(low, start);
    if (sources[k] < last) high = std::min(high, start + out - 1);
  }
  if (low > high) return std::nullopt;
  if (low <= 0 && high >= 0) return 0;
  return low > 0 ? low : high;
}

// sources[o] as arithmetic, or as a table in a stage of its own if there is no such form.
std::function<Expr(const Expr&)> SourceIndex(StageBuilder& builder, const Dims& sources, const Axis& axis) {
  const int64_t divisor = std::gcd(axis.in, axis.out);
  const int64_t in = axis.in / divisor, out = axis.out / divisor, last = axis.in - 1;
  const std::optional<int64_t> offset = FindOffset(sources, in, out, last);
  if (!offset.has_value()) {
    Buffer table =
        builder.Compute("sources", DType::kInt64, {axis.out}, [&](Indices i) { return Table(i[0], sources); });
    return [table](const Expr& o) { return MakeLoad(table, {o}); };
  }
  const bool below = *offset<0, above = (in * (axis.out - 1) + *offset) / out> last;
  return [=](const Expr& o) {
    Expr source = in == 1 ? o : o * Expr(in);
    if (*offset != 0) source = source + Expr(*offset);
    if (out != 1) source = FloorDiv(source, Expr(out));
    if (below) source = Max(source, Expr(0));
    if (above) source = Min(source, Expr(last));
    return source;
  };
}

Buffer EmitNearest(StageBuilder& builder, const Buffer& x, const Settings& settings, const std::vector<Axis>& axes) {
  Shape shape = x->shape;
  std::vector<std::function<Expr(const Expr&)>> source;
  for (const Axis& axis : axes) {
    shape[axis.dim] = axis.out;
    source.push_back(SourceIndex(builder, NearestSources(settings, axis), axis));
  }
  return Map(builder, "resize", x->dtype, shape, [&](Indices i) {
    Exprs place(i.begin(), i.end());
    for (size_t k = 0; k < axes.size(); ++k) place[axes[k].dim] = source[k](i[axes[k].dim]);
    return Read(x, std::move(place));
  });
}

// --- Linear and cubic

// The weight of a neighbour at a distance (>= 0, in f32).
Expr Weight(const Settings& settings, const Expr& distance) {
  const Expr zero = Like(distance, 0);
  if (settings.mode == Mode::kLinear) return Max(Like(distance, 1) - distance, zero);
  const double a = settings.cubic_a;
  const Expr d = distance;
  Expr near = ((Like(d, a + 2) * d - Like(d, a + 3)) * d) * d + Like(d, 1);
  Expr far = ((Like(d, a) * d - Like(d, 5 * a)) * d + Like(d, 8 * a)) * d - Like(d, 4 * a);
  return MakeSelect(d <= Like(d, 1), near, MakeSelect(d < Like(d, 2), far, zero));
}

// The neighbours of outputs along one axis: tap t of output o reads position floor(coordinate) + first + t.
struct Neighbours {
  const Settings& settings;
  const Axis& axis;
  double shrink;  // if < 1, the filter is widened by 1 / shrink (antialias)
  int64_t first, taps;

  Neighbours(const Settings& s, const Axis& a) : settings(s), axis(a) {
    shrink = s.antialias ? std::min(1.0, static_cast<double>(a.scale)) : 1.0;
    const double support = s.mode == Mode::kLinear ? 1 : 2;
    first = static_cast<int64_t>(std::floor(-support / shrink)) + 1;
    taps = 2 - 2 * first;
  }
  bool Normalized() const { return shrink < 1 || settings.exclude_outside; }

  // All transforms are affine: coordinate(o) = origin + step * o, in f32.
  Expr Position(const Expr& o) const {
    const double origin = Coordinate(settings, axis, 0);
    const double step =
        axis.out > 1 ? (Coordinate(settings, axis, axis.out - 1) - origin) / static_cast<double>(axis.out - 1) : 0;
    return Number(DType::kFloat32, origin) + To(DType::kFloat32, o) * Number(DType::kFloat32, step);
  }
  Expr Index(const Expr& o, const Expr& tap) const {  // not clamped
    Expr base = To(DType::kInt64, MakeUnary(ir::UnaryOp::kFloor, Position(o)));
    return base + (tap + Expr(first));
  }
  Expr TapWeight(const Expr& o, const Expr& tap) const {
    Expr index = Index(o, tap);
    Expr distance = MakeUnary(ir::UnaryOp::kAbs, Position(o) - To(DType::kFloat32, index));
    if (shrink < 1) distance = distance * Number(DType::kFloat32, shrink);
    Expr weight = Weight(settings, distance);
    if (!settings.exclude_outside) return weight;
    return MakeSelect(index >= Expr(0) && index < Expr(axis.in), weight, Number(DType::kFloat32, 0));
  }
};

constexpr int64_t kUnrolledTapsMax = 8;

Buffer EmitInterpolated(StageBuilder& builder, const Buffer& x, const Settings& settings, const Axis& axis) {
  const Neighbours neighbours(settings, axis);
  const DType f32 = DType::kFloat32, work = x->dtype;
  Buffer total;
  if (neighbours.Normalized()) {
    total = builder.Reduce("weights", f32, {axis.out}, {neighbours.taps}, ir::Reduction::kSum,
                           [&](Indices i, Indices r) { return neighbours.TapWeight(i[0], r[0]); });
  }
  auto term = [&](Indices i, const Expr& tap) {
    Exprs place(i.begin(), i.end());
    const Expr& o = i[axis.dim];
    place[axis.dim] = Min(Max(neighbours.Index(o, tap), Expr(0)), Expr(axis.in - 1));
    Expr weight = neighbours.TapWeight(o, tap);
    if (total != nullptr) weight = weight / MakeLoad(total, {o});
    return To(work, weight) * Read(x, std::move(place));
  };
  Shape shape = x->shape;
  shape[axis.dim] = axis.out;
  if (neighbours.taps > kUnrolledTapsMax) {
    return builder.Reduce("resize", work, shape, {neighbours.taps}, ir::Reduction::kSum,
                          [&](Indices i, Indices r) { return term(i, r[0]); });
  }
  return builder.Compute("resize", work, shape, [&](Indices i) {
    Expr sum = term(i, Expr(0));
    for (int64_t tap = 1; tap < neighbours.taps; ++tap) sum = sum + term(i, Expr(tap));
    return sum;
  });
}

Buffer EmitSmooth(StageBuilder& builder, const Buffer& x, const Settings& settings, const std::vector<Axis>& axes) {
  const bool wide = x->dtype == DType::kFloat64 || (ir::IsInt(x->dtype) && ir::SizeOf(x->dtype) > 1);
  const DType work = wide ? DType::kFloat64 : DType::kFloat32;
  Buffer current = x;
  if (current->dtype != work) {
    current = Map(builder, "widen", work, x->shape, [&](Indices i) { return ReadHere(x, i); });
  }
  for (const Axis& axis : axes) current = EmitInterpolated(builder, current, settings, axis);
  if (x->dtype == work) return current;
  return Map(builder, "narrow", x->dtype, current->shape, [&](Indices i) {
    Expr value = ReadHere(current, i);
    if (!ir::IsInt(x->dtype)) return value;
    // ONNX truncates to an integer. A value less than 1/2048 below an integer counts as that integer: 6.9999999, a
    // result of weights times 7, is 7.
    constexpr double kFine = 1024;
    return MakeUnary(ir::UnaryOp::kRound, value * Like(value, kFine)) * Like(value, 1 / kFine);
  });
}

// tf_crop_and_resize: the result is `extrapolation` if a coordinate is outside the input. Coordinates grow with o, so
// the positions inside form an interval.
Buffer EmitExtrapolation(StageBuilder& builder, const Buffer& y, const Settings& settings,
                         const std::vector<Axis>& axes) {
  return Map(builder, "extrapolate", y->dtype, y->shape, [&](Indices i) {
    Expr inside = ir::MakeBool(true);
    for (const Axis& axis : axes) {
      int64_t first = axis.out, end = 0;
      for (int64_t o = 0; o < axis.out; ++o) {
        const float x = Coordinate(settings, axis, o);
        if (x < 0 || x > static_cast<float>(axis.in - 1)) continue;
        first = std::min(first, o);
        end = o + 1;
      }
      inside = inside && i[axis.dim] >= Expr(first) && i[axis.dim] < Expr(end);
    }
    return MakeSelect(inside, ReadHere(y, i), Number(ComputeType(y->dtype), settings.extrapolation));
  });
}

// --- The node

absl::StatusOr<Settings> ReadSettings(const OpArgs& args) {
  Settings settings;
  const std::string mode = args.String("mode", "nearest");
  if (mode == "linear" || mode == "bilinear") {
    settings.mode = Mode::kLinear;
  } else if (mode == "cubic") {
    settings.mode = Mode::kCubic;
  } else if (mode != "nearest") {
    return Malformed(fmt::format("attribute mode is '{}'; it must be nearest, linear or cubic", mode));
  }
  // Before opset 11, Resize had only one coordinate transformation.
  const bool old = args.node.op == "Upsample" || args.node.opset < 11;
  settings.transform = args.String("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  settings.rounding = args.String("nearest_mode", old ? "floor" : "round_prefer_floor");
  settings.shrinks_by_ceil = old;
  settings.cubic_a = args.Float("cubic_coeff_a", -0.75);
  settings.exclude_outside = args.Int("exclude_outside", 0) != 0;
  settings.antialias = args.Int("antialias", 0) != 0;
  settings.extrapolation = args.Float("extrapolation_value", 0);
  for (std::string_view known : {"asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                 "align_corners", "tf_half_pixel_for_nn", "tf_crop_and_resize"}) {
    if (settings.transform == known) return settings;
  }
  return Malformed(
      fmt::format("attribute coordinate_transformation_mode is '{}', which is not a mode of ONNX", settings.transform));
}

// Returns per dimension the number that input i gives for the node's axes; empty if the input is absent or empty.
absl::StatusOr<std::vector<double>> NumbersPerAxis(const OpArgs& args, size_t i, size_t count) {
  if (!args.Has(i) || ir::NumElements(*args.inputs[i]) == 0) return std::vector<double>{};
  HONE_ASSIGN_OR_RETURN(std::vector<double> numbers, ConstantNumbers(args, i));
  if (numbers.size() != count)
    return Malformed(fmt::format("input {} has {} numbers, not {}", i, numbers.size(), count));
  return numbers;
}

// Only the part of the axis between crop_start and crop_end is resized; that is all of it, except for
// tf_crop_and_resize.
absl::Status SetScales(std::vector<Axis>& axes, const std::vector<double>& scales) {
  for (size_t k = 0; k < axes.size(); ++k) {
    Axis& axis = axes[k];
    if (!(scales[k] > 0) || scales[k] > 1e6)
      return Malformed(fmt::format("a scale of {} is not allowed; scales must be positive and at most 1e6", scales[k]));
    axis.scale = static_cast<float>(scales[k]);
    const float out = std::floor(static_cast<float>(axis.in) * (axis.crop_end - axis.crop_start) * axis.scale);
    if (!(out >= 0) || out >= static_cast<float>(kDimensionMax)) {
      return Malformed(fmt::format("scale {} of a region from {} to {} gives no valid size", scales[k], axis.crop_start,
                                   axis.crop_end));
    }
    axis.out = static_cast<int64_t>(out);
  }
  return absl::OkStatus();
}

absl::Status SetSizes(const OpArgs& args, std::vector<Axis>& axes, const std::vector<double>& sizes) {
  const std::string policy = args.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return Malformed(fmt::format("attribute keep_aspect_ratio_policy is '{}', which is not a policy of ONNX", policy));
  }
  std::vector<double> ratios;
  for (size_t k = 0; k < axes.size(); ++k) {
    if (!(sizes[k] >= 0) || axes[k].in == 0) {
      return Malformed(fmt::format("cannot resize {} to {}", axes[k].in, sizes[k]));
    }
    ratios.push_back(sizes[k] / static_cast<double>(axes[k].in));
  }
  if (ratios.empty()) return absl::OkStatus();
  const double common = policy == "not_larger" ? *std::min_element(ratios.begin(), ratios.end())
                                               : *std::max_element(ratios.begin(), ratios.end());
  for (size_t k = 0; k < axes.size(); ++k) {
    axes[k].scale = static_cast<float>(policy == "stretch" ? ratios[k] : common);
    const double out = policy == "stretch" ? sizes[k] : std::floor(common * static_cast<double>(axes[k].in) + 0.5);
    constexpr double kFar = int64_t{1} << 62;  // fits an int64, and is rejected as too large
    axes[k].out = static_cast<int64_t>(std::min(out, kFar));
  }
  return absl::OkStatus();
}

// Input indices of scales, sizes and roi; npos if the operator does not have the input.
struct ResizeInputs {
  size_t roi, scales, sizes;
};

// The dimensions that the node's numbers are for, counted from the front.
absl::StatusOr<Dims> ResizedDimensions(const OpArgs& args) {
  const auto rank = static_cast<int64_t>(Rank(args.inputs[0]));
  Dims dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  dims = args.Ints("axes", dims);
  HONE_RETURN_IF_ERROR(NormalizeAxes(dims, static_cast<size_t>(rank)).status());
  for (int64_t& dim : dims) dim = dim < 0 ? dim + rank : dim;
  return dims;
}

// The scales from the attribute or the input; empty if there are none.
absl::StatusOr<std::vector<double>> ReadScales(const OpArgs& args, size_t input, size_t count) {
  HONE_ASSIGN_OR_RETURN(std::vector<double> scales, NumbersPerAxis(args, input, count));
  if (const auto* attribute = FindAttribute<std::vector<double>>(args, "scales", "a list of floats")) {
    if (attribute->size() != count) return Malformed("attribute scales does not fit the rank");
    scales = *attribute;
  }
  return scales;
}

absl::StatusOr<std::vector<Axis>> ReadResizedAxes(const OpArgs& args, const ResizeInputs& inputs) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const Dims dims, ResizedDimensions(args));
  std::vector<Axis> axes;
  for (int64_t dim : dims) {
    Axis axis;
    axis.dim = static_cast<size_t>(dim);
    HONE_ASSIGN_OR_RETURN(axis.in, FixedSize(x->shape[axis.dim], "a resized dimension"));
    axis.out = axis.in;
    axes.push_back(axis);
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<double> scales, ReadScales(args, inputs.scales, axes.size()));
  HONE_ASSIGN_OR_RETURN(std::vector<double> sizes, NumbersPerAxis(args, inputs.sizes, axes.size()));
  HONE_ASSIGN_OR_RETURN(std::vector<double> roi, NumbersPerAxis(args, inputs.roi, 2 * axes.size()));
  if (scales.empty() == sizes.empty() && !axes.empty()) return Malformed("either scales or sizes must be given");
  for (size_t k = 0; k < axes.size() && !roi.empty(); ++k) {
    axes[k].crop_start = static_cast<float>(roi[k]);
    axes[k].crop_end = static_cast<float>(roi[axes.size() + k]);
  }
  if (!scales.empty()) HONE_RETURN_IF_ERROR(SetScales(axes, scales));
  if (!sizes.empty()) HONE_RETURN_IF_ERROR(SetSizes(args, axes, sizes));
  return axes;
}

// Whether a size of the input or of the output is open.
bool IsOpen(const OpArgs& args, const ResizeInputs& inputs) {
  const bool open_output = inputs.sizes < args.elements.size() && args.elements[inputs.sizes] != nullptr;
  return open_output || !ir::IsFixed(args.inputs[0]->shape);
}

// The dimensions that change.
absl::StatusOr<std::vector<OpenAxis>> ReadOpenAxes(const OpArgs& args, const ResizeInputs& inputs) {
  const Buffer& x = args.inputs[0];
  HONE_ASSIGN_OR_RETURN(const Dims dims, ResizedDimensions(args));
  HONE_ASSIGN_OR_RETURN(const std::vector<double> scales, ReadScales(args, inputs.scales, dims.size()));
  Shape sizes;
  if (scales.empty()) {
    HONE_ASSIGN_OR_RETURN(sizes, args.ConstantSizes(inputs.sizes));
    if (sizes.size() != dims.size()) return Malformed("the sizes do not fit the rank");
  }
  std::vector<OpenAxis> axes;
  for (size_t k = 0; k < dims.size(); ++k) {
    OpenAxis axis{.dim = static_cast<size_t>(dims[k]), .in = x->shape[static_cast<size_t>(dims[k])], .out = 0};
    if (!scales.empty()) {
      if (!(scales[k] > 0)) return Malformed(fmt::format("a scale of {} is not allowed", scales[k]));
      axis.scale = static_cast<float>(scales[k]);
      HONE_ASSIGN_OR_RETURN(axis.out, ScaledSize(axis.in, *axis.scale));
    } else {
      axis.out = sizes[k];
    }
    if (axis.in.min() < 1 || axis.out.min() < 0) return Malformed("a resized dimension may be empty");
    if (axis.out != axis.in || axis.scale.value_or(1) != 1) axes.push_back(std::move(axis));
  }
  return axes;
}

OpResult ResizeOpen(const OpArgs& args, StageBuilder& builder, const Settings& settings, const ResizeInputs& inputs) {
  const bool stretch = args.String("keep_aspect_ratio_policy", "stretch") == "stretch";
  const bool linear_floats = settings.mode == Mode::kLinear && ir::IsFloat(args.inputs[0]->dtype);
  if (!stretch || settings.antialias || settings.exclude_outside || settings.transform == "tf_crop_and_resize" ||
      (settings.mode != Mode::kNearest && !linear_floats)) {
    return Unsupported(
        "with open sizes only modes nearest and linear are supported, without antialias, "
        "exclude_outside, aspect ratios and cropping; give the model fixed shapes with --shape");
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<OpenAxis> axes, ReadOpenAxes(args, inputs));
  const OpenResize resize{settings.mode == Mode::kNearest, settings.transform, settings.rounding};
  return Buffers{EmitOpenResize(builder, args.inputs[0], resize, axes)};
}

OpResult EmitResize(const OpArgs& args, StageBuilder& builder, const ResizeInputs& inputs) {
  HONE_ASSIGN_OR_RETURN(Settings settings, ReadSettings(args));
  if (settings.mode != Mode::kNearest && args.inputs[0]->dtype == DType::kBool) {
    return Malformed("input 0 is bool, which only mode nearest can resize");
  }
  if (IsOpen(args, inputs)) return ResizeOpen(args, builder, settings, inputs);
  const bool crop = settings.transform == "tf_crop_and_resize";
  ResizeInputs used = inputs;
  if (!crop) used.roi = std::numeric_limits<size_t>::max();  // other transformations ignore roi, constant or not
  HONE_ASSIGN_OR_RETURN(std::vector<Axis> axes, ReadResizedAxes(args, used));
  const Buffer& x = args.inputs[0];
  std::vector<Axis> changed;  // unchanged dimensions need no work
  for (const Axis& axis : axes) {
    if (axis.in == 0 && axis.out != 0) return Malformed("an empty dimension cannot be resized");
    bool same = axis.in == axis.out;
    for (int64_t o = 0; o < std::min(axis.out, kPositionsMax) && same; ++o) {
      same = Coordinate(settings, axis, o) == static_cast<float>(o);
    }
    if (same) continue;
    if (std::max(axis.in, axis.out) > kPositionsMax) {
      return Malformed(
          fmt::format("cannot resize {} to {}: at most {} is supported", axis.in, axis.out, kPositionsMax));
    }
    changed.push_back(axis);
  }
  if (changed.empty()) return Buffers{x};
  Shape shape = x->shape;
  for (const Axis& axis : changed) shape[axis.dim] = axis.out;
  if (Product(shape) == 0) {
    return Buffers{Map(builder, "empty", x->dtype, shape, [&](Indices) { return Number(ComputeType(x->dtype), 0); })};
  }
  Buffer y = settings.mode == Mode::kNearest ? EmitNearest(builder, x, settings, changed)
                                             : EmitSmooth(builder, x, settings, changed);
  return Buffers{crop ? EmitExtrapolation(builder, y, settings, changed) : y};
}

constexpr size_t kNoValue = std::numeric_limits<size_t>::max();

// Opset 10: X, scales. Since: X, roi, scales, sizes.
OpResult Resize(const OpArgs& args, StageBuilder& builder) {
  if (args.node.opset < 11) return EmitResize(args, builder, {.roi = kNoValue, .scales = 1, .sizes = kNoValue});
  return EmitResize(args, builder, {.roi = 1, .scales = 2, .sizes = 3});
}

OpResult Upsample(const OpArgs& args, StageBuilder& builder) {
  return EmitResize(args, builder, {.roi = kNoValue, .scales = 1, .sizes = kNoValue});
}

constexpr OpDef kResizeOps[] = {
    {"Resize", Checked<Resize, 1>, {.axes = {.form = AxisForm::kPerDimension, .since = 11}}},
    {"Upsample", Checked<Upsample, 1>},
};

}  // namespace

std::span<const OpDef> ResizeOps() { return kResizeOps; }

}  // namespace hone::graph
