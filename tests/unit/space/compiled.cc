// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/space/compiled.h"

#include <dlfcn.h>

#include "base/memory_file.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/codegen/kernel.h"

namespace hone::tests {
namespace {

absl::StatusOr<void*> LoadShared(const std::string& bytes) {
  HONE_ASSIGN_OR_RETURN(const MemoryFile file, MemoryFile::Holding("kernel", bytes));
  void* handle = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::InternalError(dlerror());
  return handle;
}

}  // namespace

absl::Status CheckCompiled(const ir::Workload& workload, const schedule::Schedule& schedule,
                           const target::Target& target, Tolerance tolerance, int threads, codegen::Effort effort) {
  HONE_ASSIGN_OR_RETURN(Problem problem, MakeProblem(workload));
  HONE_ASSIGN_OR_RETURN(const codegen::Kernel kernel,
                        codegen::CompileKernel(workload, schedule, target, "kernel", {.effort = effort}));
  HONE_ASSIGN_OR_RETURN(const codegen::Artifact linked, codegen::Link(std::vector<std::string>{kernel.code}, target));
  HONE_ASSIGN_OR_RETURN(void* handle, LoadShared(linked.code));
  const KernelInterface& interface = kernel.interface;
  std::vector<int64_t> packed_bytes;
  for (const uint32_t i : interface.Of(BufferRole::kPacked)) packed_bytes.push_back(interface.buffers[i].bytes());
  std::vector<Guarded> packed = Allocate(packed_bytes), outputs = Allocate(BytesOf(workload.outputs));
  std::vector<Guarded> workspaces = Allocate({interface.workspace_bytes, interface.prepare_workspace_bytes});
  std::vector<void*> arguments;
  for (Guarded& g : problem.params) arguments.push_back(g.data());
  for (Guarded& g : packed) arguments.push_back(g.data());
  ThreadPool pool(threads);
  for (const KernelLaunch& launch : interface.prepare) {
    reinterpret_cast<HoneKernel>(dlsym(handle, launch.function.c_str()))(arguments.data(), workspaces[1].data(),
                                                                         pool.parallel());
  }
  for (Guarded& g : outputs) arguments.push_back(g.data());
  for (const KernelLaunch& launch : interface.main) {
    reinterpret_cast<HoneKernel>(dlsym(handle, launch.function.c_str()))(arguments.data(), workspaces[0].data(),
                                                                         pool.parallel());
  }
  absl::Status status = CompareAll(workload, problem, packed, outputs, tolerance);
  if (status.ok() && (!workspaces[0].Intact() || !workspaces[1].Intact()))
    status = absl::DataLossError("wrote outside of the workspace");
  dlclose(handle);
  return status;
}

}  // namespace hone::tests
