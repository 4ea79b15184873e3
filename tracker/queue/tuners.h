// SPDX-License-Identifier: Apache-2.0
// Which tuners there are, and when each was last heard of. For people who look at a farm: nothing is decided by it.
//
// Not here: which jobs a tuner holds (jobs.h). It is kept in memory only. A tuner calls at least every 20 seconds, so a
// tracker that was restarted soon knows all of them again.
#ifndef HONE_TRACKER_QUEUE_TUNERS_H_
#define HONE_TRACKER_QUEUE_TUNERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace hone::tracker {

struct KnownTuner {
  std::string id;  // as the tuner states it: NAME or NAME/ANYTHING
  bool is_online = false;
  absl::Time last_heard;  // by the clock of the queue
};

class TunerRegistry {
 public:
  // The tuner made a call.
  void Note(const std::string& id, absl::Time now);
  // The tuner said that it ends.
  void Remove(const std::string& id) { heard_.erase(id); }
  // By id. A tuner that is silent for longer than kOfflineAfter is not online; after kForgetAfter it is forgotten.
  std::vector<KnownTuner> List(absl::Time now) const;

  // A tuner may hang in a call for 20 s.
  static constexpr absl::Duration kOfflineAfter = absl::Seconds(45), kForgetAfter = absl::Hours(24);
  static constexpr size_t kTunersMax = 1000;  // of ids that callers choose; the one silent for longest is forgotten

 private:
  std::map<std::string, absl::Time> heard_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_TUNERS_H_
