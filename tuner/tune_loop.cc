// SPDX-License-Identifier: Apache-2.0
#include "tuner/tune_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/confirmation.h"
#include "base/host_lock.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "compiler/space/space.h"
#include "tuner/analytic_model.h"
#include "tuner/budget.h"
#include "tuner/confirmation_time.h"
#include "tuner/cost_model.h"
#include "tuner/heartbeat.h"
#include "tuner/one_speed.h"
#include "tuner/pretrained.h"
#include "tuner/search_parts.h"
#include "tuner/task.h"
#include "tuner/task_scheduler.h"
#include "tuner/visit.h"

namespace hone::tuner {
namespace {

constexpr int kVisitsAhead = 3;         // open visits: one on a device, one compiled, one being compiled
constexpr size_t kFinalistsMax = 3;     // finalists of a workload, without the default schedule
constexpr double kFinalSeconds = 0.05;  // timing of each finalist
constexpr double kDefaultSlowdownMax =
    1.3;  // a confirmation is repeated if the default took more than this times its search time
constexpr double kOverdraftSecondsMax = 4;  // seconds that confirming may take beyond the budget
constexpr double kVisitSecondsMin = 0.5;    // the shortest limit of a visit, in seconds
constexpr double kSharesAfterLoss = 4;      // shares of the time for a workload whose last batch was lost
constexpr size_t kTrainingSamplesMin = 32;  // fewest samples that a cost model is trained on
constexpr double kTrainGrowth = 1.3;        // the model is trained again when the samples have grown by this factor
constexpr int64_t kDriverBatch = 64;        // trials of a round on a device whose driver takes a second for every visit
constexpr int64_t kFirstDriverBatch = 32;   // trials of a workload's first round on such a device
constexpr double kFirstBatchTrialsMin = 4;  // trials of a first round, however small the budget
constexpr int kLostBatchesMax = 3;          // consecutive lost batches after which a workload is given up
constexpr absl::Duration kReportPeriod = absl::Seconds(1);
constexpr const char* kUnmeasured =
    "every candidate failed, or there was no time to measure one; `hone records query --failed any` (for a farm, with "
    "--tracker) lists the failures; a longer --time gives more time";
constexpr int kDeviceAttemptsMax = 10;  // tries before the job is requeued; a device may be registering just now
constexpr absl::Duration kDeviceAttemptPeriod = absl::Milliseconds(200);

// Adds the seconds from construction to destruction to `seconds`.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += absl::ToDoubleSeconds(SteadyNow() - start_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const absl::Time start_ = SteadyNow();
};

// Holds the shared side of the host lock. Searching and learning use all cores, so they must not run while a kernel is
// timed on this machine. Without a lock (HostLock::Open failed) it does nothing.
class ScopedSharedHostLock {
 public:
  explicit ScopedSharedHostLock(absl::StatusOr<HostLock>& lock) {
    if (lock.ok()) lock_.emplace(*lock, HostLock::Mode::kShared);
  }

 private:
  std::optional<ScopedHostLock> lock_;
};

// The loop that tunes one job. Its state belongs to the thread that calls Run; only visits use others.
class TuneLoop {
 public:
  TuneLoop(const Job& job, Farm& farm, BuildPool& builders, const Clock& clock, const Clock& wall_clock)
      : job_(job),
        farm_(farm),
        builders_(builders),
        clock_(clock),
        wall_clock_(wall_clock),
        lock_(HostLock::Open()),
        budget_(job),
        search_ended_(job.earlier.search_ended),
        failed_(job.earlier.failed),
        spent_(job.earlier.spent) {}

  absl::Status Run() {
    HONE_RETURN_IF_ERROR(MakeTasks());
    HONE_RETURN_IF_ERROR(AwaitDevice());
    HONE_RETURN_IF_ERROR(ReadRecords());
    if (!search_ended_) {
      if (!budget_.nothing_left()) HONE_RETURN_IF_ERROR(SearchAll());
      HONE_RETURN_IF_ERROR(ConfirmAll());
      search_ended_ = true;
    }
    return FinalStatus();
  }

