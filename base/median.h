// SPDX-License-Identifier: Apache-2.0
// The median. The times of kernels, of the reference loop and of whole models all use this definition.
//
// Header only, and needs only the C++ library, so that the runtime's programs can include it. Other quantiles are in
// base/quantile.h.
#ifndef HONE_BASE_MEDIAN_H_
#define HONE_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace hone {

// The middle value, or the mean of the two middle values of an even count. Aborts if `values` is empty. `values` must
// not contain NaN.
inline double Median(std::vector<double> values) {
  if (values.empty()) std::abort();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;  // a sum of two large values could overflow
}

}  // namespace hone

#endif  // HONE_BASE_MEDIAN_H_
