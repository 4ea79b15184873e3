// SPDX-License-Identifier: Apache-2.0
// Bulk copies (compiler/ir/copy.h) in the assembly of sm_90.
//
// Barrier objects in shared memory (mbarriers) count the bytes that have arrived. Each commit group has one of them in
// turn: group n has mbarrier n % kCommitGroupsMax, and of that the phase n / kCommitGroupsMax. The lowest bit of the
// phase tells it from the phase before. All lanes count alike how many groups were committed and how many are known to
// have arrived. "PTX ISA", 9.7.13.15. Part of a PtxEmitter.
#ifndef HONE_COMPILER_CODEGEN_LLVM_BULK_COPIES_H_
#define HONE_COMPILER_CODEGEN_LLVM_BULK_COPIES_H_

#include <cstdint>

#include "compiler/codegen/llvm/expr_emitter.h"

namespace hone::codegen {

class PtxEmitter;

class BulkCopies {
 public:
  // emitter: must outlive this.
  BulkCopies(PtxEmitter& emitter, const ir::Func& func);
  bool has_copies() const { return has_copies_; }  // whether the func has any; if not, only this may be called
  // Initializes the mbarriers. Called once, before any copy.
  void Begin();
  // Announces the bytes of all groups that share the copy, and begins this group's part of it. Emits no branch: the
  // statements around the copy let only the first lane reach it.
  void EmitCopy(const ir::Copy& copy);
  void EmitCommit();
  // Waits until at most `pending` of the commit groups have not arrived.
  void EmitWait(int64_t pending);

 private:
  llvm::Value* MbarrierOf(llvm::Value* number);

  PtxEmitter& emitter_;
  llvm::IRBuilder<>& builder_;
  const bool has_copies_;
  llvm::Value *committed_ = nullptr, *arrived_ = nullptr;  // addresses of the lane's counts of commit groups, i32
  llvm::Value* mbarriers_ = nullptr;                       // address of the first mbarrier in shared memory, i32
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_BULK_COPIES_H_
