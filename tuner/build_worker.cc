#include "tuner/build_worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/frame.h"
#include "base/host_lock.h"
#include "base/status.h"
#include "compiler/codegen/kernel.h"
#include "compiler/ir/workload.h"
#include "tuner/convert.h"

namespace hone::tuner {
namespace {

// The worker says which candidate it is at before each one, so that its parent knows whom to blame.
constexpr std::string_view kAtPrefix = "at ";
constexpr std::string_view kReferenceSymbol = "reference";

v1::CandidateOutcome Failed(const std::string& id, v1::FailureKind kind, const std::string& text) {
  v1::CandidateOutcome outcome;
  outcome.set_candidate_id(id);
  outcome.mutable_outcome()->mutable_failure()->set_kind(kind);
  outcome.mutable_outcome()->mutable_failure()->set_text(text);
  return outcome;
}

v1::Kernel ToProto(const codegen::Kernel& kernel) {
  v1::Kernel result;
  result.set_symbol(kernel.symbol);
  result.set_prepare_symbol(kernel.prepare_symbol);
  for (const int64_t bytes : kernel.packed_bytes) result.add_packed_bytes(bytes);
  result.set_workspace_bytes(kernel.workspace_bytes);
  result.set_prepare_workspace_bytes(kernel.prepare_workspace_bytes);
  return result;
}

v1::FailureKind KindOf(const absl::Status& status) {
  const bool illegal = status.code() == absl::StatusCode::kFailedPrecondition || status.code() == absl::StatusCode::kNotFound ||
                       status.code() == absl::StatusCode::kInvalidArgument;
  return illegal ? v1::FAILURE_KIND_SCHEDULE_ILLEGAL : v1::FAILURE_KIND_COMPILE_ERROR;
}

// The inside of the worker process.
class Compiler {
 public:
  explicit Compiler(int channel) : channel_(channel), lock_(HostLock::Open()) {}

  absl::StatusOr<BuildResult> Run(v1::Batch batch) {
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(batch.workload()));
    HONE_ASSIGN_OR_RETURN(const codegen::Target target, codegen::ParseTarget(batch.target()));
    BuildResult result;
    std::vector<std::string> objects;
    HONE_RETURN_IF_ERROR(UseReference(workload, target, batch.workload_digest()));
    *batch.mutable_reference() = reference_kernel_;
    objects.push_back(reference_object_);
    std::vector<v1::Candidate> built;
    for (int i = 0; i < batch.candidates_size(); ++i) {
      v1::Candidate candidate = batch.candidates(i);
      SendFrame(channel_, std::string(kAtPrefix) + std::to_string(i));
      const auto kernel = Compile(workload, candidate.schedule(), target, fmt::format("candidate{}", i));
      if (!kernel.ok()) {
        result.failures.push_back(Failed(candidate.id(), KindOf(kernel.status()), std::string(kernel.status().message())));
        continue;
      }
      *candidate.mutable_kernel() = ToProto(*kernel);
      objects.push_back(kernel->object);
      built.push_back(std::move(candidate));
    }
    batch.clear_candidates();
    for (v1::Candidate& candidate : built) *batch.add_candidates() = std::move(candidate);
    if (!built.empty()) {
      const ScopedLock lock(lock_);
      HONE_ASSIGN_OR_RETURN(*batch.mutable_artifact(), codegen::LinkShared(objects));
    }
    result.batch = std::move(batch);
    return result;
  }

 private:
  // Compiling never overlaps timing on this machine; without the lock file it does, and times are worse for it.
  struct ScopedLock {
    explicit ScopedLock(absl::StatusOr<HostLock>& lock) : lock(lock) {
      if (lock.ok()) lock->Lock(HostLock::Mode::kShared).IgnoreError();
    }
    ~ScopedLock() {
      if (lock.ok()) lock->Unlock();
    }
    absl::StatusOr<HostLock>& lock;
  };

  absl::StatusOr<codegen::Kernel> Compile(const ir::Workload& workload, const std::string& text, const codegen::Target& target,
                                          const std::string& symbol) {
    const ScopedLock lock(lock_);
    HONE_ASSIGN_OR_RETURN(const schedule::Schedule schedule, schedule::ParseSchedule(text));
    return codegen::CompileKernel(workload, schedule, target, symbol);
  }

  absl::Status UseReference(const ir::Workload& workload, const codegen::Target& target, const std::string& digest) {
    if (digest == reference_digest_) return absl::OkStatus();
    const ScopedLock lock(lock_);
    HONE_ASSIGN_OR_RETURN(const codegen::Kernel kernel,
                          codegen::CompileKernel(workload, codegen::ReferenceSchedule(workload), target, std::string(kReferenceSymbol),
                                                 codegen::Effort::kReference));
    reference_kernel_ = ToProto(kernel);
    reference_object_ = kernel.object;
    reference_digest_ = digest;
    return absl::OkStatus();
  }

