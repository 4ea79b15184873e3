// SPDX-License-Identifier: Apache-2.0
#include "device_agent/launcher/visit_convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/kernel_interface.h"
#include "base/size_points.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "device_agent/launcher/plausible.h"
#include "proto/convert.h"

namespace hone::agent {
namespace {

// "input f32[1000]": the properties of a buffer that a kernel's interface and the batch must agree on.
std::string TypeOf(std::string_view dtype, BufferRole role, int64_t elements) {
  const char* const name = role == BufferRole::kInput ? "input" : role == BufferRole::kConstant ? "constant" : "output";
  return fmt::format("{} {}[{}]", name, dtype, elements);
}

absl::StatusOr<VisitBuffer> ToVisit(const v1::Buffer& buffer) {
  VisitBuffer result;
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("buffer '{}' {}", buffer.name(), what));
  };
  const std::optional<DType> dtype = hone::FromProto(buffer.dtype());
  if (!dtype.has_value()) return invalid("has a type this agent does not know");
  const int64_t size = SizeOf(*dtype);
  result.name = buffer.name();
  result.dtype = Name(*dtype);
  result.elements = buffer.elements();
  result.bytes = buffer.bytes();
  result.low = buffer.low();
  result.high = buffer.high();
  result.rounded = buffer.rounded();
  if (buffer.elements() < 0 || buffer.bytes() / size != buffer.elements() || buffer.bytes() % size != 0) {
    return invalid(
        fmt::format("has {} bytes, which are not {} elements of {} bytes", buffer.bytes(), buffer.elements(), size));
  }
  switch (buffer.role()) {
    case v1::Buffer::ROLE_INPUT:
      result.role = BufferRole::kInput;
      return result;
    case v1::Buffer::ROLE_CONSTANT:
      result.role = BufferRole::kConstant;
      return result;
    case v1::Buffer::ROLE_OUTPUT:
      result.role = BufferRole::kOutput;
      return result;
    default:
      return invalid("has a role that this agent does not know");
  }
}

// Parses the interface and checks that it agrees with the buffers of the batch.
absl::StatusOr<VisitKernel> ToVisit(const VisitBatch& batch, const v1::Kernel& kernel, const std::string& whose) {
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", whose, what));
  };
  std::string error;
  std::optional<KernelInterface> interface = ParseKernelInterface(kernel.interface(), &error);
  if (!interface.has_value()) return invalid(fmt::format("its interface: {}", error));
  std::vector<std::string> types;
  for (const KernelBuffer& buffer : interface->buffers) {
    const bool given =
        buffer.role == BufferRole::kInput || buffer.role == BufferRole::kConstant || buffer.role == BufferRole::kOutput;
    if (!given) continue;
    types.push_back(TypeOf(buffer.dtype, buffer.role, buffer.bytes() / BytesOfDType(buffer.dtype)));
  }
  if (types.size() != batch.buffers.size()) {
    return invalid(fmt::format("its interface has {} inputs, constants and outputs; the batch has {}", types.size(),
                               batch.buffers.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const VisitBuffer& buffer = batch.buffers[i];
    const std::string type = TypeOf(buffer.dtype, buffer.role, buffer.elements);
    if (type == types[i]) continue;
    return invalid(fmt::format("buffer '{}' is {} in the batch, but {} in its interface", buffer.name, type, types[i]));
  }
  if (interface->size_count() != batch.points.front().size()) {
    return invalid(fmt::format("it has {} open sizes; the points of the batch have {}", interface->size_count(),
                               batch.points.front().size()));
  }
  const auto bytes = static_cast<int64_t>(batch.artifact.size());
  if (kernel.code_offset() < 0 || kernel.code_bytes() < 0 || kernel.code_offset() > bytes - kernel.code_bytes()) {
    return invalid("its code lies outside the artifact");
  }
  return VisitKernel{*std::move(interface), kernel.code_offset(), kernel.code_bytes()};
}

absl::StatusOr<std::vector<std::vector<int64_t>>> PointsOf(const v1::Batch& batch) {
  const std::optional<std::vector<SizePoint>> given = ParseSizePoints(batch.sizes());
  if (!given.has_value()) return absl::InvalidArgumentError(fmt::format("sizes '{}' are not points", batch.sizes()));
  std::vector<std::vector<int64_t>> points(std::max<size_t>(given->size(), 1));
  for (size_t i = 0; i < given->size(); ++i) {
    for (const NamedSize& size : (*given)[i]) points[i].push_back(size.value);
  }
  return points;
}

// 0 means the default.
VisitPolicy ToVisit(const v1::TimingPolicy& policy) {
  VisitPolicy result;
  if (policy.min_seconds_first() > 0) result.min_seconds_first = policy.min_seconds_first();
  if (policy.finalists() > 0) result.finalists = policy.finalists();
  if (policy.final_seconds() > 0) result.final_seconds = policy.final_seconds();
  if (policy.timeout_seconds() > 0) result.timeout_seconds = policy.timeout_seconds();
  if (policy.reference_timeout_seconds() > 0) result.reference_timeout_seconds = policy.reference_timeout_seconds();
  result.constant_bytes_between_runs = policy.constant_bytes_between_runs();
  result.visit_seconds = policy.visit_seconds();
  return result;
}

v1::Timing ToProto(const VisitTiming& timing, const VisitResult& result) {
  v1::Timing proto;
  proto.mutable_seconds()->Add(timing.seconds.begin(), timing.seconds.end());
  proto.set_calls_per_repeat(timing.calls_per_repeat);
  proto.set_first_interleaved(timing.first_interleaved);
  proto.set_max_error(timing.max_error);
  proto.set_reference_seconds(result.reference_seconds);
  proto.set_drift(result.drift);
  return proto;
}

}  // namespace

