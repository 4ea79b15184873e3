#include "compiler/codegen/shared_memory.h"

#include "base/kernel_abi.h"
#include "compiler/ir/match.h"

namespace hone::codegen {
namespace {

void Place(const ir::Stmt& s, SharedMemory& shared) {
  const ir::Alloc* alloc = s.As<ir::Alloc>();
  if (alloc != nullptr && alloc->buffer->scope == ir::Scope::kShared &&
      shared.places.try_emplace(alloc->buffer.get(), shared.asked_bytes).second) {
    shared.asked_bytes +=
        (ir::NumBytes(*alloc->buffer) + HONE_BUFFER_ALIGNMENT - 1) / HONE_BUFFER_ALIGNMENT * HONE_BUFFER_ALIGNMENT;
  }
  ir::ForEachChild(s, [&](const ir::Stmt& child) { Place(child, shared); }, [](const ir::Expr&) {});
}

}  // namespace

SharedMemory PlaceShared(const ir::Func& func, const target::Memory& memory) {
  SharedMemory shared;
  Place(func.body, shared);
  return shared.asked_bytes > memory.unasked_shared_bytes ? shared : SharedMemory{};
}

}  // namespace hone::codegen
