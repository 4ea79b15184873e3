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
constexpr double kAnySpeed = std::numeric_limits<double>::infinity();

class Race {
 public:
  explicit Race(Child& child)
      : child_(child),
        task_(child.task()),
        batch_(child.batch()),
        policy_(batch_.policy),
        launcher_channel_(child.launcher_channel()),
        session_(child.session()),
        kept_(child),
        layout_(LayOut(batch_)) {}

  void Run() {
    for (const Verified& verified : task_.verified)
      Qualify(verified.candidate, verified.calls, verified.median_seconds);
    if (!WarmUp() || !TimeReference()) return;
    int since_reference = 0;
    for (const int candidate : task_.to_verify) {
      if (!TimeForAnother()) break;
      const double start = SecondsNow();
      if (!Qualifying(candidate)) return;
      longest_ = std::max(longest_, SecondsNow() - start);
      if (++since_reference % kReferenceEvery == 0 && !TimeReference()) return;
    }
    if (!Finals() || !TimeReference()) return;
    launcher_channel_.SendDone();
  }

 private:
  struct Runner {
    int candidate;
    int64_t calls;
    double median;
  };

  void Qualify(int candidate, int64_t calls, double median) {
    runners_.push_back({candidate, calls, median});
    best_ = std::min(best_, median);
  }

  double SecondsLeft() const { return task_.deadline - SecondsNow(); }

  // Whether time is left for one more candidate and then one repeat of each finalist.
  bool TimeForAnother() const {
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
    double before = 0, least = kAnySpeed;
    do {
      before = std::exchange(least, kAnySpeed);
      for (const double start = SecondsNow(); SecondsNow() - start < kWarmUpSpellSeconds;) {
        const std::optional<double> seconds = ReferenceSeconds();
        if (!seconds.has_value()) return false;
        least = std::min(least, *seconds);
      }
    } while (std::abs(before - least) > kSteadyFraction * least && SecondsNow() < end);
    return true;
  }

  // Reports the error of a kernel, after which this process must end. Always false.
  bool Broken(int candidate, const absl::Status& status) {
    launcher_channel_.SendFailure(candidate, FailureFromStatus(status));
    return false;
  }

  bool IsIncumbent(int candidate) const { return policy_.incumbent == candidate; }

  // Verifies one candidate and takes its first times. False: this process must end, because the candidate may have
  // damaged memory of others.
  bool Qualifying(int candidate) {
    bool lost = false;
    LoadedKernel* kernel = kept_.Ready(candidate, lost);
    if (kernel == nullptr) return !lost;
    const double timeout = policy_.timeout_seconds;
    launcher_channel_.BeginCalling(candidate,
                                   kSlackSeconds + 2 * timeout + static_cast<double>(layout_.output_bytes) * 1e-9);
    absl::Status called = session_.ClearOutputs();
    double first = 0;
    if (called.ok()) called = Call(*kernel, first);
    if (!called.ok()) return Broken(candidate, called);
    if (const absl::Status shown = Show(*kernel); !shown.ok()) return Broken(candidate, shown);
    launcher_channel_.SendResultsStored(candidate);
    if (const VisitAnswer answer = launcher_channel_.ReceiveAnswer(); answer != VisitAnswer::kGood) {
      return answer == VisitAnswer::kFailed && Leave(candidate, *kernel);
    }
    double cold = first;
    if (first > timeout) {  // the machine may have paused
      launcher_channel_.BeginCalling(candidate, kSlackSeconds + 2 * timeout);
      if (called = Call(*kernel, cold); !called.ok()) return Broken(candidate, called);
    }
    if (cold <= timeout) return FirstTimes(candidate, *kernel, cold);
    launcher_channel_.SendFailure(
        candidate,
        {FailureKind::kRunTimeout,
         fmt::format("two calls took {:.3g} and {:.3g} s; allowed are {:.3g} s each", first, cold, timeout)});
    return Leave(candidate, *kernel);
  }

  static absl::Status Call(LoadedKernel& kernel, double& seconds) {
    const double start = SecondsNow();
    HONE_RETURN_IF_ERROR(kernel.Call());
    seconds = SecondsNow() - start;
    return absl::OkStatus();
  }

