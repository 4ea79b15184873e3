// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/shared_memory.h"

#include "base/kernel_abi.h"
#include "compiler/ir/match.h"

namespace hone::codegen {
namespace {

void Place(const ir::Stmt& s, ir::Scope scope, SharedMemory& shared) {
  const ir::Alloc* alloc = s.As<ir::Alloc>();
  if (alloc != nullptr && alloc->buffer->scope == scope &&
      shared.places.try_emplace(alloc->buffer.get(), shared.asked_bytes).second) {
    shared.asked_bytes += ir::SharedRoom(ir::NumBytes(*alloc->buffer));
  }
  ir::ForEachChild(s, [&](const ir::Stmt& child) { Place(child, scope, shared); }, [](const ir::Expr&) {});
}

}  // namespace

int64_t SharedAlignment(const ir::BufferNode& buffer) {
  return buffer.scope == ir::Scope::kSwizzled ? ir::kSwizzledRow * ir::kSwizzledRows : HONE_BUFFER_ALIGNMENT;
}

SharedMemory PlaceShared(const ir::Func& func, const target::Memory& memory) {
  SharedMemory shared;
  // Swizzled buffers first: their beginnings and sizes are multiples of a larger alignment.
  for (const ir::Scope scope : {ir::Scope::kSwizzled, ir::Scope::kShared}) Place(func.body, scope, shared);
  if (ir::HasGroupCopies(func.body)) {
    shared.copy_counters = shared.asked_bytes;
    shared.asked_bytes += ir::kBundlesBytes;
  }
  return shared.asked_bytes > memory.unasked_shared_bytes ? shared : SharedMemory{};
}

}  // namespace hone::codegen
