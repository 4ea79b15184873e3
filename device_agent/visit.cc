#include "device_agent/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/status.h"
#include "device_agent/guarded_memory.h"
#include "device_agent/reference_loop.h"
#include "device_agent/visit_child.h"
#include "device_agent/watched_child.h"

namespace hone::agent {
namespace {

// A whole last round lost to crashes is repeated this often; then the first times must do.
constexpr int kMaxLostRounds = 3;
constexpr size_t kLeastBuilt = 2;     // candidates that a process of its own builds
constexpr double kWorthBuilding = 5;  // seconds that are left: a driver's compiler takes one of them to start
constexpr std::string_view kCancelled = "cancelled";

// Text of a child, for a proto string: printable ASCII whatever it was.
std::string Clean(const char* text, size_t capacity) {
  std::string clean(text, strnlen(text, capacity));
  for (char& c : clean) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return clean;
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// The artifact as a file that nobody can change.
absl::Status WriteSealed(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return absl::ResourceExhaustedError(fmt::format("cannot keep the artifact: {}", strerror(errno)));
    bytes.remove_prefix(written);
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return absl::UnavailableError(fmt::format("cannot seal the artifact: {}", strerror(errno)));
  }
  return absl::OkStatus();
}

struct State {
  enum { kPending, kVerified, kFailed } stage = kPending;
  VisitFailure failure;
  VisitTiming timing;
};

// What is known of the batch while its children come and go.
class Progress {
 public:
  explicit Progress(const VisitBatch& batch)
      : policy_(batch.policy), states_(batch.candidates.size()), started_(SecondsNow()) {}

  std::vector<int> Pending() const {
    std::vector<int> pending;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].stage == State::kPending) pending.push_back(static_cast<int>(i));
    }
    return pending;
  }
  std::vector<Verified> VerifiedOnes() const {
    std::vector<Verified> verified;
    for (size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      if (state.stage != State::kVerified) continue;
      verified.push_back({static_cast<int>(i), state.timing.calls_per_repeat, Median(state.timing.seconds)});
    }
    return verified;
  }

  bool Known(int candidate) const { return candidate >= 0 && candidate < static_cast<int>(states_.size()); }
  bool Failed(int candidate) const { return Known(candidate) && states_[candidate].stage == State::kFailed; }

  void Fail(int candidate, VisitFailure failure) {
    State& state = states_[static_cast<size_t>(candidate)];
    if (state.stage == State::kFailed) return;
    state.stage = State::kFailed;
    state.failure = std::move(failure);
  }

  // Adds repeats; false when they cannot be true.
  bool AddTimes(const VisitMessage& message) {
    if (!Known(message.candidate) || !Plausible(message) || message.calls < 1) return false;
    State& state = states_[static_cast<size_t>(message.candidate)];
    VisitTiming& timing = state.timing;
    if (state.stage == State::kFailed) return false;
    if (state.stage == State::kPending) {
      timing.calls_per_repeat = message.calls;
      timing.max_error = message.max_error;
    }
    if (timing.calls_per_repeat != message.calls) return false;
    state.stage = State::kVerified;
    if (message.interleaved != 0) {
      // A round that had to be repeated replaces the one before it.
      timing.seconds.resize(std::min(timing.seconds.size(), static_cast<size_t>(timing.first_interleaved)));
      timing.first_interleaved = static_cast<int>(timing.seconds.size());
    }
    timing.seconds.insert(timing.seconds.end(), message.seconds, message.seconds + message.count);
    if (message.interleaved == 0) timing.first_interleaved = static_cast<int>(timing.seconds.size());
    return true;
  }

  bool AddReference(const VisitMessage& message) {
    if (!Plausible(message)) return false;
    reference_.insert(reference_.end(), message.seconds, message.seconds + message.count);
    return true;
  }

  VisitResult Result() const;
  const VisitPolicy& policy() const { return policy_; }

 private:
  // Positive, finite, and no more than the time that has passed since the visit began.
  bool Plausible(const VisitMessage& message) const {
    if (message.count < 1 || message.count > kMaxRepeats) return false;
    double sum = 0;
    for (int i = 0; i < message.count; ++i) {
      if (!(message.seconds[i] > 0)) return false;
      sum += message.seconds[i] * static_cast<double>(std::max<int64_t>(1, message.calls));
    }
    return sum <= SecondsNow() - started_;
  }

  const VisitPolicy& policy_;
  std::vector<State> states_;
  std::vector<double> reference_;
  double started_;
};