  // Whether the inputs are unchanged. Checked once, after all calls, because reading them back takes a device longer
  // than many kernels take. False: the failure was reported.
  bool LeftInputs(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.ChangedInput();
    if (!changed.ok()) return Broken(candidate, changed.status());
    if (changed->has_value()) launcher_channel_.SendFailure(candidate, **changed);
    return !changed->has_value();
  }

  absl::Status Show(LoadedKernel& kernel) { return child_.StoreResults(kernel); }

  // Unloads a failed candidate. False if it changed the inputs, so that the others need another process.
  bool Leave(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.ChangedInput();
    kept_.Unload(candidate);
    return changed.ok() && !changed->has_value();
  }

  // The mean of one repeat, which is several calls in a row.
  struct Taken {
    double seconds;  // of one call, by the device's clock
    double wall;     // of one call and all overhead, by the steady clock
    int64_t calls;   // in a row
  };

  // Times one repeat of the kernel. False: the failure was reported.
  bool Time(int candidate, LoadedKernel& kernel, int64_t calls, Taken& taken) {
    const double start = SecondsNow();
    const absl::StatusOr<double> seconds = kernel.Time(calls);
    if (!seconds.ok()) return Broken(candidate, seconds.status());
    const double wall = (SecondsNow() - start) / static_cast<double>(calls);
    taken = {std::max(*seconds, kCallSecondsMin), std::max(wall, kCallSecondsMin), calls};
    return true;
  }

