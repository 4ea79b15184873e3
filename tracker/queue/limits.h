// SPDX-License-Identifier: Apache-2.0
// Every time and count that the queue decides by, in one table, each with its reason. What one identity may take of the
// farm is a table of its own: quotas.h.
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
  absl::Duration lease_ttl = absl::Seconds(30);  // a tuner that compiles on all cores still reports every second
  // Tuners lost in a row without one more trial between them: then it is the job that ends them. Whatever it measures
  // between two losses shows that it goes on, and the count begins anew.
  int max_fruitless = 5;
  absl::Duration store_progress_every = absl::Seconds(5);  // of numbers for people: what counts is in the records
  // Without a device for what a running job would measure, before another job may get its tuner: an agent that is
  // started anew is back sooner.
  absl::Duration park_after = absl::Seconds(15);
  // So long such another job waits: a tuner that is free would have taken it, and one that was told to stop needs some
  // seconds.
  absl::Duration park_when_wanted_for = absl::Seconds(5);
  // For a tuner, before a job gives way: one that is about to end may do so, and what is on a device then is measured
  // again, so that it must not happen all the time.
  absl::Duration preempt_after = absl::Seconds(30);
  absl::Duration until_grace = absl::Seconds(60);    // for a tuner to confirm its winners and end the job by itself
  int max_open = kQuotas.open_jobs;                  // of one submitter
  int64_t max_open_bytes = kQuotas.open_job_bytes;   // of one submitter
  std::vector<std::string> notify_allowed;           // beginnings of addresses (notice_url.h); none: nobody is told
  int max_leased = kQuotas.leased_jobs;              // by all tuners of one name
  int most_ended = 1000;                             // kept after their end, the newest: a year of a busy lab's nights
  size_t most_ended_bytes = size_t{256} << 20;       // of memory, with their specifications and last progress
  absl::Duration keep_ended = absl::Hours(24 * 90);  // long enough for a report of the quarter
  // However few are kept, so long those whose end somebody may not have heard of: one who watches, and whose tracker or
  // line is away for a while; or who is to be told (tracker/http/notifier.h), which is tried for a day.
  absl::Duration keep_news = absl::Minutes(10), keep_untold = absl::Hours(24);
  int most_news = 1000;  // of those, beside most_ended: nobody shall fill the book with jobs that he cancels
};

struct DeviceOptions {
  absl::Duration lease_ttl = absl::Seconds(20);        // five heartbeats: silent for longer means lost
  absl::Duration offline_after = absl::Seconds(45);    // an idle agent may hang in a call for 20 s
  absl::Duration forget_after = absl::Hours(24 * 14);  // holidays
  // Troubles in a row, without a measured batch between: one happens to every device, three do not by chance.
  int troubles_to_quarantine = 3;
  // And troubles among its newest batches, whatever lies between: who fails every second one costs everybody half of
  // their time. A search for the candidate that kills the only board stays below, as each of its steps is one trouble.
  int recent_batches = 30;  // 32 at most
  int recent_troubles_to_quarantine = 10;
  absl::Duration first_quarantine = absl::Minutes(10);  // most of what mends itself has done so by then
  absl::Duration longest_quarantine = absl::Hours(12);  // it doubles each time; a person looks at most twice a day
  int batches_to_forget_quarantines = 20;               // measured since: the next one is short again
  // The golden kernel drifts when its median is off the baseline by more than both. Neighbours on a busy machine cost
  // tens of percent for a moment, a clock that is stuck or a fan that stands costs half for good.
  double drift_of_median = 0.5;
  double drift_in_mads = 8;
  int drifts_to_quarantine = 2;                              // in a row: one may be a neighbour
  int least_checks = 5;                                      // before there is a baseline to be off
  absl::Duration first_drift_quarantine = absl::Minutes(1);  // instead: a neighbour may be gone by then
  size_t baseline_checks = 15;                               // the newest so many make the baseline
  double hot_c = 90;   // silicon throttles from 95 to 105; below that it slows down nothing
  double cool_c = 80;  // hot until this: else it would be in and out
  absl::Duration cooling_check = absl::Seconds(30);  // between two looks at a device that cools down
  // Then it is ill: what a fan, a pause or a cooler room mends has been mended by then.
  absl::Duration longest_cooling = absl::Hours(1);
  // What a device's sandbox must be for work; UNSPECIFIED: nothing is required, as where all are of one team.
  v1::SandboxLevel required_sandbox = v1::SANDBOX_LEVEL_UNSPECIFIED;
};

struct BatchOptions {
  absl::Duration absence_limit = absl::Hours(12);  // of all devices that could take a piece: over night
  // Between two looks at which pieces that is so of: nothing to limits of hours.
  absl::Duration look_for_devices_every = absl::Minutes(1);
  absl::Duration run_floor = absl::Minutes(2);   // run limit of a visit: this, plus what its policy allows
  absl::Duration total_limit = absl::Hours(24);  // all attempts, and absences, but for waiting for a turn
  int max_attempts = 3;                          // of the whole batch, before it is split
  int max_losses = 12;                           // of all pieces together
  // So many different devices cannot measure it: the batch is to blame and none of them. Two could be two bad boards.
  int devices_to_blame = 3;
  // Where no other could take it, so often on the same, whose golden kernel is right.
  int failures_to_blame = 2;
  // What a user had of the devices counts half after so long: whoever had them all day shares with who comes now within
  // minutes, and it is so short that nothing is lost with a restart of the tracker.
  absl::Duration share_half_life = absl::Minutes(10);
  int max_open_per_job = kQuotas.open_batches;
  int max_finished_per_job = kQuotas.finished_batches;
  int64_t max_open_bytes_per_job = kQuotas.open_batch_bytes;
  int64_t max_open_bytes_per_tuner = kQuotas.open_batch_bytes_of_tuner;
};

struct FarmOptions {
  JobOptions jobs;
  DeviceOptions devices;
  BatchOptions batches;
  absl::Duration heartbeat = absl::Seconds(4);     // next_sync of a busy agent
  absl::Duration idle_hold = absl::Seconds(20);    // longest time a call is held
  absl::Duration fence_margin = absl::Seconds(5);  // fence_after = lease_ttl - fence_margin
  // The shell lets time pass twice a second: when it did not for longer than this, the tracker itself stood still, and
  // nobody can have been heard.
  absl::Duration stall = absl::Seconds(2);
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_QUEUE_LIMITS_H_
