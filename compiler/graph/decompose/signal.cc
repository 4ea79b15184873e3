// SPDX-License-Identifier: Apache-2.0
// Rules for Fourier transforms and complex products of com.microsoft.
#include "base/status.h"
#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

// The number of dimensions of the signal, which are the last of input 0 (before those of the complex numbers).
absl::StatusOr<int64_t> SignalDimensions(Decomposition& b, bool complex) {
  const int64_t dimensions = b.Int("signal_ndim", 1);
  if (dimensions < 1 || dimensions > 3 || dimensions + (complex ? 1 : 0) > static_cast<int64_t>(b.Rank(b.Input(0)))) {
    return Malformed(
        fmt::format("attribute signal_ndim is {}; it must be from 1 to 3, and input 0 must have as many", dimensions));
  }
  if (b.Int("normalized", 0) != 0) return Unsupported("attribute normalized is not supported; it must be 0");
  if (b.Int("onesided", 1) == 0) return Unsupported("attribute onesided is 0, which is not supported");
  return dimensions;
}

// A transform of complex numbers along a dimension.
ValueId Transform(Decomposition& b, ValueId x, int64_t axis, bool inverse) {
  return b.Op("DFT", {x}, {{"axis", axis}, {"inverse", int64_t{inverse}}});
}

// x [..., signal] to [..., bins of the last dimension, 2].
absl::StatusOr<Values> Rfft(Decomposition& b) {
  HONE_ASSIGN_OR_RETURN(const int64_t dimensions, SignalDimensions(b, false));
  ValueId y = b.Op("DFT", {b.Unsqueeze(b.Input(0), {-1})}, {{"axis", int64_t{-2}}, {"onesided", int64_t{1}}});
  for (int64_t d = 1; d < dimensions; ++d) y = Transform(b, y, -2 - d, false);
  return Values{y};
}

// The inverse: x [..., bins, 2] to [..., 2 * (bins - 1)]. The bins that Rfft leaves out are the conjugates of the
// others in reverse order.
absl::StatusOr<Values> Irfft(Decomposition& b) {
  HONE_ASSIGN_OR_RETURN(const int64_t dimensions, SignalDimensions(b, true));
  ValueId x = b.Input(0);
  for (int64_t d = 1; d < dimensions; ++d) x = Transform(b, x, -2 - d, true);
  const ValueId inner = b.Slice(x, -2, 1, -1);
  const ValueId reversed = b.Op("Slice", {inner, b.List({-1}), b.List({INT64_MIN}), b.List({-2}), b.List({-1})});
  const ValueId conjugates = b.Mul(reversed, b.Tensor(b.ElementType(x), {2}, {1, -1}));
  const ValueId y = Transform(b, b.Concat({x, conjugates}, -2), -2, true);
  return Values{b.Squeeze(b.Slice(y, -1, 0, 1), {-1})};
}

// The product of complex numbers, whose parts are the last dimension. `sign` is -1 for the conjugate of input 1.
Values ComplexProduct(Decomposition& b, double sign) {
  const Values left = b.Split(b.Input(0), -1, {1, 1});
  Values right = b.Split(b.Input(1), -1, {1, 1});
  if (sign < 0) right[1] = b.Op("Neg", {right[1]});
  const ValueId real = b.Sub(b.Mul(left[0], right[0]), b.Mul(left[1], right[1]));
  const ValueId imaginary = b.Add(b.Mul(left[0], right[1]), b.Mul(left[1], right[0]));
  return {b.Concat({real, imaginary}, -1)};
}

absl::StatusOr<Values> ComplexMul(Decomposition& b) { return ComplexProduct(b, 1); }
absl::StatusOr<Values> ComplexMulConj(Decomposition& b) { return ComplexProduct(b, -1); }

constexpr Row kSignalRows[] = {
    {"ComplexMul", ComplexMul, 2},
    {"ComplexMulConj", ComplexMulConj, 2},
    {"Irfft", Irfft},
    {"Rfft", Rfft},
};

}  // namespace

std::span<const Row> SignalRows() { return kSignalRows; }

}  // namespace hone::graph::decompose
