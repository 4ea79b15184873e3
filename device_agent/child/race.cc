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

  // Whether one more candidate can be looked at and the last round still has a turn for each finalist.
  bool TimeForAnother() const {
    if (runners_.empty()) return SecondsLeft() > 0;
    size_t finalists = runners_.size() + 1;
    if (!batch_.final) finalists = std::min(finalists, static_cast<size_t>(policy_.finalists));
    return SecondsLeft() > longest_ + static_cast<double>(finalists) * best_;
  }

  // Seconds of the reference. Nothing: told that the batch cannot be measured.
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

  // A device that was idle is slow at first: until the reference takes as long in two spells that follow one another.
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

  // What an error of a kernel means: the candidate failed, and this process is of no use. Always false.
  bool Broken(int candidate, const absl::Status& status) {
    launcher_channel_.SendFailure(candidate, FailureFromStatus(status));
    return false;
  }

  bool IsIncumbent(int candidate) const { return policy_.incumbent == candidate; }

  // Verifies and times one candidate for the first time. False: this process must not go on, because memory that is
  // not the candidate's may be damaged.
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
    if (first > timeout) {  // the machine may have stood still
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

  // Looked at once, after all calls: to read them takes a device longer than many a kernel. False: told as failed.
  bool LeftInputs(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.ChangedInput();
    if (!changed.ok()) return Broken(candidate, changed.status());
    if (changed->has_value()) launcher_channel_.SendFailure(candidate, **changed);
    return !changed->has_value();
  }

  absl::Status Show(LoadedKernel& kernel) { return child_.StoreResults(kernel); }

  // Unloads one that failed. False where the others need another process, since its inputs are not what they were.
  bool Leave(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.ChangedInput();
    kept_.Unload(candidate);
    return changed.ok() && !changed->has_value();
  }

  // Of one of several calls in a row, on average.
  struct Taken {
    double seconds;  // as the device says
    double wall;     // what they and all around them took by our clock
    int64_t calls;   // in a row
  };

  // One repeat of the kernel. False: told as failed.
  bool Time(int candidate, LoadedKernel& kernel, int64_t calls, Taken& taken) {
    const double start = SecondsNow();
    const absl::StatusOr<double> seconds = kernel.Time(calls);
    if (!seconds.ok()) return Broken(candidate, seconds.status());
    const double wall = (SecondsNow() - start) / static_cast<double>(calls);
    taken = {std::max(*seconds, kCallSecondsMin), std::max(wall, kCallSecondsMin), calls};
    return true;
  }

  // `repeats` of the kernel into `seconds`. False: told as failed.
  bool Repeat(int candidate, LoadedKernel& kernel, int64_t calls, int repeats, std::vector<double>& seconds) {
    for (int i = 0; i < repeats; ++i) {
      Taken taken{};
      if (!Time(candidate, kernel, calls, taken)) return false;
      seconds.push_back(taken.seconds);
    }
    return true;
  }

  // Whether a candidate is slower than the best by more than the factor, and nothing depends on by how much.
  bool IsBehind(int candidate, double seconds, double factor) const {
    return seconds > factor * best_ && !IsIncumbent(candidate) && !batch_.final;
  }
  bool IsHopeless(int candidate, double seconds) const { return IsBehind(candidate, seconds, kHopelessFactor); }

  // How many calls one of the first repeats has.
  int64_t CallsOfRepeat(double wall) const {
    return std::max<int64_t>(1, static_cast<int64_t>(policy_.min_seconds_first / (kFirstRepeatsMax * wall)));
  }

  // What a call takes, `cold` being what the verified one took. One repeat says little of short calls, around which a
  // device does more than in them, and where it took longer than the verified call: the machine may have stood still.
  // Then the least of several counts. False: told as failed.
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

  // cold: what the call took that was verified; of a slow kernel it may have to do.
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

  // One repeat of the runner, warm: another candidate's data was in the caches before. Adds what the repeat took by our
  // clock to `spent`, and what loading took where kernels come and go. False: it failed.
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

  // As many turns as give each of a field about so many seconds.
  struct Turns {
    double seconds;
    int fewest, most;
  };

  // Rounds over all of `field`, in turns, the same number for all, so that repeats can be paired; fewer where there is
  // no time for them. False: a candidate failed.
  bool InTurns(std::vector<Runner>& field, const Turns& turns, bool final_round) {
    std::vector<std::vector<double>> seconds(field.size());
    const double enough = turns.seconds * static_cast<double>(field.size());
    double spent = 0, longest = TurnSeconds(field);
    int made = 0;
    for (; made < turns.most && (made < turns.fewest || spent < enough) && SecondsLeft() > longest; ++made) {
      const double start = SecondsNow();
      for (size_t i = 0; i < field.size(); ++i) {
        // To and fro: a device that gets slower, or faster, slows nobody more than others.
        const size_t place = made % 2 == 0 ? i : field.size() - 1 - i;
        if (!Turn(field[place], seconds[place], spent)) return false;
      }
      if (final_round && !TimeReference()) return false;
      longest = std::max(longest, SecondsNow() - start);
    }
    // Where time was over too soon, these repeats count like all others, and not instead of them.
    const bool compared = final_round && made >= kFewestTurns;
    for (size_t i = 0; i < field.size() && made > 0; ++i) {
      launcher_channel_.SendTimes(field[i].candidate, field[i].calls, compared, seconds[i]);
      field[i].median = Median(seconds[i]);
    }
    return true;
  }

  // The best `count`, in order; the incumbent always stays.
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
