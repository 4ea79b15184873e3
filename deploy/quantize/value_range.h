// SPDX-License-Identifier: Apache-2.0
// The values that a tensor takes on the samples, and the range of them that 8 bits represent.
//
// Start with Histogram. The methods to choose a range: Nagel and others, "A White Paper on Neural Network
// Quantization", arXiv 2106.08295; entropy: Migacz, "8-bit Inference with TensorRT", GTC 2017.
#ifndef HONE_DEPLOY_QUANTIZE_VALUE_RANGE_H_
#define HONE_DEPLOY_QUANTIZE_VALUE_RANGE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace hone::quantize {

// Counts of values, in bins of equal width around 0. The width doubles when a value is outside.
class Histogram {
 public:
  static constexpr int kBins = 4096;

  Histogram() : counts_(kBins) {}
  // All values must be finite.
  void Add(std::span<const float> values);

  bool empty() const { return total_ == 0; }
  int64_t total() const { return total_; }
  int64_t zeros() const { return zeros_; }  // of the total; they are in bin kBins / 2
  float low() const { return low_; }        // the smallest value; 0 if empty
  float high() const { return high_; }      // the largest
  double BinWidth() const { return 2.0 * limit_ / kBins; }
  double CenterOf(int bin) const { return (bin + 0.5) * BinWidth() - limit_; }
  const std::vector<int64_t>& counts() const { return counts_; }

 private:
  void Widen(double limit);

  double limit_ = 0;  // bins lie from -limit_ to limit_; a power of two, or 0 before the first value
  float low_ = 0, high_ = 0;
  int64_t total_ = 0, zeros_ = 0;
  std::vector<int64_t> counts_;
};

// A range of numbers, with 0 inside.
struct ValueRange {
  float low = 0, high = 0;
  bool operator==(const ValueRange&) const = default;
};

// How a range is chosen from the values: all of them; without the rarest ones at both ends; so that the distribution
// changes least (Kullback-Leibler divergence); so that the sum of squared errors is smallest.
enum class RangeMethod : uint8_t { kMinMax, kPercentile, kEntropy, kSquaredError };

// percentile: of the values, how many of a hundred are inside; for kPercentile.
ValueRange ChooseRange(const Histogram& values, RangeMethod method, double percentile);

// Quantization to u8: q = round(x / scale) + zero_point, with x = 0 exact.
struct ByteScale {
  float scale = 1;
  uint8_t zero_point = 0;
};
ByteScale ScaleOf(const ValueRange& range);

// The mean squared error of values that are rounded to 256 steps of the range, with 0 exact, and of those outside set
// to its ends.
double MeanSquaredError(const Histogram& values, const ValueRange& range);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_VALUE_RANGE_H_
