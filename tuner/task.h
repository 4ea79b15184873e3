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
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"
#include "tuner/batch.h"
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
  std::string best_schedule;
  space::Decisions best_decisions;
  int64_t trials = 0;                // in this job
  std::set<std::string> remembered;  // schedules tried by earlier runs, on the same kind of device
  bool confirmed = false;            // the winner has been compared in turns with the default
  bool settled = false;              // earlier runs have searched to the end
  bool changed = false;              // something was measured since; by an earlier run, too
  std::vector<Proposal> rivals;      // of the winner, which it has yet to be compared with
  int lost_batches = 0;              // in a row, that could not be measured at all
  std::string trouble;               // why, of the last one; at the end also why else there is no time
};

// FailedPrecondition or InvalidArgument: the text is no workload, it is not the canonical one with the given digest, or
// it has no default schedule.
absl::StatusOr<Task> MakeTask(const JobWorkload& given, const target::Target& target, uint64_t seed, int threads,
                              space::Families families = {}, const SearchParts& parts = {});

// The repeats that count: those taken in turns with other finalists where there are any, since they saw the same
// machine. Empty for a failure.
std::vector<double> RepeatsOf(const Outcome& outcome);
std::optional<double> SecondsOf(const Outcome& outcome);

// How much slower a visit was than another, by a kernel that ran in both: at least, and at most. More is a disturbance.
inline constexpr double kLeastDrift = 0.8, kMostDrift = 1.25;

// On other days the device was faster or slower. Brings the times of all visits to its speed when the winner was
// confirmed: what a visit shares with earlier ones, such as the default and the incumbent, tells how fast it was.
// winner: a schedule; empty: to the speed of the first visit. past: as below.
void BringToOneSpeed(std::vector<PastTrial>& past, const std::string& winner);

// Takes in a trial of an earlier run on this kind of device.
void Remember(Task& task, const PastTrial& past);

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

// Takes in the outcomes of proposals; those that have none are withdrawn. `scale` brings the times to the speed the
// device had when the best was measured.
void Observe(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes, double scale);

// Takes in a confirmation: the winner is who records/winner.h says. It is confirmed if it was compared with the
// default, or is the default and nothing else is left; for some finalists there may have been no time. False: the best
// was condemned, and what follows it was not compared.
bool Conclude(Task& task, const std::vector<Proposal>& finalists, const Outcomes& outcomes);

// Best decisions of other tasks of the same operator, the most alike first.
std::vector<space::Decisions> RelativesOf(const Task& task, const std::vector<Task>& tasks);

WorkloadProgress Describe(const Task& task);

std::string CandidateId(size_t place);

}  // namespace hone::tuner

#endif  // HONE_TUNER_TASK_H_
