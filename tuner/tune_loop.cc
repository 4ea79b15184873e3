#include "tuner/tune_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <thread>

#include "absl/time/clock.h"
#include "base/host_lock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/space/space.h"
#include "tuner/build_pool.h"
#include "tuner/convert.h"
#include "tuner/cost_model.h"
#include "tuner/draft_model.h"
#include "tuner/farm_client.h"
#include "tuner/search.h"
#include "tuner/task_scheduler.h"

namespace hone::tuner {
namespace {

constexpr int kFinalists = 3;             // of a workload, measured once more in turns with the default
constexpr double kConfirmReserve = 0.12;  // share of the time budget kept for that
constexpr int kMostRemembered = 4000;     // records of a workload that a search starts from
constexpr int64_t kTrainEvery = 96;       // new samples

// One workload of the job while it is tuned.
struct Task {
  ir::Workload workload;
  v1::Batch description;
  std::unique_ptr<Search> search;
  std::string default_schedule;
  std::optional<double> default_seconds, best_seconds;
  std::string best_schedule;
  int64_t trials = 0;
  bool confirmed = false;  // its winner has been compared in turns, in this run or an earlier one
  bool changed = false;    // something was measured since
};

double Median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const size_t n = seconds.size();
  return n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
}

// The repeats taken in turns with the other finalists count, where there are any: they saw the same machine.
std::optional<double> SecondsOf(const v1::Outcome& outcome) {
  if (!outcome.has_timing() || outcome.timing().seconds().empty()) return std::nullopt;
  const auto& all = outcome.timing().seconds();
  const int first = outcome.timing().first_interleaved();
  const auto begin = first > 0 && first < all.size() ? all.begin() + first : all.begin();
  return Median(std::vector<double>(begin, all.end()));
}

double NoiseOf(const v1::Outcome& outcome, double median) {
  std::vector<double> deviations;
  for (const double s : outcome.timing().seconds()) deviations.push_back(std::abs(s - median));
  return deviations.empty() || median <= 0 ? 0 : Median(deviations) / median;
}

int64_t BytesOf(const v1::Batch& description) {
  int64_t bytes = 0;
  for (const v1::Buffer& buffer : description.buffers()) bytes += buffer.bytes();
  return bytes;
}

class TuneLoop {
 public:
  TuneLoop(const std::shared_ptr<grpc::Channel>& channel, const v1::LeaseJobResponse& leased,
           const TuneOptions& options)
      : spec_(leased.job().spec()),
        client_(channel, leased.lease(), options.address),
        progress_(leased.job().progress()),
        earlier_seconds_(leased.job().progress().seconds()),
        lock_(HostLock::Open()) {
    BuildOptions build;
    build.workers = options.build_workers > 0 ? options.build_workers : ThreadPool(0).threads();
    threads_ = build.workers;
    builders_ = std::make_unique<BuildPool>(build);
    for (const v1::FailureCount& f : progress_.failed()) failed_[f.kind()] = f.count();
    trials_ = progress_.trials();
  }

  absl::Status Run() {
    HONE_RETURN_IF_ERROR(SetUp());
    HONE_RETURN_IF_ERROR(AwaitDevice());
    HONE_RETURN_IF_ERROR(Remember());
    TaskScheduler scheduler = MakeScheduler();
    while (!SearchBudgetSpent()) {
      const auto round = scheduler.Next();
      if (!round.has_value()) break;
      HONE_RETURN_IF_ERROR(RunRound(tasks_[round->task], static_cast<int>(round->task), round->trials));
      scheduler.Finish(round->task, tasks_[round->task].best_seconds);
      if (tasks_[round->task].search->converged()) scheduler.Close(round->task);
      HONE_RETURN_IF_ERROR(Learn());
    }
    return Confirm();
  }

