// SPDX-License-Identifier: Apache-2.0
// One workload of a job while it is tuned: its description, its search, and its measured times.
//
// Functions here neither call the farm nor start threads: the tuning loop (tune_loop.cc) decides what to do next, and
// visits (visit.h) measure. A Task belongs to the loop's thread. Start with Task and MakeTask.
#ifndef HONE_TUNER_TASK_H_
#define HONE_TUNER_TASK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"
#include "tuner/batch.h"
#include "tuner/farm.h"
#include "tuner/job.h"
#include "tuner/search.h"
#include "tuner/speed_factor.h"

namespace hone::tuner {

struct Task {
  ir::Workload workload;
  Batch description;                        // the fields of a batch that all batches of the workload share
  double count = 1;                         // calls in one run of the model
  std::vector<const space::Entry*> spaces;  // the spaces that the search may choose from
  std::unique_ptr<Search> search;
  Proposal default_proposal;  // the default schedule
  // Analytic cost model: the estimate for the default schedule, and a lower bound for any schedule.
  double default_estimate_seconds = 0, lower_bound_seconds = 0;

  // Seconds of one call of the default schedule (empty: not measured), and the latency estimate of the best schedule
  // (empty: nothing has a time).
  std::optional<double> default_seconds, best_seconds;
  int64_t best_timings = 1;   // number of timings behind it, as LatencyEstimate::timings
  std::string best_schedule;  // empty: there is none
  space::Decisions best_decisions;
  SpeedFactor speed_factor;       // the device's speed relative to the search's latency estimates
  int64_t trials = 0;             // in this attempt
  bool confirmed = false;         // the best was compared with the default schedule in interleaved rounds
  bool converged_before = false;  // the search had converged in earlier runs
  bool changed = false;           // something was measured since the last confirmation, maybe by an earlier run
  std::vector<Proposal> pending_finalists;  // finalists that the best has yet to be compared with
  int lost_batches = 0;                     // consecutive batches that could not be measured
  std::string
      failure_reason;  // why the last lost batch failed or, after the job, why the workload has no measured time
};

// Makes the task of a workload, with hints added to its search. threads: for drawing candidates. FailedPrecondition or
// InvalidArgument: the text is not a workload, not the canonical text of the digest, or has no default schedule, or the
// sizes are not points of its open sizes.
absl::StatusOr<Task> MakeTask(const JobWorkload& given, const target::Target& target, uint64_t seed, int threads,
                              space::Families families = {}, const SearchParts& parts = {});

// The repeats in seconds to judge by: those taken in interleaved rounds, because the finalists then saw the same
// machine; all repeats if too few were interleaved. Empty for a failure.
std::vector<double> RepeatsOf(const Outcome& outcome);
// Their median; nullopt for a failure.
std::optional<double> SecondsOf(const Outcome& outcome);

// The largest SecondsOf among the outcomes timed in interleaved rounds; 0: there are none.
double SlowestInterleaved(const std::vector<const Outcome*>& outcomes);
// The seconds of an outcome with times, where `slowest` is SlowestInterleaved of its visit. A candidate without
// interleaved rounds was eliminated by the finalists. Its own timing may fall into a faster moment of the device, so it
// counts as no faster than the slowest finalist.
double ComparableSeconds(const Outcome& outcome, double slowest);

// Whether the trial has times or a failure; otherwise its visit was disturbed and it says nothing.
bool HasOutcome(const PastTrial& past);
// Takes in a trial of an earlier run on this kind of device.
void Remember(Task& task, const PastTrial& past);

// Removes the trials that were measured at other sizes than the task's, because their times are not comparable. A
// schedule that failed in a way that rules it out is excluded from the search.
void TakeOutOtherSizes(Task& task, std::vector<PastTrial>& past);

// Makes the schedule with the smallest latency estimate the best, if it is faster than the best so far. A confirmed
// winner that is replaced becomes a finalist of the next confirmation, unless it is the default schedule.
void UpdateBest(Task& task);

// The best so far, as the proposal that is measured along with new candidates.
Proposal IncumbentOf(const Task& task);

// In the following, `past` holds all records of the task's key, oldest first.

// Whether something was timed after the newest confirmation, because a run was interrupted.
bool IsMeasuredSinceConfirmed(const std::vector<PastTrial>& past);

// Winners of confirmations, other than the task's best, that were neither compared nor failed since, fastest first.
// They come from merged records of other farms, or from a job that ran at the same time. Slow ones are included,
// because times of different days are not comparable. Empty while the newest confirmation is later than `now`: it was
// recorded by a clock that was ahead, so a further confirmation would count as older.
std::vector<Proposal> UncomparedWinners(const Task& task, const std::vector<PastTrial>& past, absl::Time now);

// Whether the search had converged in earlier runs: the winner is confirmed, every space of this job was tried, and
// many candidates brought no gain after the winner, or an equally good one, was found.
bool HasConverged(const Task& task, const std::vector<PastTrial>& past);

// Excludes the proposals that failed in a way that rules out their schedule (records::RulesOutSchedule), and drops
// their times. If the best is among them, the fastest of the others replaces it. Returns the number of excluded
// proposals. The candidate id of proposals[i] is CandidateId(i), here and below.
size_t ExcludeFailed(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes);

// Takes in the outcome, under `id`, of a visit's incumbent. then: its latency estimate when the visit was put together;
// another schedule may be the best since. Returns the factor by which the visit's times must be divided, which is the
// task's present speed factor if the incumbent has no time; nullopt: the visit was disturbed.
std::optional<double> ObserveIncumbent(Task& task, const Proposal& incumbent, LatencyEstimate then,
                                       const Outcomes& outcomes, const std::string& id);

// Takes in the outcomes of a visit's proposals, whose times are divided by `speed_factor`. Proposals without an outcome
// are withdrawn. Task::trials is counted by the tuning loop, not here.
void Observe(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes, double speed_factor);

// Takes in a confirmation. records::FindWinner decides which finalist becomes the best. It is confirmed if it was
// compared with the default schedule, or is the default and no other finalist is left; finalists without an outcome are
// ignored. The compared times become the search's latency estimates. Returns false if the confirmation must be
// repeated: the best was excluded, and its successor was not among the finalists.
bool ApplyConfirmation(Task& task, const std::vector<Proposal>& finalists, const Outcomes& outcomes);

// The best decisions of the most similar tasks with the same operator, most similar first.
std::vector<space::Decisions> RelativesOf(const Task& task, const std::vector<Task>& tasks);

WorkloadProgress Describe(const Task& task);

// The id in its batch of the proposal with this index.
std::string CandidateId(size_t index);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TASK_H_
