// SPDX-License-Identifier: Apache-2.0
// A histogram for metrics: counts of values in buckets with fixed bounds. A plain value; not thread-safe.
#ifndef HONE_TRACKER_QUEUE_HISTOGRAM_H_
#define HONE_TRACKER_QUEUE_HISTOGRAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hone::tracker {

class Histogram {
 public:
  // bounds: inclusive upper bounds of the buckets, ascending. One more bucket takes values above the last bound.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void Add(double value) {
    ++counts_[static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin())];
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  const std::vector<int64_t>& counts() const { return counts_; }  // per bucket, not cumulative
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

// Buckets in seconds: CommitTimeBuckets for locks and disk commits (1 ms to 10 s), QueueTimeBuckets for waiting in
// queues (10 ms to 8 h).
inline Histogram CommitTimeBuckets() {
  return Histogram({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10});
}
inline Histogram QueueTimeBuckets() {
  return Histogram({0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 28800});
}

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_HISTOGRAM_H_