  // The progress of the job, including earlier attempts.
  Progress CurrentProgress() const {
    Progress p;
    p.trials = job_.earlier.trials + trials_;
    p.failed = failed_;
    p.seconds = job_.earlier.seconds + Seconds();
    double before = 0, after = 0;
    bool complete = !tasks_.empty();
    for (const Task& task : tasks_) {
      p.workloads.push_back(Describe(task));
      complete &= task.best_seconds.has_value() && task.default_seconds.has_value();
      before += task.count * task.default_seconds.value_or(0);
      after += task.count * task.best_seconds.value_or(0);
    }
    if (complete) {
      p.latency_before_seconds = before;
      p.latency_after_seconds = after;
    }
    p.activity = activity_;
    p.spent = Spent();
    p.search_ended = search_ended_;
    p.device_digest = device_.fingerprint_digest;
    return p;
  }

 private:
  TimeSpent Spent() const {
    TimeSpent spent = spent_;
    for (const Task& task : tasks_) {
      const Search::Drawn& drawn = task.search->drawn();
      spent.drawn += drawn.all;
      spent.illegal += drawn.illegal;
      spent.repeated += drawn.repeated;
    }
    return spent;
  }

  void CountTime(const Visit& visit) {
    spent_.building += visit.building_seconds;
    spent_.waiting += visit.waiting_seconds;
    spent_.measuring += visit.measuring_seconds;
  }

  // Reads options and target, and makes a task of each workload. All errors are the job's own.
  absl::Status MakeTasks() {
    space::Families families;
    for (const auto& [name, value] : job_.options) {
      if (name == space::kSpaceDecision) {
        HONE_ASSIGN_OR_RETURN(families, space::ParseFamilies(value));
      } else if (name == kWithoutOption) {
        HONE_ASSIGN_OR_RETURN(parts_, PartsWithout(value));
      } else {
        return absl::InvalidArgumentError(fmt::format("job option '{}' is not known to this tuner", name));
      }
    }
    HONE_ASSIGN_OR_RETURN(target_, target::ParseTarget(job_.target));
    if (parts_.pretrained) {
      HONE_ASSIGN_OR_RETURN(pretrained_, PretrainedModel(target_));
    }
    for (const JobWorkload& given : job_.workloads) {
      absl::StatusOr<Task> task =
          MakeTask(given, target_, job_.seed + tasks_.size(), builders_.workers(), families, parts_);
      if (!task.ok())
        return Annotate(task.status(), fmt::format("workload {} ({})", given.digest.substr(0, 12), given.op));
      task->description.requirements.labels = job_.labels;
      task->description.requirements.devices = job_.devices;
      task->description.requirements.fingerprint_digest = job_.device_digest;
      task->description.model = job_.name;
      task->description.title = given.title;
      task->description.nodes = given.nodes;
      task->description.search_seed = job_.seed;
      task->description.fill_seed = 1;  // equal for all batches, so a device computes the reference's outputs once
      task->description.priority = job_.priority;
      tasks_.push_back(*std::move(task));
    }
    // The constants that the model's kernels read between two calls of one kernel.
    const int64_t constants =
        std::accumulate(tasks_.begin(), tasks_.end(), int64_t{0}, [](int64_t sum, const Task& task) {
          return sum + static_cast<int64_t>(task.count) * ConstantBytesOf(task.description);
        });
    for (Task& task : tasks_) task.description.constant_bytes_between_runs = constants;
    return tasks_.empty() ? absl::InvalidArgumentError("the job has no workloads") : absl::OkStatus();
  }

