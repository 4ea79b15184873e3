// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/kernel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/shared_memory.h"
#include "compiler/execution/model.h"
#include "compiler/ir/match.h"
#include "compiler/ir/size_numbers.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"

namespace hone::codegen {
namespace {

KernelBuffer Describe(const ir::BufferNode& buffer, BufferRole role) {
  return {role, ir::ToString(ir::Type{buffer.dtype}), ir::MaxValues(buffer.shape)};
}

bool Reads(const std::vector<ir::Func>& funcs, const ir::Buffer& buffer) {
  bool reads = false;
  for (const ir::Func& func : funcs) {
    ir::ForEachExpr(func.body, [&](const ir::Expr& e) {
      const ir::Load* load = e.As<ir::Load>();
      reads |= load != nullptr && load->buffer == buffer;
    });
  }
  return reads;
}

// The bytes of all shared buffers; no two share a place.
int64_t SharedBytes(const ir::Stmt& body) {
  std::set<const ir::BufferNode*> counted;
  int64_t bytes = 0;
  ir::AnyStmt(body, [&](const ir::Stmt& s) {
    const ir::Alloc* alloc = s.As<ir::Alloc>();
    const bool shared = alloc != nullptr && ir::IsShared(alloc->buffer->scope);
    if (shared && counted.insert(alloc->buffer.get()).second) bytes += ir::NumBytes(*alloc->buffer);
    return false;
  });
  return bytes;
}

class InterfaceBuilder {
 public:
  InterfaceBuilder(const ir::Workload& workload, const passes::Module& module, const target::Memory& memory,
                   const std::string& name)
      : workload_(workload), module_(module), memory_(memory), sizes_(workload.sizes) {
    result_.name = name;
  }

  KernelInterface Run() {
    for (const ir::Param& param : workload_.params) {
      Add(param.buffer, param.kind == ir::ParamKind::kInput ? BufferRole::kInput : BufferRole::kConstant);
      result_.buffers.back().used = Reads(module_.main, param.buffer);
    }
    for (const ir::Buffer& packed : module_.packed) Add(packed, BufferRole::kPacked);
    for (const ir::Buffer& output : workload_.outputs) Add(output, BufferRole::kOutput);
    if (module_.sizes != nullptr) Add(module_.sizes, BufferRole::kSizes);
    result_.workspace_bytes = AddWorkspace(module_.workspace, module_.main);
    result_.prepare_workspace_bytes = AddWorkspace(module_.prepare_workspace, module_.prepare);
    result_.main = Launches(module_.main);
    result_.prepare = Launches(module_.prepare);
    result_.size_steps = sizes_.steps();
    return std::move(result_);
  }

 private:
  void Add(const ir::Buffer& buffer, BufferRole role) {
    places_[buffer.get()] = static_cast<uint32_t>(result_.buffers.size());
    result_.buffers.push_back(Describe(*buffer, role));
  }

  // Adds a buffer for each tensor that one launch leaves to a later one, behind the workspace that a func without a
  // grid slices itself. Returns the bytes of all.
  int64_t AddWorkspace(const std::vector<ir::Buffer>& slices, const std::vector<ir::Func>& funcs) {
    int64_t bytes = 0;
    for (const ir::Func& func : funcs) bytes = std::max(bytes, passes::WorkspaceBytes(func));
    for (const ir::Buffer& slice : slices) {
      Add(slice, BufferRole::kWorkspace);
      result_.buffers.back().offset = bytes;
      bytes += (ir::NumBytes(*slice) + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
    }
    return bytes;
  }

  std::vector<KernelLaunch> Launches(const std::vector<ir::Func>& funcs) {
    std::vector<KernelLaunch> launches;
    for (const ir::Func& func : funcs) {
      KernelLaunch launch{func.name, func.grid.groups, func.grid.lanes, {}};
      if (func.grid.defined()) {
        for (const ir::Buffer& param : func.params) launch.arguments.push_back(places_.at(param.get()));
        launch.shared_bytes = PlaceShared(func, memory_).requested_bytes;
        if (func.grid.open_groups.defined()) launch.groups_value = sizes_.Of(func.grid.open_groups);
      }
      launches.push_back(std::move(launch));
    }
    return launches;
  }

  const ir::Workload& workload_;
  const passes::Module& module_;
  const target::Memory& memory_;
  KernelInterface result_;
  ir::SizeNumbers sizes_;
  std::map<const ir::BufferNode*, uint32_t> places_;
};

}  // namespace

absl::StatusOr<Kernel> CompileKernel(const ir::Workload& workload, const schedule::Schedule& schedule,
                                     const target::Target& target, const std::string& name,
                                     const CompileOptions& options) {
  HONE_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(workload, schedule));
  HONE_ASSIGN_OR_RETURN(const passes::Module module, execution::Lower(state, target, name, options.passes));
  Kernel kernel;
  kernel.interface = InterfaceBuilder(workload, module, target.memory, name).Run();
  kernel.prepare = module.host_prepare;
  std::vector<ir::Func> funcs = module.main;
  if (options.prepares) funcs.insert(funcs.end(), module.prepare.begin(), module.prepare.end());
  for (const ir::Func& func : funcs) {
    if (!func.grid.defined()) continue;
    kernel.shared_bytes =
        std::max({kernel.shared_bytes, SharedBytes(func.body), PlaceShared(func, target.memory).requested_bytes});
  }
  HONE_ASSIGN_OR_RETURN(kernel.code, Emit(funcs, target, options.effort));
  return kernel;
}

}  // namespace hone::codegen
