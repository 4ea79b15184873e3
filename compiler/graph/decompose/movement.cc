// SPDX-License-Identifier: Apache-2.0
// Rules for operators of com.microsoft that move, select or add elements, and for what dropout leaves at inference.
#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

using ir::DType;

// A scalar from a tensor of one element.
ValueId AsScalar(Decomposition& b, ValueId x) { return x == kAbsent || b.Rank(x) == 0 ? x : b.Op("Squeeze", {x}); }

absl::StatusOr<Values> Trilu(Decomposition& b) {
  return Values{b.Op("Trilu", {b.Input(0), AsScalar(b, b.Input(1))}, {{"upper", b.Int("upper", 1)}})};
}

// Inputs: x, axis (constant).
absl::StatusOr<Values> ExpandDims(Decomposition& b) {
  const std::vector<int64_t> axis = b.ConstantInts(1);
  return Values{b.Unsqueeze(b.Input(0), axis)};
}

// Inputs: x, pads [2 * rank] or [1, 2 * rank], value (optional).
absl::StatusOr<Values> Pad(Decomposition& b) {
  Values inputs = {b.Input(0), b.Reshape(b.Input(1), {-1})};
  if (b.Has(2)) inputs.push_back(AsScalar(b, b.Input(2)));
  return Values{b.Op("Pad", inputs, {{"mode", b.String("mode", "constant")}})};
}

absl::StatusOr<Values> GatherND(Decomposition& b) {
  return Values{b.Op("GatherND", {b.Input(0), b.Cast(b.Input(1), DType::kInt64)})};
}

// Inputs: start, limit, step (optional).
absl::StatusOr<Values> Range(Decomposition& b) {
  const ValueId start = AsScalar(b, b.Input(0)), limit = AsScalar(b, b.Input(1));
  return Values{b.Op("Range", {start, limit, b.Has(2) ? AsScalar(b, b.Input(2)) : b.Like(start, 1)})};
}

// Inputs: table, indices; the others are for training.
absl::StatusOr<Values> TorchEmbedding(Decomposition& b) { return Values{b.Op("Gather", {b.Input(0), b.Input(1)})}; }

// All windows of attribute size along dimension dim, one every step elements; the elements of a window become the last
// dimension.
absl::StatusOr<Values> UnfoldTensor(Decomposition& b) {
  const ValueId x = b.Input(0);
  const int64_t rank = static_cast<int64_t>(b.Rank(x)), size = b.Int("size", 0), step = b.Int("step", 1);
  int64_t dim = b.Int("dim", -1);
  dim += dim < 0 ? rank : 0;
  const int64_t extent = b.Extent(x, dim);
  if (size < 1 || step < 1 || size > extent) {
    return Malformed(fmt::format("windows of {} every {} do not fit a dimension of {}", size, step, extent));
  }
  const int64_t windows = (extent - size) / step + 1;
  std::vector<double> places;
  for (int64_t k = 0; k < windows * size; ++k) places.push_back(static_cast<double>(k / size * step + k % size));
  const ValueId indices = b.Tensor(DType::kInt64, {windows, size}, places);
  std::vector<int64_t> order;
  for (int64_t d = 0; d <= rank; ++d) {
    if (d != dim + 1) order.push_back(d);
  }
  order.push_back(dim + 1);
  return Values{b.Transpose(b.Op("Gather", {x, indices}, {{"axis", dim}}), order)};
}

absl::StatusOr<Values> GridSample(Decomposition& b) {
  return Values{b.Op("GridSample", {b.Input(0), b.Input(1)},
                     {{"align_corners", b.Int("align_corners", 0)},
                      {"mode", b.String("mode", "bilinear")},
                      {"padding_mode", b.String("padding_mode", "zeros")}})};
}

// Inputs: x, bias of the last dimension, skip.
absl::StatusOr<Values> BiasAdd(Decomposition& b) { return Values{b.Add(b.Add(b.Input(0), b.Input(1)), b.Input(2))}; }

// Inputs: x, y, gate [..., 1].
absl::StatusOr<Values> GatedAdd(Decomposition& b) { return Values{b.Add(b.Input(0), b.Mul(b.Input(1), b.Input(2)))}; }

// Refuses dropout that drops something: in training mode (input `training`), which is constant or absent.
absl::Status CheckInference(Decomposition& b, size_t training) {
  if (!b.Has(training)) return absl::OkStatus();
  const std::optional<std::vector<double>> mode = b.Known(b.Input(training));
  if (mode && *mode == std::vector<double>{0}) return absl::OkStatus();
  return Unsupported("dropout in training mode is not supported; export the model for inference");
}

// Inputs: x, bias, residual (optional), ratio, training mode. Outputs: y, mask of bools.
absl::StatusOr<Values> BiasDropout(Decomposition& b) {
  HONE_RETURN_IF_ERROR(CheckInference(b, 4));
  ValueId y = b.Add(b.Input(0), b.Input(1));
  if (b.Has(2)) y = b.Add(y, b.Input(2));
  if (!b.IsOutputUsed(1)) return Values{y};
  return Values{y, b.Op("Expand", {b.Number(DType::kBool, 1), b.Op("Shape", {b.Input(0)})})};
}

// The same, but the mask is packed in bits, which only training reads.
absl::StatusOr<Values> BitmaskBiasDropout(Decomposition& b) {
  HONE_RETURN_IF_ERROR(CheckInference(b, 4));
  const ValueId y = b.Add(b.Input(0), b.Input(1));
  return Values{b.Has(2) ? b.Add(y, b.Input(2)) : y};
}

