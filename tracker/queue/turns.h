// SPDX-License-Identifier: Apache-2.0
// Whose pieces are on devices and whose wait, and what comes of that: how long each job has waited for others, and what
// its user has had of each kind of device (shares.h).
//
// Pure state: told of every piece by the queue of batches, and of time by Pass. Knows nothing of what pieces are. Start
// at Pass. Not thread-safe.
#ifndef HONE_TRACKER_QUEUE_TURNS_H_
#define HONE_TRACKER_QUEUE_TURNS_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "tracker/queue/shares.h"

namespace hone::tracker {

class Turns {
 public:
  explicit Turns(absl::Duration share_half_life) : share_half_life_(share_half_life) {}

  // Time goes by: to be called before anything changes at `now`.
  void Pass(absl::Time now);
  // The tracker stood still for so long, which counts for nobody. To be called before Pass.
  void GiveBack(absl::Duration stall);

  void Queued(const std::string& job_id, const std::string& user);
  // kind: of the device, as its fingerprint's digest.
  void Began(const std::string& job_id, const std::string& kind);  // a queued piece is on a device
  void Ended(const std::string& job_id, const std::string& kind);  // it is there no more
  void Withdrawn(const std::string& job_id);                       // a queued piece is queued no more
  void Forget(const std::string& job_id);

  // Whether the job has something to measure, and nothing of it is on a device.
  bool Waits(const std::string& job_id) const;
  // How long that was so, since it was forgotten last.
  absl::Duration Waited(const std::string& job_id) const;
  // Seconds that the user has had lately: on devices of the kind; on all.
  double UsedBy(const std::string& user, const std::string& kind) const;
  double UsedBy(const std::string& user) const;

 private:
  struct Job {
    std::string user;
    int queued = 0;                      // pieces
    std::map<std::string, int> running;  // pieces by kind of device; none is 0
    absl::Duration waited;
  };

  std::map<std::string, Job> jobs_;
  const absl::Duration share_half_life_;
  std::map<std::string, Shares> shares_;  // by kind of device
  absl::Time passed_ = absl::InfinitePast();
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_TURNS_H_
