// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/shared_buffers.h"

#include <algorithm>
#include <bit>
#include <string>

#include "compiler/codegen/llvm/nvptx.h"
#include "compiler/ir/multiple.h"

namespace hone::codegen {

llvm::Value* SharedBuffers::Place(const ir::BufferNode& buffer) {
  const auto [known, is_new] = placed_.try_emplace(&buffer);
  if (!is_new) return known->second;
  const auto place = layout_.places.find(&buffer);
  return known->second = Place(llvm::ArrayType::get(emitter_.MemoryTypeOf(buffer.dtype), ir::NumElements(buffer)),
                               SharedAlignment(buffer), place == layout_.places.end() ? 0 : place->second);
}

llvm::Value* SharedBuffers::PlaceMbarriers(int64_t words) {
  llvm::Type* const word = emitter_.builder().getInt64Ty();
  return Place(llvm::ArrayType::get(word, static_cast<uint64_t>(words)), sizeof(uint64_t), layout_.mbarriers_offset);
}

// Memory of that type: at `offset` of what the launch asks for, or a variable of its own.
llvm::Value* SharedBuffers::Place(llvm::Type* type, int64_t alignment, int64_t offset) {
  const bool is_requested = layout_.requested_bytes > 0;
  const llvm::Align align(static_cast<uint64_t>(alignment));
  const std::string name = emitter_.func().name + "_shared";
  const auto make = [&](llvm::Type* of, llvm::GlobalValue::LinkageTypes linkage, llvm::Constant* value) {
    return new llvm::GlobalVariable(emitter_.module(), of, false, linkage, value, name, nullptr,
                                    llvm::GlobalValue::NotThreadLocal, kShared);
  };
  if (!is_requested) {
    auto* const shared = make(type, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type));
    shared->setAlignment(align);
    return shared;
  }
  llvm::Type* const byte = emitter_.builder().getInt8Ty();
  if (requested_ == nullptr) {
    requested_ = make(llvm::ArrayType::get(byte, 0), llvm::GlobalValue::ExternalLinkage, nullptr);
  }
  requested_->setAlignment(std::max(requested_->getAlign().valueOrOne(), align));
  return emitter_.builder().CreateConstInBoundsGEP1_64(byte, requested_, static_cast<uint64_t>(offset));
}

// The bits of an element's place that count rows, below eight, exchange the bits that count chunks. Multiples of eight
// rows change neither, so they are added to the address first: they are mostly the lane's, and stay the same while
// loops run.
llvm::Value* SharedBuffers::SwizzledAddress(llvm::Value* place, const ir::BufferNode& buffer, const ir::Expr& index) {
  llvm::IRBuilder<>& builder = emitter_.builder();
  const int64_t size = ir::SizeOf(buffer.dtype), eight = ir::kSwizzledRows * ir::kSwizzledRowBytes / size;
  ir::Linear near, far;
  const ir::Linear whole = ir::ToLinear(index, emitter_.ranges());
  for (const auto& [atom, factor] : whole.terms) {
    (ir::IsMultipleOf(atom * ir::Expr(factor), eight) ? far : near).Add(atom, factor);
  }
  near.constant = (whole.constant % eight + eight) % eight;
  far.constant = whole.constant - near.constant;
  const ir::Expr eights = ir::FromLinear(far), rest = ir::FromLinear(near);
  llvm::Value* const begin = builder.CreateGEP(emitter_.MemoryTypeOf(buffer.dtype), place, emitter_.EmitExpr(eights));
  const auto number = [&](int64_t n) { return builder.getInt32(static_cast<uint32_t>(n)); };
  llvm::Value* const bytes =
      builder.CreateMul(builder.CreateTrunc(emitter_.EmitExpr(rest), builder.getInt32Ty()), number(size));
  llvm::Value* const rows = builder.CreateLShr(bytes, std::countr_zero<uint64_t>(ir::kSwizzledRows));
  llvm::Value* const chunks = builder.CreateAnd(rows, number(ir::kSwizzledRowBytes - ir::kSwizzledChunkBytes));
  return builder.CreateGEP(builder.getInt8Ty(), begin,
                           builder.CreateSExt(builder.CreateXor(bytes, chunks), builder.getInt64Ty()));
}

}  // namespace hone::codegen