VisitResult Progress::Result() const {
  VisitResult result;
  if (!reference_.empty()) {
    const double median = Median(reference_);
    const auto [least, most] = std::minmax_element(reference_.begin(), reference_.end());
    result.reference_seconds = median;
    result.drift = std::max(*most / median - 1, 1 - *least / median);
  }
  for (const State& state : states_) {
    VisitOutcome& outcome = result.outcomes.emplace_back();  // empty if there was no time for it
    if (state.stage == State::kVerified) outcome = state.timing;
    if (state.stage == State::kFailed) outcome = state.failure;
  }
  result.seconds = SecondsNow() - started_;
  return result;
}

VisitFailure BlameFor(const VisitMessage& fault) {
  const std::string name = Clean(fault.text, sizeof(fault.text));
  const auto place = static_cast<Place>(fault.place);
  const std::string signal = SignalName(fault.signal);
  if (name.empty()) return {FailureKind::kCrashed, fmt::format("crashed with {}", signal)};
  const std::string where = place == Place::kBefore  ? fmt::format("{} bytes before {}", fault.distance, name)
                            : place == Place::kAfter ? fmt::format("{} bytes past the end of {}", fault.distance, name)
                                                     : fmt::format("at byte {} of {}", fault.distance, name);
  if (fault.is_write == 0) return {FailureKind::kCrashed, fmt::format("crashed with {}: read {}", signal, where)};
  if (place == Place::kInside)
    return {FailureKind::kWrongOutput, fmt::format("wrote into a read-only buffer: {}", where)};
  return {FailureKind::kOutOfBoundsWrite, fmt::format("wrote {}", where)};
}

struct ChildEnd {
  enum { kDone, kReplace, kGiveUp, kOutOfTime } what;
  std::string error;  // kGiveUp
};

// Follows one child to its end and books what it says.
class Watch {
 public:
  // kill_at: when the child must have ended, of SecondsNow.
  Watch(Progress& progress, const Device& device, double kill_at, int cancel_fd)
      : progress_(progress), load_seconds_(device.load_seconds()), kill_at_(kill_at), cancel_fd_(cancel_fd) {}

  ChildEnd Follow(WatchedChild& child) {
    VisitMessage message;
    for (;;) {
      switch (child.Next(message, std::min(limit_, std::max(0.0, kill_at_ - SecondsNow())), cancel_fd_)) {
        case WatchedChild::Event::kCancelled:
          return {ChildEnd::kGiveUp, std::string(kCancelled)};
        case WatchedChild::Event::kSilent:
          child.Kill();
          if (SecondsNow() >= kill_at_) return {ChildEnd::kOutOfTime, ""};
          return Blamed(Silence());
        case WatchedChild::Event::kEnded:
          // It said of a candidate why it could not go on; else the system knows how it died.
          if (failed_one_) return {ChildEnd::kReplace, ""};
          return Blamed({FailureKind::kCrashed, fmt::format("the process {}", child.Ending())});
        case WatchedChild::Event::kMessage:
          if (const std::optional<ChildEnd> end = Take(message, child)) return *end;
      }
    }
  }

 private:
  VisitFailure Silence() const {
    if (current_ < 0) return {FailureKind::kRunTimeout, fmt::format("nothing for {:.3g} s", limit_)};
    if (loading_) return {FailureKind::kCompileTimeout, fmt::format("not built after {:.3g} s", limit_)};
    return {FailureKind::kRunTimeout,
            fmt::format("a call took longer than {:.3g} s", progress_.policy().timeout_seconds)};
  }

  ChildEnd Blamed(const VisitFailure& blame) {
    if (!progress_.Known(current_)) return {ChildEnd::kGiveUp, blame.text};
    if (progress_.Failed(current_)) return {ChildEnd::kGiveUp, fmt::format("after its last candidate, {}", blame.text)};
    progress_.Fail(current_, blame);
    return {ChildEnd::kReplace, ""};
  }

