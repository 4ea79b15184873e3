// SPDX-License-Identifier: Apache-2.0
// A func without a grid as a function of a CPU: a HoneKernel (base/kernel_abi.h).
//
// Parallel loops become calls of the caller's thread pool, and functions that no short formula has are those of the C
// library. Masks, strides and transpositions are vector code where the CPU has instructions for it. Private to
// codegen/llvm.
#ifndef HONE_COMPILER_CODEGEN_LLVM_CPU_EMITTER_H_
#define HONE_COMPILER_CODEGEN_LLVM_CPU_EMITTER_H_

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/llvm/func_emitter.h"

namespace llvm {
class TargetMachine;
}

namespace hone::codegen {

class CpuEmitter : public FuncEmitter {
 public:
  // All must outlive the emitter.
  CpuEmitter(llvm::Module* module, const ir::Func& func, const EmitOptions& options,
             const llvm::TargetMachine& machine);
  void Run() override;

  // Strides up to this one are loaded as whole vectors and shuffled; beyond, too few elements of each are wanted.
  static constexpr int64_t kShuffledStrideMax = 4;

 protected:
  // cpu_emitter.cc
  void EmitParallel(const ir::For& loop) override;
  void EmitPrefetch(const ir::Prefetch& prefetch) override;
  void EmitMma(const ir::Mma& mma) override;
  llvm::Value* AllocateBuffer(const ir::BufferNode& buffer) override;
  llvm::Value* EmitFloatMod(llvm::Value* a, llvm::Value* b) override;
  llvm::Value* EmitLargeAngles(const ir::Call& call, const Values& args, llvm::Value* value) override;
  llvm::Value* EmitFloat64Call(const ir::Call& call, const Values& args) override;

  // cpu_vectors.cc
  bool EmitLoopByPattern(const ir::For& loop) override;
  llvm::Value* EmitConversion(const ir::Cast& cast, double less) override;
  bool HasMaskedAccess(ir::Type type, const ir::Expr& index) override;
  llvm::Value* EmitMasked(const ir::Expr& mask, ir::Type type,
                          const std::function<llvm::Value*(llvm::Value*)>& access) override;
  llvm::Value* EmitStridedLoad(const ir::Load& load, int64_t stride, llvm::FixedVectorType* vector) override;

  // cpu_transposed.cc
  void EmitBlock(const ir::Block& block) override;
  llvm::Value* EmitVectorLoad(const ir::Load& load, llvm::Type* element, llvm::FixedVectorType* vector) override;

 private:
  void LoadParams();
  void EmitParallelBody(llvm::Function* body, const ir::For& loop, const std::vector<std::string>& captured,
                        const std::vector<const ir::BufferNode*>& locals);
  llvm::Value* CallLibm(const ir::Call& call, const Values& args);
  bool HasMaskedMoves(ir::Type type);
  size_t EmitTransposedLoads(std::span<const ir::Stmt> stmts);
  void LoadTransposed(const std::vector<const ir::Load*>& loads);

  const llvm::TargetMachine& machine_;
  const bool fuse_;  // sums may also be computed in another order
  // Arguments of the function being emitted: the kernel's or a parallel body's.
  llvm::Value *buffers_ = nullptr, *workspace_ = nullptr;
  llvm::Value* parallel_ = nullptr;  // the caller's thread pool; null in a parallel body, which has no parallel loops
  int64_t workspace_used_ = 0;       // bytes of the workspace that have an owner
  int64_t outlined_ = 0;             // parallel bodies emitted so far
  std::unordered_map<const ir::Load*, llvm::Value*> transposed_;  // strided loads of the stores that come next
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_CPU_EMITTER_H_
