// SPDX-License-Identifier: Apache-2.0
// Tensor instructions that read shared memory themselves (wgmma) and run asynchronously, in the assembly of sm_90a.
//
// Neighbouring instructions are issued together and waited for once. Those that share their rows, and whose columns lie
// at equal distances, are one instruction. Until the wait, only other such instructions may touch the accumulators, and
// their operands must not be overwritten. Part of a PtxEmitter.
#ifndef HONE_COMPILER_CODEGEN_LLVM_WGMMA_H_
#define HONE_COMPILER_CODEGEN_LLVM_WGMMA_H_

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm/expr_emitter.h"

namespace hone::codegen {

class PtxEmitter;

class Wgmma {
 public:
  // emitter: must outlive this.
  Wgmma(PtxEmitter& emitter, const ir::Func& func);
  bool has_products() const { return has_products_; }  // whether the func has such instructions
  // Numbers the warpgroups, if the func has such instructions. Once, before any.
  void Begin();
  // Emits the longest prefix of stmts of the form [barrier] copies products [wait]. Returns the number of statements
  // consumed, 0 if there is no such prefix.
  size_t EmitProducts(std::span<const ir::Stmt> stmts);
  // Ends the commit group of what was begun.
  void EmitCommit();
  // Waits until at most wait.pending commit groups run.
  void EmitWait(const ir::MmaWait& wait);

 private:
  struct Product;
  // Accumulators of a lane: elements of the buffer, as flat indices that are added to `first`.
  struct Accumulators {
    ir::Buffer buffer;
    ir::Expr first;
    std::set<int64_t> places;
  };

  static const ir::Buffer& SumOf(const Product& product);
  static bool HaveSameOperandA(const Product& x, const Product& y);
  static bool CanIssueTogether(const Product& x, const Product& y);
  void CollectProducts(const ir::Stmt& s, std::vector<Product>* products);
  void IssueProducts(std::span<const Product> products);
  std::pair<size_t, int64_t> CountJoinedProducts(std::span<const Product> products) const;
  std::string ProductAssembly(std::span<const Product> products, const std::map<int64_t, size_t>& registers,
                              Values* factors);
  Values LoadRows(const Product& product);
  llvm::Value* EmitDescriptor(const ir::MatrixOperand& operand, const ir::Expr& first, int64_t blocks_apart);
  Values LoadAccumulators(const Accumulators& sums, Values* places);
  void StoreAccumulators(const Accumulators& sums, std::span<llvm::Value* const> values,
                         std::span<llvm::Value* const> places);
  Values EmitOnAccumulators(const std::string& text, const Values& sums, std::span<llvm::Value* const> more);

  PtxEmitter& emitter_;
  llvm::IRBuilder<>& builder_;
  const bool has_products_;
  std::vector<Accumulators> running_;  // accumulators of instructions that were begun and not waited for
};

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_WGMMA_H_
