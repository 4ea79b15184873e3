// SPDX-License-Identifier: Apache-2.0
#include "device_agent/child/race.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/confirmation.h"
#include "base/median.h"
#include "base/status.h"
#include "device_agent/child/kernel_cache.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

constexpr int kFirstRepeatsMax = 10;  // most in the first round
constexpr int kRepeatsMin = 3;
constexpr int kEstimatesMax = 3;
constexpr int kFinalRepeatsMax = 40;        // most in the last round
constexpr int kFinalRepeatsMin = 5;         // of a race
constexpr double kShortCallSeconds = 1e-3;  // seconds; what a device does around shorter ones counts
constexpr double kHopelessFactor = 2.5;     // slower than the best so far by this factor: one repeat is enough
constexpr double kUnlikelyFactor = 10;      // slower by this factor: rather, the machine stood still for a moment
constexpr double kClearlySlowerFactor =
    1.25;                                 // slower than the best so far by this factor: the fewest repeats are enough
constexpr double kSemifinalFactor = 2.0;  // slower than the best by this factor: no further round
constexpr double kCallSecondsMin = 1e-9;  // a clock may be too coarse for one call
constexpr int kReferenceEvery = 8;        // candidates between two looks at the device itself
constexpr double kWarmUpSpellSeconds = 5e-3;  // seconds of warming up, after which its speed is looked at
constexpr double kWarmUpSecondsMax = 0.1;     // seconds
constexpr double kSteadyFraction = 0.02;      // of two spells, by which they may differ
constexpr double kUnlimitedSeconds = std::numeric_limits<double>::infinity();

class Race {
 public:
  explicit Race(Child& child)
      : child_(child),
        task_(child.task()),
        batch_(child.batch()),
        policy_(batch_.policy),
        launcher_channel_(child.launcher_channel()),
        session_(child.session()),
        kernel_cache_(child),
        layout_(ComputeDataLayout(batch_)) {}

  void Run() {
    for (const VerifiedCandidate& verified : task_.verified)
      AddVerified(verified.candidate, verified.calls, verified.median_seconds);
    if (!WarmUp() || !TimeReference()) return;
    int since_reference = 0;
    for (const int candidate : task_.to_verify) {
      if (!HasTimeForAnother()) break;
      const double start = SecondsNow();
      if (!VerifyAndTime(candidate)) return;
      longest_ = std::max(longest_, SecondsNow() - start);
      if (++since_reference % kReferenceEvery == 0 && !TimeReference()) return;
    }
    if (!TimeFinalists() || !TimeReference()) return;
    launcher_channel_.SendDone();
  }

 private:
  struct Runner {
    int candidate;
    int64_t calls;
    double median;
  };

  void AddVerified(int candidate, int64_t calls, double median) {
    runners_.push_back({candidate, calls, median});
    best_ = std::min(best_, median);
  }

  double SecondsLeft() const { return task_.deadline - SecondsNow(); }

  // Whether time is left for one more candidate and then one repeat of each finalist.
  bool HasTimeForAnother() const {
    if (runners_.empty()) return SecondsLeft() > 0;
    size_t finalists = runners_.size() + 1;
    if (!batch_.final) finalists = std::min(finalists, static_cast<size_t>(policy_.finalists));
    return SecondsLeft() > longest_ + static_cast<double>(finalists) * best_;
  }

  // Seconds of the reference. nullopt: it failed, and the batch was reported as failed.
  std::optional<double> ReferenceSeconds() {
    const absl::StatusOr<double> seconds = session_.TimeReference();
    if (seconds.ok()) return *seconds;
    launcher_channel_.SendBatchFailure(std::string(seconds.status().message()));
    return std::nullopt;
  }

  bool TimeReference() {
    const std::optional<double> seconds = ReferenceSeconds();
    if (seconds.has_value()) launcher_channel_.SendReferenceSeconds(*seconds);
    return seconds.has_value();
  }

  // Runs the reference until two consecutive spells take the same time, because an idle device is slow at first.
  bool WarmUp() {
    const double end = std::min(SecondsNow() + kWarmUpSecondsMax, task_.deadline);
    double before = 0, least = kUnlimitedSeconds;
    do {
      before = std::exchange(least, kUnlimitedSeconds);
      for (const double start = SecondsNow(); SecondsNow() - start < kWarmUpSpellSeconds;) {
        const std::optional<double> seconds = ReferenceSeconds();
        if (!seconds.has_value()) return false;
        least = std::min(least, *seconds);
      }
    } while (std::abs(before - least) > kSteadyFraction * least && SecondsNow() < end);
    return true;
  }

