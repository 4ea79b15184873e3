#include "deploy/package/pack_constants.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "compiler/codegen/codegen.h"

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

// Kernels may rely on the alignment of their buffers, which the importer's vectors do not have.
absl::StatusOr<const void*> Aligned(std::span<const uint8_t> bytes, std::vector<runtime::Mapping>& copies) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % HONE_BUFFER_ALIGNMENT == 0) return bytes.data();
  HONE_ASSIGN_OR_RETURN(runtime::Mapping copy, Pages(bytes.size(), "a constant"));
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  copies.push_back(std::move(copy));
  return copies.back().data();
}

}  // namespace

absl::StatusOr<ConstantPacker> ConstantPacker::Create(std::span<const CompiledKernel> kernels, int threads) {
  ConstantPacker packer(kernels);
  std::vector<size_t> preparing;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!kernels[i].kernel.prepare_symbol.empty()) preparing.push_back(i);
  }
  if (preparing.empty()) return packer;
  HONE_ASSIGN_OR_RETURN(const codegen::Target host, codegen::ParseTarget("cpu"));
  std::vector<std::string> objects(preparing.size());
  HONE_RETURN_IF_ERROR(RunParallel(preparing.size(), threads, [&](size_t i) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(objects[i], codegen::Emit({&kernels[preparing[i]].kernel.prepare, 1}, host));
    return absl::OkStatus();
  }));
  HONE_ASSIGN_OR_RETURN(const std::string shared, codegen::LinkShared(objects));
  HONE_RETURN_IF_ERROR(ToStatus(
      runtime::CodeObject::Load({reinterpret_cast<const uint8_t*>(shared.data()), shared.size()}, &packer.code_)));
  return packer;
}

absl::StatusOr<std::vector<runtime::Mapping>> ConstantPacker::Pack(
    size_t kernel, std::span<const std::span<const uint8_t>> params) const {
  const codegen::Kernel& k = kernels_[kernel].kernel;
  if (k.prepare_symbol.empty()) return std::vector<runtime::Mapping>();
  auto* const prepare = reinterpret_cast<HoneKernel>(code_.Find(k.prepare_symbol.c_str()));
  if (prepare == nullptr) return absl::InternalError(fmt::format("no function {} after linking", k.prepare_symbol));
  std::vector<runtime::Mapping> copies, packed;
  std::vector<void*> buffers;
  for (const std::span<const uint8_t> param : params) {
    HONE_ASSIGN_OR_RETURN(const void* bytes, Aligned(param, copies));
    buffers.push_back(const_cast<void*>(bytes));
  }
  for (const int64_t bytes : k.packed_bytes) {
    HONE_ASSIGN_OR_RETURN(runtime::Mapping pages, Pages(static_cast<uint64_t>(bytes), "a packed constant"));
    buffers.push_back(pages.data());
    packed.push_back(std::move(pages));
  }
  HONE_ASSIGN_OR_RETURN(const runtime::Mapping workspace,
                        Pages(static_cast<uint64_t>(k.prepare_workspace_bytes), "a workspace"));
  ThreadPool serial(1);
  prepare(buffers.data(), workspace.data(), serial.parallel());
  return packed;
}

}  // namespace hone::package
