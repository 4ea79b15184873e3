// SPDX-License-Identifier: Apache-2.0
// hone-fuzz-opencl: random graphs for a target with lanes; some kernels run on this machine's OpenCL device. It is
// separate from hone-fuzz because the device's compiler may bring another LLVM into the process.
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/opencl/emit.h"
#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "fmt/format.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/drivers/opencl_device.h"

namespace hone::fuzz {
namespace {

namespace opencl = drivers::opencl;
using tests::Guarded;

constexpr int kShare = 8;  // compiling a kernel takes the device most of a second

absl::Status Check(const drivers::Error& error) {
  return error.ok() ? absl::OkStatus() : absl::InternalError(error.text);
}

// Device buffers, each with its host buffer.
class Memory {
 public:
  explicit Memory(const opencl::Device& device) : device_(device) {}

  absl::Status Place(const ir::Buffer& buffer, std::span<std::byte> bytes) {
    opencl::Buffer& copy = copies_[buffer.get()];
    HONE_RETURN_IF_ERROR(Check(device_.Allocate(std::max<size_t>(bytes.size(), 1), &copy)));
    return bytes.empty() ? absl::OkStatus() : Check(device_.Write(copy, 0, bytes));
  }
  absl::Status Read(const ir::Buffer& buffer, std::span<std::byte> bytes) const {
    return bytes.empty() ? absl::OkStatus() : Check(device_.Read(copies_.at(buffer.get()), 0, bytes));
  }
  const opencl::Buffer& At(const ir::Buffer& buffer) const { return copies_.at(buffer.get()); }

 private:
  const opencl::Device& device_;
  std::map<const ir::BufferNode*, opencl::Buffer> copies_;
};

absl::Status Launch(const opencl::Device& device, const std::vector<ir::Func>& funcs, const Memory& memory) {
  if (funcs.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string source, codegen::EmitOpenCl(funcs));
  opencl::Program program;
  HONE_RETURN_IF_ERROR(Check(device.Build(source, {}, &program)));
  for (const ir::Func& func : funcs) {
    opencl::Kernel kernel;
    HONE_RETURN_IF_ERROR(Check(program.Find(func.name, &kernel)));
    for (size_t i = 0; i < func.params.size(); ++i) {
      HONE_RETURN_IF_ERROR(Check(kernel.SetArg(static_cast<int>(i), memory.At(func.params[i]))));
    }
    const opencl::Launch launch{&kernel, func.grid.groups, func.grid.lanes};
    HONE_RETURN_IF_ERROR(Check(device.Run(std::span(&launch, 1), tests::Soon())));
  }
  return absl::OkStatus();
}

absl::Status RunOn(const opencl::Device& device, const target::Target& target, const ir::Workload& workload,
                   const schedule::Schedule& schedule, tests::Tolerance tolerance) {
  HONE_ASSIGN_OR_RETURN(tests::Problem problem, tests::MakeProblem(workload));
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Module module, execution::Lower(state, target, "kernel"));
  Memory memory(device);
  std::vector<Guarded> outputs = tests::Allocate(tests::BytesOf(workload.outputs));
  for (size_t i = 0; i < workload.params.size(); ++i) {
    HONE_RETURN_IF_ERROR(memory.Place(workload.params[i].buffer, problem.params[i].span()));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(memory.Place(workload.outputs[i], outputs[i].span()));
  }
  for (const auto* buffers : {&module.packed, &module.workspace, &module.prepare_workspace}) {
    for (const ir::Buffer& buffer : *buffers) {
      Guarded bytes(ir::NumBytes(*buffer));
      HONE_RETURN_IF_ERROR(memory.Place(buffer, bytes.span()));
    }
  }
  HONE_RETURN_IF_ERROR(Launch(device, module.prepare, memory));
  HONE_RETURN_IF_ERROR(Launch(device, module.main, memory));
  for (size_t i = 0; i < outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(memory.Read(workload.outputs[i], outputs[i].span()));
  }
  return tests::CompareAll(workload, problem, {}, outputs, tolerance);
}

Machine Open() {
  Machine machine{.name = "OpenCL", .target = target::TypicalTarget(target::Kind::kOpenCl), .share = kShare};
  // OpenCL C prints asynchronous copies as loads and stores, so spaces do not offer them. Here they do, to test the
  // printing.
  machine.target.memory.async_copy_bytes = 16;
  std::string reason;
  const opencl::Device* device = tests::OpenClDevice(&reason);
  if (device == nullptr) {
    fmt::print("[SKIP] kernels are interpreted only: {}\n", reason);
    return machine;
  }
  machine.run = [device, target = machine.target](const auto& workload, const auto& schedule, auto tolerance) {
    return RunOn(*device, target, workload, schedule, tolerance);
  };
  return machine;
}

}  // namespace
}  // namespace hone::fuzz

int main(int argc, char** argv) { return hone::fuzz::Fuzz(argc, argv, hone::fuzz::Open); }
