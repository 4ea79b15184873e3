// SPDX-License-Identifier: Apache-2.0
// The memory that the lanes of a group share, as LLVM values: one place per buffer of the func.
//
// Where each buffer lies is decided by PlaceShared (compiler/codegen/shared_memory.h). Part of a PtxEmitter.
#ifndef HONE_COMPILER_CODEGEN_LLVM_SHARED_BUFFERS_H_
#define HONE_COMPILER_CODEGEN_LLVM_SHARED_BUFFERS_H_

#include <llvm/IR/GlobalVariable.h>

#include <cstdint>
#include <map>

#include "compiler/codegen/llvm/expr_emitter.h"
#include "compiler/codegen/shared_memory.h"

namespace hone::codegen {

class SharedBuffers {
 public:
  // emitter: must outlive this.
  SharedBuffers(ExprEmitter& emitter, const ir::Func& func, const target::Memory& memory)
      : emitter_(emitter), layout_(PlaceShared(func, memory)) {}

  // The memory of a buffer: the same one in every iteration of an unrolled loop.
  llvm::Value* Place(const ir::BufferNode& buffer);
  // The memory of the mbarriers of bulk copies, as `words` 64-bit words.
  llvm::Value* PlaceMbarriers(int64_t words);
  // The address of an element of a swizzled buffer, whose rows lie at `place`.
  llvm::Value* SwizzledAddress(llvm::Value* place, const ir::BufferNode& buffer, const ir::Expr& index);

 private:
  llvm::Value* Place(llvm::Type* type, int64_t alignment, int64_t offset);

  ExprEmitter& emitter_;
  const SharedMemory layout_;
  std::map<const ir::BufferNode*, llvm::Value*> placed_;
  llvm::GlobalVariable* requested_ = nullptr;  // what the launch asks for; null: nothing was placed in it
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_SHARED_BUFFERS_H_
