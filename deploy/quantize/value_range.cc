// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"

namespace hone::quantize {
namespace {

constexpr int kSteps = 255;          // from the lowest to the highest number of 8 bits
constexpr int kCandidates = 96;      // ranges that are tried for each end, besides all of it
constexpr double kSmallest = 1e-30;  // below, an f32 scale loses digits

// A part of the range that is tried, from all of it for 0 to 1/64 of it.
double PartOf(int candidate) { return std::exp2(-candidate / 16.0); }

ValueRange LeastSquaredError(const Histogram& values, const ValueRange& all) {
  const auto range = [&](int low, int high) {
    return ValueRange{static_cast<float>(all.low * PartOf(low)), static_cast<float>(all.high * PartOf(high))};
  };
  int low = 0, high = 0;
  double best = MeanSquaredError(values, range(low, high));
  for (bool moved = true; moved;) {  // each end alone and both together, until none is better
    moved = false;
    for (int c = 0; c <= kCandidates; ++c) {
      for (const auto& [l, h] : {std::pair(c, high), std::pair(low, c), std::pair(c, c)}) {
        const double error = MeanSquaredError(values, range(l, h));
        if (!(error < best)) continue;
        best = error, low = l, high = h, moved = true;
      }
    }
  }
  return range(low, high);
}

// How many of the values are in the bin, without those that are 0, because 0 is exact in every range.
double CountIn(const Histogram& values, int bin) {
  const int64_t zeros = bin == Histogram::kBins / 2 ? values.zeros() : 0;
  return static_cast<double>(values.counts()[static_cast<size_t>(bin)] - zeros);
}

// The divergence between the distribution inside of the range, with the values outside at its ends, and what is left of
// it after it is rounded to 256 steps. Infinite for a range with fewer bins than steps: the bins do not show rounding.
double Divergence(const Histogram& values, const ValueRange& range) {
  const double step = (static_cast<double>(range.high) - range.low) / kSteps;
  if (step < values.BinWidth()) return std::numeric_limits<double>::infinity();
  std::vector<double> inside, sums(kSteps + 1), filled(kSteps + 1);
  std::vector<int> groups;
  double before = 0, after = 0;
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    const double center = values.CenterOf(bin), count = CountIn(values, bin);
    if (center < range.low) {
      before += count;
    } else if (center > range.high) {
      after += count;
    } else {
      const int group = std::clamp(static_cast<int>(std::lround((center - range.low) / step)), 0, kSteps);
      inside.push_back(count);
      groups.push_back(group);
      sums[static_cast<size_t>(group)] += count;
      filled[static_cast<size_t>(group)] += count > 0 ? 1 : 0;
    }
  }
  if (inside.empty()) return std::numeric_limits<double>::infinity();
  const auto total = static_cast<double>(values.total() - values.zeros());
  const double kept = total - before - after;
  if (kept <= 0) return std::numeric_limits<double>::infinity();
  double divergence = 0;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] <= 0) continue;
    const double ends = (i == 0 ? before : 0) + (i + 1 == inside.size() ? after : 0);
    const auto group = static_cast<size_t>(groups[i]);
    const double p = (inside[i] + ends) / total, q = sums[group] / filled[group] / kept;
    divergence += p * std::log(p / q);
  }
  // Values outside whose end has no value inside.
  if (inside.front() <= 0 && before > 0) divergence += before / total * std::log(total);
  if (inside.back() <= 0 && after > 0) divergence += after / total * std::log(total);
  return divergence;
}

ValueRange LeastDivergence(const Histogram& values, const ValueRange& all) {
  ValueRange best = all;
  double least = Divergence(values, all);
  const float largest = std::max(-all.low, all.high);
  for (int c = 1; c <= kCandidates; ++c) {
    const auto limit = static_cast<float>(largest * PartOf(c));
    const ValueRange range = {std::max(all.low, -limit), std::min(all.high, limit)};
    const double divergence = Divergence(values, range);
    if (divergence < least) least = divergence, best = range;
  }
  return best;
}

