// SPDX-License-Identifier: Apache-2.0
// Quantiles of measured values. The median is in base/median.h.
#ifndef HONE_BASE_QUANTILE_H_
#define HONE_BASE_QUANTILE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace hone {

// The smallest of `values` that is not exceeded by at least the fraction `share` (0 to 1) of them; for 0 the minimum.
// Aborts if `values` is empty. `values` must not contain NaN.
inline double Quantile(std::vector<double> values, double share) {
  if (values.empty()) std::abort();
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::min(rank == 0 ? 0 : rank - 1, values.size() - 1)];
}

}  // namespace hone

#endif  // HONE_BASE_QUANTILE_H_