  v1::JobProgress Progress(const std::string& activity) {
    v1::JobProgress p;
    p.set_trials(trials_);
    for (const auto& [kind, count] : failed_) {
      v1::FailureCount* failed = p.add_failed();
      failed->set_kind(kind);
      failed->set_count(count);
    }
    p.set_seconds(Seconds());
    p.set_trials_per_second(Seconds() > 0 ? static_cast<double>(trials_) / Seconds() : 0);
    double before = 0, after = 0;
    bool complete = !tasks_.empty();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const Task& task = tasks_[i];
      const auto count = static_cast<double>(spec_.workloads(static_cast<int>(i)).count());
      *p.add_workloads() = Describe(task);
      complete &= task.best_seconds.has_value() && task.default_seconds.has_value();
      before += count * task.default_seconds.value_or(0);
      after += count * task.best_seconds.value_or(0);
    }
    if (complete) {
      p.set_latency_before_seconds(before);
      p.set_latency_after_seconds(after);
    }
    p.set_activity(activity);
    return p;
  }

  FarmClient& client() { return client_; }

 private:
  absl::Status SetUp() {
    for (const auto& [name, value] : spec_.options()) {
      return absl::InvalidArgumentError(fmt::format("job option '{}' is not known to this tuner", name));
    }
    HONE_ASSIGN_OR_RETURN(target_, codegen::ParseTarget(spec_.target()));
    for (const v1::WorkloadSpec& w : spec_.workloads()) {
      Task task;
      HONE_ASSIGN_OR_RETURN(task.workload, ir::ParseWorkload(w.text()));
      task.description = DescribeWorkload(task.workload, target_);
      *task.description.mutable_requirements()->mutable_labels() = spec_.labels();
      task.description.set_search_seed(spec_.seed());
      task.description.set_fill_seed(1);
      task.description.set_priority(spec_.priority());
      HONE_ASSIGN_OR_RETURN(const space::Candidate standard, space::Default(task.workload, target_));
      task.default_schedule = schedule::Print(standard.schedule);
      Search::Options options;
      options.seed = spec_.seed() + tasks_.size();
      options.threads = threads_;
      auto workload = std::make_shared<ir::Workload>(task.workload);
      task.search = std::make_unique<Search>(
          [workload, target = target_](space::Chooser& chooser) { return space::Build(*workload, target, chooser); },
          target_, options);
      tasks_.push_back(std::move(task));
    }
    return tasks_.empty() ? absl::InvalidArgumentError("the job has no workloads") : absl::OkStatus();
  }

  // Records are kept per kind of device, so there has to be one before anything can be remembered.
  absl::Status AwaitDevice() {
    while (true) {
      HONE_ASSIGN_OR_RETURN(const auto device, client_.FindDevice(tasks_[0].description.requirements()));
      if (device.has_value()) {
        device_ = *device;
        started_ = absl::Now();
        return absl::OkStatus();
      }
      HONE_RETURN_IF_ERROR(client_.Report(Progress("waiting for a device that fits")));
      absl::SleepFor(absl::Milliseconds(200));
    }
  }

  v1::RecordKey KeyOf(const Task& task) const {
    v1::RecordKey key;
    key.set_workload_digest(task.description.workload_digest());
    key.set_target(task.description.target());
    key.set_device_fingerprint(device_.text());
    key.set_compiler_version(task.description.compiler_version());
    return key;
  }

