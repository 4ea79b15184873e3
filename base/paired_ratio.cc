// SPDX-License-Identifier: Apache-2.0
#include "base/paired_ratio.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "base/median.h"

namespace hone {
namespace {

constexpr std::size_t kBlocksMin = 10, kBlocksMax = 30;
constexpr std::size_t kBlockPairs = 16;  // in a block, if that gives a number of blocks within the limits
constexpr double kConfidence = 0.99;     // of each end of the interval

}  // namespace

std::optional<PairedRatio> ComparePaired(std::span<const double> first, std::span<const double> second) {
  const std::size_t pairs = std::min(first.size(), second.size());
  if (pairs < kPairsMin) return std::nullopt;
  std::vector<double> logs;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (!(first[i] > 0) || !(second[i] > 0)) return std::nullopt;
    logs.push_back(std::log(second[i] / first[i]));
  }
  const std::size_t blocks = std::clamp(pairs / kBlockPairs, kBlocksMin, kBlocksMax);
  std::vector<double> medians;
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto begin = logs.begin() + static_cast<std::ptrdiff_t>(b * pairs / blocks);
    const auto end = logs.begin() + static_cast<std::ptrdiff_t>((b + 1) * pairs / blocks);
    medians.push_back(Median({begin, end}));
  }
  const auto count = static_cast<double>(blocks);
  double sum = 0, squares = 0;
  for (const double median : medians) sum += median;
  const double mean = sum / count;
  for (const double median : medians) squares += (median - mean) * (median - mean);
  const double deviation = std::sqrt(squares / (count - 1) / count);  // of the mean
  const double reach = boost::math::quantile(boost::math::students_t(count - 1), kConfidence) * deviation;
  return PairedRatio{std::exp(mean), std::exp(mean - reach), std::exp(mean + reach), pairs};
}

}  // namespace hone
