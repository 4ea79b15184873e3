// SPDX-License-Identifier: Apache-2.0
// The latency of a model over the course of its tuning, as reports told it, for a plot. It has few points however long
// a job runs: when it is full, every second point is dropped, and later ones come half as often. Pure. Kept in memory
// only: after a restart of the tracker it begins anew.
#ifndef HONE_TRACKER_QUEUE_LATENCY_HISTORY_H_
#define HONE_TRACKER_QUEUE_LATENCY_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace hone::tracker {

class LatencyHistory {
 public:
  static constexpr size_t kPointsMax = 200;

  struct Point {
    absl::Time at;               // by the wall clock
    double tuned_seconds = 0;    // spent tuning until then
    int64_t trials = 0;          // made until then
    double latency_seconds = 0;  // of the model, with the best schedules until then
  };

  // Points come in the order of their times.
  void Add(const Point& point) {
    if (points_.size() > 1 && point.at - points_[points_.size() - 2].at < spacing_) points_.pop_back();
    points_.push_back(point);
    if (points_.size() > kPointsMax) Thin();
  }
  // In the order of their times; the last one is the newest that was added.
  const std::vector<Point>& points() const { return points_; }

 private:
  void Thin() {
    std::vector<Point> kept;
    for (size_t i = 0; i < points_.size(); i += 2) kept.push_back(points_[i]);
    if (points_.size() % 2 == 0) kept.push_back(points_.back());
    points_ = std::move(kept);
    spacing_ = (points_.back().at - points_.front().at) / static_cast<double>(points_.size() - 1);
  }

  std::vector<Point> points_;
  absl::Duration spacing_ = absl::ZeroDuration();  // between two points at least, but for the newest
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_LATENCY_HISTORY_H_
