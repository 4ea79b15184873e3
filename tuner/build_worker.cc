#include "tuner/build_worker.h"

#include <optional>
#include <string>
#include <utility>

#include "base/frame.h"
#include "base/host_lock.h"
#include "base/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"

namespace hone::tuner {
namespace {

absl::StatusOr<codegen::Kernel> Compile(const BuildRequest& request, const std::string& reproducers) {
  codegen::CompileOptions options{.passes = Reproducing<ir::Func>(reproducers)};
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(request.workload));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(request.target));
  if (request.kind == BuildRequest::Kind::kCompileReference) {
    options.effort = codegen::Effort::kReference;
    return codegen::CompileKernel(workload, codegen::ReferenceSchedule(workload, target), target, request.name,
                                  options);
  }
  HONE_ASSIGN_OR_RETURN(const schedule::Schedule schedule, schedule::ParseSchedule(request.schedule));
  return codegen::CompileKernel(workload, schedule, target, request.name, options);
}

std::string DrawbackOf(const std::string& code, const std::string& target_text) {
  const absl::StatusOr<target::Target> target = target::ParseTarget(target_text);
  const std::optional<codegen::Resources> resources = codegen::Examine(code, *target);  // it was compiled for it
  return resources.has_value() ? codegen::Drawback(*resources, *target) : "";
}

BuildReply Failed(const absl::Status& status) {
  BuildReply reply;
  reply.kind = BuildReply::Kind::kFailed;
  const bool illegal =
      absl::IsFailedPrecondition(status) || absl::IsNotFound(status) || absl::IsInvalidArgument(status);
  reply.failure = illegal ? BuildFailure::kScheduleIllegal : BuildFailure::kCompileError;
  reply.text = std::string(status.message());
  return reply;
}

}  // namespace

BuildReply Build(const BuildRequest& request, const std::string& reproducers) {
  BuildReply reply;
  if (request.kind == BuildRequest::Kind::kLink) {
    const absl::StatusOr<target::Target> target = target::ParseTarget(request.target);
    if (!target.ok()) return Failed(target.status());
    absl::StatusOr<codegen::Artifact> artifact = codegen::Link(request.objects, *target);
    if (!artifact.ok()) return Failed(artifact.status());
    reply.bytes = std::move(artifact->code);
    for (const codegen::Artifact::Range& range : artifact->ranges) reply.ranges.push_back({range.offset, range.bytes});
    return reply;
  }
  absl::StatusOr<codegen::Kernel> kernel = Compile(request, reproducers);
  if (!kernel.ok()) return Failed(kernel.status());
  if (request.kind == BuildRequest::Kind::kCompile) reply.drawback = DrawbackOf(kernel->code, request.target);
  reply.bytes = std::move(kernel->code);
  reply.kernel = std::move(kernel->interface);
  return reply;
}

int ServeBuilds(int socket, const std::function<BuildReply(const BuildRequest&)>& build) {
  // Without the lock, timing on this machine may be disturbed, but everything works.
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
  }
  return 0;
}

}  // namespace hone::tuner
