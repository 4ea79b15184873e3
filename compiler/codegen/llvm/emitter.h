// SPDX-License-Identifier: Apache-2.0
// Turns one lowered Func into LLVM IR: loops, vector expressions, outlined parallel bodies; a grid is a GPU's kernel.
//
// Private to codegen/llvm. Statements and functions: emit_stmt.cc; what only funcs with a grid have: emit_grid.cc.
#ifndef HONE_COMPILER_CODEGEN_LLVM_EMITTER_H_
#define HONE_COMPILER_CODEGEN_LLVM_EMITTER_H_

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/codegen/llvm/math.h"
#include "compiler/codegen/llvm/setup.h"
#include "compiler/codegen/shared_memory.h"
#include "compiler/ir/match.h"
#include "compiler/ir/simplify.h"
#include "compiler/ir/stmt.h"

namespace hone::codegen {

using Values = std::vector<llvm::Value*>;

class Emitter {
 public:
  // fuse: multiply-adds may be contracted. All must outlive the emitter.
  Emitter(llvm::Module* module, const ir::Func& func, bool fuse, const target::Target& target,
          const llvm::TargetMachine& machine, Scaling scaling);
  void Run();

  // A strided load of up to so many elements' distance is loads of all that lies between, and shuffles.
  static constexpr int64_t kMostShuffledStride = 4;  // beyond, too little of each vector is wanted

 private:
  // Where a buffer is, in the LLVM function being emitted.
  struct Place {
    llvm::Value* pointer;
    llvm::MDNode* scope;  // alias scope: buffers never overlap
  };
  using Places = std::map<const ir::BufferNode*, Place>;
  using Variables = std::map<std::string, llvm::Value*, std::less<>>;

  // emit_stmt.cc
  llvm::Function* MakeFunction(const std::string& name, llvm::FunctionType* type, bool internal);
  void LoadParams(llvm::Value* buffers);
  void EmitStmt(const ir::Stmt& s), EmitBlock(const ir::Block& block), EmitLoop(const ir::For& loop);
  bool EmitHorizontal(const ir::For& loop);
  void EmitParallel(const ir::For& loop);
  void EmitParallelBody(llvm::Function* body, const ir::For& loop, const std::vector<std::string>& captured,
                        const std::vector<const ir::BufferNode*>& locals);
  void EmitIf(const ir::If& branch), EmitAlloc(const ir::Alloc& alloc), EmitStore(const ir::Store& store);

  // emit_transposed.cc
  // Makes the strided loads of as many of the first `stmts` as are stores that read side by side; how many these are.
  size_t EmitTransposedLoads(std::span<const ir::Stmt> stmts);
  void LoadTransposed(const std::vector<const ir::Load*>& loads);

  // emit_grid.cc
  void RunGrid();
  void WaitForLaunchBefore();
  llvm::Value* EmitShared(const ir::BufferNode& buffer);
  llvm::Value* EmitShared(llvm::Type* type, int64_t alignment, int64_t place);
  void EmitBarrier(), MeetGroup(), AwaitGroups();
  llvm::Value* EmitAssembly(const std::string& text, const Values& operands, llvm::Type* result = nullptr);
  void EmitPrefetch(const ir::Prefetch& prefetch);
  void EmitUnrolled(const ir::For& loop);
  bool EmitTurns(const ir::For& loop);
  void ForEachTurn(const ir::For& loop, const std::function<void()>& turn);
  ir::Expr WrittenOut(const ir::Expr& e) const;
  ir::Expr BranchOf(const ir::Expr& mask, ir::Type type, const ir::Expr& index);
  llvm::Value* EmitNarrow(const ir::Expr& e, const ir::Binary& binary);
  llvm::Align AlignOf(const ir::BufferNode& buffer, const ir::Expr& first) const;
  llvm::Value* EmitParts(const ir::BufferNode& buffer, llvm::Value* address, llvm::FixedVectorType* vector,
                         llvm::Align align, llvm::Value* mask);
  llvm::Value* EmitGuarded(llvm::Value* condition, llvm::Type* type, const std::function<llvm::Value*()>& then);

  // emit_copies.cc
  void EmitCopy(const ir::Copy& copy), EmitGroupCopy(const ir::Copy& copy);
  void EmitCommit(), EmitWait(const ir::Wait& wait);
  void BeginBundles(), WaitForBundles(int64_t pending);
  llvm::Value *IsFirstLane(), *BundleOf(llvm::Value* number);

  // emit_contract.cc
  void EmitContract(const ir::Contract& contract);
  void EmitMma(const ir::Contract& contract);
  std::array<llvm::Value*, 2> EmitQuarterRow(const ir::MatrixOperand& operand, llvm::Value* offset,
                                             const ir::TensorInstructionEntry& entry);

