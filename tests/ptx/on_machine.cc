#include "tests/ptx/on_machine.h"

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/kernel.h"
#include "tests/ptx/program.h"

namespace hone::testing {
namespace {

absl::Status RunAll(const std::vector<KernelLaunch>& launches, const ptx::Program& program,
                    std::vector<Guarded>& buffers) {
  for (const KernelLaunch& launch : launches) {
    const ptx::Kernel* kernel = program.Find(launch.function);
    if (kernel == nullptr) return absl::NotFoundError("the PTX has no kernel '" + launch.function + "'");
    ptx::Launch asked{.groups = static_cast<uint32_t>(launch.groups),
                      .lanes = static_cast<uint32_t>(launch.lanes),
                      .shared_bytes = static_cast<uint64_t>(launch.shared_bytes),
                      .memory = program.table_memory,
                      .memory_is_buffers = true};
    for (const uint32_t argument : launch.arguments) {
      const std::span<std::byte> bytes = buffers[argument].span();
      asked.arguments.push_back(reinterpret_cast<uint64_t>(bytes.data()));
      asked.memory.push_back({asked.arguments.back(), bytes.size()});
    }
    std::ranges::sort(asked.memory, {}, &ptx::Memory::begin);
    if (const absl::Status status = ptx::Run(*kernel, asked); !status.ok()) {
      return absl::InternalError(status.message());  // a schedule that leads nowhere has another code
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOnMachine(const ir::Workload& workload, const schedule::Schedule& schedule,
                            const target::Target& target, Tolerance tolerance, std::string* ptx) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload));
  HONE_ASSIGN_OR_RETURN(const codegen::Kernel kernel, codegen::CompileKernel(workload, schedule, target, "kernel"));
  if (ptx != nullptr) *ptx = kernel.code;
  HONE_ASSIGN_OR_RETURN(const ptx::Program program, ptx::Parse(kernel.code));
  const KernelInterface& interface = kernel.interface;
  std::vector<int64_t> bytes;
  for (const KernelBuffer& buffer : interface.buffers) bytes.push_back(buffer.bytes());
  std::vector<Guarded> buffers = Allocate(bytes);
  for (size_t i = 0; i < problem.params.size(); ++i) {
    std::ranges::copy(problem.params[i].span(), buffers[i].span().begin());
  }
  HONE_RETURN_IF_ERROR(RunAll(interface.prepare, program, buffers));
  HONE_RETURN_IF_ERROR(RunAll(interface.main, program, buffers));
  const std::vector<uint32_t> outputs = interface.Of(BufferRole::kOutput);
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(Compare(*workload.outputs[i], problem.expected[i], buffers[outputs[i]].span(), tolerance));
  }
  return absl::OkStatus();
}

}  // namespace hone::testing
