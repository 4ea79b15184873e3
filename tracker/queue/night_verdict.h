// SPDX-License-Identifier: Apache-2.0
// Judges one night of a fleet watch by the nights before it: as fast as before, slower, drifting, and why.
//
// A pure function of measured nights. Not here: the schedule (fleet_watches.h) and how a night is measured (runs.cc).
// Start at JudgeNight. Safe from any thread.
#ifndef HONE_TRACKER_QUEUE_NIGHT_VERDICT_H_
#define HONE_TRACKER_QUEUE_NIGHT_VERDICT_H_

#include <span>
#include <string>

#include "hone/v1/fleet_watch.pb.h"

namespace hone::tracker {

// Whether the night has times; otherwise FleetNight.problem says why not.
inline bool WasMeasured(const v1::FleetNight& night) { return night.median_seconds() > 0; }

// Whether the verdict is one of a slow-down.
inline bool IsBad(v1::FleetVerdict verdict) {
  return verdict == v1::FLEET_VERDICT_SLOWER || verdict == v1::FLEET_VERDICT_DRIFT;
}

// The newest measured night of the device; null: there is none. It refers to the device.
inline const v1::FleetNight* NewestMeasuredNight(const v1::FleetWatchDevice& device) {
  for (int i = device.nights_size() - 1; i >= 0; --i) {
    if (WasMeasured(device.nights(i))) return &device.nights(i);
  }
  return nullptr;
}

struct NightVerdict {
  v1::FleetVerdict verdict = v1::FLEET_VERDICT_OK;
  double change = 0;             // against reference_seconds, as a fraction: 0.05 is 5% slower
  double reference_seconds = 0;  // 0: there are no nights to compare with
  std::string cause;             // for people; "" where nothing has to be explained
};

// Nights whose median is the reference of a night, and nights at each end that show a drift.
inline constexpr int kReferenceNights = 7, kDriftNights = 5;

// earlier: the nights before, the oldest first, with their verdicts. slower_than: a fraction, 0.03 = 3%.
//
// - The reference is the median of the last kReferenceNights good nights. A good night was measured and was neither
//   slower nor drifting, so a regression does not become the reference. An accepted night is good, and no night before
//   it counts for the reference or for a drift.
// - SLOWER: slower than the reference by more than slower_than and by more than nights differ by chance (three standard
//   deviations, estimated from the differences between the last measured nights; with fewer than four of them from the
//   spread of the runs).
// - DRIFT: not slower, but the median of the last kDriftNights measured nights is slower than that of the first
//   kDriftNights good ones by more than both limits.
// - CHANGED: neither, and the environment differs from that of the last measured night.
// - FASTER: as SLOWER in the other direction.
NightVerdict JudgeNight(std::span<const v1::FleetNight> earlier, const v1::FleetNight& night, double slower_than);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_NIGHT_VERDICT_H_
