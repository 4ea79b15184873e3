// SPDX-License-Identifier: Apache-2.0
#include "tuner/build_worker.h"

#include <fcntl.h>

#include <optional>
#include <string>
#include <utility>

#include "base/frame.h"
#include "base/host_lock.h"
#include "base/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel.h"
#include "compiler/execution/model.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"

namespace hone::tuner {
namespace {

constexpr size_t kKeptPrepares = 64;  // all are dropped when there are so many

BuildReply FailedReply(const absl::Status& status) {
  BuildReply reply;
  reply.kind = BuildReply::Kind::kFailed;
  const bool illegal =
      absl::IsFailedPrecondition(status) || absl::IsNotFound(status) || absl::IsInvalidArgument(status);
  reply.failure = illegal ? FailureKind::kScheduleIllegal : FailureKind::kCompileError;
  reply.text = std::string(status.message());
  return reply;
}

}  // namespace

absl::StatusOr<std::string> Builder::Prepare(const ir::Func& prepare, const target::Target& target) {
  const std::string key = prepare.name + target::Print(target);
  if (const auto found = prepares_.find(key); found != prepares_.end()) return found->second;
  if (prepares_.size() == kKeptPrepares) prepares_.clear();
  HONE_ASSIGN_OR_RETURN(std::string object, codegen::Emit({&prepare, 1}, target));
  return prepares_[key] = std::move(object);
}

absl::StatusOr<BuildReply> Builder::Compile(const BuildRequest& request) {
  const bool reference = request.kind == BuildRequest::Kind::kCompileReference;
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(request.workload));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(request.target));
  schedule::Schedule schedule;
  if (reference) {
    schedule = execution::ModelOf(target).reference_schedule(workload, target);
  } else {
    HONE_ASSIGN_OR_RETURN(schedule, schedule::ParseSchedule(request.schedule));
  }
  // A candidate that is not linked with others contains the code that prepares its constants.
  const codegen::CompileOptions options = {reference ? codegen::Effort::kReference : codegen::Effort::kKernel,
                                           ReproducerPassOptions<ir::Func>(reproducers_),
                                           !target.facts().links_candidates};
  HONE_ASSIGN_OR_RETURN(codegen::Kernel kernel,
                        codegen::CompileKernel(workload, schedule, target, request.name, options));
  BuildReply reply;
  // With machine code included, the device's driver need not compile.
  if (const std::optional<codegen::Assembled> assembled = codegen::Assemble(kernel.code, target)) {
    if (!reference) reply.drawback = codegen::Drawback(assembled->resources, target);
    kernel.code = codegen::WithMachineCode(std::move(kernel.code), {&assembled->machine_code, 1});
  }
  if (!options.prepares && kernel.prepare.body.defined()) {
    HONE_ASSIGN_OR_RETURN(reply.prepare, Prepare(kernel.prepare, target));
  }
  reply.bytes = std::move(kernel.code);
  reply.kernel = std::move(kernel.interface);
  return reply;
}

BuildReply Builder::Build(const BuildRequest& request) {
  if (request.kind != BuildRequest::Kind::kLink) {
    absl::StatusOr<BuildReply> reply = Compile(request);
    return reply.ok() ? *std::move(reply) : FailedReply(reply.status());
  }
  const absl::StatusOr<target::Target> target = target::ParseTarget(request.target);
  if (!target.ok()) return FailedReply(target.status());
  absl::StatusOr<codegen::Artifact> artifact = codegen::Link(request.objects, *target);
  if (!artifact.ok()) return FailedReply(artifact.status());
  BuildReply reply;
  reply.bytes = std::move(artifact->code);
  for (const codegen::Artifact::Range& range : artifact->ranges) reply.ranges.push_back({range.offset, range.bytes});
  return reply;
}

int ServeBuilds(int socket, const std::function<BuildReply(const BuildRequest&)>& build) {
  fcntl(socket, F_SETFD, FD_CLOEXEC);  // programs that this process runs must not keep the socket open
  // Without the lock, compiling may disturb timings on this machine, but all else works.
  absl::StatusOr<HostLock> lock = HostLock::Open();
  BuildReply started;
  started.kind = BuildReply::Kind::kStarted;
  std::string bytes;
  while (ReceiveFrame(socket, &bytes)) {
    const std::optional<BuildRequest> request = DecodeRequest(bytes);
    if (!request.has_value()) return 1;
    std::optional<ScopedHostLock> compiling;
    if (lock.ok()) compiling.emplace(*lock, HostLock::Mode::kShared);
    if (!SendFrame(socket, Encode(started))) return 0;
    const BuildReply reply = build(*request);
    compiling.reset();
    if (!SendFrame(socket, Encode(reply))) return 0;
    // After a failure the linker may not run again in this process, so the process ends and is replaced.
    if (request->kind == BuildRequest::Kind::kLink && reply.kind == BuildReply::Kind::kFailed) return 0;
  }
  return 0;
}

}  // namespace hone::tuner