  // Chooses a kind of device for all batches of the job, including those of later attempts, because times of different
  // kinds are not comparable. If no device fits, requeues the job, so that this tuner can take another one.
  absl::Status AwaitDevice() {
    activity_ = "waiting for a suitable device";
    for (int asked = 0; asked < kDeviceAttemptsMax; ++asked) {
      HONE_ASSIGN_OR_RETURN(const auto device, farm_.FindDevice(tasks_[0].description.requirements));
      if (device.has_value()) {
        device_ = *device;
        started_ = clock_();
        for (Task& task : tasks_) {
          task.description.requirements.fingerprint_digest = device_.fingerprint_digest;
          task.lower_bound_seconds =
              LowerBoundSeconds(task.description.flops, task.description.bytes, target_, device_.peak_gflops * 1e9);
        }
        return absl::OkStatus();
      }
      HONE_RETURN_IF_ERROR(farm_.Report(CurrentProgress()));
      absl::SleepFor(kDeviceAttemptPeriod);
    }
    HONE_RETURN_IF_ERROR(farm_.RequeueJob(tasks_[0].description.requirements));
    return absl::AbortedError("the job was requeued until a suitable device is online");
  }

  RecordKey KeyOf(const Task& task) const {
    return {task.description.workload_digest, task.description.target, device_.fingerprint,
            task.description.compiler_version};
  }

  // Takes in what earlier runs measured, and counts it against the budget.
  absl::Status ReadRecords() {
    activity_ = "reading the records";
    HONE_RETURN_IF_ERROR(farm_.Report(CurrentProgress()));
    for (Task& task : tasks_) {
      HONE_RETURN_IF_ERROR(ReportIfDue());
      HONE_ASSIGN_OR_RETURN(std::vector<PastTrial> past, farm_.Records(KeyOf(task)));
      TakeOutOtherSizes(task, past);
      HONE_ASSIGN_OR_RETURN(std::optional<PastWinner> best, farm_.Best(KeyOf(task)));
      if (best.has_value()) best->exact &= best->sizes == task.description.sizes;
      ScaleToOneSpeed(past, best.has_value() && best->exact && best->confirmed ? best->schedule : "",
                      task.default_proposal.schedule);
      std::set<std::pair<std::string_view, std::string_view>> tried;  // schedule, and its batch if that was disturbed
      {
        const ScopedSharedHostLock lock(lock_);
        for (const PastTrial& trial : past) {
          // The incumbent of a disturbed visit has an outcome from before, so it does not count as a trial.
          if (HasOutcome(trial)) {
            tried.emplace(trial.schedule, "");
          } else if (!tried.contains({trial.schedule, ""})) {
            tried.emplace(trial.schedule, trial.batch);
          }
          Remember(task, trial);
        }
        task.search->DropSlowDecisions();
      }
      if (best.has_value()) UseBest(task, *best);
      task.changed = IsMeasuredSinceConfirmed(past);
      task.pending_finalists = UncomparedWinners(task, past, wall_clock_());
      task.converged_before = HasConverged(task, past);
      budget_.AddRecordedTrials(static_cast<int64_t>(tried.size()), task.confirmed);
    }
    budget_.FixTrialLimit();
    return absl::OkStatus();
  }

  // Takes in the winner of the records. If it has the task's own key and sizes, it is the best. A winner of another
  // device, compiler or list of sizes is the nearest relative.
  static void UseBest(Task& task, const PastWinner& best) {
    const absl::StatusOr<space::Decisions> decisions = space::ParseDecisions(best.decisions);
    if (!best.exact) {
      if (decisions.ok() && !decisions->empty()) task.search->AddNearest(*decisions);
      return;
    }
    task.speed_factor.AcceptNextVisit();
    // An unconfirmed winner has the smallest time of all visits, including disturbed ones, so the search's own
    // estimates are better. If this job does not search the winner's space, it has no estimate for it and keeps the
    // winner.
    const bool searched = best.schedule == task.default_proposal.schedule ||
                          (decisions.ok() && space::EntryOf(*decisions, task.spaces) != nullptr);
    if (!best.confirmed && searched) UpdateBest(task);
    if (task.best_seconds.has_value()) return;
    task.best_seconds = best.seconds;
    task.best_timings = best.confirmed ? kConfirmedTimings : 1;
    task.best_schedule = best.schedule;
    if (decisions.ok()) task.best_decisions = *decisions;
    // The device's speed changes from day to day, so only a default time measured beside the winner is comparable.
    if (best.default_seconds.has_value()) task.default_seconds = best.default_seconds;
    task.confirmed = best.confirmed && best.default_seconds.has_value();
  }

