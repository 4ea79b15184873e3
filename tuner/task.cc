// SPDX-License-Identifier: Apache-2.0
#include "tuner/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/median.h"
#include "base/status.h"
#include "compiler/schedule/step.h"
#include "compiler/space/space.h"
#include "records/winner.h"
#include "tuner/analytic_model.h"

namespace hone::tuner {
namespace {

constexpr size_t kRelativesMax = 3;           // most relatives whose decisions a search gets
constexpr size_t kNoiseRepeatsMin = 3;        // fewest repeats whose spread is a measure of noise
constexpr double kFewRepeatsNoiseMin = 0.05;  // the least noise of fewer repeats, as a fraction of their median
constexpr double kEqualTimeRatioMax = 1.03;   // ratio of two confirmed times up to which they count as equal
// A search of earlier runs has converged after this many trials, and more than that many since the winner was found.
constexpr int64_t kConvergedTrialsMin = 64, kTrialsWithoutGainMax = 24;

// The median deviation from the median, as a fraction of the median.
double NoiseOf(const std::vector<double>& repeats, double median) {
  std::vector<double> deviations;
  for (const double s : repeats) deviations.push_back(std::abs(s - median));
  const double noise = median > 0 ? Median(std::move(deviations)) / median : 0;
  return repeats.size() < kNoiseRepeatsMin ? std::max(noise, kFewRepeatsNoiseMin) : noise;
}

// Logarithms of the extents of the stage with the most work. The distance of two shapes tells how similar two workloads
// of one operator are.
std::vector<double> Shape(const ir::Workload& workload) {
  std::vector<double> shape;
  double most = -1;
  for (const ir::Stage& stage : workload.stages) {
    double work = 1;
    std::vector<double> extents;
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const ir::Axis& axis : *axes) {
        extents.push_back(std::log2(static_cast<double>(std::max<int64_t>(1, axis.extent.max()))));
        work *= static_cast<double>(axis.extent.max());
      }
    }
    if (work <= most) continue;
    most = work;
    shape = std::move(extents);
  }
  return shape;
}

// The outcome of a finalist, as records::FindWinner needs it. row: identifies the finalist for the caller.
records::Contender Confirmed(const Task& task, const std::string& schedule, const Outcome& outcome, size_t row) {
  records::Contender contender{.row = static_cast<int64_t>(row),
                               .schedule = schedule,
                               .is_default = schedule == task.default_proposal.schedule,
                               .verified = true,
                               .confirmed = true};
  SetRepeats(contender, outcome.seconds, outcome.first_interleaved);
  return contender;
}

bool IsInterleaved(const Outcome& outcome) {
  return records::HasInterleavedRounds(outcome.seconds.size(), outcome.first_interleaved);
}

void SetBest(Task& task, const Proposal& proposal, const LatencyEstimate& estimate) {
  task.best_seconds = estimate.seconds;
  task.best_timings = estimate.timings;
  task.best_schedule = proposal.schedule;
  task.best_decisions = proposal.decisions;
}

}  // namespace

void UpdateBest(Task& task) {
  const std::vector<Proposal> fastest = task.search->Best(1);
  if (fastest.empty()) return;
  const LatencyEstimate estimate = *task.search->EstimateOf(fastest.front().schedule);
  if (task.best_seconds.has_value() && *task.best_seconds <= estimate.seconds) return;
  if (task.confirmed && fastest.front().schedule != task.best_schedule) {
    if (task.best_schedule != task.default_proposal.schedule) task.pending_finalists.push_back(IncumbentOf(task));
    task.confirmed = false;
  }
  SetBest(task, fastest.front(), estimate);
}

namespace {

bool HasExcludingFailure(const Outcome& outcome) {
  return outcome.failure.has_value() && records::RulesOutSchedule(outcome.failure->kind);
}

}  // namespace

