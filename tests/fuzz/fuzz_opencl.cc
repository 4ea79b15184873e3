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
#include "compiler/ir/simplify.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "fmt/format.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/drivers/opencl_device.h"

namespace hone::fuzz {
namespace {

namespace opencl = drivers::opencl;
using tests::Guarded;
using tests::SizeMap;

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

// Launches of one source, built once.
class Launches {
 public:
  static absl::StatusOr<Launches> Build(const opencl::Device& device, const std::vector<ir::Func>& funcs) {
    Launches launches(funcs);
    if (funcs.empty()) return launches;
    HONE_ASSIGN_OR_RETURN(const std::string source, codegen::EmitOpenCl(funcs));
    HONE_RETURN_IF_ERROR(Check(device.Build(source, {}, &launches.program_)));
    return launches;
  }

  // values: of the open sizes that the numbers of groups depend on.
  absl::Status Run(const opencl::Device& device, const Memory& memory, const ir::VarMap& values) const {
    for (const ir::Func& func : funcs_) {
      opencl::Kernel kernel;
      HONE_RETURN_IF_ERROR(Check(program_.Find(func.name, &kernel)));
      for (size_t i = 0; i < func.params.size(); ++i) {
        HONE_RETURN_IF_ERROR(Check(kernel.SetArg(static_cast<int>(i), memory.At(func.params[i]))));
      }
      const ir::Expr& open = func.grid.open_groups;
      const int64_t groups =
          open.defined() ? ir::ConstantValue(ir::Substitute(open, values)).value() : func.grid.groups;
      const opencl::Launch launch{&kernel, groups, func.grid.lanes};
      if (groups > 0) HONE_RETURN_IF_ERROR(Check(device.Run(std::span(&launch, 1), tests::Soon())));
    }
    return absl::OkStatus();
  }

 private:
  explicit Launches(const std::vector<ir::Func>& funcs) : funcs_(funcs) {}
  std::vector<ir::Func> funcs_;
  opencl::Program program_;
};

absl::Status RunKernelAtSizes(const opencl::Device& device, const ir::Workload& workload, const passes::Module& module,
                              const Launches& prepare, const Launches& main, const SizeMap& sizes,
                              tests::Tolerance tolerance) {
  HONE_ASSIGN_OR_RETURN(tests::Problem problem, tests::MakeProblem(workload, sizes));
  Memory memory(device);
  for (size_t i = 0; i < workload.params.size(); ++i) {
    HONE_RETURN_IF_ERROR(memory.Place(workload.params[i].buffer, problem.params[i].with_canary()));
  }
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(memory.Place(workload.outputs[i], problem.outputs[i].with_canary()));
  }
  for (const auto* buffers : {&module.packed, &module.workspace, &module.prepare_workspace}) {
    for (const ir::Buffer& buffer : *buffers) {
      Guarded bytes(ir::NumBytes(*buffer));
      HONE_RETURN_IF_ERROR(memory.Place(buffer, bytes.with_canary()));
    }
  }
  std::vector<int64_t> numbers = tests::InOrder(workload, sizes);
  if (module.sizes != nullptr) {
    HONE_RETURN_IF_ERROR(memory.Place(module.sizes, std::as_writable_bytes(std::span(numbers))));
  }
  ir::VarMap values;
  for (const auto& [name, value] : sizes) values[name] = ir::Expr(value);
  HONE_RETURN_IF_ERROR(prepare.Run(device, memory, {}));
  HONE_RETURN_IF_ERROR(main.Run(device, memory, values));
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(memory.Read(workload.outputs[i], problem.outputs[i].with_canary()));
  }
  return tests::CompareAll(problem, {}, tolerance);
}

absl::Status RunOn(const opencl::Device& device, const target::Target& target, const ir::Workload& workload,
                   const schedule::Schedule& schedule, tests::Tolerance tolerance, const std::vector<SizeMap>& sizes) {
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Module module, execution::Lower(state, target, "kernel"));
  HONE_ASSIGN_OR_RETURN(const Launches prepare, Launches::Build(device, module.prepare));
  HONE_ASSIGN_OR_RETURN(const Launches main, Launches::Build(device, module.main));
  for (const SizeMap& values : sizes) {
    const absl::Status status = RunKernelAtSizes(device, workload, module, prepare, main, values, tolerance);
    HONE_RETURN_IF_ERROR(tests::AtSizes(status, values));
  }
  return absl::OkStatus();
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
  machine.run = [device, target = machine.target](const auto& workload, const auto& schedule, auto tolerance,
                                                  const auto& sizes) {
    return RunOn(*device, target, workload, schedule, tolerance, sizes);
  };
  return machine;
}

}  // namespace
}  // namespace hone::fuzz

int main(int argc, char** argv) { return hone::fuzz::Fuzz(argc, argv, hone::fuzz::Open); }