  // Searches until the budget is spent, less the time for confirming, or all searches have converged.
  absl::Status SearchAll() {
    TaskScheduler::Options options;
    options.by_gain = parts_.scheduler;
    if (!target_.facts().links_candidates) {
      options.first_batch = kFirstDriverBatch;
      options.batch = kDriverBatch;
    }
    // With a small budget, first rounds are smaller, so that many workloads get one. Below kFirstBatchTrialsMin trials
    // a round would find nothing, since the first trial is the default; then only the largest workloads get a round.
    const double share = budget_.TrialsPerWorkload() * 0.75;
    options.first_batch =
        static_cast<int64_t>(std::clamp(share, kFirstBatchTrialsMin, static_cast<double>(options.first_batch)));
    std::vector<TaskScheduler::Task> tasks;
    for (const Task& task : tasks_) {
      const int64_t rounds = static_cast<int64_t>(task.search->known()) / options.batch;  // in earlier runs
      tasks.push_back({task.count, task.default_estimate_seconds, task.lower_bound_seconds, task.best_seconds,
                       static_cast<int>(std::max<int64_t>(1, rounds))});
    }
    TaskScheduler scheduler(std::move(tasks), options);
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].converged_before) scheduler.Close(i);
    }
    const bool all_converged =
        std::all_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.converged_before; });
    if (!all_converged) Learn();  // from the samples of earlier runs
    Visits visits(&farm_, &builders_, &clock_);
    const absl::Status status = SearchWith(scheduler, visits);
    if (!status.ok()) farm_.Abandon();  // open visits are not needed any more
    return status;
  }

  absl::Status SearchWith(TaskScheduler& scheduler, Visits& visits) {
    while (true) {
      while (visits.open() < kVisitsAhead && SearchSecondsLeft() > 0) {
        const int64_t left = budget_.TrialsLeft(begun_);
        if (left == 0) break;
        const auto round = scheduler.Next();
        if (!round.has_value()) break;
        StartRound(scheduler, visits, round->task, std::min(round->trials, left));
      }
      if (visits.open() == 0) return absl::OkStatus();
      std::optional<Visit> visit = visits.Finished(kReportPeriod);
      if (visit.has_value()) {
        HONE_RETURN_IF_ERROR(ApplyRound(scheduler, *visit));
        Learn();
      }
      HONE_RETURN_IF_ERROR(ReportIfDue());
    }
  }

  // Starts a visit with new candidates of a task. If the search has none, closes the task or holds it.
  void StartRound(TaskScheduler& scheduler, Visits& visits, size_t index, int64_t trials) {
    Task& task = tasks_[index];
    activity_ = fmt::format("tuning {} {}", task.workload.op, task.description.workload_digest.substr(0, 8));
    Visit visit;
    visit.task = index;
    {
      const ScopedSharedHostLock lock(lock_);
      const Stopwatch watch(spent_.proposing);
      if (task.search->known() == 0) {
        for (space::Decisions& relative : RelativesOf(task, tasks_)) task.search->AddRelative(std::move(relative));
      }
      visit.proposals = task.search->Propose(static_cast<size_t>(trials), *Model());
    }
    if (visit.proposals.empty()) {
      if (task.search->converged()) {
        scheduler.Close(index);
      } else {
        scheduler.Hold(index);
      }
      return;
    }
    visit.trials = static_cast<int64_t>(visit.proposals.size());
    // The incumbent is measured along, because its time tells the device's speed in this visit.
    if (task.best_seconds.has_value()) {
      visit.proposals.push_back(IncumbentOf(task));
      visit.incumbent = {*task.best_seconds, task.best_timings};
    }
    FillBatch(task, visit);
    if (visit.incumbent.has_value()) visit.batch.incumbent_id = CandidateId(visit.proposals.size() - 1);
    begun_ += visit.trials;
    LimitTime(task, visit);
    visits.Start(std::move(visit));
  }

  double SearchSecondsLeft() const { return SecondsLeft(ConfirmSeconds(), ModelRunSeconds()); }

  // The estimated seconds of the run of the whole model after the search; 0: there is none.
  double ModelRunSeconds() const {
    if (!job_.measures_model) return 0;
    double untuned = 0;
    for (const Task& task : tasks_) untuned += static_cast<double>(task.count) * CallSecondsOf(task).default_call;
    return ConfirmationSeconds(job_.earlier.seconds + Seconds(), untuned, tasks_.size());
  }

  // The seconds left of the budget or until Job::until, whichever is less. `reserve` seconds are kept back, and of the
  // time until Job::until also `model_run`, for which the budget is not meant; but at most a quarter of the budget, and
  // of the time that this attempt had until Job::until. Waiting does not use up the budget.
  double SecondsLeft(double reserve, double model_run = 0) const {
    const double until = absl::ToDoubleSeconds(job_.until - wall_clock_());
    return std::min(budget_.SecondsLeft(Seconds(), reserve), until - std::min(reserve + model_run, seconds_until_ / 4));
  }

  // Limits the visit so that a workload with slow kernels leaves time for the first measurements of the others.
  void LimitTime(const Task& task, Visit& visit) const {
    const double left = SearchSecondsLeft();
    if (std::isinf(left)) return;
    visit.deadline = clock_() + absl::Seconds(left);
    if (task.default_seconds.has_value()) return;
    const auto unmeasured = std::count_if(tasks_.begin(), tasks_.end(),
                                          [](const Task& other) { return !other.default_seconds.has_value(); });
    // One share may be too short for the reference kernel of a large workload, which loses the batch. The next batch of
    // the workload gets more.
    const double shares = task.lost_batches > 0 ? kSharesAfterLoss : 1;
    visit.batch.visit_seconds =
        std::max(kVisitSecondsMin, std::min(left, shares * left / static_cast<double>(unmeasured)));
  }

  // Sets the visit's batch and key from its proposals.
  void FillBatch(const Task& task, Visit& visit) const {
    visit.batch = task.description;
    visit.key = KeyOf(task);
    for (size_t i = 0; i < visit.proposals.size(); ++i) {
      const Proposal& proposal = visit.proposals[i];
      visit.batch.candidates.push_back({CandidateId(i),
                                        proposal.schedule,
                                        space::Print(proposal.decisions),
                                        proposal.schedule == task.default_proposal.schedule,
                                        proposal.predicted_seconds,
                                        {}});
    }
    // A call that takes much longer than the best known one is stopped. Without a known time the limit is higher,
    // because the analytic estimate may be wrong.
    const double expected = task.best_seconds.value_or(task.default_estimate_seconds * 8);
    visit.batch.timeout_seconds = std::clamp(expected * 8, 0.25, 20.0);
  }

  // The factor by which the visit's times must be divided. Removes all times of a disturbed visit, since fast and slow
  // candidates cannot be told apart in it.
  static double SpeedFactorOf(Task& task, Visit& visit) {
    if (!visit.incumbent.has_value()) return task.speed_factor.value();
    const std::optional<double> speed_factor =
        ObserveIncumbent(task, visit.proposals.back(), *visit.incumbent, visit.outcomes, visit.batch.incumbent_id);
    if (speed_factor.has_value()) return *speed_factor;
    spdlog::info("a visit for {} {} was disturbed: its candidates are measured once more", task.workload.op,
                 task.description.workload_digest.substr(0, 12));
    std::erase_if(visit.outcomes, [](const auto& outcome) { return !outcome.second.failure.has_value(); });
    return task.speed_factor.value();
  }

  // Takes in a finished visit of the search.
  absl::Status ApplyRound(TaskScheduler& scheduler, Visit& visit) {
    CountTime(visit);
    HONE_RETURN_IF_ERROR(visit.status);
    Task& task = tasks_[visit.task];
    CountTrials(task, visit);
    ExcludeFailed(task, visit.proposals, visit.outcomes);
    const double speed_factor = SpeedFactorOf(task, visit);
    visit.proposals.resize(static_cast<size_t>(visit.trials));
    Observe(task, visit.proposals, visit.outcomes, speed_factor);
    NoteFailure(task, visit);
    scheduler.Finish(visit.task, task.best_seconds);
    if (task.search->converged() || task.lost_batches >= kLostBatchesMax) scheduler.Close(visit.task);
    return absl::OkStatus();
  }

  void CountTrials(Task& task, const Visit& visit) {
    for (size_t i = 0; i < static_cast<size_t>(visit.trials); ++i) {
      const auto outcome = visit.outcomes.find(CandidateId(i));
      if (outcome == visit.outcomes.end()) {
        --begun_;  // its batch was lost, or the time was up
        continue;
      }
      ++trials_;
      ++task.trials;
      if (outcome->second.failure.has_value()) ++failed_[outcome->second.failure->kind];
    }
  }

  // Counts lost batches, and keeps and logs the reason.
  void NoteFailure(Task& task, const Visit& visit) {
    task.lost_batches = visit.error.empty() ? 0 : task.lost_batches + 1;
    if (visit.error.empty()) return;
    task.failure_reason = visit.error;
    spdlog::warn("a batch of {} {} was not measured: {}", task.workload.op,
                 task.description.workload_digest.substr(0, 12), visit.error);
  }

  // Trains the learned cost model if there are enough samples: kTrainingSamplesMin the first time, then kTrainGrowth
  // times as many as last time.
  void Learn() {
    if (!parts_.model) return;
    std::vector<Sample> samples;
    for (size_t i = 0; i < tasks_.size(); ++i) tasks_[i].search->CollectSamples(static_cast<int>(i), &samples);
    const auto count = static_cast<double>(samples.size());
    if (samples.size() < kTrainingSamplesMin || count < trained_at_ * kTrainGrowth) return;
    const ScopedSharedHostLock lock(lock_);
    const Stopwatch watch(spent_.learning);
    BoostedModel::Options options;
    options.seed = job_.seed;
    absl::StatusOr<std::unique_ptr<BoostedModel>> trained =
        BoostedModel::Train(samples, options, pretrained_ != nullptr ? pretrained_ : analytic_);
    trained_at_ = count;
    if (trained.ok()) {
      boosted_ = *std::move(trained);
    } else {
      spdlog::warn("the cost model was not trained: {}", std::string(trained.status().message()));
    }
  }

  // The best cost model there is: learned, pretrained, analytic; or none, if the analytic one is switched off.
  const CostModel* Model() const {
    if (boosted_ != nullptr) return boosted_.get();
    if (pretrained_ != nullptr) return pretrained_.get();
    if (parts_.draft) return analytic_.get();
    return &uniform_;
  }

  // Whether something was measured since the last confirmation, or finalists wait for one, and batches can be measured.
  static bool NeedsConfirmation(const Task& task) {
    return task.lost_batches < kLostBatchesMax && (task.changed || !task.confirmed || !task.pending_finalists.empty());
  }

  // Seconds of one call of the default schedule and of the best; estimates if they were not measured.
  struct CallSeconds {
    double default_call, best;
  };
  static CallSeconds CallSecondsOf(const Task& task) {
    const double default_call = task.default_seconds.value_or(task.default_estimate_seconds);
    return {default_call, task.best_seconds.value_or(default_call)};
  }

  // The estimated seconds of confirming all tasks that need it.
  double ConfirmSeconds() const {
    double seconds = 0;
    for (const Task& task : tasks_) {
      if (!NeedsConfirmation(task)) continue;
      const auto [default_call, best] = CallSecondsOf(task);
      const int turns = ConfirmationRounds(std::min(default_call, best));
      const auto each = [turns](double call) {
        return std::max(kFinalSeconds, ConfirmationCallsMin(call, turns) * call);
      };
      seconds += 0.1 + each(default_call) + static_cast<double>(kFinalistsMax) * each(best);
    }
    return seconds;
  }

  // Measures the finalists of every workload again, in interleaved rounds with the default schedule. So a lucky timing
  // does not win, nor does a schedule that is not faster than the default.
  absl::Status ConfirmAll() {
    Visits visits(&farm_, &builders_, &clock_);
    const absl::Status status = ConfirmWith(visits);
    if (!status.ok()) farm_.Abandon();
    return status;
  }

  absl::Status ConfirmWith(Visits& visits) {
    const absl::Time deadline = clock_() + absl::Seconds(SecondsLeft(0) + kOverdraftSecondsMax);
    std::deque<size_t> waiting;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (NeedsConfirmation(tasks_[i])) waiting.push_back(i);
    }
    std::set<size_t> repeated;
    while (true) {
      for (; !waiting.empty() && visits.open() < kVisitsAhead; waiting.pop_front()) {
        const double share =
            absl::ToDoubleSeconds(deadline - clock_()) / static_cast<double>(waiting.size() + visits.open());
        const size_t finalists = FinalistsThatFit(tasks_[waiting.front()], share);
        if (finalists == 0) continue;  // no time is left: the measured best stays, and another run confirms it
        Visit visit = ConfirmationVisit(waiting.front(), finalists);
        visit.deadline = deadline;
        if (!std::isinf(share)) visit.batch.visit_seconds = std::max(kVisitSecondsMin, share);
        visits.Start(std::move(visit));
      }
      if (visits.open() == 0) return absl::OkStatus();
      activity_ = "confirming the winners";
      if (const std::optional<Visit> visit = visits.Finished(kReportPeriod)) {
        CountTime(*visit);
        HONE_RETURN_IF_ERROR(visit->status);
        Task& task = tasks_[visit->task];
        NoteFailure(task, *visit);
        const std::optional<double> searched = task.default_seconds;
        const bool compared = ApplyConfirmation(task, visit->proposals, visit->outcomes);
        // A disturbance, such as other programs using the memory, slows some kernels more than others. So the
        // comparison is repeated once.
        const bool slowed = searched.has_value() && *task.default_seconds > kDefaultSlowdownMax * *searched;
        const bool again = (slowed || !compared) && repeated.insert(visit->task).second;
        if (again || !task.pending_finalists.empty()) waiting.push_back(visit->task);
      }
      HONE_RETURN_IF_ERROR(ReportIfDue());
    }
  }

  // The number of finalists that can be compared with the default in so many seconds, with the fewest interleaved
  // rounds; 0: not even one.
  static size_t FinalistsThatFit(const Task& task, double seconds) {
    const auto each = [](double call) { return call * ConfirmationCallsMin(call, kInterleavedRoundsMin); };
    const auto [default_call, best] = CallSecondsOf(task);
    const double finalists = (seconds - each(default_call)) / each(best);
    return finalists < 1 ? 0 : static_cast<size_t>(std::min(finalists, static_cast<double>(kFinalistsMax)));
  }

  // The visit that confirms a task. The default schedule goes first: if time runs out, the other times are of little
  // use without it. Finalists in task.pending_finalists that find no place are compared with the winner of this visit
  // later.
  Visit ConfirmationVisit(size_t index, size_t finalists) {
    Task& task = tasks_[index];
    Visit visit;
    visit.task = index;
    visit.proposals = {task.default_proposal};
    const auto pending = task.pending_finalists.begin(),
               rest = pending + std::min(finalists, task.pending_finalists.size());
    visit.proposals.insert(visit.proposals.end(), pending, rest);
    task.pending_finalists.erase(pending, rest);
    for (Proposal& p : task.search->Best(finalists - (visit.proposals.size() - 1)))
      visit.proposals.push_back(std::move(p));
    if (!task.best_schedule.empty()) visit.proposals.push_back(IncumbentOf(task));
    // Keep the first proposal of each schedule.
    std::vector<Proposal> distinct;
    for (Proposal& p : visit.proposals) {
      const bool there = std::any_of(distinct.begin(), distinct.end(),
                                     [&](const Proposal& other) { return other.schedule == p.schedule; });
      if (!there) distinct.push_back(std::move(p));
    }
    visit.proposals = std::move(distinct);
    FillBatch(task, visit);
    visit.batch.final = true;
    visit.batch.final_seconds = kFinalSeconds;
    visit.batch.timeout_seconds = 20;
    return visit;
  }

  // The job's status: an error only if no workload was measured. Otherwise the progress says for each workload without
  // a time why it has none.
  absl::Status FinalStatus() {
    bool measured = job_.earlier.search_ended;  // an earlier attempt has measured, maybe with another compiler
    std::string error = fmt::format("nothing could be measured: {}", kUnmeasured);
    for (Task& task : tasks_) {
      if (task.best_seconds.has_value()) {
        measured = true;
      } else if (task.failure_reason.empty()) {
        task.failure_reason = kUnmeasured;
      } else {
        error = fmt::format("nothing could be measured; {}: {}", task.workload.op, task.failure_reason);
      }
    }
    return measured ? absl::OkStatus() : absl::InternalError(error);
  }

  // Reports the progress if the last report is half of kReportPeriod ago.
  absl::Status ReportIfDue() {
    if (SteadyNow() < next_report_) return absl::OkStatus();
    next_report_ = SteadyNow() + kReportPeriod / 2;
    return farm_.Report(CurrentProgress());
  }

  double Seconds() const { return started_ == absl::InfinitePast() ? 0 : absl::ToDoubleSeconds(clock_() - started_); }

  const Job& job_;
  Farm& farm_;
  BuildPool& builders_;
  const Clock& clock_;
  const Clock& wall_clock_;
  absl::StatusOr<HostLock> lock_;
  Budget budget_;
  target::Target target_;
  FarmDevice device_;
  std::vector<Task> tasks_;
  const double seconds_until_ = std::max(0.0, absl::ToDoubleSeconds(job_.until - wall_clock_()));  // at the start
  bool search_ended_;  // what is left of the job is outside of this loop
  absl::Time started_ = absl::InfinitePast(), next_report_ = absl::InfinitePast();
  std::string activity_ = "starting";
  int64_t trials_ = 0, begun_ = 0;         // trials of this attempt with an outcome; begun and not lost
  double trained_at_ = 0;                  // number of samples of the last training; 0: not trained
  std::map<FailureKind, int64_t> failed_;  // failed candidates by kind, including earlier attempts
  TimeSpent spent_;                        // including earlier attempts; Spent adds this attempt's drawn counts
  SearchParts parts_;
  const std::shared_ptr<const CostModel> analytic_ = std::make_shared<AnalyticModel>();
  std::shared_ptr<const CostModel> pretrained_;  // null: there is none, or it is switched off
  UniformModel uniform_;
  std::unique_ptr<BoostedModel> boosted_;  // null: not trained yet
};

}  // namespace

absl::Status TuneJob(const Job& job, Farm& farm, BuildPool& builders, Progress* progress, const Clock& clock,
                     const Clock& wall_clock) {
  TuneLoop loop(job, farm, builders, clock, wall_clock);
  const Heartbeat heartbeat(farm, job.heartbeat);
  const absl::Status status = loop.Run();
  *progress = loop.CurrentProgress();
  if (status.ok()) progress->activity.clear();
  return status;
}

}  // namespace hone::tuner
