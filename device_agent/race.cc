#include "device_agent/race.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "device_agent/reference_loop.h"

namespace hone::agent {
namespace {

constexpr int kFirstRepeats = 10;  // most in the first round
constexpr int kFewestRepeats = 3;
constexpr int kFinalRepeats = 40;  // most in the last round
constexpr int kFewestFinalRepeats = 5;
constexpr int kFewestTurns = 3;          // in the last round, of slow kernels; fewer compare nothing
constexpr double kSlowCall = 0.2;        // seconds; of such a call one says enough, and caches do not matter
constexpr double kHopeless = 2.5;        // slower than the best so far by this factor: one repeat is enough
constexpr double kClearly = 1.25;        // slower than the best so far by this factor: the fewest repeats are enough
constexpr double kSemifinal = 2.0;       // slower than the best by this factor: no further round
constexpr double kSlack = 0.3;           // seconds beyond what the policy allows
constexpr double kLeastSeconds = 1e-9;   // a clock may be too coarse for one call
constexpr int kReferenceEvery = 8;       // candidates between two looks at the device itself
constexpr int64_t kKeptBytes = 1 << 30;  // packed buffers and workspaces kept for the later rounds

class Race {
 public:
  explicit Race(Child& child)
      : child_(child),
        task_(child.task()),
        batch_(child.batch()),
        policy_(batch_.policy),
        voice_(child.voice()),
        session_(child.session()),
        layout_(LayOut(batch_)) {}

