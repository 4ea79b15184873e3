// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph.h"

#include <algorithm>

namespace hone::graph {

bool Equal(const Graph& a, const Graph& b) {
  if (a.nodes != b.nodes || a.inputs != b.inputs || a.outputs != b.outputs || a.output_names != b.output_names) {
    return false;
  }
  // Values beyond the common ones are read by no node, so they do not matter.
  const size_t count = std::min(a.values.size(), b.values.size());
  return std::equal(a.values.begin(), a.values.begin() + count, b.values.begin());
}

}  // namespace hone::graph
