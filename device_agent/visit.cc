#include "device_agent/visit.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "device_agent/evidence.h"
#include "device_agent/progress.h"
#include "device_agent/reference_loop.h"
#include "device_agent/watch.h"
#include "device_agent/watched_child.h"

namespace hone::agent {
namespace {

// A whole last round lost to crashes is repeated this often; then the first times must do.
constexpr int kMaxLostRounds = 3;
constexpr size_t kLeastBuilt = 2;     // candidates that a process of its own builds
constexpr double kWorthBuilding = 5;  // seconds that are left: a driver's compiler takes one of them to start
constexpr const char* kCancelled = "cancelled";

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
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return absl::UnavailableError(fmt::format("cannot seal the artifact: {}", strerror(errno)));
  }
  return absl::OkStatus();
}

VisitResult ErrorResult(const absl::Status& status) {
  VisitResult result;
  result.error = std::string(status.message());
  return result;
}

}  // namespace

// Has the candidates that are pending built by processes side by side, before anything is timed. Takes up to half of
// the time that is left; what is not built by then is where it is measured.
void Visitor::BuildAhead(ChildTask task, Progress& progress, int cancel_fd) {
  const std::vector<int> pending = progress.Pending();
  const size_t count = std::min(static_cast<size_t>(device_.Builders(*task.batch)), pending.size() / kLeastBuilt);
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
  Watch::Options options;
  options.kill_at = end;
  options.cancel_fd = cancel_fd;
  for (WatchedChild& builder : builders) Watch(progress, *task.batch, device_, options).Follow(builder);
}

// By a child, which shows the outputs as any other does.
absl::StatusOr<const ReferenceData*> Visitor::ComputeReference(ChildTask task, int cancel_fd) {
  const VisitBatch& batch = *task.batch;
  HONE_ASSIGN_OR_RETURN(const ReferenceData data, ReferenceCache::Prepare(batch));
  task.inputs = data.inputs;
  Progress progress(batch);
  Watch::Options options;
  options.kill_at = task.deadline + options_.grace_seconds;
  options.cancel_fd = cancel_fd;
  options.evidence = task.evidence;
  const auto follow = [&]() -> absl::StatusOr<ChildEnd> {
    HONE_ASSIGN_OR_RETURN(WatchedChild child, WatchedChild::Start([&](int channel) {
                            task.channel = channel;
                            RunReferenceChild(task);
                          }));
    return Watch(progress, batch, device_, options).Follow(child);
  };
  const absl::StatusOr<ChildEnd> end = follow();
  if (end.ok() && end->what == ChildEnd::kDone) {
    task.evidence->TakeOutputs(data.outputs);
    return cache_.Add(batch, data);
  }
  ReferenceCache::Free(batch, data);
  HONE_RETURN_IF_ERROR(end.status());
  if (end->what == ChildEnd::kCancelled) return absl::CancelledError(kCancelled);
  if (end->what == ChildEnd::kOutOfTime) {
    return absl::DeadlineExceededError(
        "the time was over before the reference kernel had ended; give the job more time (--time)");
  }
  return absl::InternalError(fmt::format("the reference kernel failed: {}", end->error));
}

VisitResult Visitor::Run(const VisitBatch& batch, int cancel_fd) {
  Progress progress(batch);
  const File artifact(memfd_create("hone-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (const absl::Status written = WriteSealed(artifact.fd(), batch.artifact); !written.ok()) {
    return ErrorResult(written);
  }
  absl::StatusOr<Evidence> evidence = Evidence::Create(batch);
  if (!evidence.ok()) return ErrorResult(evidence.status());
  const double limit = batch.policy.visit_seconds;
  ChildTask task;
  task.batch = &batch;
  task.device = &device_;
  task.artifact_fd = artifact.fd();
  task.evidence = &*evidence;
  task.memory_limit = options_.memory_limit;
  task.filters_calls = options_.filters_calls;
  task.cold_numbers = &cold_numbers_;
  task.deadline = limit > 0 ? SecondsNow() + limit : std::numeric_limits<double>::infinity();
  absl::StatusOr<const ReferenceData*> data = cache_.Find(ReferenceCache::KeyOf(batch));
  Watch::Options options;
  options.doubtful = *data != nullptr;
  if (*data == nullptr) data = ComputeReference(task, cancel_fd);
  if (!data.ok()) return ErrorResult(data.status());
  task.inputs = (*data)->inputs;
  BuildAhead(task, progress, cancel_fd);
  if (absl::Status cold = cold_numbers_.Provide(batch, options_.memory_limit); !cold.ok()) return ErrorResult(cold);
  options.kill_at = task.deadline + options_.grace_seconds;
  options.deadline = task.deadline;
  options.cancel_fd = cancel_fd;
  options.evidence = &*evidence;
  int lost_rounds = 0;
  for (;;) {
    task.to_verify = progress.Pending();
    task.verified = progress.VerifiedOnes();
    if (task.to_verify.empty() && (task.verified.empty() || lost_rounds > kMaxLostRounds)) break;
    options.expected = (*data)->outputs;
    absl::StatusOr<WatchedChild> child = WatchedChild::Start([&](int channel) {
      task.channel = channel;
      RunMeasuringChild(task);
    });
    if (!child.ok()) return ErrorResult(child.status());
    const ChildEnd end = Watch(progress, batch, device_, options).Follow(*child);
    if (end.what == ChildEnd::kGiveUp) return ErrorResult(absl::InternalError(end.error));
    if (end.what == ChildEnd::kCancelled) return ErrorResult(absl::CancelledError(kCancelled));
    if (end.what == ChildEnd::kDone || end.what == ChildEnd::kOutOfTime) break;
    if (end.what == ChildEnd::kDoubt) {
      // No batch shall make another's kernels wrong: whoever differs is compared with its own batch's reference.
      options.doubtful = false;
      data = ComputeReference(task, cancel_fd);
      if (!data.ok()) return ErrorResult(data.status());
      task.inputs = (*data)->inputs;
      continue;
    }
    if (task.to_verify.empty()) ++lost_rounds;
  }
  return progress.Result();
}

}  // namespace hone::agent
