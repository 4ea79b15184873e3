// SPDX-License-Identifier: Apache-2.0
// The median: the one definition for times of kernels, of the reference loop and of whole models.
//
// Header only and of the C++ library alone, so that the runtime's programs may take it too. Other quantiles are not
// medians of something: cli/timed_runs.h has them.
#ifndef HONE_BASE_MEDIAN_H_
#define HONE_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

namespace hone {

// The middle value; of an even count, the mean of the two middle ones. `values` is not empty (aborts) and has no NaN.
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
