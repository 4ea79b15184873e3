// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/on_machine.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "compiler/codegen/codegen.h"
#include "compiler/codegen/kernel.h"
#include "compiler/codegen/shared_memory.h"
#include "compiler/ir/elements.h"
#include "compiler/ir/interpret.h"
#include "tests/ptx/program.h"

namespace hone::tests {
namespace {

absl::Status RunOne(const ptx::Program& program, const std::string& name, ptx::Launch launch,
                    const std::vector<std::span<std::byte>>& arguments) {
  const ptx::Kernel* kernel = program.Find(name);
  if (kernel == nullptr) return absl::NotFoundError("the PTX has no kernel '" + name + "'");
  launch.memory = program.table_memory;
  launch.memory_is_buffers = true;
  for (const std::span<std::byte> bytes : arguments) {
    launch.arguments.push_back(reinterpret_cast<uint64_t>(bytes.data()));
    launch.memory.push_back({launch.arguments.back(), bytes.size()});
  }
  std::ranges::sort(launch.memory, {}, &ptx::Memory::begin);
  const absl::Status status = ptx::Run(*kernel, launch);
  // FailedPrecondition is reserved for schedules that cannot be lowered.
  return status.ok() ? status : absl::InternalError(status.message());
}

// values: what numbers of groups follow from.
absl::Status RunAll(const std::vector<KernelLaunch>& launches, const ptx::Program& program,
                    std::span<const int64_t> values, std::vector<Guarded>& buffers) {
  for (const KernelLaunch& launch : launches) {
    const int64_t groups = launch.GroupsFor(values);
    if (groups == 0) continue;
    std::vector<std::span<std::byte>> arguments;
    for (const uint32_t argument : launch.arguments) arguments.push_back(buffers[argument].span());
    HONE_RETURN_IF_ERROR(RunOne(program, launch.function,
                                {.groups = static_cast<uint32_t>(groups),
                                 .lanes = static_cast<uint32_t>(launch.lanes),
                                 .shared_bytes = static_cast<uint64_t>(launch.shared_bytes)},
                                arguments));
  }
  return absl::OkStatus();
}

absl::Status RunAtSizes(const ir::Workload& workload, const KernelInterface& interface, const ptx::Program& program,
                        const SizeMap& sizes, Tolerance tolerance) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload, sizes));
  const std::vector<int64_t> size_values = InOrder(workload, sizes);
  std::vector<Guarded> buffers;
  auto output = problem.outputs.begin();
  for (size_t i = 0; i < interface.buffers.size(); ++i) {
    const KernelBuffer& buffer = interface.buffers[i];
    if (i < problem.params.size()) {
      buffers.push_back(std::move(problem.params[i]));
    } else if (buffer.role == BufferRole::kOutput) {
      buffers.push_back(std::move(*output++));
    } else {
      buffers.emplace_back(buffer.bytes());
    }
    if (buffer.role == BufferRole::kSizes) {
      std::ranges::copy(std::as_bytes(std::span(size_values)), buffers.back().span().begin());
    }
  }
  HONE_RETURN_IF_ERROR(RunAll(interface.prepare, program, {}, buffers));
  HONE_RETURN_IF_ERROR(RunAll(interface.main, program, interface.ComputeValues(size_values), buffers));
  const std::vector<uint32_t> outputs = interface.Of(BufferRole::kOutput);
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(
        Compare(*problem.workload.outputs[i], problem.expected[i], buffers[outputs[i]].span(), tolerance));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOnPtxMachine(const ir::Workload& workload, const schedule::Schedule& schedule,
                               const target::Target& target, Tolerance tolerance, std::string* ptx,
                               const std::vector<SizeMap>& sizes) {
  HONE_ASSIGN_OR_RETURN(const codegen::Kernel kernel, codegen::CompileKernel(workload, schedule, target, "kernel"));
  if (ptx != nullptr) *ptx = kernel.code;
  HONE_ASSIGN_OR_RETURN(const ptx::Program program, ptx::Parse(kernel.code));
  for (const SizeMap& values : sizes) {
    const absl::Status status = RunAtSizes(workload, kernel.interface, program, values, tolerance);
    HONE_RETURN_IF_ERROR(AtSizes(status, values));
  }
  return absl::OkStatus();
}

absl::Status CheckFuncOnPtxMachine(const ir::Func& func, const target::Target& target, Tolerance tolerance,
                                   std::string* ptx) {
  HONE_ASSIGN_OR_RETURN(const std::string code, codegen::Emit({&func, 1}, target));
  if (ptx != nullptr) *ptx = code;
  HONE_ASSIGN_OR_RETURN(const ptx::Program program, ptx::Parse(code));
  std::vector<Guarded> run = Allocate(BytesOf(func.params)), interpreted = Allocate(BytesOf(func.params));
  std::vector<std::span<std::byte>> arguments, expected;
  Random random(7);
  for (size_t i = 0; i < func.params.size(); ++i) {
    ir::FillRandom(func.params[i]->dtype, 0, 100, random, run[i].span());
    std::ranges::copy(run[i].span(), interpreted[i].span().begin());
    arguments.push_back(run[i].span());
    expected.push_back(interpreted[i].span());
  }
  HONE_RETURN_IF_ERROR(ir::Interpret(func, expected));
  const int64_t shared = codegen::PlaceShared(func, target.memory).requested_bytes;
  HONE_RETURN_IF_ERROR(RunOne(program, func.name,
                              {.groups = static_cast<uint32_t>(func.grid.groups),
                               .lanes = static_cast<uint32_t>(func.grid.lanes),
                               .shared_bytes = static_cast<uint64_t>(shared)},
                              arguments));
  for (size_t i = 0; i < func.params.size(); ++i) {
    HONE_RETURN_IF_ERROR(Compare(*func.params[i], expected[i], arguments[i], tolerance));
  }
  return absl::OkStatus();
}

}  // namespace hone::tests