  // Reports the error of a kernel, after which this process must end. Always false.
  bool ReportBroken(int candidate, const absl::Status& status) {
    launcher_channel_.SendFailure(candidate, FailureFromStatus(status));
    return false;
  }

  bool IsIncumbent(int candidate) const { return policy_.incumbent == candidate; }

  // Verifies one candidate and takes its first times. False: this process must end, because the candidate may have
  // damaged memory of others.
  bool VerifyAndTime(int candidate) {
    bool must_exit = false;
    LoadedKernel* kernel = kernel_cache_.Acquire(candidate, must_exit);
    if (kernel == nullptr) return !must_exit;
    const double timeout = policy_.timeout_seconds;
    double first = 0;
    for (size_t point = 0; point < batch_.points.size(); ++point) {
      launcher_channel_.BeginCalling(candidate,
                                     kSlackSeconds + 2 * timeout + static_cast<double>(layout_.output_bytes) * 1e-9);
      if (const absl::Status shown = CallAndShow(*kernel, point, first); !shown.ok())
        return ReportBroken(candidate, shown);
      launcher_channel_.SendResultsStored(candidate);
      if (const VisitAnswer answer = launcher_channel_.ReceiveAnswer(); answer != VisitAnswer::kGood) {
        return answer == VisitAnswer::kFailed && Leave(candidate, *kernel);
      }
    }
    double cold = first;
    if (first > timeout) {  // the machine may have paused
      launcher_channel_.BeginCalling(candidate, kSlackSeconds + 2 * timeout);
      if (const absl::Status called = Call(*kernel, cold); !called.ok()) return ReportBroken(candidate, called);
    }
    if (cold <= timeout) return TakeFirstTimes(candidate, *kernel, cold);
    launcher_channel_.SendFailure(
        candidate,
        {FailureKind::kRunTimeout,
         fmt::format("two calls took {:.3g} and {:.3g} s; the limit is {:.3g} s for each", first, cold, timeout)});
    return Leave(candidate, *kernel);
  }

  // Calls the kernel at the point, adds the seconds, and stores the results for the launcher.
  absl::Status CallAndShow(LoadedKernel& kernel, size_t point, double& seconds) {
    HONE_RETURN_IF_ERROR(session_.ClearOutputs());
    const double start = SecondsNow();
    HONE_RETURN_IF_ERROR(kernel.CallAt(point));
    seconds += SecondsNow() - start;
    return child_.StoreResults(kernel);
  }

  // One call at every point, and its seconds.
  absl::Status Call(LoadedKernel& kernel, double& seconds) {
    const double start = SecondsNow();
    for (size_t point = 0; point < batch_.points.size(); ++point) HONE_RETURN_IF_ERROR(kernel.CallAt(point));
    seconds = SecondsNow() - start;
    return absl::OkStatus();
  }

  // Whether the inputs are unchanged. Checked once, after all calls, because reading them back takes a device longer
  // than many kernels take. False: the failure was reported.
  bool CheckInputsUnchanged(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.FindChangedInput();
    if (!changed.ok()) return ReportBroken(candidate, changed.status());
    if (changed->has_value()) launcher_channel_.SendFailure(candidate, **changed);
    return !changed->has_value();
  }

  // Unloads a failed candidate. False if it changed the inputs, so that the others need another process.
  bool Leave(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.FindChangedInput();
    kernel_cache_.Unload(candidate);
    return changed.ok() && !changed->has_value();
  }

  // The mean of one repeat, which is several calls in a row.
  struct TimedRepeat {
    double seconds;  // of one call, by the device's clock
    double wall;     // of one call and all overhead, by the steady clock
    int64_t calls;   // in a row
  };

  // Times one repeat of the kernel. False: the failure was reported.
  bool Time(int candidate, LoadedKernel& kernel, int64_t calls, TimedRepeat& taken) {
    const double start = SecondsNow();
    const absl::StatusOr<double> seconds = kernel.Time(calls);
    if (!seconds.ok()) return ReportBroken(candidate, seconds.status());
    const double wall = (SecondsNow() - start) / static_cast<double>(calls);
    taken = {std::max(*seconds, kCallSecondsMin), std::max(wall, kCallSecondsMin), calls};
    return true;
  }

  // Appends `repeats` repeats of the kernel to `seconds`. False: the failure was reported.
  bool Repeat(int candidate, LoadedKernel& kernel, int64_t calls, int repeats, std::vector<double>& seconds) {
    for (int i = 0; i < repeats; ++i) {
      TimedRepeat taken{};
      if (!Time(candidate, kernel, calls, taken)) return false;
      seconds.push_back(taken.seconds);
    }
    return true;
  }