namespace {

// The points of the job's workload. InvalidArgument: they are not points of the workload's open sizes.
absl::StatusOr<std::vector<SizePoint>> PointsOf(const JobWorkload& given, const ir::Workload& workload) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(
        fmt::format("its sizes '{}' do not give each of its {} open sizes a value in its range; submit the model with "
                    "this version of hone",
                    given.sizes, workload.sizes.size()));
  };
  std::optional<std::vector<SizePoint>> points = ParseSizePoints(given.sizes);
  if (!points.has_value() || points->empty() != workload.sizes.empty()) return invalid();
  for (const SizePoint& point : *points) {
    const bool fits = std::ranges::equal(point, workload.sizes, [](const NamedSize& value, const ir::OpenSize& size) {
      return value.name == size.name && size.min <= value.value && value.value <= size.max;
    });
    if (!fits) return invalid();
  }
  return *std::move(points);
}

}  // namespace

std::string CandidateId(size_t index) { return fmt::format("c{}", index); }

absl::StatusOr<Task> MakeTask(const JobWorkload& given, const target::Target& target, uint64_t seed, int threads,
                              space::Families families, const SearchParts& parts) {
  Task task;
  HONE_ASSIGN_OR_RETURN(task.workload, ir::ParseWorkload(given.text));
  task.count = static_cast<double>(std::max<int64_t>(1, given.count));
  HONE_ASSIGN_OR_RETURN(const std::vector<SizePoint> points, PointsOf(given, task.workload));
  task.description = DescribeWorkload(task.workload, target, points);
  // Records are found by the digest, and their schedules use the names of the canonical text.
  if (Sha256Hex(given.text) != given.digest || task.description.workload_digest != given.digest) {
    return absl::InvalidArgumentError(
        "its text is not canonical, or does not have this digest; submit the model with this version of hone");
  }
  HONE_ASSIGN_OR_RETURN(space::Candidate default_candidate, space::Default(task.workload, target));
  task.default_proposal = {std::move(default_candidate.decisions), schedule::Print(default_candidate.schedule),
                           ExtractFeatures(default_candidate.state, target, points), Origin::kDefault};
  task.default_estimate_seconds = std::exp(task.default_proposal.features[kAnalyticLogSeconds]);
  task.lower_bound_seconds = LowerBoundSeconds(task.description.flops, task.description.bytes, target);
  Search::Options options;
  options.seed = seed;
  options.threads = threads;
  options.parts = parts;
  options.points = points;
  const auto workload = std::make_shared<const ir::Workload>(task.workload);
  task.search = std::make_unique<Search>(
      [workload, target, families, fitting = space::ApplicableEntries(*workload, target)](space::Chooser& chooser) {
        return space::Build(*workload, target, fitting, chooser, families);
      },
      target, options);
  task.search->SetDefault(task.default_proposal);
  task.spaces = space::ApplicableEntries(task.workload, target, families);
  for (const std::string& text : given.hints) {
    HONE_ASSIGN_OR_RETURN(const space::TileHint hint, space::ParseTileHint(text));
    for (space::Decisions& decisions : space::Hinted(task.workload, target, hint, families)) {
      task.search->AddRelative(std::move(decisions));
    }
  }
  return task;
}

std::vector<double> RepeatsOf(const Outcome& outcome) {
  const auto repeats = records::DecidingRepeats(outcome.seconds, outcome.first_interleaved);
  return {repeats.begin(), repeats.end()};
}

std::optional<double> SecondsOf(const Outcome& outcome) {
  std::vector<double> repeats = RepeatsOf(outcome);
  if (repeats.empty()) return std::nullopt;
  return Median(std::move(repeats));
}

double SlowestInterleaved(const std::vector<const Outcome*>& outcomes) {
  double slowest = 0;
  for (const Outcome* outcome : outcomes) {
    if (IsInterleaved(*outcome)) slowest = std::max(slowest, *SecondsOf(*outcome));
  }
  return slowest;
}

double ComparableSeconds(const Outcome& outcome, double slowest) {
  const double seconds = *SecondsOf(outcome);
  return IsInterleaved(outcome) ? seconds : std::max(seconds, slowest);
}

