// SPDX-License-Identifier: Apache-2.0
#include "tuner/build_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/frame.h"
#include "base/status.h"
#include "base/steady_time.h"
#include "tuner/child_process.h"

namespace hone::tuner {
namespace {

// Bytes of memory of a worker. A compilation that needs more is out of control.
constexpr uint64_t kMemoryLimit = uint64_t{8} << 30;
// How long a worker may wait for the host lock, which a timing on this machine holds. No visit takes that long
// (BatchQueue::RunLimit of the tracker).
constexpr absl::Duration kBeginLimit = absl::Hours(2);
// Pauses of a thread whose worker could not begin; they double from the first to the longest.
constexpr absl::Duration kRestartPauseMin = absl::Milliseconds(100), kRestartPauseMax = absl::Seconds(2);
constexpr std::chrono::milliseconds kOverPollPeriod{100};  // interval of calls of BuildJob::over

// Waits at most `limit` until there is something to read, or the other end is closed. False: there is nothing.
bool Readable(int fd, absl::Duration limit) {
  const absl::Time deadline = SteadyNow() + limit;
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow());
    pollfd waiting = {fd, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

BuildReply Failed(FailureKind failure, std::string text) {
  BuildReply reply;
  reply.kind = BuildReply::Kind::kFailed;
  reply.failure = failure;
  reply.text = std::move(text);
  return reply;
}

BuildReply NotTried(std::string text) {
  BuildReply reply;
  reply.kind = BuildReply::Kind::kNotTried;
  reply.text = std::move(text);
  return reply;
}

// Waits for the reply. Cancelled: the job was over before.
template <typename Future>
absl::Status Await(const Future& reply, const BuildJob& job) {
  while (reply.wait_for(kOverPollPeriod) != std::future_status::ready) {
    if (job.over && job.over()) return absl::CancelledError("the job of this batch has ended");
  }
  return absl::OkStatus();
}

bool HasFailed(const std::shared_future<BuildReply>& reply) {
  return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready &&
         reply.get().kind != BuildReply::Kind::kDone;
}

}  // namespace

// One child process and the socket to it. The process is started when first needed, and again after it has died.
class BuildPool::Worker {
 public:
  explicit Worker(const BuildOptions& options) : options_(options) {}
  ~Worker() { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Sends the request and waits for the result. kNotTried: the worker could not begin. A worker that exceeds a limit is
  // killed.
  BuildReply Do(const BuildRequest& request) {
    if (!process_.started()) {
      if (const absl::Status started = Start(); !started.ok()) return NotTried(std::string(started.message()));
    }
    bool begun = false;
    if (!SendFrame(socket_, Encode(request))) return Died(begun);
    absl::Duration limit = kBeginLimit;
    absl::Time started = SteadyNow();
    while (true) {
      if (!Readable(socket_, limit)) {
        Stop();
        const double seconds = absl::ToDoubleSeconds(limit);
        return begun ? Failed(FailureKind::kCompileTimeout, fmt::format("not compiled after {:.3g} s", seconds))
                     : NotTried(fmt::format(
                           "the worker did not start within {:.3g} s, because another program measures on this machine",
                           seconds));
      }
      std::string bytes;
      if (!ReceiveFrame(socket_, &bytes)) return Died(begun);
      std::optional<BuildReply> reply = DecodeReply(bytes);
      if (!reply.has_value()) return Died(begun);
      if (reply->kind != BuildReply::Kind::kStarted) {
        reply->seconds = absl::ToDoubleSeconds(SteadyNow() - started);
        return *std::move(reply);
      }
      begun = true;
      started = SteadyNow();
      limit = options_.compile_timeout;
    }
  }

 private:
  absl::Status Start() {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
      return absl::UnavailableError(fmt::format("cannot make a socket for a build worker: {}", std::strerror(errno)));
    }
    ChildProcess::Options child = {options_.command, sockets[1], kMemoryLimit};
    child.command.push_back(fmt::format("--build-worker={}", sockets[1]));
    absl::StatusOr<ChildProcess> started = ChildProcess::Start(child);
    close(sockets[1]);
    if (!started.ok()) {
      close(sockets[0]);
      return started.status();
    }
    process_ = *std::move(started);
    socket_ = sockets[0];
    return absl::OkStatus();
  }

