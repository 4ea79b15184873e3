// SPDX-License-Identifier: Apache-2.0
// Rules for operators of ai.onnx that its specification defines as functions of others.
#include <limits>

#include "compiler/graph/decompose/table.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph::decompose {
namespace {

// Inputs: x [batch, channels, positions], weights [channels, 1, taps], bias (optional), the last taps - 1 positions
// before x (optional, else 0). A convolution per channel over the positions up to each one, and the positions to pass
// to the next call. The operator of com.microsoft also has dilation, the distance between taps; then (taps - 1) *
// dilation positions are passed.
absl::StatusOr<Values> CausalConvWithState(Decomposition& b) {
  const std::string activation = b.String("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return Malformed(fmt::format("attribute activation is '{}'; it must be none, silu or swish", activation));
  }
  if (b.Rank(b.Input(0)) != 3 || b.Rank(b.Input(1)) != 3) return Malformed("inputs 0 and 1 must have 3 dimensions");
  if (b.Int("ndim", 1) != 1 || b.Int("channels_last", 0) != 0 || b.Int("state_window", 0) != 0) {
    return Unsupported("attributes ndim, channels_last and state_window are supported with their defaults only");
  }
  const int64_t dilation = b.Int("dilation", 1), channels = b.Extent(b.Input(1), 0);
  if (dilation < 1 || dilation > kDimensionMax) return Malformed(fmt::format("attribute dilation is {}", dilation));
  const int64_t before = (b.Extent(b.Input(1), 2) - 1) * dilation;
  const bool has_past = b.Has(3);
  if (has_past && (b.Rank(b.Input(3)) != 3 || b.KnownExtent(b.Input(3), 2).value_or(before) != before)) {
    return Malformed(fmt::format("the past state (input 3) must be [batch, channels, {}]", before));
  }
  const ValueId x = has_past ? b.Concat({b.Input(3), b.Input(0)}, 2) : b.Input(0);
  const std::vector<int64_t> pads = {has_past ? 0 : before, 0};
  ValueId y = b.Op("Conv", {x, b.Input(1), b.Input(2)},
                   {{"group", channels}, {"pads", pads}, {"dilations", std::vector<int64_t>{dilation}}});
  if (activation != "none") y = b.Op("Swish", {y});
  if (!b.IsOutputUsed(1)) return Values{y};
  const ValueId all = has_past ? x : b.Op("Pad", {x, b.List({0, 0, before, 0, 0, 0})});
  const int64_t end = std::numeric_limits<int64_t>::max();
  return Values{y, before == 0 ? b.Slice(all, 2, 0, 0) : b.Slice(all, 2, -before, end)};
}

// Swish of a, times b.
absl::StatusOr<Values> SwiGLU(Decomposition& b) {
  if (b.Type(b.Input(0)) != b.Type(b.Input(1))) return Malformed("inputs 0 and 1 must have one type and shape");
  return Values{b.Mul(b.Op("Swish", {b.Input(0)}, {{"alpha", b.Float("alpha", 1)}}), b.Input(1))};
}

constexpr Row kOnnxFunctionRows[] = {
    {"CausalConvWithState", CausalConvWithState, 2},
    {"SwiGLU", SwiGLU, 2},
};

// The same operator, before ONNX had it.
constexpr Row kMicrosoftFunctionRows[] = {
    {"CausalConvWithState", CausalConvWithState, 2, 27},
};

}  // namespace

std::span<const Row> OnnxFunctionRows() { return kOnnxFunctionRows; }
std::span<const Row> MicrosoftFunctionRows() { return kMicrosoftFunctionRows; }

}  // namespace hone::graph::decompose