  void Run() {
    for (const Verified& verified : task_.verified)
      Qualify(verified.candidate, verified.calls, verified.median_seconds);
    if (!TimeReference()) return;
    int since_reference = 0;
    for (const int candidate : task_.to_verify) {
      if (!TimeForAnother()) break;
      const double start = SecondsNow();
      if (!Qualifying(candidate)) return;
      longest_ = std::max(longest_, SecondsNow() - start);
      if (++since_reference % kReferenceEvery == 0 && !TimeReference()) return;
    }
    if (!Finals() || !TimeReference()) return;
    voice_.Done();
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

  bool TimeReference() {
    const absl::StatusOr<double> seconds = session_.TimeReference();
    if (seconds.ok()) {
      voice_.Reference(*seconds);
    } else {
      voice_.BatchFailed(std::string(seconds.status().message()));
    }
    return seconds.ok();
  }

  // What an error of a kernel means: the candidate failed, and this process is of no use. Always false.
  bool Broken(int candidate, const absl::Status& status) {
    voice_.Failed(candidate, FailureOf(status));
    return false;
  }

  bool IsIncumbent(int candidate) const { return policy_.incumbent == candidate; }

  static int64_t OwnBytes(const KernelInterface& interface) {
    int64_t bytes = interface.workspace_bytes;
    for (const uint32_t i : interface.Of(BufferRole::kPacked)) bytes += interface.buffers[i].bytes();
    return bytes;
  }

  // Loads and prepares the candidate unless it is. nullptr: told as failed; `lost`: and this process must not go on.
  LoadedKernel* Ready(int candidate, bool& lost) {
    lost = false;
    if (auto found = loaded_.find(candidate); found != loaded_.end()) return found->second.get();
    const VisitKernel& kernel = batch_.candidates[static_cast<size_t>(candidate)].kernel;
    voice_.Loading(candidate, child_.device().load_seconds());
    absl::StatusOr<std::unique_ptr<LoadedKernel>> loaded = session_.Load(kernel);
    if (!loaded.ok()) {
      voice_.Failed(candidate, FailureOf(loaded.status()));
      lost = !LivesOn(loaded.status());
      return nullptr;
    }
    voice_.Calling(candidate, kSlack + 2 * policy_.timeout_seconds);
    if (const absl::Status prepared = (*loaded)->Prepare(); !prepared.ok()) {
      lost = !Broken(candidate, prepared);
      return nullptr;
    }
    kept_bytes_ += OwnBytes(kernel.interface);
    return loaded_.emplace(candidate, *std::move(loaded)).first->second.get();
  }

  void Unload(int candidate) {
    if (loaded_.erase(candidate) == 0) return;
    kept_bytes_ -= OwnBytes(batch_.candidates[static_cast<size_t>(candidate)].kernel.interface);
  }

  // Verifies and times one candidate for the first time. False: this process must not go on, because memory that is
  // not the candidate's may be damaged.
  bool Qualifying(int candidate) {
    bool lost = false;
    LoadedKernel* kernel = Ready(candidate, lost);
    if (kernel == nullptr) return !lost;
    const double timeout = policy_.timeout_seconds;
    voice_.Calling(candidate, kSlack + 2 * timeout + static_cast<double>(layout_.output_bytes) * 1e-9);
    absl::Status called = session_.ClearOutputs();
    double first = 0;
    if (called.ok()) called = Call(*kernel, first);
    if (!called.ok()) return Broken(candidate, called);
    if (const absl::Status shown = Show(*kernel); !shown.ok()) return Broken(candidate, shown);
    voice_.Shown(candidate);
    if (const VisitAnswer answer = voice_.Answer(); answer != VisitAnswer::kGood) {
      return answer == VisitAnswer::kFailed && Leave(candidate, *kernel);
    }
    double cold = first;
    if (first > timeout) {  // the machine may have stood still
      voice_.Calling(candidate, kSlack + 2 * timeout);
      if (called = Call(*kernel, cold); !called.ok()) return Broken(candidate, called);
    }
    if (cold <= timeout) return FirstTimes(candidate, *kernel, cold);
    voice_.Failed(candidate,
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
    if (changed->has_value()) voice_.Failed(candidate, **changed);
    return !changed->has_value();
  }

  absl::Status Show(LoadedKernel& kernel) { return child_.ShowAll(kernel); }

  // Unloads one that failed. False where the others need another process, since its inputs are not what they were.
  bool Leave(int candidate, LoadedKernel& kernel) {
    const absl::StatusOr<std::optional<VisitFailure>> changed = kernel.ChangedInput();
    Unload(candidate);
    return changed.ok() && !changed->has_value();
  }

  // `repeats` of the kernel into `seconds`. False: told as failed.
  bool Repeat(int candidate, LoadedKernel& kernel, int64_t calls, int repeats, std::vector<double>& seconds) {
    for (int i = 0; i < repeats; ++i) {
      const absl::StatusOr<double> repeat = kernel.Time(calls);
      if (!repeat.ok()) return Broken(candidate, repeat.status());
      seconds.push_back(std::max(*repeat, kLeastSeconds));
    }
    return true;
  }

  // Whether a candidate is slower than the best by more than the factor, and nothing depends on by how much.
  bool IsBehind(int candidate, double seconds, double factor) const {
    return seconds > factor * best_ && !IsIncumbent(candidate) && !batch_.final;
  }
  bool IsHopeless(int candidate, double seconds) const { return IsBehind(candidate, seconds, kHopeless); }

  // cold: what the call took that was verified; of a slow kernel it may have to do.
  bool FirstTimes(int candidate, LoadedKernel& kernel, double cold) {
    const double budget = policy_.min_seconds_first;
    voice_.Calling(candidate, 0.5 + 4 * policy_.timeout_seconds + 4 * budget);
    const bool cold_will_do = cold >= kSlowCall && (IsHopeless(candidate, cold) || SecondsLeft() < cold);
    std::vector<double> seconds;
    if (cold_will_do) {
      seconds.push_back(cold);
    } else if (!Repeat(candidate, kernel, 1, 1, seconds)) {
      return false;
    }
    const double estimate = seconds[0];
    int64_t calls = 1;
    const bool hopeless = IsHopeless(candidate, estimate);
    if (!hopeless && estimate < kSlowCall) {
      calls = std::max<int64_t>(1, static_cast<int64_t>(budget / (kFirstRepeats * estimate)));
      const double repeats = budget / (static_cast<double>(calls) * estimate);
      const int count =
          std::clamp(static_cast<int>(std::min<double>(repeats, kFirstRepeats)), kFewestRepeats, kFirstRepeats);
      seconds.clear();
      if (!Repeat(candidate, kernel, calls, kFewestRepeats, seconds)) return false;
      const int more = IsBehind(candidate, Median(seconds), kClearly) ? 0 : count - kFewestRepeats;
      if (!Repeat(candidate, kernel, calls, more, seconds)) return false;
    }
    if (!LeftInputs(candidate, kernel)) return false;
    child_.evidence().Begin();
    if (const absl::Status shown = kernel.ShowGuards(child_.evidence()); !shown.ok()) return Broken(candidate, shown);
    voice_.Times(candidate, calls, false, seconds);
    if (voice_.Answer() != VisitAnswer::kGood) return false;
    Qualify(candidate, calls, Median(seconds));
    if (hopeless || kept_bytes_ > kKeptBytes) Unload(candidate);
    return true;
  }

  // One repeat of the runner, warm: another candidate's data was in the caches before. False: it failed.
  bool Turn(const Runner& runner, std::vector<double>& seconds) {
    bool lost = false;
    LoadedKernel* kernel = Ready(runner.candidate, lost);
    if (kernel == nullptr) return false;
    voice_.Calling(runner.candidate,
                   0.5 + 6 * policy_.timeout_seconds + 10 * static_cast<double>(runner.calls) * runner.median);
    if (runner.median < kSlowCall) {
      if (const absl::Status called = kernel->Call(); !called.ok()) return Broken(runner.candidate, called);
    }
    return Repeat(runner.candidate, *kernel, runner.calls, 1, seconds);
  }

  // `turns` rounds over all of `field`, in turns, or as many as there is time for. False: a candidate failed.
  bool InTurns(std::vector<Runner>& field, int turns, bool final_round) {
    std::vector<std::vector<double>> seconds(field.size());
    int made = 0;
    for (; made < turns && SecondsLeft() > TurnSeconds(field); ++made) {
      for (size_t i = 0; i < field.size(); ++i) {
        if (!Turn(field[i], seconds[i])) return false;
      }
      if (final_round && !TimeReference()) return false;
    }
    // Where time was over too soon, these repeats count like all others, and not instead of them.
    const bool compared = final_round && made >= kFewestTurns;
    for (size_t i = 0; i < field.size() && made > 0; ++i) {
      voice_.Times(field[i].candidate, field[i].calls, compared, seconds[i]);
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
    constexpr double kAnySpeed = std::numeric_limits<double>::infinity();
    if (!batch_.final) {
      const auto finalists = static_cast<size_t>(policy_.finalists);
      Keep(field, std::max(2 * finalists, field.size() / 4), kSemifinal * best_);
      const bool close = field.size() > finalists && best_ < kSlowCall;
      if (close && !InTurns(field, Turns(field, 2 * policy_.min_seconds_first, 2, 6), false)) {
        return false;
      }
      Keep(field, finalists, kAnySpeed);
    }
    const int fewest = best_ < kSlowCall ? kFewestFinalRepeats : kFewestTurns;
    return InTurns(field, Turns(field, policy_.final_seconds, fewest, kFinalRepeats), true);
  }

  static double TurnSeconds(const std::vector<Runner>& field) {
    double seconds = 0;
    for (const Runner& runner : field) seconds += static_cast<double>(runner.calls) * runner.median;
    return seconds;
  }

  // How many turns give each of the field about `seconds`; the same for all, so that repeats can be paired.
  static int Turns(const std::vector<Runner>& field, double seconds, int fewest, int most) {
    const double turn = TurnSeconds(field) / static_cast<double>(field.size());
    return std::clamp(static_cast<int>(std::min<double>(seconds / turn, most)), fewest, most);
  }

  Child& child_;
  const VisitTask& task_;
  const VisitBatch& batch_;
  const VisitPolicy& policy_;
  Voice& voice_;
  Session& session_;
  const DataLayout layout_;
  std::vector<Runner> runners_;  // verified
  double best_ = std::numeric_limits<double>::infinity();
  double longest_ = 0;  // seconds that a candidate took until it was qualified
  std::map<int, std::unique_ptr<LoadedKernel>> loaded_;
  int64_t kept_bytes_ = 0;
};

}  // namespace

void RunRace(Child& child) {
  Race race(child);
  race.Run();
  _exit(0);
}

}  // namespace hone::agent
