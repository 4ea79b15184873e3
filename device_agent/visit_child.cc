#include "device_agent/visit_child.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "device_agent/elements.h"
#include "device_agent/kernel_host.h"
#include "device_agent/reference_loop.h"

namespace hone::agent {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int kFirstRepeats = 10;  // most in the first round
constexpr int kFewestRepeats = 3;
constexpr int kFinalRepeats = 40;  // most in the last round
constexpr int kFewestFinalRepeats = 5;
constexpr double kHopeless = 2.5;        // slower than the best so far by this factor: one repeat is enough
constexpr double kSemifinal = 2.0;       // slower than the best by this factor: no further round
constexpr int kReferenceEvery = 8;       // candidates between two looks at the device itself
constexpr int64_t kKeptBytes = 1 << 30;  // packed buffers and workspaces kept for the later rounds

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int64_t OwnBytes(const v1::Kernel& kernel) {
  return std::accumulate(kernel.packed_bytes().begin(), kernel.packed_bytes().end(), kernel.workspace_bytes());
}

// How a failed Load is told: what the artifact lacks is the compiler's fault, the rest happened while running.
v1::FailureKind KindOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return v1::FAILURE_KIND_COMPILE_ERROR;
    case absl::StatusCode::kOutOfRange:
      return v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE;
    default:
      return v1::FAILURE_KIND_CRASHED;
  }
}

class Race {
 public:
  explicit Race(const ChildTask& task)
      : task_(task),
        batch_(*task.batch),
        policy_(WithDefaults(batch_.policy())),
        host_(task),
        layout_(LayOut(batch_)) {}

