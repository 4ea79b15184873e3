// SPDX-License-Identifier: Apache-2.0
#include "deploy/package/pack_constants.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel_abi.h"
#include "base/run_parallel.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/codegen/codegen.h"
#include "compiler/ir/interpret.h"
#include "compiler/passes/pipeline.h"

namespace hone::package {
namespace {

absl::Status ToStatus(const runtime::Fault& fault) {
  return fault.ok() ? absl::OkStatus() : absl::InternalError("cannot pack the constants: " + fault.text);
}

absl::StatusOr<runtime::Mapping> Pages(uint64_t bytes, const std::string& purpose) {
  runtime::Mapping pages;
  HONE_RETURN_IF_ERROR(ToStatus(runtime::Mapping::Pages(bytes, purpose, &pages)));
  return pages;
}

// Returns the bytes at an address with the alignment that kernels require. The vectors of the importer may lack it;
// then a copy is added to `copies`, which owns it.
absl::StatusOr<const void*> Aligned(std::span<const uint8_t> bytes, std::vector<runtime::Mapping>& copies) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % HONE_BUFFER_ALIGNMENT == 0) return bytes.data();
  HONE_ASSIGN_OR_RETURN(runtime::Mapping copy, Pages(bytes.size(), "a constant"));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  copies.push_back(std::move(copy));
  return copies.back().data();
}

// Runs the func in the interpreter, which is slow and works on any machine. A null buffer is a param that the func does
// not read; the interpreter still needs memory for it.
absl::Status Interpret(const ir::Func& func, const std::vector<void*>& buffers) {
  std::vector<runtime::Mapping> unread;
  std::vector<std::span<std::byte>> args;
  for (size_t i = 0; i < func.params.size(); ++i) {
    const auto bytes = static_cast<size_t>(ir::NumBytes(*func.params[i]));
    void* memory = buffers[i];
    if (memory == nullptr) {
      HONE_ASSIGN_OR_RETURN(unread.emplace_back(), Pages(bytes, "a buffer that is not read"));
      memory = unread.back().data();
    }
    args.emplace_back(static_cast<std::byte*>(memory), bytes);
  }
  return ir::Interpret(func, args);
}

}  // namespace

absl::StatusOr<ConstantPacker> ConstantPacker::Create(std::span<const CompiledKernel> kernels, int threads,
                                                      const absl::StatusOr<target::Target>& host) {
  ConstantPacker packer(kernels);
  std::map<std::string, const ir::Func*> distinct;  // by name; equal names mean equal functions
  for (const CompiledKernel& kernel : kernels) {
    const ir::Func& prepare = kernel.kernel.prepare;
    if (prepare.body.defined()) distinct[prepare.name] = &prepare;
  }
  packer.interprets_ = !host.ok();
  if (distinct.empty() || packer.interprets_) return packer;
  std::vector<const ir::Func*> preparing;
  for (const auto& [name, prepare] : distinct) preparing.push_back(prepare);
  std::vector<std::string> objects(preparing.size());
  HONE_RETURN_IF_ERROR(RunParallel(preparing.size(), threads, [&](size_t i) -> absl::Status {
    const codegen::CompilationSubject subject(preparing[i]->name);
    // kReference fuses no multiply-adds: they round differently, and a package must be equal on every machine.
    HONE_ASSIGN_OR_RETURN(objects[i], codegen::Emit({preparing[i], 1}, *host, codegen::Effort::kReference));
    return absl::OkStatus();
  }));
  HONE_ASSIGN_OR_RETURN(const codegen::Artifact linked, codegen::Link(objects, *host));
  HONE_RETURN_IF_ERROR(ToStatus(runtime::CodeObject::Load(
      {reinterpret_cast<const uint8_t*>(linked.code.data()), linked.code.size()}, &packer.code_)));
  return packer;
}

absl::StatusOr<std::vector<runtime::Mapping>> ConstantPacker::Pack(
    size_t kernel, std::span<const std::span<const uint8_t>> params) const {
  const KernelInterface& interface = kernels_[kernel].kernel.interface;
  if (interface.prepare.empty()) return std::vector<runtime::Mapping>();
  // `func` is lowered for a CPU. The prepare launches of `interface` are for the target and are not used.
  const ir::Func& func = kernels_[kernel].kernel.prepare;
  std::vector<runtime::Mapping> copies, packed;
  std::vector<void*> buffers;
  for (const std::span<const uint8_t> param : params) {
    HONE_ASSIGN_OR_RETURN(const void* bytes, Aligned(param, copies));
    buffers.push_back(const_cast<void*>(bytes));
  }
  for (const uint32_t i : interface.Of(BufferRole::kPacked)) {
    const auto bytes = static_cast<uint64_t>(interface.buffers[i].bytes());
    HONE_ASSIGN_OR_RETURN(runtime::Mapping pages, Pages(bytes, "a packed constant"));
    buffers.push_back(pages.data());
    packed.push_back(std::move(pages));
  }
  HONE_RETURN_IF_ERROR(interprets_ ? Interpret(func, buffers) : Run(func, buffers));
  return packed;
}

absl::Status ConstantPacker::Run(const ir::Func& func, const std::vector<void*>& buffers) const {
  auto* const prepare = reinterpret_cast<HoneKernel>(code_.Find(func.name.c_str()));
  if (prepare == nullptr) return absl::InternalError(fmt::format("no function {} after linking", func.name));
  HONE_ASSIGN_OR_RETURN(const runtime::Mapping workspace,
                        Pages(static_cast<uint64_t>(passes::WorkspaceBytes(func)), "a workspace"));
  ThreadPool serial(1);
  prepare(buffers.data(), workspace.data(), serial.parallel());
  return absl::OkStatus();
}

}  // namespace hone::package