  std::optional<ChildEnd> Take(const VisitMessage& message, WatchedChild& child) {
    using Type = VisitMessage::Type;
    const VisitFailure broken{FailureKind::kCrashed, "broke the measuring process: what it says makes no sense"};
    switch (message.type) {
      case Type::kBegin:
        current_ = message.candidate;
        failed_one_ = false;
        loading_ = message.loading != 0;
        limit_ = Clamp(message.limit_seconds);
        return std::nullopt;
      case Type::kFailed:
        if (message.candidate < 0) return ChildEnd{ChildEnd::kGiveUp, Clean(message.text, sizeof(message.text))};
        if (message.candidate != current_ || !Sensible(message.failure_kind)) break;
        progress_.Fail(current_,
                       {static_cast<FailureKind>(message.failure_kind), Clean(message.text, sizeof(message.text))});
        failed_one_ = true;
        return std::nullopt;
      case Type::kFault:
        child.Kill();
        return Blamed(BlameFor(message));
      case Type::kTimes:
        if (!progress_.AddTimes(message)) break;
        return std::nullopt;
      case Type::kReference:
        if (!progress_.AddReference(message)) break;
        return std::nullopt;
      case Type::kDone:
        return ChildEnd{ChildEnd::kDone, ""};
    }
    child.Kill();
    return Blamed(broken);
  }

  static bool Sensible(int32_t kind) { return kind >= 0 && kind <= static_cast<int32_t>(kLastFailureKind); }

  // A broken child must not buy itself time.
  double Clamp(double seconds) const {
    const VisitPolicy& policy = progress_.policy();
    const double most = loading_       ? load_seconds_
                        : current_ < 0 ? 31 + policy.reference_timeout_seconds
                                       : 2 + 16 * policy.timeout_seconds + 8 * policy.min_seconds_first;
    return seconds > 0 && seconds < most ? seconds : most;
  }

  Progress& progress_;
  const double load_seconds_, kill_at_;
  const int cancel_fd_;
  double limit_ = 30;
  int current_ = -1;
  bool loading_ = false;
  bool failed_one_ = false;
};

// Has the candidates that are pending built by processes side by side, before anything is timed. Takes up to half of
// the time that is left; what is not built by then is where it is measured.
void BuildAhead(ChildTask task, Progress& progress, int cancel_fd) {
  const std::vector<int> pending = progress.Pending();
  const size_t count = std::min(static_cast<size_t>(task.device->builders()), pending.size() / kLeastBuilt);
  const double now = SecondsNow();
  const double end = now + (task.deadline - now) / 2;
  if (task.deadline - now < kWorthBuilding) return;
  std::vector<WatchedChild> builders;
  for (size_t b = 0; b < count; ++b) {
    task.to_verify.clear();
    for (size_t i = b; i < pending.size(); i += count) task.to_verify.push_back(pending[i]);
    absl::StatusOr<WatchedChild> builder = WatchedChild::Start([&](int channel) {
      task.channel = channel;
      RunBuildingChild(task);
    });
    if (builder.ok()) builders.push_back(*std::move(builder));
  }
  for (WatchedChild& builder : builders) Watch(progress, *task.device, end, cancel_fd).Follow(builder);
}

VisitResult ErrorResult(const std::string& error) {
  VisitResult result;
  result.error = error;
  return result;
}

}  // namespace

ReferenceCache::~ReferenceCache() {
  for (const Entry& entry : entries_) munmap(entry.mapping, entry.bytes);
}

std::string ReferenceCache::KeyOf(const VisitBatch& batch) {
  std::string key = fmt::format("{}:{}", batch.workload_digest, batch.fill_seed);
  for (const VisitBuffer& buffer : batch.buffers) {
    key += fmt::format(":{},{},{},{},{}", buffer.dtype, buffer.elements, static_cast<int>(buffer.role), buffer.low,
                       buffer.high);
  }
  return key;
}

char* ReferenceCache::Find(const std::string& key) {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key != key) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return entry->mapping;
  }
  return nullptr;
}

