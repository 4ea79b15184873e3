// SPDX-License-Identifier: Apache-2.0
#include "tuner/batch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/match.h"
#include "compiler/target/cpu_features.h"
#include "compiler/version.h"

namespace hone::tuner {
namespace {

// Tolerance as a fraction of the largest output, if factors are rounded to the ten bits of TF32: a product is wrong by
// up to 2^-10, sums by less.
constexpr double kTf32Error = 1e-3;

// The most terms that one stage adds up for an element. Rounding errors grow with it.
double Depth(const ir::Workload& workload) {
  double depth = 1;
  for (const ir::Stage& stage : workload.stages) {
    double terms = 1;
    for (const ir::Axis& axis : stage.reduce_axes) terms *= static_cast<double>(axis.extent.max());
    depth = std::max(depth, terms);
  }
  return depth;
}

BatchBuffer Describe(const ir::BufferNode& buffer, BufferUse use) {
  return {.name = buffer.name,
          .dtype = buffer.dtype,
          .elements = ir::NumElements(buffer),
          .bytes = ir::NumBytes(buffer),
          .use = use};
}

// The buffers from whose elements a value is computed. Buffers that are only read in an index do not count.
struct Sources {
  std::vector<const ir::BufferNode*> read;
  bool rounds = false;  // a float is cast to an integer in the value
};
void AddSources(const ir::Expr& value, Sources& sources) {
  if (const auto* load = value.As<ir::Load>()) return sources.read.push_back(load->buffer.get());
  const auto* cast = value.As<ir::Cast>();
  sources.rounds |= cast != nullptr && ir::IsInt(value.type().dtype) && ir::IsFloat(cast->value.type().dtype);
  ir::ForEachChild(value, [&](const ir::Expr& child) { AddSources(child, sources); });
}

// The buffers of integers that are rounded sums of floats. Adding in another order may round some to the next integer.
std::set<const ir::BufferNode*> RoundedBuffers(const ir::Workload& workload) {
  std::set<const ir::BufferNode*> inexact, rounded;
  for (const ir::Stage& stage : workload.stages) {
    Sources sources;
    AddSources(stage.value, sources);
    const auto reads = [&sources](const std::set<const ir::BufferNode*>& buffers) {
      return std::ranges::any_of(sources.read, [&](const ir::BufferNode* buffer) { return buffers.contains(buffer); });
    };
    const ir::DType dtype = stage.buffer->dtype;
    const bool adds = stage.reduction == ir::Reduction::kSum || stage.reduction == ir::Reduction::kProd;
    if (reads(inexact) || (adds && ir::IsFloat(dtype))) inexact.insert(stage.buffer.get());
    const bool rounds = reads(rounded) || (sources.rounds && reads(inexact));
    if (rounds && ir::IsInt(dtype)) rounded.insert(stage.buffer.get());
  }
  return rounded;
}

// Adds the operations and bytes of one call of a workload without open sizes.
void AddCost(const ir::Workload& workload, Batch& batch) {
  batch.flops += ir::CountFlops(workload);
  for (const ir::Param& param : workload.params) batch.bytes += static_cast<double>(ir::NumBytes(*param.buffer));
  for (const ir::Buffer& output : workload.outputs) batch.bytes += static_cast<double>(ir::NumBytes(*output));
}

void AddCostAt(const ir::Workload& workload, std::span<const SizePoint> points, Batch& batch) {
  if (points.empty()) return AddCost(workload, batch);
  for (const SizePoint& point : points) AddCost(ir::WithSizes(workload, ValuesOf(point)), batch);
}

}  // namespace

// A fingerprint has its own name of the architecture, and CPU features as in /proc/cpuinfo.
Requirements RequirementsOf(const target::Target& target) {
  Requirements result;
  result.threads = target.threads;
  result.architecture = FindCodeKind(codegen::CodeKindOf(target))->architecture;
  for (const std::string& feature : codegen::RequiredFeatures(target)) {
    result.cpu_features.emplace_back(target::CpuinfoSpelling(target.arch, feature));
  }
  return result;
}

Batch DescribeWorkload(const ir::Workload& workload, const target::Target& target, std::span<const SizePoint> points) {
  Batch batch;
  batch.workload_digest = ir::WorkloadDigest(workload);
  batch.workload = ir::Print(workload);
  batch.op = workload.op;
  batch.sizes = PrintSizePoints(points);
  AddCostAt(workload, points, batch);
  batch.target = target::Print(target);
  batch.compiler_version = kCompilerVersion;
  batch.threads = target.threads;
  batch.requirements = RequirementsOf(target);
  for (const ir::Param& param : workload.params) {
    const bool input = param.kind == ir::ParamKind::kInput;
    BatchBuffer& buffer =
        batch.buffers.emplace_back(Describe(*param.buffer, input ? BufferUse::kInput : BufferUse::kConstant));
    buffer.low = param.low;
    buffer.high = param.high;
  }
  const std::set<const ir::BufferNode*> rounded = RoundedBuffers(workload);
  bool inexact = false;
  for (const ir::Buffer& output : workload.outputs) {
    BatchBuffer& buffer = batch.buffers.emplace_back(Describe(*output, BufferUse::kOutput));
    buffer.rounded = rounded.contains(output.get());
    inexact |= buffer.rounded || ir::IsFloat(output->dtype);
  }
  // Candidates add in another order than the reference. The errors grow with the root of the number of terms.
  if (inexact) {
    batch.rtol = 1e-3;
    batch.atol = target::AllowsTf32(target) ? kTf32Error : std::clamp(1e-6 * std::sqrt(Depth(workload)), 1e-5, 1e-3);
  }
  return batch;
}

int64_t ConstantBytesOf(const Batch& description) {
  int64_t bytes = 0;
  for (const BatchBuffer& buffer : description.buffers) {
    if (buffer.use == BufferUse::kConstant) bytes += buffer.bytes;
  }
  return bytes;
}

}  // namespace hone::tuner
