// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/visit_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/cpu_cores.h"
#include "base/status.h"
#include "device_agent/child/run_child.h"
#include "device_agent/launcher/child_supervisor.h"
#include "device_agent/launcher/progress.h"
#include "device_agent/visit/message.h"
#include "device_agent/visit/result_memory.h"
#include "device_agent/visit/seconds_now.h"

namespace hone::agent {
namespace {

// A whole last round lost to crashes is repeated this often; then the first times must do.
constexpr int kLostRoundsMax = 3;
constexpr size_t kCandidatesPerBuilderMin = 2;  // candidates that a process of its own builds
constexpr double kSlowLoadSeconds =
    1;  // seconds for all candidates of a visit, for which it is worth to start builders
constexpr double kBuildSecondsMin = 5;  // seconds that are left: a driver's compiler takes one of them to start

constexpr size_t kAheadMax = 2;       // children: one for a reference, one that measures
constexpr double kStartSeconds = 30;  // for the device of a child that is started ahead

VisitResult ErrorResult(const absl::Status& status) {
  VisitResult result;
  result.error = std::string(status.message());
  return result;
}

// Whether it waits for its task. If its device does not start, the visit that starts one itself says why.
bool HasStarted(ChildProcess& child) {
  const double end = SecondsNow() + kStartSeconds;
  VisitMessage message;
  while (child.Next(message, std::max(0.0, end - SecondsNow()), -1) == ChildProcess::Event::kMessage) {
    if (message.type == VisitMessage::Type::kStarted) return true;
    if (message.type == VisitMessage::Type::kFailed) return false;
  }
  return false;
}

// The work of one child. All pointers must outlive the call that hands it over.
struct ChildWork {
  const VisitBatch* batch = nullptr;
  const MemoryFile* artifact = nullptr;
  const MemoryFile* inputs = nullptr;           // laid out as ComputeDataLayout says
  const ResultMemory* result_memory = nullptr;  // null for a building child, which has no results to show
  VisitTask task;
};

// Sends the work to a child that waits for it. kResourceExhausted: no memory for the task's file.
absl::Status SendTask(const ChildWork& work, ChildProcess& child) {
  HONE_ASSIGN_OR_RETURN(const MemoryFile task, MemoryFile::Holding("hone-task", Pack(work.task, *work.batch)));
  std::vector<int> files = {task.descriptor(), work.artifact->descriptor(), work.inputs->descriptor()};
  if (work.result_memory != nullptr) files.push_back(work.result_memory->file().descriptor());
  child.SendTask(kTaskPacket, files);
  return absl::OkStatus();
}

}  // namespace

// The state of one visit.
struct VisitRunner::VisitState {
  const VisitBatch& batch;
  const MemoryFile artifact;
  ResultMemory result_memory;
  Progress progress;
  const int cancel_fd;
  const double deadline;  // of SecondsNow
};

absl::StatusOr<ChildProcess> VisitRunner::Fork(int threads) const {
  SetCpuAffinity(options_.cpus);  // a child with a driver may have moved this process to others
  return ChildProcess::Start([&](int channel) {
    const ChildOrigin origin{.device = &device_,
                             .cold_numbers = &cold_numbers_,
                             .memory_limit = options_.memory_limit,
                             .filter = options_.filter,
                             .threads = threads};
    RunChild(origin, channel);
  });
}

bool VisitRunner::PrestartChildren() {
  std::vector<ChildProcess> starting;
  for (size_t i = 0; i < std::min(begun_, kAheadMax); ++i) {
    absl::StatusOr<ChildProcess> child = Fork(threads_);
    if (child.ok()) starting.push_back(*std::move(child));
  }
  bool all = true;
  for (ChildProcess& child : starting) {
    if (HasStarted(child)) {
      prestarted_.push_back(std::move(child));
    } else {
      all = false;
    }
  }
  prestarted_threads_ = threads_;
  prestarted_generation_ = cold_numbers_.generation();
  return all;
}

absl::StatusOr<ChildProcess> VisitRunner::NextChild(int threads) {
  if (threads != prestarted_threads_ || cold_numbers_.generation() != prestarted_generation_) prestarted_.clear();
  while (!prestarted_.empty()) {
    ChildProcess child = std::move(prestarted_.back());
    prestarted_.pop_back();
    VisitMessage message;
    if (child.Next(message, 0, -1) == ChildProcess::Event::kSilent) return child;  // it lives
  }
  return Fork(threads);
}

absl::StatusOr<ChildProcess> VisitRunner::Begin(VisitState& state, const MemoryFile& inputs, const VisitTask& task) {
  HONE_ASSIGN_OR_RETURN(ChildProcess child, NextChild(state.batch.threads));
  HONE_RETURN_IF_ERROR(SendTask({&state.batch, &state.artifact, &inputs, &state.result_memory, task}, child));
  ++begun_;
  return child;
}

// Whether that many candidates should be compiled before they are measured. A driver older than the toolkit that
// compiled them compiles them again, which shows in the load times of earlier visits.
bool VisitRunner::NeedsBuilding(const VisitBatch& batch, size_t candidates) const {
  return !device_.IsBuilt(batch) || load_seconds_ * static_cast<double>(candidates) > kSlowLoadSeconds;
}

// Has parallel children compile the pending candidates before anything is timed. Takes at most half of the remaining
// time; the measuring child compiles the rest. False if nothing needs to be compiled.
bool VisitRunner::PrebuildKernels(VisitState& state, const MemoryFile& inputs) {
  const std::vector<int> pending = state.progress.PendingCandidates();
  const size_t count =
      std::min(static_cast<size_t>(device_.BuilderProcessesMax()), pending.size() / kCandidatesPerBuilderMin);
  const double now = SecondsNow();
  if (count == 0 || state.deadline - now < kBuildSecondsMin || !NeedsBuilding(state.batch, pending.size()))
    return false;
  std::vector<ChildProcess> builders;
  for (size_t b = 0; b < count; ++b) {
    VisitTask task{.purpose = SessionPurpose::kBuilding};
    for (size_t i = b; i < pending.size(); i += count) task.to_verify.push_back(pending[i]);
    absl::StatusOr<ChildProcess> builder = Fork(state.batch.threads);
    if (!builder.ok() || !SendTask({&state.batch, &state.artifact, &inputs, nullptr, task}, *builder).ok()) continue;
    builders.push_back(*std::move(builder));
  }
  ChildSupervisor::Options options;
  options.kill_at = now + (state.deadline - now) / 2;
  options.cancel_fd = state.cancel_fd;
  for (ChildProcess& builder : builders)
    ChildSupervisor(state.progress, state.batch, device_, options).Supervise(builder);
  return true;
}

// Runs the reference kernel in a child and adds its outputs to the cache.
absl::StatusOr<const ReferenceData*> VisitRunner::ComputeReference(VisitState& state) {
  HONE_ASSIGN_OR_RETURN(ReferenceData data, ReferenceCache::Prepare(state.batch));
  HONE_ASSIGN_OR_RETURN(ChildProcess child, Begin(state, data.inputs, {.purpose = SessionPurpose::kReference}));
  ChildSupervisor::Options options;
  options.kill_at = state.deadline + options_.grace_seconds;
  options.cancel_fd = state.cancel_fd;
  options.result_memory = &state.result_memory;
  options.computed = data.outputs.data();
  Progress progress(state.batch);
  const ChildEnd end = ChildSupervisor(progress, state.batch, device_, options).Supervise(child);
  switch (end.what) {
    case ChildEnd::kDone:
      return cache_.Add(state.batch, std::move(data));
    case ChildEnd::kCancelled:
      return absl::CancelledError(kCancelled);
    case ChildEnd::kOutOfTime:
      return absl::DeadlineExceededError(
          "the time of the visit ended before the reference kernel did; give the job more time (--time)");
    default:
      return absl::InternalError(fmt::format("the reference kernel failed: {}", end.error));
  }
}

absl::StatusOr<VisitResult> VisitRunner::Supervise(VisitState& state) {
  const ReferenceData* data = cache_.Find(ReferenceCache::KeyOf(state.batch));
  ChildSupervisor::Options options;
  options.kill_at = state.deadline + options_.grace_seconds;
  options.deadline = state.deadline;
  options.cancel_fd = state.cancel_fd;
  options.result_memory = &state.result_memory;
  options.expected_from_other_batch = data != nullptr;
  if (data == nullptr) {
    HONE_ASSIGN_OR_RETURN(data, ComputeReference(state));
  }
  const bool built = PrebuildKernels(state, data->inputs);
  HONE_RETURN_IF_ERROR(cold_numbers_.EnsureAllocated(state.batch, options_.memory_limit));
  VisitTask task{.purpose = SessionPurpose::kTiming, .deadline = state.deadline, .cold_bytes = cold_numbers_.wanted()};
  for (int lost_rounds = 0;;) {
    task.to_verify = state.progress.PendingCandidates();
    task.verified = state.progress.VerifiedCandidates();
    if (task.to_verify.empty() && (task.verified.empty() || lost_rounds > kLostRoundsMax)) break;
    options.expected = data->outputs.data();
    HONE_ASSIGN_OR_RETURN(ChildProcess child, Begin(state, data->inputs, task));
    const ChildEnd end = ChildSupervisor(state.progress, state.batch, device_, options).Supervise(child);
    if (end.what == ChildEnd::kBatchFailed) return absl::InternalError(end.error);
    if (end.what == ChildEnd::kCancelled) return absl::CancelledError(kCancelled);
    if (end.what == ChildEnd::kDone || end.what == ChildEnd::kOutOfTime) break;
    if (end.what == ChildEnd::kRecheckReference) {
      // A batch must not make another batch's kernels look wrong, so this batch's own reference decides.
      options.expected_from_other_batch = false;
      HONE_ASSIGN_OR_RETURN(data, ComputeReference(state));
      continue;
    }
    if (task.to_verify.empty()) ++lost_rounds;
  }
  if (!built) load_seconds_ = state.progress.load_seconds();
  return state.progress.Result();
}

VisitResult VisitRunner::Run(const VisitBatch& batch, int cancel_fd) {
  const double limit = batch.policy.visit_seconds;
  const double deadline = limit > 0 ? SecondsNow() + limit : std::numeric_limits<double>::infinity();
  begun_ = 0;
  threads_ = batch.threads;
  const auto run = [&]() -> absl::StatusOr<VisitResult> {
    HONE_ASSIGN_OR_RETURN(MemoryFile artifact, MemoryFile::Holding("hone-artifact", batch.artifact));
    HONE_ASSIGN_OR_RETURN(ResultMemory result_memory, ResultMemory::Create(batch));
    VisitState state{batch, std::move(artifact), std::move(result_memory), Progress(batch), cancel_fd, deadline};
    return Supervise(state);
  };
  absl::StatusOr<VisitResult> result = run();
  prestarted_.clear();
  return result.ok() ? *std::move(result) : ErrorResult(result.status());
}

}  // namespace hone::agent
