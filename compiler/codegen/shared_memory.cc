// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/shared_memory.h"

#include "base/kernel_abi.h"
#include "compiler/ir/match.h"

namespace hone::codegen {
namespace {

void Place(const ir::Stmt& s, ir::Scope scope, SharedMemory& shared) {
  const ir::Alloc* alloc = s.As<ir::Alloc>();
  if (alloc != nullptr && alloc->buffer->scope == scope &&
      shared.places.try_emplace(alloc->buffer.get(), shared.requested_bytes).second) {
    shared.requested_bytes += ir::PaddedSharedBytes(ir::NumBytes(*alloc->buffer));
  }
  ir::ForEachChild(s, [&](const ir::Stmt& child) { Place(child, scope, shared); }, [](const ir::Expr&) {});
}

}  // namespace

int64_t SharedAlignment(const ir::BufferNode& buffer) {
  return buffer.scope == ir::Scope::kSwizzled ? ir::kSwizzledRowBytes * ir::kSwizzledRows : HONE_BUFFER_ALIGNMENT;
}

SharedMemory PlaceShared(const ir::Func& func, const target::Memory& memory) {
  SharedMemory shared;
  // Swizzled buffers first: their beginnings and sizes are multiples of a larger alignment.
  for (const ir::Scope scope : {ir::Scope::kSwizzled, ir::Scope::kShared}) Place(func.body, scope, shared);
  if (ir::HasBulkCopies(func.body)) {
    shared.mbarriers_offset = shared.requested_bytes;
    shared.requested_bytes += ir::kMbarriersBytes;
  }
  return shared.requested_bytes > memory.default_shared_bytes ? shared : SharedMemory{};
}

}  // namespace hone::codegen
