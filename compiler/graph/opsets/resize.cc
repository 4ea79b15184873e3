// SPDX-License-Identifier: Apache-2.0
// Resize to sizes that are float arithmetic on open sizes, of every opset: the run computes them, and they become open
// sizes of their own. Other nodes are kept.
#include <optional>

#include "compiler/graph/opsets/table.h"

namespace hone::graph::opsets {
namespace {

// Inputs: x, regions, scales, sizes. Before opset 11 there were no sizes.
absl::StatusOr<Values> Resize(Decomposition& b) {
  constexpr size_t kSizes = 3;
  if (!b.Has(kSizes) || b.IsKnown(b.Input(kSizes))) return Values{};
  const std::optional<ir::Shape> sizes = b.ReadSizes(b.Input(kSizes));
  if (!sizes.has_value()) return Values{};
  return Values{b.Op("Resize", {b.Input(0), b.Input(1), kAbsent, b.SizeList(*sizes)}, b.node().attributes)};
}

constexpr Rewrite kResizeRewrites[] = {
    {"Resize", kAnyOpset, Resize},
};

}  // namespace

std::span<const Rewrite> ResizeRewrites() { return kResizeRewrites; }

}  // namespace hone::graph::opsets