  // Whether the candidate is slower than the best by more than `factor` and its exact time does not matter.
  bool IsBehind(int candidate, double seconds, double factor) const {
    return seconds > factor * best_ && !IsIncumbent(candidate) && !batch_.final;
  }
  bool IsHopeless(int candidate, double seconds) const { return IsBehind(candidate, seconds, kHopelessFactor); }

  // The number of calls in one of the first repeats, if one call takes `wall` seconds.
  int64_t CallsOfRepeat(double wall) const {
    return std::max<int64_t>(1, static_cast<int64_t>(policy_.min_seconds_first / (kFirstRepeatsMax * wall)));
  }

  // Estimates the seconds of one call; `cold` is the time of the verified call. One repeat is doubtful if calls are
  // short, because of the overhead around them, or if it took longer than `cold`, because the machine may have paused.
  // Then the least of several repeats counts. False: the failure was reported.
  bool Estimate(int candidate, LoadedKernel& kernel, double cold, TimedRepeat& least) {
    if (!Time(candidate, kernel, 1, least)) return false;
    const auto decides = [&] { return least.seconds >= kSlowCallSecondsMin || IsHopeless(candidate, least.seconds); };
    for (int made = 1; made < kEstimatesMax; ++made) {
      const bool doubtful = least.wall < kShortCallSeconds || least.seconds > kClearlySlowerFactor * cold;
      if (!doubtful || (made > 1 && !decides())) break;
      TimedRepeat taken{};
      if (!Time(candidate, kernel, CallsOfRepeat(least.wall), taken)) return false;
      if (taken.seconds < least.seconds) least = taken;
    }
    return true;
  }

  // Takes the first times. `cold` is the time of the verified call, which suffices for a slow kernel.
  bool TakeFirstTimes(int candidate, LoadedKernel& kernel, double cold) {
    const double budget = policy_.min_seconds_first;
    launcher_channel_.BeginCalling(candidate, 0.5 + 4 * policy_.timeout_seconds + 4 * budget);
    const bool surely_hopeless = IsHopeless(candidate, cold) && !IsBehind(candidate, cold, kUnlikelyFactor);
    const bool cold_suffices = cold >= kSlowCallSecondsMin && (surely_hopeless || SecondsLeft() < cold);
    TimedRepeat estimate{cold, cold, 1};
    if (!cold_suffices && !Estimate(candidate, kernel, cold, estimate)) return false;
    std::vector<double> seconds = {estimate.seconds};
    int64_t calls = estimate.calls;
    // An estimate of few calls, as after a stall, may show cold caches.
    const bool few_calls = 2 * estimate.calls < CallsOfRepeat(estimate.wall);
    const bool hopeless = !few_calls && IsHopeless(candidate, estimate.seconds);
    if (!hopeless && estimate.seconds < kSlowCallSecondsMin) {
      calls = CallsOfRepeat(estimate.wall);
      const double repeats = budget / (static_cast<double>(calls) * estimate.wall);
      const int count =
          std::clamp(static_cast<int>(std::min<double>(repeats, kFirstRepeatsMax)), kRepeatsMin, kFirstRepeatsMax);
      seconds.clear();
      if (!Repeat(candidate, kernel, calls, kRepeatsMin, seconds)) return false;
      const int more = IsBehind(candidate, Median(seconds), kClearlySlowerFactor) ? 0 : count - kRepeatsMin;
      if (!Repeat(candidate, kernel, calls, more, seconds)) return false;
    }
    if (!CheckInputsUnchanged(candidate, kernel)) return false;
    child_.result_memory().ClearGuards();
    if (const absl::Status shown = kernel.StoreGuards(child_.result_memory()); !shown.ok())
      return ReportBroken(candidate, shown);
    launcher_channel_.SendTimes(candidate, calls, false, seconds);
    if (launcher_channel_.ReceiveAnswer() != VisitAnswer::kGood) return false;
    AddVerified(candidate, calls, Median(seconds));
    if (hopeless || kernel_cache_.full()) kernel_cache_.Unload(candidate);
    return true;
  }