// Inputs: x, ratio, training mode.
absl::StatusOr<Values> BitmaskDropout(Decomposition& b) {
  HONE_RETURN_IF_ERROR(CheckInference(b, 2));
  return Values{b.Op("Identity", {b.Input(0)})};
}

// Inputs: x, bias that broadcasts to x. Softmax over the elements of all dimensions from attribute axis on.
absl::StatusOr<Values> BiasSoftmax(Decomposition& b) {
  const ValueId x = b.Input(0), sum = b.Add(x, b.Input(1));
  const int64_t rank = static_cast<int64_t>(b.Rank(sum));
  int64_t axis = b.Int("axis", 1);
  axis += axis < 0 ? rank : 0;
  const Attributes last = {{"axis", int64_t{-1}}};
  if (axis == rank - 1) return Values{b.Op("Softmax", {sum}, last)};
  const ValueId matrix = b.Op("Flatten", {sum}, {{"axis", axis}});
  return Values{b.Op("Reshape", {b.Op("Softmax", {matrix}, last), b.Op("Shape", {sum})})};
}

// Distances between the rows of a and those of b.
absl::StatusOr<Values> CDist(Decomposition& b) {
  const std::string metric = b.String("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") {
    return Unsupported(fmt::format("attribute metric is '{}'; sqeuclidean and euclidean are supported", metric));
  }
  const ValueId difference = b.Sub(b.Unsqueeze(b.Input(0), {1}), b.Unsqueeze(b.Input(1), {0}));
  const ValueId squares = b.Op("ReduceSum", {b.Mul(difference, difference), b.List({2})}, {{"keepdims", int64_t{0}}});
  return Values{metric == "euclidean" ? b.Op("Sqrt", {squares}) : squares};
}

// Relative positions as T5 has them: small distances have a bucket each, large ones share buckets by their logarithm.
// `distance` is i64[queries, keys], 0 or more.
ValueId BucketOf(Decomposition& b, ValueId distance, int64_t buckets, int64_t distance_max) {
  const DType f32 = DType::kFloat32, i64 = DType::kInt64;
  const int64_t exact = buckets / 2;
  const double range = std::log(static_cast<double>(distance_max) / static_cast<double>(exact));
  const ValueId ratio = b.Div(b.Cast(distance, f32), b.Number(f32, static_cast<double>(exact)));
  const ValueId part = b.Div(b.Op("Log", {b.Op("Max", {ratio, b.Number(f32, 1)})}), b.Number(f32, range));
  const ValueId steps = b.Cast(b.Mul(part, b.Number(f32, static_cast<double>(buckets - exact))), i64);
  const ValueId shared = b.Add(steps, b.Number(i64, static_cast<double>(exact)));
  const ValueId large = b.Op("Min", {shared, b.Number(i64, static_cast<double>(buckets - 1))});
  return b.Where(b.Op("Less", {distance, b.Number(i64, static_cast<double>(exact))}), distance, large);
}

// Inputs: table [buckets, heads], number of queries, number of keys. Output: [1, heads, queries, keys].
absl::StatusOr<Values> RelativePositionBias(Decomposition& b) {
  const DType i64 = DType::kInt64;
  const bool both_ways = b.Int("is_bidirectional", 0) != 0;
  const int64_t buckets = b.Extent(b.Input(0), 0) / (both_ways ? 2 : 1), distance_max = b.Int("max_distance", 0);
  if (buckets < 2 || distance_max <= buckets / 2) {
    return Malformed("attribute max_distance must be larger than half the number of buckets");
  }
  const auto positions = [&](size_t count) {
    const ValueId limit = b.Cast(AsScalar(b, b.Input(count)), i64);
    return b.Op("Range", {b.Number(i64, 0), limit, b.Number(i64, 1)});
  };
  const ValueId behind = b.Sub(b.Unsqueeze(positions(1), {1}), positions(2));  // query position - key position
  const ValueId zero = b.Number(i64, 0);
  const ValueId distance = both_ways ? b.Op("Abs", {behind}) : b.Op("Max", {behind, zero});
  ValueId bucket = BucketOf(b, distance, buckets, distance_max);
  if (both_ways) {
    const ValueId ahead = b.Op("Less", {behind, zero});
    bucket = b.Add(bucket, b.Where(ahead, b.Number(i64, static_cast<double>(buckets)), zero));
  }
  return Values{b.Unsqueeze(b.Transpose(b.Op("Gather", {b.Input(0), bucket}), {2, 0, 1}), {0})};
}

constexpr Row kMovementRows[] = {
    {"BiasAdd", BiasAdd, 3},
    {"BiasDropout", BiasDropout, 2},
    {"BiasSoftmax", BiasSoftmax, 2},
    {"BitmaskBiasDropout", BitmaskBiasDropout, 2},
    {"BitmaskDropout", BitmaskDropout},
    {"CDist", CDist, 2},
    {"ExpandDims", ExpandDims, 2},
    {"GatedAdd", GatedAdd, 3},
    {"GatherND", GatherND, 2, 11},
    {"GridSample", GridSample, 2, 16},
    {"Pad", Pad, 2, 1},
    {"Range", Range, 2, 11},
    {"RelativePositionBias", RelativePositionBias, 3},
    {"TorchEmbedding", TorchEmbedding, 2},
    {"Trilu", Trilu, 1, 14},
    {"UnfoldTensor", UnfoldTensor},
};

}  // namespace

std::span<const Row> MovementRows() { return kMovementRows; }

}  // namespace hone::graph::decompose