  const int channel_;
  absl::StatusOr<HostLock> lock_;
  std::string reference_digest_, reference_object_;
  v1::Kernel reference_kernel_;
};

}  // namespace

void BuildWorker::Stop() {
  if (pid_ < 0) return;
  close(channel_);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

absl::Status BuildWorker::Start() {
  std::array<int, 2> sockets;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return absl::UnavailableError(fmt::format("cannot make a socket for a build worker: {}", std::strerror(errno)));
  }
  const std::string channel = fmt::format("--build-worker={}", sockets[1]);
  const std::array<const char*, 3> arguments = {"hone-tuner", channel.c_str(), nullptr};
  const pid_t pid = fork();
  if (pid == 0) {  // only calls that are safe after fork in a process with threads, until exec
    fcntl(sockets[1], F_SETFD, 0);
    execv("/proc/self/exe", const_cast<char* const*>(arguments.data()));
    _exit(127);
  }
  close(sockets[1]);
  if (pid < 0) {
    close(sockets[0]);
    return absl::UnavailableError(fmt::format("cannot start a build worker: {}", std::strerror(errno)));
  }
  pid_ = pid;
  channel_ = sockets[0];
  return absl::OkStatus();
}

absl::StatusOr<bool> BuildWorker::TryBuild(const v1::Batch& batch, BuildResult* result, int* culprit, bool* timed_out) {
  if (pid_ < 0) HONE_RETURN_IF_ERROR(Start());
  *culprit = -1;
  *timed_out = false;
  bool alive = SendFrame(channel_, batch.SerializeAsString());
  std::string frame;
  while (alive) {
    pollfd poller{channel_, POLLIN, 0};
    const int ready = poll(&poller, 1, static_cast<int>(absl::ToInt64Milliseconds(candidate_limit_)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      *timed_out = true;
      break;
    }
    if (!ReceiveFrame(channel_, &frame)) break;
    if (frame.starts_with(kAtPrefix)) {
      *culprit = std::stoi(frame.substr(kAtPrefix.size()));
      continue;
    }
    if (frame.starts_with("error ")) return absl::InternalError(frame.substr(6));
    std::string outcomes;
    v1::BatchResult failures;
    if (!result->batch.ParseFromString(frame) || !ReceiveFrame(channel_, &outcomes) || !failures.ParseFromString(outcomes)) break;
    result->failures.insert(result->failures.end(), failures.outcomes().begin(), failures.outcomes().end());
    return true;
  }
  Stop();
  return false;
}

absl::StatusOr<BuildResult> BuildWorker::Build(v1::Batch batch) {
  BuildResult result;
  while (true) {
    int culprit = -1;
    bool timed_out = false;
    HONE_ASSIGN_OR_RETURN(const bool done, TryBuild(batch, &result, &culprit, &timed_out));
    if (done) return result;
    if (culprit < 0) return absl::InternalError("the build worker died over the reference kernel of workload " + batch.workload_digest());
    const auto kind = timed_out ? v1::FAILURE_KIND_COMPILE_TIMEOUT : v1::FAILURE_KIND_COMPILE_ERROR;
    const std::string text = timed_out ? fmt::format("compiling took longer than {}", absl::FormatDuration(candidate_limit_))
                                       : std::string("the compiler crashed");
    result.failures.push_back(Failed(batch.candidates(culprit).id(), kind, text));
    batch.mutable_candidates()->DeleteSubrange(culprit, 1);
    if (batch.candidates_size() == 0) {
      result.batch = std::move(batch);
      return result;
    }
  }
}

int BuildWorkerMain(int channel) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "hone-build");
  signal(SIGINT, SIG_IGN);  // a terminal's Ctrl-C is for the tuner to act on
  Compiler compiler(channel);
  std::string frame;
  while (ReceiveFrame(channel, &frame)) {
    v1::Batch batch;
    if (!batch.ParseFromString(frame)) return 1;
    auto result = compiler.Run(std::move(batch));
    if (!result.ok()) {
      if (!SendFrame(channel, "error " + std::string(result.status().message()))) return 0;
      continue;
    }
    v1::BatchResult failures;
    for (const v1::CandidateOutcome& outcome : result->failures) *failures.add_outcomes() = outcome;
    if (!SendFrame(channel, result->batch.SerializeAsString()) || !SendFrame(channel, failures.SerializeAsString())) return 0;
  }
  return 0;
}

}  // namespace hone::tuner
