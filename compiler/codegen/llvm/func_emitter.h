// SPDX-License-Identifier: Apache-2.0
// Turns the statements of one lowered func into an LLVM function: what CPUs and GPUs have in common.
//
// CpuEmitter and PtxEmitter derive from it: they write the beginning of the function (Run), and override the statements
// that their machines execute in another way. Start at EmitStmt. Expressions: expr_emitter.h. Private to codegen/llvm.
#ifndef HONE_COMPILER_CODEGEN_LLVM_FUNC_EMITTER_H_
#define HONE_COMPILER_CODEGEN_LLVM_FUNC_EMITTER_H_

#include <functional>
#include <string>

#include "compiler/codegen/llvm/expr_emitter.h"

namespace hone::codegen {

class FuncEmitter : public ExprEmitter {
 public:
  // Emits the whole func into the module. Called once.
  virtual void Run() = 0;
  virtual void EmitStmt(const ir::Stmt& s);
  // Runs `body` once for each iteration of the loop, in which the loop's variable is a constant. The loop's extent must
  // be constant.
  void ForEachIteration(const ir::For& loop, const std::function<void()>& body);

 protected:
  using ExprEmitter::ExprEmitter;

  // What machines differ in.

  virtual void EmitBlock(const ir::Block& block);
  virtual void EmitLet(const ir::Let& let);
  // Emits a serial loop in a better form, if it has one on this machine. False: nothing was emitted.
  virtual bool EmitLoopByPattern(const ir::For& /*loop*/) { return false; }
  // A loop whose iterations threads share. The default fails: lowering for a machine without threads leaves none.
  virtual void EmitParallel(const ir::For& loop);
  // The address of memory for the buffer of an Alloc. The default: the stack.
  virtual llvm::Value* AllocateBuffer(const ir::BufferNode& buffer);
  virtual void EmitMma(const ir::Mma& mma) = 0;  // a tensor instruction
  // The defaults are right for a machine that runs a func in one thread, and whose copies are loads and stores.
  virtual void EmitCopy(const ir::Copy& copy);
  virtual void EmitCommit() {}
  virtual void EmitWait(const ir::Wait& /*wait*/) {}
  virtual void EmitLaneReduce(const ir::LaneReduce& reduce);
  virtual void EmitPrefetch(const ir::Prefetch& /*prefetch*/) {}
  // Lanes that wait for each other, and instructions that run asynchronously: a func for a machine without them has
  // none.
  virtual void EmitBarrier();
  virtual void EmitMmaWait(const ir::MmaWait& wait);

  llvm::Function* MakeFunction(const std::string& name, llvm::FunctionType* type, bool is_internal);
  void EmitStore(const ir::Store& store);

 private:
  void EmitLoop(const ir::For& loop);
  void EmitIf(const ir::If& branch);
  void EmitAlloc(const ir::Alloc& alloc);
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_FUNC_EMITTER_H_