absl::StatusOr<VisitBatch> ToVisit(const v1::Batch& batch) {
  VisitBatch result;
  result.workload_digest = Sha256Hex(batch.workload());
  result.artifact = batch.artifact();
  result.tolerance = {batch.tolerance().rtol(), batch.tolerance().atol()};
  result.fill_seed = batch.fill_seed();
  result.threads = batch.threads();
  result.policy = ToVisit(batch.policy());
  result.final = batch.final();
  if (batch.threads() < 1 || batch.threads() > kThreadsMax) {
    return absl::InvalidArgumentError(fmt::format("cannot measure with {} threads", batch.threads()));
  }
  for (const v1::Buffer& buffer : batch.buffers()) {
    HONE_ASSIGN_OR_RETURN(result.buffers.emplace_back(), ToVisit(buffer));
  }
  HONE_ASSIGN_OR_RETURN(result.points, PointsOf(batch));
  HONE_ASSIGN_OR_RETURN(result.reference, ToVisit(result, batch.reference(), "the reference kernel"));
  for (const v1::Candidate& candidate : batch.candidates()) {
    HONE_ASSIGN_OR_RETURN(VisitKernel kernel,
                          ToVisit(result, candidate.kernel(), fmt::format("candidate '{}'", candidate.id())));
    if (!candidate.id().empty() && candidate.id() == batch.policy().incumbent_id()) {
      result.policy.incumbent = static_cast<int>(result.candidates.size());
    }
    result.candidates.push_back({candidate.id(), std::move(kernel)});
  }
  return result;
}

v1::BatchResult ToProto(const VisitBatch& batch, const VisitResult& result) {
  v1::BatchResult proto;
  proto.set_error(result.error);
  for (size_t i = 0; i < result.outcomes.size(); ++i) {
    if (std::holds_alternative<std::monostate>(result.outcomes[i])) continue;
    v1::CandidateOutcome* outcome = proto.add_outcomes();
    outcome->set_candidate_id(batch.candidates[i].id);
    if (const auto* timing = std::get_if<VisitTiming>(&result.outcomes[i])) {
      *outcome->mutable_outcome()->mutable_timing() = ToProto(*timing, result);
    } else {
      const auto& failure = std::get<VisitFailure>(result.outcomes[i]);
      outcome->mutable_outcome()->mutable_failure()->set_kind(ToProto(failure.kind));
      outcome->mutable_outcome()->mutable_failure()->set_text(failure.text);
    }
  }
  proto.set_visit_seconds(result.seconds);
  return proto;
}

v1::BatchResult MeasureBatch(VisitRunner& visit_runner, const v1::Batch& batch, int cancel_fd, double peak_gflops) {
  absl::StatusOr<VisitBatch> visit = ToVisit(batch);
  if (visit.ok()) {
    visit->call_seconds_min = CallSecondsMin(batch, peak_gflops);
    return ToProto(*visit, visit_runner.Run(*visit, cancel_fd));
  }
  v1::BatchResult refused;
  refused.set_error(std::string(visit.status().message()));
  return refused;
}

}  // namespace hone::agent