void ReferenceCache::Add(const std::string& key, char* mapping, int64_t bytes) {
  entries_.push_front({key, mapping, bytes});
  bytes_ += bytes;
  while (bytes_ > capacity_ && entries_.size() > 1) {
    munmap(entries_.back().mapping, entries_.back().bytes);
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
}

absl::StatusOr<char*> Visitor::ReferenceData(const VisitBatch& batch, double deadline, int artifact_fd, int cancel_fd) {
  const std::string key = ReferenceCache::KeyOf(batch);
  if (char* known = cache_.Find(key)) return known;
  const int64_t bytes = std::max<int64_t>(LayOut(batch).bytes, 1);
  const File file(memfd_create("hone-data", MFD_CLOEXEC));
  if (file.fd() < 0 || ftruncate(file.fd(), bytes) != 0) {
    return absl::ResourceExhaustedError(fmt::format("no memory for {} bytes of inputs and outputs", bytes));
  }
  ChildTask task;
  task.batch = &batch;
  task.device = &device_;
  task.artifact_fd = artifact_fd;
  task.memory_limit = options_.memory_limit;
  HONE_ASSIGN_OR_RETURN(WatchedChild child, WatchedChild::Start([&](int channel) {
                          void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
                          if (shared == MAP_FAILED) _exit(1);
                          task.data = static_cast<char*>(shared);
                          task.channel = channel;
                          RunReferenceChild(task);
                        }));
  Progress progress(batch);
  const ChildEnd end = Watch(progress, device_, deadline + options_.grace_seconds, cancel_fd).Follow(child);
  if (end.what == ChildEnd::kOutOfTime) {
    return absl::DeadlineExceededError(
        "the time was over before the reference kernel had ended; give the job more time (--time)");
  }
  if (end.what != ChildEnd::kDone) {
    if (end.error == kCancelled) return absl::CancelledError(end.error);
    return absl::InternalError(fmt::format("the reference kernel failed: {}", end.error));
  }
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (mapping == MAP_FAILED) return absl::ResourceExhaustedError("cannot map the reference outputs");
  cache_.Add(key, static_cast<char*>(mapping), bytes);
  return static_cast<char*>(mapping);
}

VisitResult Visitor::Run(const VisitBatch& batch, int cancel_fd) {
  Progress progress(batch);
  const File artifact(memfd_create("hone-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (const absl::Status written = WriteSealed(artifact.fd(), batch.artifact); !written.ok()) {
    return ErrorResult(std::string(written.message()));
  }
  const double limit = batch.policy.visit_seconds;
  const double deadline = limit > 0 ? SecondsNow() + limit : std::numeric_limits<double>::infinity();
  const absl::StatusOr<char*> data = ReferenceData(batch, deadline, artifact.fd(), cancel_fd);
  if (!data.ok()) return ErrorResult(std::string(data.status().message()));
  ChildTask task;
  task.batch = &batch;
  task.device = &device_;
  task.artifact_fd = artifact.fd();
  task.data = *data;
  task.memory_limit = options_.memory_limit;
  task.deadline = deadline;
  BuildAhead(task, progress, cancel_fd);
  int lost_rounds = 0;
  for (;;) {
    task.to_verify = progress.Pending();
    task.verified = progress.VerifiedOnes();
    if (task.to_verify.empty() && (task.verified.empty() || lost_rounds > kMaxLostRounds)) break;
    absl::StatusOr<WatchedChild> child = WatchedChild::Start([&](int channel) {
      task.channel = channel;
      RunMeasuringChild(task);
    });
    if (!child.ok()) return ErrorResult(std::string(child.status().message()));
    const ChildEnd end = Watch(progress, device_, deadline + options_.grace_seconds, cancel_fd).Follow(*child);
    if (end.what == ChildEnd::kGiveUp) return ErrorResult(end.error);
    if (end.what == ChildEnd::kDone || end.what == ChildEnd::kOutOfTime) break;
    if (task.to_verify.empty()) ++lost_rounds;
  }
  VisitResult result = progress.Result();
  result.sensors = device_.ReadSensors();
  return result;
}

}  // namespace hone::agent