bool HasOutcome(const PastTrial& past) {
  return past.outcome.failure.has_value() || SecondsOf(past.outcome).has_value();
}

void Remember(Task& task, const PastTrial& past) {
  if (!HasOutcome(past)) return;
  const std::optional<double> seconds = SecondsOf(past.outcome);
  const bool is_default = past.schedule == task.default_proposal.schedule;
  if (is_default && seconds.has_value() && (past.confirmed || !task.default_seconds.has_value())) {
    task.default_seconds = seconds;
  }
  const absl::StatusOr<space::Decisions> decisions = space::ParseDecisions(past.decisions);
  if (decisions.ok()) task.search->Remember(*decisions, past.schedule, seconds);
  if (past.confirmed && IsInterleaved(past.outcome))
    task.search->SetEstimate(past.schedule, {*seconds, kConfirmedTimings});
  if (HasExcludingFailure(past.outcome)) task.search->Exclude(past.schedule);
}

void TakeOutOtherSizes(Task& task, std::vector<PastTrial>& past) {
  std::erase_if(past, [&task](const PastTrial& trial) {
    if (trial.sizes == task.description.sizes) return false;
    if (HasExcludingFailure(trial.outcome)) Remember(task, trial);
    return true;
  });
}

Proposal IncumbentOf(const Task& task) { return {task.best_decisions, task.best_schedule, {}, Origin::kRelative, {}}; }

namespace {

// The space whose decisions the trial has, among those that the search may choose from; null: another space.
const space::Entry* SpaceOf(const Task& task, const PastTrial& trial) {
  const absl::StatusOr<space::Decisions> decisions = space::ParseDecisions(trial.decisions);
  return decisions.ok() ? space::EntryOf(*decisions, task.spaces) : nullptr;
}

}  // namespace

bool IsMeasuredSinceConfirmed(const std::vector<PastTrial>& past) {
  const auto newest = std::find_if(past.rbegin(), past.rend(), [](const PastTrial& t) { return t.confirmed; });
  return std::any_of(past.rbegin(), newest, [](const PastTrial& t) { return SecondsOf(t.outcome).has_value(); });
}

std::vector<Proposal> UncomparedWinners(const Task& task, const std::vector<PastTrial>& past, absl::Time now) {
  std::map<std::string_view, std::vector<const PastTrial*>> finals;  // the trials of confirmations, by batch
  std::map<std::string_view, absl::Time> last;                       // by schedule: when it last was compared or failed
  const auto note = [&last](const PastTrial& trial) {
    absl::Time& time = last.try_emplace(trial.schedule, trial.measured_at).first->second;
    time = std::max(time, trial.measured_at);
  };
  for (const PastTrial& trial : past) {
    if (trial.outcome.failure.has_value()) note(trial);
    if (trial.confirmed && SecondsOf(trial.outcome).has_value()) finals[trial.batch].push_back(&trial);
  }
  struct Won {
    double seconds;
    const PastTrial* trial;
    absl::Time ended;  // when its confirmation ended
  };
  std::vector<Won> won;
  for (const auto& [batch, trials] : finals) {
    std::vector<records::Contender> contenders;
    for (const PastTrial* t : trials) {
      contenders.push_back(Confirmed(task, t->schedule, t->outcome, contenders.size()));
    }
    const std::optional<records::Winner> winner = records::FindWinner(contenders);
    if (!winner.has_value() || !winner->confirmed || !winner->default_seconds.has_value()) continue;
    won.push_back({winner->seconds, trials[winner->index], absl::InfinitePast()});
    for (const PastTrial* t : trials) {
      note(*t);
      won.back().ended = std::max(won.back().ended, t->measured_at);
    }
  }
  if (std::any_of(won.begin(), won.end(), [now](const Won& w) { return w.ended > now; })) return {};
  std::erase_if(
      won, [&](const Won& w) { return w.trial->schedule == task.best_schedule || last[w.trial->schedule] > w.ended; });
  std::stable_sort(won.begin(), won.end(), [](const Won& a, const Won& b) { return a.seconds < b.seconds; });
  std::vector<Proposal> uncompared;
  for (const Won& w : won) {
    uncompared.push_back({space::ParseDecisions(w.trial->decisions).value_or(space::Decisions()),
                          w.trial->schedule,
                          {},
                          Origin::kRelative,
                          {}});
  }
  return uncompared;
}

