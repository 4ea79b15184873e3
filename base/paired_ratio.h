// SPDX-License-Identifier: Apache-2.0
// Compares two series of times that were taken in turns: how much slower one is than the other, and how sure that is.
//
// The k-th time of one series was taken beside the k-th of the other, so that both saw the same clock, heat and
// neighbours. Neighbouring times depend on each other, so the pairs are cut into blocks of neighbours, and the blocks
// count as the independent observations. Pure; safe from any thread. Start at ComparePaired.
#ifndef HONE_BASE_PAIRED_RATIO_H_
#define HONE_BASE_PAIRED_RATIO_H_

#include <cstddef>
#include <optional>
#include <span>

namespace hone {

// The fewest pairs that can be compared: ten blocks of four.
inline constexpr std::size_t kPairsMin = 40;

struct PairedRatio {
  double ratio;      // time of the second series / time of the first: above 1, the second is slower
  double low, high;  // the ratio is in here with a confidence of 98%: each end is wrong in 1% of all comparisons
  std::size_t pairs;

  // Whether it is sure (99%) that the second series is slower by more than the fraction `limit`, such as 0.03.
  bool IsSlowerBy(double limit) const { return low > 1 + limit; }
};

// Nullopt: fewer than kPairsMin pairs, or a time that is not positive. A longer series is cut to the other's length.
// The estimate is the mean over blocks of the median log ratio in the block, with Student's t interval over blocks
// (batch means: Law and Kelton, Simulation Modeling and Analysis, 9.5.3).
std::optional<PairedRatio> ComparePaired(std::span<const double> first, std::span<const double> second);

}  // namespace hone

#endif  // HONE_BASE_PAIRED_RATIO_H_