  void Run() {
    absl::Status ready = host_.SetUp();
    if (ready.ok()) ready = host_.MakeColdConstants();
    if (!ready.ok()) {
      host_.voice().Failed(-1, v1::FAILURE_KIND_UNSPECIFIED, std::string(ready.message()));
      return;
    }
    for (const Verified& verified : task_.verified)
      Qualify(verified.candidate, verified.calls, verified.median_seconds);
    TimeReference();
    int since_reference = 0;
    for (const int candidate : task_.to_verify) {
      if (!Qualifying(candidate)) return;
      if (++since_reference % kReferenceEvery == 0) TimeReference();
    }
    if (!Finals()) return;
    TimeReference();
    host_.voice().Done();
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

  void TimeReference() { host_.voice().Reference({ReferenceLoopSeconds()}); }

  bool IsIncumbent(int candidate) const {
    return !policy_.incumbent_id().empty() && batch_.candidates(candidate).id() == policy_.incumbent_id();
  }

  // Loads the candidate unless it is. nullptr: told as failed.
  const LoadedKernel* Ready(int candidate) {
    if (auto found = loaded_.find(candidate); found != loaded_.end()) return &found->second;
    const v1::Kernel& kernel = batch_.candidates(candidate).kernel();
    absl::StatusOr<LoadedKernel> loaded = host_.Load(kernel);
    if (!loaded.ok()) {
      host_.voice().Failed(candidate, KindOf(loaded.status()), std::string(loaded.status().message()));
      return nullptr;
    }
    kept_bytes_ += OwnBytes(kernel);
    return &loaded_.emplace(candidate, *std::move(loaded)).first->second;
  }

  void Unload(int candidate) {
    if (loaded_.erase(candidate) > 0) kept_bytes_ -= OwnBytes(batch_.candidates(candidate).kernel());
  }

  // Verifies and times one candidate for the first time. False: this process must not go on, because memory that is
  // not the candidate's may be damaged.
  bool Qualifying(int candidate) {
    const double timeout = policy_.timeout_seconds();
    host_.voice().Begin(candidate, 0.3 + 2 * timeout + static_cast<double>(layout_.bytes) * 1e-9);
    const LoadedKernel* kernel = Ready(candidate);
    if (kernel == nullptr) return true;
    host_.ClearOutputs();
    const double start = SecondsNow();
    host_.Call(*kernel);
    const double cold = SecondsNow() - start;
    double max_error = 0;
    if (const std::string broken = host_.BrokenCanary(*kernel); !broken.empty()) {
      host_.voice().Failed(candidate, v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE, broken);
      return false;
    }
    std::string problem = Verify(max_error);
    v1::FailureKind kind = v1::FAILURE_KIND_WRONG_OUTPUT;
    if (problem.empty() && cold > timeout) {
      problem = fmt::format("one call took {:.3g} s; allowed are {:.3g} s", cold, timeout);
      kind = v1::FAILURE_KIND_RUN_TIMEOUT;
    }
    if (!problem.empty()) {
      host_.voice().Failed(candidate, kind, problem);
      Unload(candidate);
      return true;
    }
    return FirstTimes(candidate, *kernel, max_error);
  }

  std::string Verify(double& max_error) const {
    for (int i = 0; i < batch_.buffers_size(); ++i) {
      if (batch_.buffers(i).role() != v1::Buffer::ROLE_OUTPUT) continue;
      const Comparison comparison =
          Compare(batch_.buffers(i), batch_.tolerance(), host_.output(i), task_.data + layout_.offsets[i]);
      if (!comparison.equal) return comparison.text;
      max_error = std::max(max_error, comparison.max_error);
    }
    return "";
  }

  bool FirstTimes(int candidate, const LoadedKernel& kernel, double max_error) {
    const double budget = policy_.min_seconds_first();
    host_.voice().Begin(candidate, 0.5 + 4 * policy_.timeout_seconds() + 4 * budget);
    const double estimate = std::max(host_.Time(kernel, 1), 1e-9);
    std::vector<double> seconds{estimate};
    int64_t calls = 1;
    const bool hopeless = estimate > kHopeless * best_ && !IsIncumbent(candidate) && !batch_.final();
    if (!hopeless) {
      calls = std::max<int64_t>(1, static_cast<int64_t>(budget / (kFirstRepeats * estimate)));
      const double repeats = budget / (static_cast<double>(calls) * estimate);
      const int count =
          std::clamp(static_cast<int>(std::min<double>(repeats, kFirstRepeats)), kFewestRepeats, kFirstRepeats);
      seconds.clear();
      for (int i = 0; i < count; ++i) seconds.push_back(host_.Time(kernel, calls));
    }
    if (const std::string broken = host_.BrokenCanary(kernel); !broken.empty()) {
      host_.voice().Failed(candidate, v1::FAILURE_KIND_OUT_OF_BOUNDS_WRITE, broken);
      return false;
    }
    host_.voice().Times(candidate, calls, false, seconds, max_error);
    Qualify(candidate, calls, Median(seconds));
    if (hopeless || kept_bytes_ > kKeptBytes) Unload(candidate);
    return true;
  }

  // One repeat of the runner, warm: another candidate's data was in the caches before.
  std::optional<double> Turn(const Runner& runner) {
    host_.voice().Begin(runner.candidate,
                        0.5 + 6 * policy_.timeout_seconds() + 10 * static_cast<double>(runner.calls) * runner.median);
    const LoadedKernel* kernel = Ready(runner.candidate);
    if (kernel == nullptr) return std::nullopt;
    host_.Call(*kernel);
    return host_.Time(*kernel, runner.calls);
  }

  // `turns` rounds over all of `field`, in turns. False: a candidate failed to load again.
  bool InTurns(std::vector<Runner>& field, int turns, bool final_round) {
    std::vector<std::vector<double>> seconds(field.size());
    for (int turn = 0; turn < turns; ++turn) {
      for (size_t i = 0; i < field.size(); ++i) {
        const std::optional<double> repeat = Turn(field[i]);
        if (!repeat) return false;
        seconds[i].push_back(*repeat);
      }
      if (final_round) TimeReference();
    }
    for (size_t i = 0; i < field.size(); ++i) {
      host_.voice().Times(field[i].candidate, field[i].calls, final_round, seconds[i], 0);
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
    if (!batch_.final()) {
      const auto finalists = static_cast<size_t>(policy_.finalists());
      Keep(field, std::max(2 * finalists, field.size() / 4), kSemifinal * best_);
      if (field.size() > finalists && !InTurns(field, Turns(field, 2 * policy_.min_seconds_first(), 2, 6), false)) {
        return false;
      }
      Keep(field, finalists, kAnySpeed);
    }
    return InTurns(field, Turns(field, policy_.final_seconds(), kFewestFinalRepeats, kFinalRepeats), true);
  }

  // How many turns give each of the field about `seconds`; the same for all, so that repeats can be paired.
  static int Turns(const std::vector<Runner>& field, double seconds, int fewest, int most) {
    double turn = 0;
    for (const Runner& runner : field) turn += static_cast<double>(runner.calls) * runner.median;
    turn /= static_cast<double>(field.size());
    return std::clamp(static_cast<int>(std::min<double>(seconds / turn, most)), fewest, most);
  }

  const ChildTask& task_;
  const v1::Batch& batch_;
  const v1::TimingPolicy policy_;
  KernelHost host_;
  const DataLayout layout_;
  std::vector<Runner> runners_;  // verified
  double best_ = std::numeric_limits<double>::infinity();
  std::map<int, LoadedKernel> loaded_;
  int64_t kept_bytes_ = 0;
};

}  // namespace

DataLayout LayOut(const v1::Batch& batch) {
  DataLayout layout;
  for (const v1::Buffer& buffer : batch.buffers()) {
    layout.offsets.push_back(layout.bytes);
    layout.bytes += (buffer.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return layout;
}

v1::TimingPolicy WithDefaults(const v1::TimingPolicy& policy) {
  v1::TimingPolicy filled = policy;
  if (!(filled.min_seconds_first() > 0)) filled.set_min_seconds_first(0.003);
  if (filled.finalists() < 1) filled.set_finalists(3);
  if (!(filled.final_seconds() > 0)) filled.set_final_seconds(0.02);
  if (!(filled.timeout_seconds() > 0)) filled.set_timeout_seconds(1.0);
  if (!(filled.reference_timeout_seconds() > 0)) filled.set_reference_timeout_seconds(30);
  return filled;
}

void RunReferenceChild(const ChildTask& task) {
  const v1::Batch& batch = *task.batch;
  const DataLayout layout = LayOut(batch);
  for (int i = 0; i < batch.buffers_size(); ++i) {
    if (batch.buffers(i).role() == v1::Buffer::ROLE_OUTPUT) continue;
    Fill(batch.buffers(i), i, batch.fill_seed(), task.data + layout.offsets[i]);
  }
  KernelHost host(task);
  const absl::Status status = [&] {
    HONE_RETURN_IF_ERROR(host.SetUp());
    host.voice().Begin(-1, 1 + WithDefaults(batch.policy()).reference_timeout_seconds());
    HONE_ASSIGN_OR_RETURN(const LoadedKernel kernel, host.Load(batch.reference()));
    host.ClearOutputs();
    host.Call(kernel);
    if (const std::string broken = host.BrokenCanary(kernel); !broken.empty()) return absl::OutOfRangeError(broken);
    for (int i = 0; i < batch.buffers_size(); ++i) {
      if (batch.buffers(i).role() != v1::Buffer::ROLE_OUTPUT) continue;
      memcpy(task.data + layout.offsets[i], host.output(i), batch.buffers(i).bytes());
    }
    return absl::OkStatus();
  }();
  if (status.ok()) {
    host.voice().Done();
  } else {
    host.voice().Failed(-1, v1::FAILURE_KIND_UNSPECIFIED, std::string(status.message()));
  }
  _exit(0);
}

void RunMeasuringChild(const ChildTask& task) {
  Race(task).Run();
  _exit(0);
}

}  // namespace hone::agent
