// SPDX-License-Identifier: Apache-2.0
// The limits and periods of the queue, one table for all, each with its reason. The quotas of one identity are in
// quotas.h.
#ifndef HONE_TRACKER_QUEUE_LIMITS_H_
#define HONE_TRACKER_QUEUE_LIMITS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "hone/v1/agent.pb.h"
#include "tracker/queue/quotas.h"

namespace hone::tracker {

struct JobOptions {
  // A silent tuner loses its lease. A tuner that compiles on all cores still reports every second.
  absl::Duration lease_ttl = absl::Seconds(30);
  // A job fails when so many tuners in a row were lost with it and none of them finished a trial: the job then probably
  // kills its tuners. Each finished trial resets the count.
  int fruitless_leases_max = 5;
  // A run fails when so many devices in a row were lost with it: the package then probably kills them.
  int lost_runs_max = 3;
  // How often progress is stored. It is for display only; the measurements are in the records.
  absl::Duration store_progress_every = absl::Seconds(5);
  // A running job may lose its tuner to another job when no device could take its batches for this long. An agent that
  // restarts is back sooner.
  absl::Duration preempt_absent_after = absl::Seconds(15);
  // The other job must have waited for a tuner for this long: a free tuner would have taken it by then, and a tuner
  // that was told to stop needs some seconds.
  absl::Duration preempt_absent_when_wanted_for = absl::Seconds(5);
  // How long a job waits for a tuner before another job is preempted for it. Preemption must be rare, because what is
  // on a device then is measured again; and a running job that is about to end shall end.
  absl::Duration preempt_after = absl::Seconds(30);
  absl::Duration until_grace = absl::Seconds(60);   // after JobSpec.until: for the tuner to confirm winners and end
  int open_jobs_max = kQuotas.open_jobs;            // of one submitter
  int64_t open_bytes_max = kQuotas.open_job_bytes;  // of one submitter
  std::vector<std::string> notify_allowed;          // URL prefixes (notice_url.h); empty: no notice is sent
  int leased_jobs_max = kQuotas.leased_jobs;        // by all tuners of one name
  // Ended jobs that are kept, the newest first: a year of a busy lab's nights. The bytes are memory, with
  // specifications and last progress.
  int ended_max = 1000;
  size_t ended_bytes_max = size_t{256} << 20;
  absl::Duration keep_ended = absl::Hours(24 * 90);  // long enough for a quarterly report
  // An ended job is kept for at least this long, beyond ended_max: keep_ended_unseen for clients that watch it over an
  // interrupted connection, keep_ended_unnotified while its notice is undelivered (tracker/http/notifier.h).
  absl::Duration keep_ended_unseen = absl::Minutes(10), keep_ended_unnotified = absl::Hours(24);
  int ended_unseen_max = 1000;  // the most jobs kept beyond ended_max, so that submit-and-cancel cannot fill the memory
};

struct DeviceOptions {
  absl::Duration lease_ttl = absl::Seconds(20);      // five heartbeats: silent for longer means lost
  absl::Duration offline_after = absl::Seconds(45);  // an idle agent may hang in a call for 20 s
  // An agent whose open call broke off, or whose certificate was revoked, calls again at once or not at all.
  absl::Duration offline_after_break = absl::Seconds(5);
  absl::Duration forget_after = absl::Hours(24 * 14);  // longer than a holiday
  // Failures in a row, without a measured batch between them. One failure happens to every device; three are no chance.
  int failures_to_quarantine = 3;
  // Failures among the newest batches, in any order: a device that fails every second batch costs all users half of
  // their time. The search for a candidate that kills the only board stays below the limit, because each of its steps
  // is one failure.
  int recent_batches = 30;  // at most 32
  int recent_failures_to_quarantine = 10;
  absl::Duration first_quarantine = absl::Minutes(10);  // most passing causes are over by then
  absl::Duration quarantine_max = absl::Hours(12);      // each quarantine is twice as long as the one before
  int batches_to_forget_quarantines = 20;               // after so many measured batches the next one is short again
  // The golden kernel drifts when its median differs from the baseline by more than both: this fraction of the median,
  // and so many median absolute deviations. Other load on a machine costs tens of percent for a moment; a stuck clock
  // or a broken fan costs half permanently.
  double drift_of_median = 0.5;
  double drift_in_mads = 8;
  int drifts_to_quarantine = 2;                              // in a row; a single one may be other load
  int baseline_checks_min = 5;                               // drift is judged once the baseline has so many checks
  absl::Duration first_drift_quarantine = absl::Minutes(1);  // after drift, because other load may be gone by then
  size_t baseline_checks = 15;                               // the baseline is made of the newest so many checks
  double hot_c = 90;   // the device begins to cool down; silicon throttles from 95 to 105 degrees
  double cool_c = 80;  // the device is cool again; lower than hot_c, so that it does not alternate
  absl::Duration cooling_check = absl::Seconds(30);  // between two checks of a device that cools down
  // A device that cools down for longer goes into quarantine: a pause does not help it.
  absl::Duration cooling_max = absl::Hours(1);
  // The least sandbox level that a device must have to get work; UNSPECIFIED: any, as where all users trust each other.
  v1::SandboxLevel required_sandbox = v1::SANDBOX_LEVEL_UNSPECIFIED;
};

struct BatchOptions {
  // A batch fails when no device could take one of its pieces for this long; it outlasts a night.
  absl::Duration absence_limit = absl::Hours(12);
  // How often pieces are compared with devices for absence_limit. A minute is little against hours.
  absl::Duration device_check_period = absl::Minutes(1);
  absl::Duration run_limit_min = absl::Minutes(2);  // the run limit of a lease is this plus the times of its policy
  absl::Duration total_limit = absl::Hours(24);     // from submission to result, without the time in the queue
  int whole_batch_leases_max = 3;                   // leases of a whole batch before it is split
  int losses_max = 12;                              // of all pieces of a batch together
  // When so many devices cannot measure a piece, its batch fails and the devices are not blamed. Two devices could both
  // be defective.
  int devices_to_blame = 3;
  // If no untried device exists that could take the piece, its batch fails after so many failures of the piece, counted
  // over all devices. The golden kernel of these devices is correct, so they are not blamed.
  int failures_to_blame = 2;
  // The recent use of a user halves in this time. It is short, so that a user who had all devices for a day shares with
  // a new user within minutes, and so that a restart of the tracker, which forgets the use, changes little.
  absl::Duration share_half_life = absl::Minutes(10);
  int open_per_job_max = kQuotas.open_batches;
  int finished_per_job_max = kQuotas.finished_batches;
  int64_t open_bytes_per_job_max = kQuotas.open_batch_bytes;
  int64_t open_bytes_per_tuner_max = kQuotas.open_batch_bytes_of_tuner;
};

// The limits of fleet watches (fleet_watches.h).
struct WatchOptions {
  int of_submitter_max = 50;
  int total_max = 500;
  // A night has a job for every device, and a submitter may have JobOptions::open_jobs_max jobs.
  int devices_max = 16;             // of one watch
  int device_rows_max = 64;         // of all watches of one submitter
  int device_rows_total_max = 512;  // of all watches; each row has up to nights_max nights of half a kilobyte in memory
  int nights_max = 400;             // kept of each device of a watch: more than a year
  // How long a night's job waits for its device before the night counts as not measured. An agent that restarts or
  // updates at night is back sooner; a later measurement would be during the day, beside other work.
  absl::Duration wait_max = absl::Hours(6);
};

struct FarmOptions {
  JobOptions jobs;
  DeviceOptions devices;
  BatchOptions batches;
  WatchOptions watches;
  absl::Duration heartbeat = absl::Seconds(4);     // next_sync of a busy agent
  absl::Duration idle_hold = absl::Seconds(20);    // longest time a call is held
  absl::Duration fence_margin = absl::Seconds(5);  // fence_after = lease_ttl - fence_margin
  // The shell calls Tick twice a second. A gap longer than this means that the tracker itself stood still and could not
  // receive any call.
  absl::Duration stall = absl::Seconds(2);
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_LIMITS_H_
