#include "tuner/batch.h"

#include <algorithm>
#include <cmath>

#include "compiler/codegen/codegen.h"
#include "compiler/target/cpu_features.h"
#include "compiler/version.h"

namespace hone::tuner {
namespace {

// Of the largest output, where factors are rounded to ten bits: a product is wrong by up to 2^-10, sums by less.
constexpr double kTf32Error = 1e-3;

// How many values go into one element of an output, at most: what rounding errors grow with.
double Depth(const ir::Workload& workload) {
  double depth = 1;
  for (const ir::Stage& stage : workload.stages) {
    double terms = 1;
    for (const ir::Axis& axis : stage.reduce_axes) terms *= static_cast<double>(axis.extent);
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

// As the fingerprint says it: the machine's own name, and features as /proc/cpuinfo spells them.
Requirements RequirementsOf(const target::Target& target) {
  Requirements result;
  result.threads = target.threads;
  result.architecture = FindCodeKind(codegen::CodeKindOf(target))->architecture;
  for (const std::string& feature : codegen::RequiredFeatures(target)) {
    result.cpu_features.emplace_back(target::CpuinfoSpelling(target.arch, feature));
  }
  return result;
}

}  // namespace

Batch DescribeWorkload(const ir::Workload& workload, const target::Target& target) {
  Batch batch;
  batch.workload_digest = ir::WorkloadDigest(workload);
  batch.workload = ir::Print(workload);
  batch.op = workload.op;
  batch.flops = ir::CountFlops(workload);
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
  bool floats = false;
  for (const ir::Buffer& output : workload.outputs) {
    batch.buffers.push_back(Describe(*output, BufferUse::kOutput));
    floats |= ir::IsFloat(output->dtype);
  }
  // Sums are taken in another order than the reference does: errors grow with the root of the number of terms.
  if (floats) {
    batch.rtol = 1e-3;
    batch.atol = target::AllowsTf32(target) ? kTf32Error : std::clamp(1e-6 * std::sqrt(Depth(workload)), 1e-5, 1e-3);
  }
  return batch;
}

double BytesOf(const Batch& description) {
  double bytes = 0;
  for (const BatchBuffer& buffer : description.buffers) bytes += static_cast<double>(buffer.bytes);
  return bytes;
}

int64_t ConstantBytesOf(const Batch& description) {
  int64_t bytes = 0;
  for (const BatchBuffer& buffer : description.buffers) {
    if (buffer.use == BufferUse::kConstant) bytes += buffer.bytes;
  }
  return bytes;
}

}  // namespace hone::tuner
