// SPDX-License-Identifier: Apache-2.0
// Fair sharing of devices: how much device time each user had lately, and how long each job waits in the queue.
//
// BatchQueue reports every piece (a part of a batch) that is queued, starts and ends; AdvanceTo reports time. The user
// with less recent use of a kind of device is served first (BatchQueue::Pick). Use decays: a second counts in full when
// it is spent and half as much after every half-life, so that using idle devices costs a user nothing for long.
// Pure state without a clock: calls that depend on time take `now`, which must not go back. Nothing is stored, because
// after a few half-lives no use is left. Not here: which piece goes next. Start at FairShare::AdvanceTo. Not
// thread-safe.
#ifndef HONE_TRACKER_QUEUE_FAIR_SHARE_H_
#define HONE_TRACKER_QUEUE_FAIR_SHARE_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace hone::tracker {

// The decayed device time of each user, on devices of one kind.
class RecentUse {
 public:
  explicit RecentUse(absl::Duration half_life) : half_life_(half_life) {}

  // Adds `time` that the user spent on one device, ending at `now`.
  void Add(const std::string& user, absl::Duration time, absl::Time now);
  // The tracker stood still for `stall`: nothing decays during that time.
  void ExcludeStall(absl::Duration stall);
  // The user's decayed device seconds at `now`; 0 for an unknown user.
  double SecondsOf(const std::string& user, absl::Time now) const;

 private:
  struct Use {
    double seconds = 0;
    absl::Time at;  // the time at which `seconds` was right; it decays from there
  };
  double Decayed(const Use& use, absl::Time now) const;

  const absl::Duration half_life_;
  std::map<std::string, Use> use_;  // by user
};

class FairShare {
 public:
  explicit FairShare(absl::Duration half_life) : half_life_(half_life) {}

  // Charges the time since the last call to running and waiting jobs. Must be called before anything changes at `now`.
  void AdvanceTo(absl::Time now);
  // The tracker stood still for `stall`: that time is charged to no job. Must be called before AdvanceTo.
  void ExcludeStall(absl::Duration stall);

  // One piece of the job was queued.
  void PieceQueued(const std::string& job_id, const std::string& user);
  // A queued piece of the job was leased to a device. kind: the digest of the device's fingerprint.
  void PieceStarted(const std::string& job_id, const std::string& kind);
  // A leased piece left its device. One that is tried again is reported by PieceQueued.
  void PieceEnded(const std::string& job_id, const std::string& kind);
  // A queued piece was removed from the queue without a lease.
  void PieceWithdrawn(const std::string& job_id);
  // Drops the job. The use of its user stays.
  void Forget(const std::string& job_id);

  // Whether the job has queued pieces and none on a device.
  bool IsWaiting(const std::string& job_id) const;
  // How long IsWaiting was true of the job, since it was last forgotten.
  absl::Duration Waited(const std::string& job_id) const;
  // Decayed device seconds of the user: on devices of one kind, or on all devices.
  double UsedBy(const std::string& user, const std::string& kind) const;
  double UsedBy(const std::string& user) const;

 private:
  struct Job {
    std::string user;
    int queued = 0;                      // pieces
    std::map<std::string, int> running;  // pieces on devices, by kind of device; no entry is 0
    absl::Duration waited;
  };

  std::map<std::string, Job> jobs_;
  const absl::Duration half_life_;
  std::map<std::string, RecentUse> use_;       // by kind of device
  absl::Time charged_ = absl::InfinitePast();  // until when time was charged; InfinitePast: not yet
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_FAIR_SHARE_H_
