// SPDX-License-Identifier: Apache-2.0
// Operators as opsets 1 to 6 wrote them.
#include <numeric>

#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/opsets/table.h"
#include "fmt/format.h"

namespace hone::graph::opsets {
namespace {

// Returns `value` with `count` dimensions of extent 1 after its last.
ValueId AppendOnes(Decomposition& b, ValueId value, size_t count) {
  if (count == 0) return value;
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(b.Rank(value)));
  return b.Unsqueeze(value, axes);
}

// Attribute broadcast allowed to repeat input 1; attribute axis was the dimension of input 0 that its first dimension
// belongs to. Without axis it belonged to the last dimensions, as in numpy.
absl::StatusOr<Values> Binary6(Decomposition& b) {
  ValueId second = b.Input(1);
  const size_t rank = b.Rank(b.Input(0));
  if (b.Int("broadcast", 0) != 0 && b.HasAttribute("axis")) {
    HONE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(b.Int("axis", 0), rank));
    const size_t end = static_cast<size_t>(axis) + b.Rank(second);
    if (end > rank) return Malformed("input 1 has more dimensions than input 0 has from attribute axis on");
    second = AppendOnes(b, second, rank - end);
  }
  return Values{b.Op(b.node().op, {b.Input(0), second})};
}

// A slope with more than one element had one element per channel.
absl::StatusOr<Values> PRelu6(Decomposition& b) {
  const ValueId x = b.Input(0), slope = b.Input(1);
  const bool per_channel = b.Rank(slope) == 1 && b.Rank(x) > 1 && b.SameExtent(slope, 0, x, 1);
  return Values{b.Op("PRelu", {x, AppendOnes(b, slope, per_channel ? b.Rank(x) - 2 : 0)})};
}

// Attribute broadcast said whether input 2 may be repeated.
absl::StatusOr<Values> Gemm6(Decomposition& b) {
  return Values{b.Op("Gemm", {b.Input(0), b.Input(1), b.Input(2)},
                     {{"alpha", b.Float("alpha", 1)},
                      {"beta", b.Float("beta", 1)},
                      {"transA", b.Int("transA", 0)},
                      {"transB", b.Int("transB", 0)}})};
}

// The scales were attributes, of height and width only.
absl::StatusOr<Values> Upsample6(Decomposition& b) {
  const double height = b.Float("height_scale", 0), width = b.Float("width_scale", 0);
  if (b.Rank(b.Input(0)) != 4) return Malformed("input 0 must have 4 dimensions");
  const ValueId scales = b.Tensor(ir::DType::kFloat32, {4}, {1, 1, height, width});
  return Values{b.Op("Upsample", {b.Input(0), scales}, {{"mode", b.String("mode", "nearest")}})};
}

constexpr Rewrite kRewritesTo7[] = {
    {"Add", 7, Binary6, 2},     {"And", 7, Binary6, 2},     {"Div", 7, Binary6, 2},  {"Equal", 7, Binary6, 2},
    {"Gemm", 7, Gemm6, 3},      {"Greater", 7, Binary6, 2}, {"Less", 7, Binary6, 2}, {"Mul", 7, Binary6, 2},
    {"Or", 7, Binary6, 2},      {"PRelu", 7, PRelu6, 2},    {"Pow", 7, Binary6, 2},  {"Sub", 7, Binary6, 2},
    {"Upsample", 7, Upsample6}, {"Xor", 7, Binary6, 2},
};

}  // namespace

std::span<const Rewrite> RewritesTo7() { return kRewritesTo7; }

}  // namespace hone::graph::opsets