  // emit_products.cc
  struct Product;
  // What a lane's instructions add to: flat indices behind `first`.
  struct Sums {
    ir::Buffer buffer;
    ir::Expr first;
    std::set<int64_t> places;
  };
  // Emits the first of `stmts` that are a barrier or none, copies, instructions that read shared memory themselves, and
  // a settle or none; how many.
  size_t EmitProducts(std::span<const ir::Stmt> stmts);
  void BeginProducts(std::span<const Product> products), CommitProducts();
  void EmitSettle(const ir::Settle& settle);
  Values LoadSums(const Sums& sums, Values* places);
  void StoreSums(const Sums& sums, std::span<llvm::Value* const> values, std::span<llvm::Value* const> places);
  Values EmitOnSums(const std::string& text, const Values& sums, std::span<llvm::Value* const> more);
  static bool ShareRows(const Product& x, const Product& y);
  static bool GoTogether(const Product& x, const Product& y);
  static const ir::Buffer& SumOf(const Product& product);
  void GatherProducts(const ir::Stmt& s, std::vector<Product>* products);
  std::pair<size_t, int64_t> Together(std::span<const Product> products) const;
  std::string SpellProducts(std::span<const Product> products, const std::map<int64_t, size_t>& registers,
                            Values* factors);
  Values LoadRounded(const Product& product);
  void NumberFours();
  llvm::Value* EmitDescriptor(const ir::MatrixOperand& operand, const ir::Expr& first, int64_t blocks_apart);

  // emit_merge.cc
  void EmitMerge(const ir::Merge& merge);
  llvm::Value* EmitMembers(int64_t parts);
  llvm::Value* EmitShuffle(llvm::Value* value, int64_t distance, llvm::Value* members);

  // emit_expr.cc
  llvm::Value* EmitExpr(const ir::Expr& e);
  llvm::Value* EmitNode(const ir::Expr& e);
  llvm::Value* EmitCast(const ir::Cast& cast);
  llvm::Value* EmitCast(llvm::Value* value, ir::Type given, ir::Type result);  // given: not bf16
  llvm::Value* EmitFloatToInt(llvm::Value* value, ir::Type given, ir::Type result);
  llvm::Value* EmitIntToFloat64(llvm::Value* value, ir::Type from);
  llvm::Value* EmitUnary(const ir::Unary& unary);
  llvm::Value* EmitBinary(const ir::Expr& e, const ir::Binary& binary);
  llvm::Value* EmitIntBinary(const ir::Binary& binary, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitDivision(const ir::Binary& binary, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitFloatBinary(const ir::Binary& binary, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitMinMax(const ir::Binary& binary, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitFloatMinMax(bool is_min, llvm::Value* a, llvm::Value* b);
  llvm::Value* EmitSelect(const ir::Select& select);
  llvm::Value* EmitEither(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                          const std::function<llvm::Value*()>& otherwise);
  bool HasMaskedMoves(ir::Type type);
  llvm::Value* EmitMasked(const ir::Expr& mask, ir::Type type, const std::function<llvm::Value*(llvm::Value*)>& access);
  llvm::Value* EmitLoad(const ir::Load& load);
  llvm::Value* EmitVectorLoad(const ir::Load& load, llvm::Type* element, llvm::FixedVectorType* vector);
  llvm::Value* EmitStridedLoad(const ir::Load& load, llvm::Value* address, llvm::FixedVectorType* vector, int stride);
  llvm::Value* EmitCall(const ir::Call& call);
  llvm::Value* EmitSingle(const ir::Call& call, const Values& args);
  llvm::Value* EmitDouble(const ir::Call& call, const Values& args);
  llvm::Value* CallLibm(const ir::Call& call, const Values& args);
  llvm::Value* Address(const ir::Buffer& buffer, const ir::Expr& index, llvm::Type* element, bool masked = false);
  llvm::Value* EmitSwizzled(const ir::BufferNode& buffer, const ir::Expr& index);
  llvm::Type *TypeOf(ir::Type type), *MemoryTypeOf(ir::DType dtype);
  void Annotate(llvm::Instruction* access, const ir::BufferNode* buffer);

  llvm::Module* module_;
  const llvm::TargetMachine& machine_;
  llvm::LLVMContext& context_;
  const ir::Func& func_;
  const bool fuse_;
  const Scaling scaling_;
  const bool overlaps_;                         // the func may begin before what was launched before has ended
  const bool async_copies_;                     // the target copies to shared memory without the lane
  const bool has_products_, has_group_copies_;  // what reads shared memory itself; copies of groups
  const int64_t sharing_groups_;                // that follow one another and share copies
  const bool lanes_use_copies_;                 // that groups share
  const SharedMemory shared_;
  std::map<const ir::BufferNode*, llvm::Value*> shared_buffers_;  // where those lie that were met
  llvm::GlobalVariable* asked_shared_ = nullptr;                  // what the launch asks for; null: nothing
  // Of copies of groups: how many bundles were committed, how many are there, and the address of what tells of them.
  llvm::Value *committed_ = nullptr, *arrived_ = nullptr, *bundles_ = nullptr;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_ = nullptr;
  llvm::Value *buffers_ = nullptr, *workspace_ = nullptr, *parallel_ = nullptr;
  int64_t workspace_used_ = 0, outlined_ = 0;
  Places places_;
  Variables variables_;
  ir::VarMap lets_;  // what names stand for
  ir::Ranges ranges_;
  llvm::MDNode* alias_domain_;
  std::vector<llvm::MDNode*> scopes_;
  // Values of shared nodes within one statement (expressions are DAGs; each node is emitted once).
  struct Emitted {
    ir::Expr e;  // which thereby lives as long as its address is known
    llvm::Value* value;
  };
  std::unordered_map<const ir::ExprNode*, Emitted> emitted_;
  std::vector<Sums> running_;                                     // of instructions that were begun and may not be done
  std::unordered_map<const ir::Load*, llvm::Value*> transposed_;  // strided loads of the stores that come next
};

// Whether something in s reads shared memory itself; whether lanes themselves use what groups share copies to.
bool HasProducts(const ir::Stmt& s), LanesUseSharedCopies(const ir::Stmt& s);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_EMITTER_H_