ValueRange Percentile(const Histogram& values, const ValueRange& all, double percentile) {
  const double outside = static_cast<double>(values.total()) * (1 - percentile / 100) / 2;
  double seen = 0;
  int low = 0, high = Histogram::kBins - 1;
  while (low < high && (seen += static_cast<double>(values.counts()[static_cast<size_t>(low)])) <= outside) ++low;
  seen = 0;
  while (high > low && (seen += static_cast<double>(values.counts()[static_cast<size_t>(high)])) <= outside) --high;
  const double half = values.BinWidth() / 2;
  return {std::max(all.low, static_cast<float>(std::min(0.0, values.CenterOf(low) - half))),
          std::min(all.high, static_cast<float>(std::max(0.0, values.CenterOf(high) + half)))};
}

}  // namespace

void Histogram::Widen(double limit) {
  if (limit_ == 0) {
    limit_ = limit;
    return;
  }
  while (limit_ < limit) {
    std::vector<int64_t> wider(kBins);
    for (size_t bin = 0; bin < counts_.size(); ++bin) wider[kBins / 4 + bin / 2] += counts_[bin];
    counts_ = std::move(wider);
    limit_ *= 2;
  }
}

void Histogram::Add(std::span<const float> values) {
  if (values.empty()) return;
  const auto [low, high] = std::ranges::minmax(values);
  low_ = empty() ? low : std::min(low_, low);
  high_ = empty() ? high : std::max(high_, high);
  const double largest = std::max({std::abs(static_cast<double>(low)), std::abs(static_cast<double>(high)), kSmallest});
  // A limit above the largest value, so that no value is on the edge of the last bin.
  Widen(std::exp2(std::floor(std::log2(largest)) + 1));
  const float to_bin = static_cast<float>(kBins / (2.0 * limit_)), middle = kBins / 2;
  for (const float value : values) {
    const int bin = static_cast<int>(value * to_bin + middle);
    ++counts_[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))];
    zeros_ += value == 0 ? 1 : 0;
  }
  total_ += static_cast<int64_t>(values.size());
}

double MeanSquaredError(const Histogram& values, const ValueRange& range) {
  const double step = (static_cast<double>(range.high) - range.low) / kSteps, rounding = step * step / 12;
  const double within = values.BinWidth() * values.BinWidth() / 12;
  double sum = 0;
  for (int bin = 0; bin < Histogram::kBins; ++bin) {
    const double count = CountIn(values, bin);
    if (count == 0) continue;
    const double center = values.CenterOf(bin);
    const double outside = center < range.low ? range.low - center : center > range.high ? center - range.high : 0;
    // Where bins are wide beside steps, the values in one are anywhere between two steps.
    const double nearest = step > 2 * values.BinWidth() ? center - step * std::nearbyint(center / step) : 0;
    const double inside = step > 2 * values.BinWidth() ? nearest * nearest + within : rounding;
    sum += count * (outside > 0 ? outside * outside : inside);
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.total());
}

ValueRange ChooseRange(const Histogram& values, RangeMethod method, double percentile) {
  const ValueRange all = {std::min(values.low(), 0.0F), std::max(values.high(), 0.0F)};
  if (values.empty() || all.low == all.high) return all;
  switch (method) {
    case RangeMethod::kMinMax:
      return all;
    case RangeMethod::kPercentile:
      return Percentile(values, all, percentile);
    case RangeMethod::kEntropy:
      return LeastDivergence(values, all);
    case RangeMethod::kSquaredError:
      return LeastSquaredError(values, all);
  }
  HONE_CHECK(false);
}

ByteScale ScaleOf(const ValueRange& range) {
  const double width = static_cast<double>(range.high) - range.low;
  if (!(width > kSmallest)) return {};
  const auto scale = static_cast<float>(width / kSteps);
  return {scale, static_cast<uint8_t>(std::clamp(std::lround(-range.low / scale), 0L, static_cast<long>(kSteps)))};
}

}  // namespace hone::quantize