  // Appends `repeats` repeats of the kernel to `seconds`. False: the failure was reported.
  bool Repeat(int candidate, LoadedKernel& kernel, int64_t calls, int repeats, std::vector<double>& seconds) {
    for (int i = 0; i < repeats; ++i) {
      Taken taken{};
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
  bool Estimate(int candidate, LoadedKernel& kernel, double cold, Taken& least) {
    if (!Time(candidate, kernel, 1, least)) return false;
    const auto decides = [&] { return least.seconds >= kSlowCall || IsHopeless(candidate, least.seconds); };
    for (int made = 1; made < kEstimatesMax; ++made) {
      const bool doubtful = least.wall < kShortCallSeconds || least.seconds > kClearlySlowerFactor * cold;
      if (!doubtful || (made > 1 && !decides())) break;
      Taken taken{};
      if (!Time(candidate, kernel, CallsOfRepeat(least.wall), taken)) return false;
      if (taken.seconds < least.seconds) least = taken;
    }
    return true;
  }

  // Takes the first times. `cold` is the time of the verified call, which suffices for a slow kernel.
  bool FirstTimes(int candidate, LoadedKernel& kernel, double cold) {
    const double budget = policy_.min_seconds_first;
    launcher_channel_.BeginCalling(candidate, 0.5 + 4 * policy_.timeout_seconds + 4 * budget);
    const bool surely_hopeless = IsHopeless(candidate, cold) && !IsBehind(candidate, cold, kUnlikelyFactor);
    const bool cold_will_do = cold >= kSlowCall && (surely_hopeless || SecondsLeft() < cold);
    Taken estimate{cold, cold, 1};
    if (!cold_will_do && !Estimate(candidate, kernel, cold, estimate)) return false;
    std::vector<double> seconds = {estimate.seconds};
    int64_t calls = estimate.calls;
    const bool hopeless = IsHopeless(candidate, estimate.seconds);
    if (!hopeless && estimate.seconds < kSlowCall) {
      calls = CallsOfRepeat(estimate.wall);
      const double repeats = budget / (static_cast<double>(calls) * estimate.wall);
      const int count =
          std::clamp(static_cast<int>(std::min<double>(repeats, kFirstRepeatsMax)), kRepeatsMin, kFirstRepeatsMax);
      seconds.clear();
      if (!Repeat(candidate, kernel, calls, kRepeatsMin, seconds)) return false;
      const int more = IsBehind(candidate, Median(seconds), kClearlySlowerFactor) ? 0 : count - kRepeatsMin;
      if (!Repeat(candidate, kernel, calls, more, seconds)) return false;
    }
    if (!LeftInputs(candidate, kernel)) return false;
    child_.result_memory().ForgetGuards();
    if (const absl::Status shown = kernel.StoreGuards(child_.result_memory()); !shown.ok())
      return Broken(candidate, shown);
    launcher_channel_.SendTimes(candidate, calls, false, seconds);
    if (launcher_channel_.ReceiveAnswer() != VisitAnswer::kGood) return false;
    Qualify(candidate, calls, Median(seconds));
    if (hopeless || kept_.full()) kept_.Unload(candidate);
    return true;
  }

  // Times one repeat of the runner, after a warm-up call, because the caches hold data of another candidate. Adds the
  // time of the repeat and of loading the kernel to `spent`. False: it failed.
  bool Turn(const Runner& runner, std::vector<double>& seconds, double& spent) {
    bool lost = false;
    const double start = SecondsNow();
    LoadedKernel* kernel = kept_.Ready(runner.candidate, lost);
    if (kernel == nullptr) return false;
    spent += SecondsNow() - start;
    launcher_channel_.BeginCalling(
        runner.candidate, 0.5 + 6 * policy_.timeout_seconds + 10 * static_cast<double>(runner.calls) * runner.median);
    if (runner.median < kSlowCall) {
      if (const absl::Status called = kernel->Call(); !called.ok()) return Broken(runner.candidate, called);
    }
    Taken taken{};
    if (!Time(runner.candidate, *kernel, runner.calls, taken)) return false;
    seconds.push_back(taken.seconds);
    spent += static_cast<double>(runner.calls) * taken.wall;
    return true;
  }

  // How many rounds: about `seconds` for each runner, within the bounds.
  struct Turns {
    double seconds;
    int fewest, most;
  };

  // Times the runners of `field` in interleaved rounds. All get the same number of repeats, so that repeats can be
  // paired; fewer if the time runs out. False: a candidate failed.
  bool InTurns(std::vector<Runner>& field, const Turns& turns, bool final_round) {
    std::vector<std::vector<double>> seconds(field.size());
    const double enough = turns.seconds * static_cast<double>(field.size());
    double spent = 0, longest = TurnSeconds(field);
    int made = 0;
    for (; made < turns.most && (made < turns.fewest || spent < enough) && SecondsLeft() > longest; ++made) {
      const double start = SecondsNow();
      for (size_t i = 0; i < field.size(); ++i) {
        // Alternate the order, so that a device whose speed drifts favours no candidate.
        const size_t place = made % 2 == 0 ? i : field.size() - 1 - i;
        if (!Turn(field[place], seconds[place], spent)) return false;
      }
      if (final_round && !TimeReference()) return false;
      longest = std::max(longest, SecondsNow() - start);
    }
    // With too few rounds these repeats are added to the earlier ones; they do not replace them.
    const bool compared = final_round && made >= kFewestTurns;
    for (size_t i = 0; i < field.size() && made > 0; ++i) {
      launcher_channel_.SendTimes(field[i].candidate, field[i].calls, compared, seconds[i]);
      field[i].median = Median(seconds[i]);
    }
    return true;
  }

  // Keeps the best `count` runners, in order, and always the incumbent.
  void Keep(std::vector<Runner>& field, size_t count, double slowest) const {
    std::sort(field.begin(), field.end(), [](const Runner& a, const Runner& b) { return a.median < b.median; });
    std::vector<Runner> kept;
    for (const Runner& runner : field) {
      const bool good = kept.size() < count && runner.median <= slowest;
      if (good || IsIncumbent(runner.candidate)) kept.push_back(runner);
    }
    field = std::move(kept);
  }

  bool Finals() {
    std::vector<Runner> field = runners_;
    if (field.empty()) return true;
    if (!batch_.final) {
      const auto finalists = static_cast<size_t>(policy_.finalists);
      Keep(field, std::max(2 * finalists, field.size() / 4), kSemifinalFactor * best_);
      const bool close = field.size() > finalists && best_ < kSlowCall;
      if (close && !InTurns(field, {2 * policy_.min_seconds_first, 2, 6}, false)) return false;
      Keep(field, finalists, kAnySpeed);
    }
    const int of_race = best_ < kSlowCall ? kFinalRepeatsMin : kFewestTurns;
    const int fewest = batch_.final ? TurnsToConfirm(best_) : of_race;
    return InTurns(field, {policy_.final_seconds, fewest, kFinalRepeatsMax}, true);
  }

  static double TurnSeconds(const std::vector<Runner>& field) {
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
  KernelCache kept_;
  const DataLayout layout_;
  std::vector<Runner> runners_;  // verified
  double best_ = kAnySpeed;
  double longest_ = 0;  // seconds that a candidate took until it was qualified
};

}  // namespace

void RunRace(Child& child) {
  Race race(child);
  race.Run();
  _exit(0);
}

}  // namespace hone::agent
