// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/decompose/layouts.h"

#include <vector>

namespace hone::graph::decompose {

ValueId ChannelsFirst(Decomposition& b, ValueId x, bool channels_last) {
  if (!channels_last || x == kAbsent) return x;
  const int64_t rank = static_cast<int64_t>(b.Rank(x));
  std::vector<int64_t> permutation = {0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) permutation.push_back(d);
  return b.Transpose(x, permutation);
}

ValueId ChannelsBack(Decomposition& b, ValueId x, bool channels_last) {
  if (!channels_last || x == kAbsent) return x;
  std::vector<int64_t> permutation = {0};
  for (int64_t d = 2; d < static_cast<int64_t>(b.Rank(x)); ++d) permutation.push_back(d);
  permutation.push_back(1);
  return b.Transpose(x, permutation);
}

}  // namespace hone::graph::decompose