  // What earlier runs measured: winners that are confirmed need no search, other outcomes give it a start.
  absl::Status Remember() {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      Task& task = tasks_[i];
      HONE_ASSIGN_OR_RETURN(const std::vector<v1::Record> records,
                            client_.Records(KeyOf(task), false, kMostRemembered));
      for (const v1::Record& record : records) RememberRecord(task, static_cast<int>(i), record);
      HONE_ASSIGN_OR_RETURN(const auto best, client_.Best(KeyOf(task), v1::RECORD_MATCH_EXACT));
      if (best.has_value()) {
        task.best_seconds = best->median_seconds();
        task.best_schedule = best->record().schedule();
        task.confirmed = best->record().confirmed();
        continue;
      }
      // The same workload on another device, or built by another compiler, is the best relative there is.
      HONE_ASSIGN_OR_RETURN(const auto near, client_.Best(KeyOf(task), v1::RECORD_MATCH_SAME_TARGET));
      if (!near.has_value()) continue;
      if (auto decisions = space::ParseDecisions(near->record().decisions()); decisions.ok())
        task.search->AddRelative(*decisions);
    }
    return client_.Report(Progress("reading the records"));
  }

  void RememberRecord(Task& task, int group, const v1::Record& record) {
    const auto decisions = space::ParseDecisions(record.decisions());
    const auto seconds = SecondsOf(record.outcome());
    if (record.schedule() == task.default_schedule && seconds.has_value()) task.default_seconds = seconds;
    if (!decisions.ok()) return;
    task.search->Remember(*decisions, record.schedule(), seconds);
    if (task.confirmed) return;
    space::Chooser chooser(&*decisions);
    const auto candidate = space::Build(task.workload, target_, chooser);
    if (candidate.ok()) AddSample(ExtractFeatures(candidate->state, target_), group, record.outcome());
  }

  void AddSample(Features features, int group, const v1::Outcome& outcome) {
    features_.push_back(std::move(features));
    const auto seconds = SecondsOf(outcome);
    samples_.push_back({&features_.back(), group, seconds, seconds.has_value() ? NoiseOf(outcome, *seconds) : 0.0});
  }

  TaskScheduler MakeScheduler() {
    std::vector<TaskScheduler::Task> tasks;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const v1::Batch& d = tasks_[i].description;
      const double least = LeastSeconds(d.flops(), static_cast<double>(BytesOf(d)), target_);
      tasks.push_back({static_cast<double>(spec_.workloads(static_cast<int>(i)).count()),
                       tasks_[i].default_seconds.value_or(least * 2), least});
    }
    TaskScheduler scheduler(std::move(tasks), {});
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].confirmed && tasks_[i].default_seconds.has_value()) scheduler.Close(i);
    }
    return scheduler;
  }

  // Proposes, builds, measures, learns from one batch of candidates of a workload.
  absl::Status RunRound(Task& task, int group, int64_t trials) {
    if (spec_.trials() > 0) trials = std::min(trials, spec_.trials() - trials_);
    std::vector<Proposal> proposals;
    {
      const Undisturbed lock(lock_);
      proposals = task.search->Propose(static_cast<size_t>(std::max<int64_t>(trials, 1)), *model());
    }
    if (proposals.empty()) return absl::OkStatus();
    v1::Batch batch = task.description;
    for (size_t i = 0; i < proposals.size(); ++i) AddCandidate(batch, fmt::format("c{}", i), proposals[i]);
    const double expected = task.best_seconds.value_or(task.default_seconds.value_or(1.0));
    batch.mutable_policy()->set_timeout_seconds(std::clamp(expected * 8, 0.25, 10.0));
    HONE_ASSIGN_OR_RETURN(const auto outcomes, Evaluate(task, batch));
    for (size_t i = 0; i < proposals.size(); ++i) {
      const auto it = outcomes.find(fmt::format("c{}", i));
      if (it == outcomes.end()) continue;
      const auto seconds = SecondsOf(it->second);
      Count(task, it->second);
      task.search->Observe(proposals[i].schedule, seconds);
      AddSample(proposals[i].features, group, it->second);
      if (!seconds.has_value()) continue;
      task.changed = true;
      if (proposals[i].schedule == task.default_schedule) task.default_seconds = seconds;
      if (!task.best_seconds.has_value() || *seconds < *task.best_seconds) {
        task.best_seconds = seconds;
        task.best_schedule = proposals[i].schedule;
      }
    }
    return client_.Report(Progress(fmt::format("tuning {}", task.workload.op)));
  }

  static void AddCandidate(v1::Batch& batch, const std::string& id, const Proposal& proposal) {
    v1::Candidate* candidate = batch.add_candidates();
    candidate->set_id(id);
    candidate->set_schedule(proposal.schedule);
    candidate->set_decisions(space::Print(proposal.decisions));
  }

  void Count(Task& task, const v1::Outcome& outcome) {
    ++trials_;
    ++task.trials;
    if (outcome.has_failure()) ++failed_[outcome.failure().kind()];
  }

  // Compiles the batch and has it measured. Outcomes by candidate id; none where the batch could not be measured at
  // all.
  absl::StatusOr<std::map<std::string, v1::Outcome>> Evaluate(const Task& task, const v1::Batch& whole) {
    BuildJob job{whole.workload(), whole.target(), {}};
    for (const v1::Candidate& candidate : whole.candidates()) job.schedules.push_back(candidate.schedule());
    HONE_ASSIGN_OR_RETURN(BuiltBatch built, builders_->Build(job));
    std::map<std::string, v1::Outcome> outcomes;
    std::vector<v1::Record> failures;
    v1::Batch ready = whole;
    ready.clear_candidates();
    ready.set_artifact(std::move(built.artifact));
    *ready.mutable_reference() = ToProto(built.reference);
    for (int i = 0; i < whole.candidates_size(); ++i) {
      const BuiltCandidate& candidate = built.candidates[static_cast<size_t>(i)];
      if (candidate.ok) {
        v1::Candidate* added = ready.add_candidates();
        *added = whole.candidates(i);
        *added->mutable_kernel() = ToProto(candidate.kernel);
        continue;
      }
      v1::CandidateOutcome failure;
      failure.set_candidate_id(whole.candidates(i).id());
      *failure.mutable_outcome()->mutable_failure() = ToProto(candidate);
      outcomes[failure.candidate_id()] = failure.outcome();
      failures.push_back(FailureRecord(task, whole, failure));
    }
    HONE_RETURN_IF_ERROR(client_.Append(failures));
    if (ready.candidates().empty()) return outcomes;
    HONE_ASSIGN_OR_RETURN(const auto results,
                          client_.Measure({ready}, Progress(fmt::format("measuring {}", task.workload.op))));
    for (const v1::BatchResult& result : results) {
      if (!result.error().empty()) spdlog::warn("a batch of {} was not measured: {}", task.workload.op, result.error());
      for (const v1::CandidateOutcome& outcome : result.outcomes())
        outcomes[outcome.candidate_id()] = outcome.outcome();
    }
    return outcomes;
  }

  // A candidate that does not compile never reaches a device, but it is a result all the same.
  v1::Record FailureRecord(const Task& task, const v1::Batch& batch, const v1::CandidateOutcome& failure) {
    v1::Record record;
    *record.mutable_key() = KeyOf(task);
    record.set_id(fmt::format("build-{}-{}", absl::GetCurrentTimeNanos(), next_failure_++));
    for (const v1::Candidate& candidate : batch.candidates()) {
      if (candidate.id() != failure.candidate_id()) continue;
      record.set_schedule(candidate.schedule());
      record.set_decisions(candidate.decisions());
    }
    *record.mutable_outcome() = failure.outcome();
    record.set_workload(task.description.workload());
    record.set_op(task.workload.op);
    record.set_flops(task.description.flops());
    record.set_measured_by("tuner");
    record.set_seed(spec_.seed());
    return record;
  }

  absl::Status Learn() {
    if (static_cast<int64_t>(samples_.size()) < trained_on_ + kTrainEvery) return absl::OkStatus();
    const Undisturbed lock(lock_);
    BoostedModel::Options options;
    options.threads = threads_;
    options.seed = spec_.seed();
    auto trained = BoostedModel::Train(samples_, options);
    trained_on_ = static_cast<int64_t>(samples_.size());
    if (trained.ok()) {
      boosted_ = *std::move(trained);
    } else if (trained.status().code() != absl::StatusCode::kFailedPrecondition) {
      spdlog::warn("the cost model was not trained: {}", std::string(trained.status().message()));
    }
    return absl::OkStatus();
  }

  // The finalists of every workload once more, in turns with the default: luck is not recorded as speed, and what is
  // not faster than the default does not win.
  absl::Status Confirm() {
    for (Task& task : tasks_) {
      if (!task.changed) continue;
      v1::Batch batch = task.description;
      batch.set_final(true);
      batch.mutable_policy()->set_final_seconds(0.05);
      std::vector<Proposal> finalists = task.search->Best(kFinalists);
      bool has_default = false;
      for (const Proposal& p : finalists) has_default |= p.schedule == task.default_schedule;
      HONE_ASSIGN_OR_RETURN(const space::Candidate standard, space::Default(task.workload, target_));
      if (!has_default) finalists.push_back({standard.decisions, task.default_schedule, {}, Origin::kDefault});
      for (size_t i = 0; i < finalists.size(); ++i) AddCandidate(batch, fmt::format("f{}", i), finalists[i]);
      HONE_ASSIGN_OR_RETURN(const auto outcomes, Evaluate(task, batch));
      std::optional<double> best;
      for (size_t i = 0; i < finalists.size(); ++i) {
        const auto it = outcomes.find(fmt::format("f{}", i));
        const auto seconds = it == outcomes.end() ? std::nullopt : SecondsOf(it->second);
        if (!seconds.has_value()) continue;
        if (finalists[i].schedule == task.default_schedule) task.default_seconds = seconds;
        if (best.has_value() && *best <= *seconds) continue;
        best = seconds;
        task.best_schedule = finalists[i].schedule;
      }
      if (best.has_value()) task.best_seconds = best;
      task.confirmed = best.has_value();
      HONE_RETURN_IF_ERROR(client_.Report(Progress(fmt::format("confirming {}", task.workload.op))));
    }
    return absl::OkStatus();
  }

  v1::WorkloadProgress Describe(const Task& task) const {
    v1::WorkloadProgress p;
    p.set_digest(task.description.workload_digest());
    p.set_trials(task.trials);
    if (task.default_seconds.has_value()) p.set_default_seconds(*task.default_seconds);
    if (!task.best_seconds.has_value()) return p;
    p.set_best_seconds(*task.best_seconds);
    p.set_best_schedule(task.best_schedule);
    const double least =
        LeastSeconds(task.description.flops(), static_cast<double>(BytesOf(task.description)), target_);
    p.set_roofline_share(*task.best_seconds > 0 ? std::min(1.0, least / *task.best_seconds) : 0);
    return p;
  }

  bool SearchBudgetSpent() const {
    if (spec_.trials() > 0 && trials_ >= spec_.trials()) return true;
    if (!spec_.has_time_budget()) return false;
    const double budget = static_cast<double>(spec_.time_budget().seconds()) + spec_.time_budget().nanos() * 1e-9;
    return Seconds() >= budget * (1 - kConfirmReserve);
  }

  double Seconds() const {
    return earlier_seconds_ + (started_ == absl::InfinitePast() ? 0 : absl::ToDoubleSeconds(absl::Now() - started_));
  }

  const CostModel* model() const {
    if (boosted_ != nullptr) return boosted_.get();
    return &draft_;
  }

  // Searching and learning take both cores; they must not run beside a timing on this machine.
  struct Undisturbed {
    explicit Undisturbed(absl::StatusOr<HostLock>& lock) : lock(lock) {
      if (lock.ok()) lock->Lock(HostLock::Mode::kShared).IgnoreError();
    }
    ~Undisturbed() {
      if (lock.ok()) lock->Unlock();
    }
    absl::StatusOr<HostLock>& lock;
  };

  const v1::JobSpec spec_;
  FarmClient client_;
  const v1::JobProgress progress_;  // of earlier attempts
  const double earlier_seconds_;
  absl::StatusOr<HostLock> lock_;
  codegen::Target target_;
  int threads_ = 1;
  std::unique_ptr<BuildPool> builders_;
  std::vector<Task> tasks_;
  v1::DeviceFingerprint device_;
  absl::Time started_ = absl::InfinitePast();
  int64_t trials_ = 0, trained_on_ = 0, next_failure_ = 0;
  std::map<v1::FailureKind, int64_t> failed_;
  std::deque<Features> features_;  // samples point into it
  std::vector<Sample> samples_;
  DraftModel draft_;
  std::unique_ptr<BoostedModel> boosted_;
};

}  // namespace

absl::Status TuneJob(std::shared_ptr<grpc::Channel> channel, const v1::LeaseJobResponse& leased,
                     const TuneOptions& options) {
  TuneLoop loop(channel, leased, options);
  const absl::Status status = loop.Run();
  if (status.code() == absl::StatusCode::kAborted || status.code() == absl::StatusCode::kNotFound ||
      status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kCancelled) {
    return status;
  }
  const std::string error = status.ok() ? "" : std::string(status.message());
  HONE_RETURN_IF_ERROR(loop.client().Complete(loop.Progress(status.ok() ? "done" : ""), error));
  return status;
}

}  // namespace hone::tuner