  // Kills the process if it is alive, and reaps it. Returns its wait status; 0 if there was none.
  int Stop() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
    return process_.Kill();
  }

  // The reply after the process has closed its socket. begun: it had begun with the request.
  BuildReply Died(bool begun) {
    // Dying closed the socket, so the process ends within moments. Waiting for that keeps its own exit status.
    for (int i = 0; i < 100 && !process_.Ended(); ++i) absl::SleepFor(absl::Milliseconds(2));
    const std::string how = DescribeEnd(Stop());
    return begun ? Failed(FailureKind::kCompileError, "the compiler " + how)
                 : NotTried(fmt::format("the compiler process ({}) {} before it began", options_.command.front(), how));
  }

  const BuildOptions& options_;
  ChildProcess process_;
  int socket_ = -1;
};

BuildPool::BuildPool(BuildOptions options) : options_(std::move(options)) {
  const int workers =
      options_.workers > 0 ? options_.workers : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { Run(); });
}

BuildPool::~BuildPool() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BuildPool::Run() {
  // The child is killed when the thread that started it ends (PR_SET_PDEATHSIG), so each thread has its own worker.
  Worker worker(options_);
  absl::Duration pause = kRestartPauseMin;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    BuildTask task = queue_.Pop();
    lock.unlock();
    if (*task.unwanted) {
      task.reply.set_value(NotTried("the batch is not needed any more"));
    } else if (BuildReply reply = worker.Do(task.request); reply.kind != BuildReply::Kind::kNotTried) {
      task.reply.set_value(std::move(reply));
      pause = kRestartPauseMin;
    } else {
      TryAgain(std::move(task), std::move(reply));
      absl::SleepFor(pause);
      pause = std::min(2 * pause, kRestartPauseMax);
    }
    lock.lock();
  }
}

void BuildPool::TryAgain(BuildTask task, BuildReply reply) {
  const absl::Time now = SteadyNow();
  task.until = std::min(task.until, now + options_.start_timeout);
  {
    const std::lock_guard guard(mutex_);
    if (!stopping_ && now < task.until) {
      queue_.Push(std::move(task));
      changed_.notify_one();
      return;
    }
  }
  spdlog::warn("no candidate of a batch was compiled: {}", reply.text);
  task.reply.set_value(std::move(reply));
}

std::future<BuildReply> BuildPool::Submit(BuildRequest request, const BuildOwner& owner, Flag unwanted) {
  BuildTask task{std::move(request), {}, owner, std::move(unwanted)};
  std::future<BuildReply> reply = task.reply.get_future();
  {
    const std::lock_guard guard(mutex_);
    queue_.Push(std::move(task));
  }
  changed_.notify_one();
  return reply;
}

// Compiles the reference once per workload and target. After a failure the next job tries again, since the machine may
// have been short of memory or time.
absl::StatusOr<BuildReply> BuildPool::Reference(const BuildJob& job, double* seconds) {
  const std::string key = job.target + "\n" + job.workload;
  std::shared_future<BuildReply> reply;
  bool first = false;
  {
    std::unique_lock lock(mutex_);
    const auto found = references_.find(key);
    if (found != references_.end() && !HasFailed(found->second)) {
      reply = found->second;
    } else {
      lock.unlock();
      first = true;
      // Never dropped from the queue, since other jobs may wait for it too.
      const auto wanted = std::make_shared<std::atomic<bool>>(false);
      reply = Submit({BuildRequest::Kind::kCompileReference, job.workload, job.target, "", "hone_reference", {}},
                     job.owner, wanted)
                  .share();
      lock.lock();
      if (references_.insert_or_assign(key, reply).second) reference_keys_.push_back(key);
      while (reference_keys_.size() > kReferencesKeptMax) ForgetReference(reference_keys_.front());
    }
  }
  HONE_RETURN_IF_ERROR(Await(reply, job));
  *seconds = first ? reply.get().seconds : 0;
  if (reply.get().kind == BuildReply::Kind::kDone) return reply.get();
  {
    const std::lock_guard guard(mutex_);
    ForgetReference(key);
  }
  return absl::InternalError("the reference kernel was not compiled: " + reply.get().text);
}

