// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/opsets/table.h"

#include <array>

namespace hone::graph::opsets {

const Rewrite* FindRewrite(std::string_view name, int opset) {
  static const std::array kSteps = {RewritesTo2(),      RewritesTo6(),     RewritesTo7(),   NormalizationRewrites(),
                                    RemovedOperators(), DropoutRewrites(), ResizeRewrites()};
  for (const std::span<const Rewrite> step : kSteps) {
    for (const Rewrite& rewrite : step) {
      if (rewrite.name == name && opset < rewrite.before) return &rewrite;
    }
  }
  return nullptr;
}

}  // namespace hone::graph::opsets
