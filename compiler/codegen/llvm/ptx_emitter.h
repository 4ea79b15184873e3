// SPDX-License-Identifier: Apache-2.0
// A func with a grid as a kernel of an NVIDIA GPU, in LLVM IR for NVPTX.
//
// Params are pointers to global memory. Lanes wait for each other, and share buffers (shared_buffers.h). Indices are
// computed in 32 bits where they fit, because the device adds and multiplies those in half the time. What runs
// asynchronously has a class each: bulk copies (bulk_copies.h), and tensor instructions that read shared
// memory themselves (wgmma.h). Private to codegen/llvm.
#ifndef HONE_COMPILER_CODEGEN_LLVM_PTX_EMITTER_H_
#define HONE_COMPILER_CODEGEN_LLVM_PTX_EMITTER_H_

#include <array>
#include <string>

#include "compiler/codegen/llvm/bulk_copies.h"
#include "compiler/codegen/llvm/func_emitter.h"
#include "compiler/codegen/llvm/shared_buffers.h"
#include "compiler/codegen/llvm/wgmma.h"
#include "compiler/target/target.h"

namespace hone::codegen {

class PtxEmitter : public FuncEmitter {
 public:
  // All must outlive the emitter.
  PtxEmitter(llvm::Module* module, const ir::Func& func, const EmitOptions& options, const target::Target& target);
  void Run() override;
  void EmitStmt(const ir::Stmt& s) override;

  // Inline assembly that all lanes reach together. Operands are integers, and floats that it changes, which come first.
  // The result is a struct of the changed floats; without any it is an i32, or nothing (null).
  llvm::Value* EmitAssembly(const std::string& text, const Values& operands, llvm::Type* result = nullptr);
  // What lanes of the group wrote before is seen by all of them after it, and by instructions and copies that access
  // shared memory themselves. Groups that share copies wait for each other, too. It is SyncGroupAndArrive and
  // WaitForSharingGroups.
  void EmitBarrier() override;
  // A barrier within the group, which also tells the other groups that this one has come. They need not see what this
  // group wrote: only copies write to them, after all groups have read.
  void SyncGroupAndArrive();
  // Waits until all groups that share copies have come to SyncGroupAndArrive.
  void WaitForSharingGroups();
  llvm::Value* IsFirstLane();
  // e with the variables of unrolled loops as the constants that they are.
  ir::Expr WithUnrolled(const ir::Expr& e) const;
  SharedBuffers& shared_buffers() { return shared_; }
  const ir::VarMap& lets() const { return lets_; }
  llvm::Value* Address(const ir::Buffer& buffer, const ir::Expr& index, llvm::Type* element,
                       bool may_be_outside = false) override;

 protected:
  // ptx_emitter.cc
  void EmitBlock(const ir::Block& block) override;
  void EmitLet(const ir::Let& let) override;
  bool EmitLoopByPattern(const ir::For& loop) override;
  llvm::Value* AllocateBuffer(const ir::BufferNode& buffer) override;
  void EmitMmaWait(const ir::MmaWait& wait) override;

  // ptx_memory.cc
  llvm::Value* EmitIndexBinary(const ir::Expr& e, const ir::Binary& binary) override;
  llvm::Align AlignOf(const ir::BufferNode& buffer, const ir::Expr& first) const override;
  llvm::Value* EmitContiguousLoad(const ir::Load& load, llvm::Value* address, llvm::FixedVectorType* vector,
                                  llvm::Value* mask) override;
  void EmitCopy(const ir::Copy& copy) override;
  void EmitCommit() override;
  void EmitWait(const ir::Wait& wait) override;

  // ptx_lanes.cc
  void EmitLaneReduce(const ir::LaneReduce& reduce) override;
  void EmitMma(const ir::Mma& mma) override;

 private:
  void EmitParams();
  void WaitForPrecedingLaunch();
  llvm::Value* EmitReduceLaneMask(int64_t parts);
  llvm::Value* EmitShuffle(llvm::Value* value, int64_t distance, llvm::Value* members);
  std::array<llvm::Value*, 2> EmitQuarterRow(const ir::MatrixOperand& operand, llvm::Value* offset,
                                             const ir::TensorInstructionEntry& entry);

  const bool overlaps_;           // the launch may begin before the one before it has ended
  const bool has_async_copies_;   // the target copies to shared memory without the lane
  const int64_t sharing_groups_;  // consecutive groups that share copies; 1: none do
  const bool lanes_use_shared_copies_;
  ir::VarMap lets_;  // the values of names that are visible
  SharedBuffers shared_;
  BulkCopies bulk_copies_;
  Wgmma wgmma_;
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_PTX_EMITTER_H_
