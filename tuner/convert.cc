#include "tuner/convert.h"

#include <algorithm>
#include <cmath>

#include "compiler/codegen/codegen.h"
#include "compiler/target/cpu_features.h"
#include "compiler/version.h"

namespace hone::tuner {
namespace {

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

v1::Buffer Describe(const ir::BufferNode& buffer, v1::Buffer::Role role) {
  v1::Buffer result;
  result.set_name(buffer.name);
  result.set_dtype(ToProto(buffer.dtype));
  result.set_elements(ir::NumElements(buffer));
  result.set_bytes(ir::NumBytes(buffer));
  result.set_role(role);
  return result;
}

// As the fingerprint says it: the machine's own name, and features as /proc/cpuinfo spells them.
void AddFeatures(const target::Target& target, v1::Requirements* requirements) {
  requirements->set_architecture(std::string(FindCodeKind(codegen::CodeKindOf(target))->architecture));
  for (const std::string& feature : codegen::RequiredFeatures(target)) {
    requirements->add_cpu_features(std::string(target::CpuinfoSpelling(target.arch, feature)));
  }
}

}  // namespace

v1::DType ToProto(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBool:
      return v1::DTYPE_BOOL;
    case ir::DType::kInt8:
      return v1::DTYPE_I8;
    case ir::DType::kInt16:
      return v1::DTYPE_I16;
    case ir::DType::kInt32:
      return v1::DTYPE_I32;
    case ir::DType::kInt64:
      return v1::DTYPE_I64;
    case ir::DType::kUInt8:
      return v1::DTYPE_U8;
    case ir::DType::kUInt16:
      return v1::DTYPE_U16;
    case ir::DType::kUInt32:
      return v1::DTYPE_U32;
    case ir::DType::kUInt64:
      return v1::DTYPE_U64;
    case ir::DType::kFloat16:
      return v1::DTYPE_F16;
    case ir::DType::kBFloat16:
      return v1::DTYPE_BF16;
    case ir::DType::kFloat32:
      return v1::DTYPE_F32;
    case ir::DType::kFloat64:
      return v1::DTYPE_F64;
  }
  return v1::DTYPE_UNSPECIFIED;
}

v1::Kernel ToProto(const KernelInterface& kernel, const CodeRange& code) {
  v1::Kernel result;
  result.set_code_offset(code.offset);
  result.set_code_bytes(code.bytes);
  result.set_interface(Print(kernel));
  return result;
}

v1::Failure ToProto(const BuiltCandidate& failed) {
  v1::Failure failure;
  switch (failed.failure) {
    case BuildFailure::kScheduleIllegal:
      failure.set_kind(v1::FAILURE_KIND_SCHEDULE_ILLEGAL);
      break;
    case BuildFailure::kCompileError:
      failure.set_kind(v1::FAILURE_KIND_COMPILE_ERROR);
      break;
    case BuildFailure::kCompileTimeout:
      failure.set_kind(v1::FAILURE_KIND_COMPILE_TIMEOUT);
      break;
  }
  failure.set_text(failed.text);
  return failure;
}

v1::Batch DescribeWorkload(const ir::Workload& workload, const target::Target& target) {
  v1::Batch batch;
  batch.set_workload_digest(ir::WorkloadDigest(workload));
  batch.set_workload(ir::Print(workload));
  batch.set_target(target::Print(target));
  batch.set_compiler_version(kCompilerVersion);
  batch.set_op(workload.op);
  batch.set_flops(ir::CountFlops(workload));
  batch.set_threads(target.threads);
  batch.mutable_requirements()->set_threads(target.threads);
  AddFeatures(target, batch.mutable_requirements());
  for (const ir::Param& param : workload.params) {
    const bool input = param.kind == ir::ParamKind::kInput;
    v1::Buffer buffer = Describe(*param.buffer, input ? v1::Buffer::ROLE_INPUT : v1::Buffer::ROLE_CONSTANT);
    buffer.set_low(param.low);
    buffer.set_high(param.high);
    *batch.add_buffers() = std::move(buffer);
  }
  bool floats = false;
  for (const ir::Buffer& output : workload.outputs) {
    *batch.add_buffers() = Describe(*output, v1::Buffer::ROLE_OUTPUT);
    floats |= ir::IsFloat(output->dtype);
  }
  // Sums are taken in another order than the reference does: errors grow with the root of the number of terms.
  if (floats) {
    batch.mutable_tolerance()->set_rtol(1e-3);
    batch.mutable_tolerance()->set_atol(std::clamp(1e-6 * std::sqrt(Depth(workload)), 1e-5, 1e-3));
  }
  return batch;
}

}  // namespace hone::tuner
