// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/space/compiled.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/memory_file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/codegen/kernel.h"
#include "compiler/target/host.h"

namespace hone::tests {
namespace {

absl::StatusOr<void*> LoadShared(const std::string& bytes) {
  HONE_ASSIGN_OR_RETURN(const MemoryFile file, MemoryFile::Holding("kernel", bytes));
  void* handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::InternalError(dlerror());
  return handle;
}

absl::Status RunCompiled(const ir::Workload& workload, const KernelInterface& interface, void* library,
                         ThreadPool& pool, const SizeMap& sizes, Tolerance tolerance) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload, sizes));
  std::vector<int64_t> packed_bytes;
  for (const uint32_t i : interface.Of(BufferRole::kPacked)) packed_bytes.push_back(interface.buffers[i].bytes());
  std::vector<Guarded> packed = Allocate(packed_bytes);
  std::vector<Guarded> workspaces = Allocate({interface.workspace_bytes, interface.prepare_workspace_bytes});
  std::vector<void*> arguments;
  for (Guarded& g : problem.params) arguments.push_back(g.data());
  for (Guarded& g : packed) arguments.push_back(g.data());
  const auto run = [&](const std::vector<KernelLaunch>& launches, Guarded& workspace) {
    for (const KernelLaunch& launch : launches) {
      const auto kernel = reinterpret_cast<HoneKernel>(dlsym(library, launch.function.c_str()));
      kernel(arguments.data(), workspace.data(), pool.parallel());
    }
  };
  run(interface.prepare, workspaces[1]);
  for (Guarded& g : problem.outputs) arguments.push_back(g.data());
  std::vector<int64_t> values = InOrder(workload, sizes);
  if (!values.empty()) arguments.push_back(values.data());
  run(interface.main, workspaces[0]);
  HONE_RETURN_IF_ERROR(CompareAll(problem, packed, tolerance));
  const bool intact = workspaces[0].Intact() && workspaces[1].Intact();
  return intact ? absl::OkStatus() : absl::DataLossError("wrote outside of the workspace");
}

// Whether this machine has the features that code for the target requires.
bool RunsHere(const target::Target& target) {
  return std::ranges::includes(codegen::RequiredFeatures(target::HostCpu()), codegen::RequiredFeatures(target));
}

}  // namespace

absl::Status CheckCompiled(const ir::Workload& workload, const schedule::Schedule& schedule,
                           const target::Target& target, Tolerance tolerance, int threads, codegen::Effort effort,
                           const std::vector<SizeMap>& sizes) {
  HONE_ASSIGN_OR_RETURN(const codegen::Kernel kernel,
                        codegen::CompileKernel(workload, schedule, target, "kernel", {.effort = effort}));
  HONE_ASSIGN_OR_RETURN(const codegen::Artifact linked, codegen::Link(std::vector<std::string>{kernel.code}, target));
  if (!RunsHere(target)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(void* const library, LoadShared(linked.code));
  ThreadPool pool(threads);
  absl::Status status;
  for (size_t i = 0; status.ok() && i < sizes.size(); ++i) {
    status = AtSizes(RunCompiled(workload, kernel.interface, library, pool, sizes[i], tolerance), sizes[i]);
  }
  dlclose(library);
  return status;
}

}  // namespace hone::tests
