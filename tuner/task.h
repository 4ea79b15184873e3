// SPDX-License-Identifier: Apache-2.0
// One workload of a job while it is tuned: what it is, its search, and what is known of its times.
//
// No calls of the farm here, and no threads: the loop (tune_loop.cc) decides, visits (visit.h) measure.
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
#include "tuner/belief.h"
#include "tuner/farm.h"
#include "tuner/job.h"
#include "tuner/search.h"

namespace hone::tuner {

struct Task {
  ir::Workload workload;
  Batch description;                        // the workload's part
  double count = 1;                         // times the model runs it
  std::vector<const space::Entry*> spaces;  // that the search may choose from
  std::unique_ptr<Search> search;
  Proposal standard;                               // the default, untuned
  double expected_seconds = 0, least_seconds = 0;  // of the default, of anything: by the draft

  std::optional<double> default_seconds, best_seconds;
  int64_t best_times = 1;  // as of a Belief
  std::string best_schedule;
  space::Decisions best_decisions;
  Pace pace;                     // of the device, by what the search believes
  int64_t trials = 0;            // in this job
  bool confirmed = false;        // the winner has been compared in turns with the default
  bool settled = false;          // earlier runs have searched to the end
  bool changed = false;          // something was measured since; by an earlier run, too
  std::vector<Proposal> rivals;  // of the winner, which it has yet to be compared with
  int lost_batches = 0;          // in a row, that could not be measured at all
  std::string trouble;           // why, of the last one; at the end also why else there is no time
};

// FailedPrecondition or InvalidArgument: the text is no workload, it is not the canonical one with the given digest, or
// it has no default schedule.
absl::StatusOr<Task> MakeTask(const JobWorkload& given, const target::Target& target, uint64_t seed, int threads,
                              space::Families families = {}, const SearchParts& parts = {});

// The repeats that count: those taken in turns with other finalists where there are any, since they saw the same
// machine. Empty for a failure.
std::vector<double> RepeatsOf(const Outcome& outcome);
std::optional<double> SecondsOf(const Outcome& outcome);

// What the slowest of those took that were timed in turns with one another; 0: none was.
double SlowestInTurns(const std::vector<const Outcome*>& outcomes);
// Of one that has times, where the slowest in turns took so long: who was not timed in turns lost its place to those
// that were, and by itself it may have been timed in a better moment; so it is not believed to be faster.
double SecondsBeside(const Outcome& outcome, double slowest);

// Whether it has times or failed; else its visit was disturbed.
bool HasTaught(const PastTrial& past);
// Takes in a trial of an earlier run on this kind of device.
void Remember(Task& task, const PastTrial& past);

// The best is who is believed to be. A winner that was confirmed is compared with whoever follows it.
void TakeFastest(Task& task);

// The best so far, which runs beside the candidates.
Proposal IncumbentOf(const Task& task);

// Whether something was timed after the newest comparison, which decides alone: a run that was interrupted.
// past: as below.
bool MeasuredSinceConfirmed(const std::vector<PastTrial>& past);

// Whoever has won a confirmation and was in none since, but for the winner that the task knows: those of other farms,
// whose records were merged, or of a job that ran beside another. The fastest first; times of different days do not
// compare, so that none is too slow. What failed since has had its turn. Nobody while the newest confirmation is of a
// time after `now`: by a clock that was ahead, it would stay the newest, and decide. past: as below.
std::vector<Proposal> NotCompared(const Task& task, const std::vector<PastTrial>& past, absl::Time now);

// Whether earlier runs have searched the spaces of this one to the end: their winner is confirmed, and many more were
// tried in vain since it, or one that is as good, was found. past: all that the task remembers, the oldest first.
bool SearchedToTheEnd(const Task& task, const std::vector<PastTrial>& past);

// Forgets the times of those that failed in a way that speaks against them (records/winner.h). Where the best is one of
// them, the best of the rest follows it. Returns how many they are. The candidate ids of proposals are their places.
size_t Condemn(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes);

// Takes in how the incumbent of a visit did, of which was believed what `then` says when the visit was put together:
// another one may be the best by now. By what the visit's times are to be divided; nothing: it was disturbed.
std::optional<double> MeetIncumbent(Task& task, const Proposal& incumbent, Belief then, const Outcomes& outcomes,
                                    const std::string& id);

// Takes in the outcomes of proposals, of a visit of that pace; those that have none are withdrawn.
void Observe(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes, double pace);

// Takes in a confirmation: the winner is who records/winner.h says. It is confirmed if it was compared with the
// default, or is the default and nothing else is left; for some finalists there may have been no time. What was
// compared with the default the search believes from then on. False: the best was condemned, and what follows it was
// not compared.
bool Conclude(Task& task, const std::vector<Proposal>& finalists, const Outcomes& outcomes);

// Best decisions of other tasks of the same operator, the most alike first.
std::vector<space::Decisions> RelativesOf(const Task& task, const std::vector<Task>& tasks);

WorkloadProgress Describe(const Task& task);

std::string CandidateId(size_t place);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TASK_H_