bool HasConverged(const Task& task, const std::vector<PastTrial>& past) {
  if (!task.confirmed || task.changed) return false;
  std::set<std::string_view> winners;
  for (const PastTrial& trial : past) {
    if (!trial.confirmed) continue;
    const std::optional<double> seconds = SecondsOf(trial.outcome);
    if (seconds.has_value() && *seconds <= kEqualTimeRatioMax * *task.best_seconds) winners.insert(trial.schedule);
  }
  int64_t tried = 0, without_gain = 0;
  bool found = false;
  std::set<const space::Entry*> searched;  // spaces with a trial other than the default schedule
  for (const PastTrial& trial : past) {
    if (trial.confirmed || !HasOutcome(trial)) continue;
    const bool is_default = trial.schedule == task.default_proposal.schedule;
    const space::Entry* space = SpaceOf(task, trial);
    if (space != nullptr && !is_default) searched.insert(space);
    found |= winners.contains(trial.schedule);
    if (space == nullptr && !is_default) continue;
    ++tried;
    if (found) ++without_gain;
  }
  return tried >= kConvergedTrialsMin && without_gain > kTrialsWithoutGainMax && searched.size() == task.spaces.size();
}

size_t ExcludeFailed(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes) {
  size_t excluded = 0;
  for (size_t i = 0; i < proposals.size(); ++i) {
    const auto outcome = outcomes.find(CandidateId(i));
    if (outcome == outcomes.end() || !HasExcludingFailure(outcome->second)) continue;
    ++excluded;
    task.search->Exclude(proposals[i].schedule);
    if (proposals[i].schedule != task.best_schedule) continue;
    task.confirmed = false;
    task.best_seconds.reset();
    task.best_schedule.clear();
    task.best_decisions.clear();
    UpdateBest(task);
  }
  return excluded;
}

std::optional<double> ObserveIncumbent(Task& task, const Proposal& incumbent, LatencyEstimate then,
                                       const Outcomes& outcomes, const std::string& id) {
  const auto outcome = outcomes.find(id);
  const std::optional<double> seconds = outcome == outcomes.end() ? std::nullopt : SecondsOf(outcome->second);
  if (!seconds.has_value()) return task.speed_factor.value();
  const std::optional<double> speed_factor = task.speed_factor.Update(then, *seconds);
  if (!speed_factor.has_value()) return std::nullopt;
  task.search->SetEstimate(incumbent.schedule, then);
  if (incumbent.schedule == task.best_schedule) SetBest(task, incumbent, then);
  if (incumbent.schedule == task.default_proposal.schedule) task.default_seconds = then.seconds;
  return speed_factor;
}

void Observe(Task& task, const std::vector<Proposal>& proposals, const Outcomes& outcomes, double speed_factor) {
  std::vector<const Outcome*> all;
  for (size_t i = 0; i < proposals.size(); ++i) {
    const auto outcome = outcomes.find(CandidateId(i));
    if (outcome != outcomes.end()) all.push_back(&outcome->second);
  }
  const double slowest = SlowestInterleaved(all);
  for (size_t i = 0; i < proposals.size(); ++i) {
    const auto outcome = outcomes.find(CandidateId(i));
    if (outcome == outcomes.end()) {
      task.search->Withdraw(proposals[i].schedule);
      continue;
    }
    const std::optional<double> timed = SecondsOf(outcome->second);
    if (!timed.has_value()) {
      task.search->Observe(proposals[i].schedule, std::nullopt);
      continue;
    }
    const double seconds = ComparableSeconds(outcome->second, slowest) / speed_factor;
    task.search->Observe(proposals[i].schedule, seconds, NoiseOf(RepeatsOf(outcome->second), *timed));
    task.changed = true;
    if (proposals[i].schedule == task.default_proposal.schedule) task.default_seconds = seconds;
  }
  UpdateBest(task);
  task.search->DropSlowDecisions();
}