// Needs mutex_ held. The key is passed by value because it may be an element of reference_keys_.
void BuildPool::ForgetReference(std::string key) {
  references_.erase(key);
  std::erase(reference_keys_, key);
}

absl::StatusOr<BuiltBatch> BuildPool::Build(const BuildJob& job) {
  const auto unwanted = std::make_shared<std::atomic<bool>>(false);
  absl::StatusOr<BuiltBatch> batch = CompileAndLink(job, unwanted);
  *unwanted = true;
  return batch;
}

absl::StatusOr<BuiltBatch> BuildPool::CompileAndLink(const BuildJob& job, const Flag& unwanted) {
  BuiltBatch batch;
  HONE_ASSIGN_OR_RETURN(const BuildReply reference, Reference(job, &batch.seconds));
  std::vector<std::future<BuildReply>> replies;
  for (size_t i = 0; i < job.schedules.size(); ++i) {
    replies.push_back(Submit({BuildRequest::Kind::kCompile,
                              job.workload,
                              job.target,
                              job.schedules[i],
                              fmt::format("hone_candidate_{}", i),
                              {}},
                             job.owner, unwanted));
  }
  batch.reference = reference.kernel;
  BuildRequest link;
  link.kind = BuildRequest::Kind::kLink;
  link.target = job.target;
  link.objects.push_back(reference.bytes);
  std::map<std::string, std::string> prepares;  // objects by function name; equal names are equal functions
  for (std::future<BuildReply>& future : replies) {
    HONE_RETURN_IF_ERROR(Await(future, job));
    BuildReply reply = future.get();
    batch.seconds += reply.seconds;
    BuiltCandidate& candidate = batch.candidates.emplace_back();
    candidate.ok = reply.kind == BuildReply::Kind::kDone;
    candidate.tried = reply.kind != BuildReply::Kind::kNotTried;
    candidate.failure = reply.failure;
    candidate.text = std::move(reply.text);
    candidate.kernel = std::move(reply.kernel);
    candidate.drawback = std::move(reply.drawback);
    if (!candidate.ok) continue;
    link.objects.push_back(std::move(reply.bytes));
    if (!reply.prepare.empty()) prepares[candidate.kernel.prepare.front().function] = std::move(reply.prepare);
  }
  const auto tried = [](const BuiltCandidate& candidate) { return candidate.tried; };
  if (!batch.candidates.empty() && std::none_of(batch.candidates.begin(), batch.candidates.end(), tried)) {
    return absl::UnavailableError("no candidate was compiled: " + batch.candidates.front().text);
  }
  for (auto& [name, object] : prepares) link.objects.push_back(std::move(object));
  const size_t link_count = link.objects.size();
  std::future<BuildReply> linking = Submit(std::move(link), job.owner, unwanted);
  HONE_RETURN_IF_ERROR(Await(linking, job));
  BuildReply linked = linking.get();
  batch.seconds += linked.seconds;
  if (linked.kind != BuildReply::Kind::kDone) return absl::InternalError("linking a batch failed: " + linked.text);
  if (linked.ranges.size() != link_count) return absl::InternalError("linking a batch returned too few kernels");
  batch.artifact = std::move(linked.bytes);
  auto range = linked.ranges.begin();
  batch.reference_code = *range++;
  for (BuiltCandidate& candidate : batch.candidates) {
    if (candidate.ok) candidate.code = *range++;
  }
  return batch;
}

}  // namespace hone::tuner
