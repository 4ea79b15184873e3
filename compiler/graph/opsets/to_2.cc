// SPDX-License-Identifier: Apache-2.0
// Operators as opset 1 wrote them.
#include "compiler/graph/ops/vocabulary.h"
#include "compiler/graph/opsets/table.h"

namespace hone::graph::opsets {
namespace {

// The attribute was called paddings.
absl::StatusOr<Values> Pad1(Decomposition& b) {
  if (!b.HasAttribute("paddings")) return Malformed("attribute paddings is missing");
  const ValueId x = b.Input(0);
  const Attributes mode = {{"mode", b.String("mode", "constant")}};
  return Values{b.Op("Pad", {x, b.List(b.Ints("paddings", {})), b.Like(x, b.Float("value", 0))}, mode)};
}

constexpr Rewrite kRewritesTo2[] = {
    {"Pad", 2, Pad1},
};

}  // namespace

std::span<const Rewrite> RewritesTo2() { return kRewritesTo2; }

}  // namespace hone::graph::opsets