namespace {

// Makes the times of a confirmation the search's latency estimates. The default schedule tells the device's speed
// factor, because it was not selected by a lucky time.
void SetConfirmedEstimates(Task& task, const std::vector<records::Contender>& contenders) {
  const std::optional<LatencyEstimate> default_estimate = task.search->EstimateOf(task.default_proposal.schedule);
  const auto timed = std::find_if(contenders.begin(), contenders.end(),
                                  [](const records::Contender& c) { return c.is_default && c.confirmed; });
  if (!default_estimate.has_value() || timed == contenders.end()) return;
  const double speed_factor = Median(timed->repeats) / default_estimate->seconds;
  for (const records::Contender& c : contenders) {
    if (c.confirmed) task.search->SetEstimate(c.schedule, {Median(c.repeats) / speed_factor, kConfirmedTimings});
  }
}

}  // namespace

bool ApplyConfirmation(Task& task, const std::vector<Proposal>& finalists, const Outcomes& outcomes) {
  const size_t left = finalists.size() - ExcludeFailed(task, finalists, outcomes);
  std::vector<records::Contender> contenders;
  for (size_t i = 0; i < finalists.size(); ++i) {
    const auto outcome = outcomes.find(CandidateId(i));
    if (outcome == outcomes.end() || outcome->second.seconds.empty()) continue;
    contenders.push_back(Confirmed(task, finalists[i].schedule, outcome->second, i));
  }
  SetConfirmedEstimates(task, contenders);
  const std::optional<records::Winner> winner = records::FindWinner(contenders);
  const bool best_is_default = task.best_schedule.empty() || task.best_schedule == task.default_proposal.schedule;
  const bool alone = left == 1 && best_is_default;  // only the default is left, so there is nothing to compare
  if (!winner.has_value() || (!winner->confirmed && !alone)) {
    return task.best_schedule.empty() ||
           std::any_of(finalists.begin(), finalists.end(),
                       [&task](const Proposal& finalist) { return finalist.schedule == task.best_schedule; });
  }
  if (winner->default_seconds.has_value()) task.default_seconds = winner->default_seconds;
  SetBest(task, finalists[static_cast<size_t>(contenders[winner->index].row)], {winner->seconds, kConfirmedTimings});
  task.confirmed = alone || winner->default_seconds.has_value();
  task.changed = !task.confirmed;
  return true;
}

std::vector<space::Decisions> RelativesOf(const Task& task, const std::vector<Task>& tasks) {
  const std::vector<double> shape = Shape(task.workload);
  std::vector<std::pair<double, const Task*>> relatives;
  for (const Task& other : tasks) {
    if (&other == &task || other.workload.op != task.workload.op || other.best_decisions.empty()) continue;
    const std::vector<double> theirs = Shape(other.workload);
    if (theirs.size() != shape.size()) continue;
    double distance = 0;
    for (size_t i = 0; i < shape.size(); ++i) distance += std::abs(shape[i] - theirs[i]);
    relatives.emplace_back(distance, &other);
  }
  std::stable_sort(relatives.begin(), relatives.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<space::Decisions> decisions;
  for (size_t i = 0; i < std::min(kRelativesMax, relatives.size()); ++i) {
    decisions.push_back(relatives[i].second->best_decisions);
  }
  return decisions;
}

WorkloadProgress Describe(const Task& task) {
  WorkloadProgress progress = {
      task.description.workload_digest, task.trials, task.default_seconds, task.best_seconds, task.best_schedule, 0};
  if (!task.best_seconds.has_value()) progress.failure_reason = task.failure_reason;
  const double best = task.best_seconds.value_or(0);
  if (best > 0) progress.roofline_share = std::min(1.0, task.lower_bound_seconds / best);
  return progress;
}

}  // namespace hone::tuner