  // Times one repeat of the runner, after a warm-up call, because the caches hold data of another candidate. Adds the
  // time of the repeat and of loading the kernel to `spent`. False: it failed.
  bool TimeOneRepeat(const Runner& runner, std::vector<double>& seconds, double& spent) {
    bool must_exit = false;
    const double start = SecondsNow();
    LoadedKernel* kernel = kernel_cache_.Acquire(runner.candidate, must_exit);
    if (kernel == nullptr) return false;
    spent += SecondsNow() - start;
    launcher_channel_.BeginCalling(
        runner.candidate, 0.5 + 6 * policy_.timeout_seconds + 10 * static_cast<double>(runner.calls) * runner.median);
    if (runner.median < kSlowCallSecondsMin) {
      double ignored = 0;
      if (const absl::Status called = Call(*kernel, ignored); !called.ok())
        return ReportBroken(runner.candidate, called);
    }
    TimedRepeat taken{};
    if (!Time(runner.candidate, *kernel, runner.calls, taken)) return false;
    seconds.push_back(taken.seconds);
    spent += static_cast<double>(runner.calls) * taken.wall;
    return true;
  }

  // How many rounds: about `seconds` for each runner, within the bounds.
  struct RoundLimits {
    double seconds;
    int rounds_min, rounds_max;
  };

  // Times the runners of `field` in interleaved rounds. All get the same number of repeats, so that repeats can be
  // paired; fewer if the time runs out. False: a candidate failed.
  bool TimeInterleaved(std::vector<Runner>& field, const RoundLimits& limits, bool final_round) {
    std::vector<std::vector<double>> seconds(field.size());
    const double enough = limits.seconds * static_cast<double>(field.size());
    double spent = 0, longest = RoundSeconds(field);
    int made = 0;
    for (; made < limits.rounds_max && (made < limits.rounds_min || spent < enough) && SecondsLeft() > longest;
         ++made) {
      const double start = SecondsNow();
      for (size_t i = 0; i < field.size(); ++i) {
        // Alternate the order, so that a device whose speed drifts favours no candidate.
        const size_t place = made % 2 == 0 ? i : field.size() - 1 - i;
        if (!TimeOneRepeat(field[place], seconds[place], spent)) return false;
      }
      if (final_round && !TimeReference()) return false;
      longest = std::max(longest, SecondsNow() - start);
    }
    // With too few rounds these repeats are added to the earlier ones; they do not replace them.
    const bool compared = final_round && made >= kInterleavedRoundsMin;
    for (size_t i = 0; i < field.size() && made > 0; ++i) {
      launcher_channel_.SendTimes(field[i].candidate, field[i].calls, compared, seconds[i]);
      field[i].median = Median(seconds[i]);
    }
    return true;
  }

  // Keeps the best `count` runners, in order, and always the incumbent.
  void KeepFastest(std::vector<Runner>& field, size_t count, double slowest) const {
    std::sort(field.begin(), field.end(), [](const Runner& a, const Runner& b) { return a.median < b.median; });
    std::vector<Runner> kept;
    for (const Runner& runner : field) {
      const bool good = kept.size() < count && runner.median <= slowest;
      if (good || IsIncumbent(runner.candidate)) kept.push_back(runner);
    }
    field = std::move(kept);
  }

  bool TimeFinalists() {
    std::vector<Runner> field = runners_;
    if (field.empty()) return true;
    if (!batch_.final) {
      const auto finalists = static_cast<size_t>(policy_.finalists);
      KeepFastest(field, std::max(2 * finalists, field.size() / 4), kSemifinalFactor * best_);
      const bool close = field.size() > finalists && best_ < kSlowCallSecondsMin;
      if (close && !TimeInterleaved(field, {2 * policy_.min_seconds_first, 2, 6}, false)) return false;
      KeepFastest(field, finalists, kUnlimitedSeconds);
    }
    const int of_race = best_ < kSlowCallSecondsMin ? kFinalRepeatsMin : kInterleavedRoundsMin;
    const int rounds_min = batch_.final ? ConfirmationRounds(best_) : of_race;
    return TimeInterleaved(field, {policy_.final_seconds, rounds_min, kFinalRepeatsMax}, true);
  }

  static double RoundSeconds(const std::vector<Runner>& field) {
    double seconds = 0;
    for (const Runner& runner : field) seconds += static_cast<double>(runner.calls) * runner.median;
    return seconds;
  }

  Child& child_;
  const VisitTask& task_;
  const VisitBatch& batch_;
  const VisitPolicy& policy_;
  ChildChannel& launcher_channel_;
  Session& session_;
  KernelCache kernel_cache_;
  const DataLayout layout_;
  std::vector<Runner> runners_;  // verified
  double best_ = kUnlimitedSeconds;
  double longest_ = 0;  // seconds that a candidate took until it was qualified
};

}  // namespace

void RunRace(Child& child) {
  Race race(child);
  race.Run();
  _exit(0);
}

}  // namespace hone::agent
