// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/func_emitter.h"

#include "base/kernel_abi.h"
#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/serial_lanes.h"

namespace hone::codegen {

llvm::Function* FuncEmitter::MakeFunction(const std::string& name, llvm::FunctionType* type, bool is_internal) {
  auto* function = llvm::Function::Create(
      type, is_internal ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return function;
}

void FuncEmitter::EmitStmt(const ir::Stmt& s) {
  ForgetValues();
  ir::Match(
      s, [&](const ir::For& loop) { loop.kind == ir::LoopKind::kParallel ? EmitParallel(loop) : EmitLoop(loop); },
      [&](const ir::Store& store) { EmitStore(store); }, [&](const ir::Block& block) { EmitBlock(block); },
      [&](const ir::If& branch) { EmitIf(branch); }, [&](const ir::Alloc& alloc) { EmitAlloc(alloc); },
      [&](const ir::Let& let) { EmitLet(let); }, [&](const ir::Barrier&) { EmitBarrier(); },
      [&](const ir::Mma& mma) { EmitMma(mma); }, [&](const ir::MmaWait& wait) { EmitMmaWait(wait); },
      [&](const ir::Copy& copy) { EmitCopy(copy); }, [&](const ir::Commit&) { EmitCommit(); },
      [&](const ir::Wait& wait) { EmitWait(wait); }, [&](const ir::LaneReduce& reduce) { EmitLaneReduce(reduce); },
      [&](const ir::Prefetch& prefetch) { EmitPrefetch(prefetch); });
}

void FuncEmitter::EmitBlock(const ir::Block& block) {
  for (const ir::Stmt& s : block.stmts) EmitStmt(s);
}

void FuncEmitter::EmitLet(const ir::Let& let) {
  variables_[let.var] = EmitExpr(let.value);
  if (let.value.type() == ir::kIndexType) ranges_[let.var] = ir::RangeOf(let, ranges_);
  EmitStmt(let.body);
  variables_.erase(let.var);
  ranges_.erase(let.var);
}

void FuncEmitter::EmitParallel(const ir::For&) { HONE_CHECK(false); }

void FuncEmitter::EmitBarrier() { HONE_CHECK(false); }

void FuncEmitter::EmitMmaWait(const ir::MmaWait&) { HONE_CHECK(false); }

void FuncEmitter::EmitCopy(const ir::Copy& copy) { EmitStmt(ir::CopyAsStore(copy)); }

void FuncEmitter::EmitLaneReduce(const ir::LaneReduce& reduce) { EmitStmt(ir::SerialReduceStep(reduce)); }

void FuncEmitter::EmitLoop(const ir::For& loop) {
  if (loop.kind == ir::LoopKind::kUnrolled) {
    return ForEachIteration(loop, [&] { EmitStmt(loop.body); });  // arrays indexed by its variable become registers
  }
  HONE_CHECK(loop.kind == ir::LoopKind::kSerial);
  if (EmitLoopByPattern(loop)) return;
  llvm::Value* extent = EmitExpr(loop.extent);
  const ir::Interval bounds = ir::BoundsOf(loop.extent, ranges_);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = MakeBlock(loop.var);
  llvm::BasicBlock* after = MakeBlock(loop.var + ".end");
  if (bounds.low >= 1) {
    builder_.CreateBr(body);
  } else {
    builder_.CreateCondBr(builder_.CreateICmpSGT(extent, builder_.getInt64(0)), body, after);
  }
  builder_.SetInsertPoint(body);
  llvm::PHINode* var = builder_.CreatePHI(builder_.getInt64Ty(), 2, loop.var);
  var->addIncoming(builder_.getInt64(0), before);
  variables_[loop.var] = var;
  ranges_[loop.var] = {0, bounds.high - 1};
  EmitStmt(loop.body);
  variables_.erase(loop.var);
  ranges_.erase(loop.var);
  llvm::Value* next = builder_.CreateNUWAdd(var, builder_.getInt64(1));
  var->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, extent), body, after);
  builder_.SetInsertPoint(after);
  ForgetValues();
}

void FuncEmitter::ForEachIteration(const ir::For& loop, const std::function<void()>& body) {
  const int64_t extent = ir::ConstantValue(loop.extent, ranges_).value_or(-1);
  HONE_CHECK(extent >= 0);
  for (int64_t i = 0; i < extent; ++i) {
    variables_[loop.var] = builder_.getInt64(static_cast<uint64_t>(i));
    ranges_[loop.var] = {i, i};
    ForgetValues();
    body();
  }
  variables_.erase(loop.var);
  ranges_.erase(loop.var);
  ForgetValues();
}

void FuncEmitter::EmitIf(const ir::If& branch) {
  llvm::Value* condition = EmitExpr(branch.condition);
  llvm::BasicBlock* then_block = MakeBlock("then");
  llvm::BasicBlock* else_block = branch.else_case.defined() ? MakeBlock("else") : nullptr;
  llvm::BasicBlock* after = MakeBlock("endif");
  builder_.CreateCondBr(condition, then_block, else_block != nullptr ? else_block : after);
  builder_.SetInsertPoint(then_block);
  EmitStmt(branch.then_case);
  builder_.CreateBr(after);
  if (else_block != nullptr) {
    builder_.SetInsertPoint(else_block);
    EmitStmt(branch.else_case);
    builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
  ForgetValues();
}

llvm::Value* FuncEmitter::AllocateBuffer(const ir::BufferNode& buffer) {
  llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* local = entry.CreateAlloca(
      llvm::ArrayType::get(MemoryTypeOf(buffer.dtype), ir::NumElements(buffer)), nullptr, buffer.name);
  local->setAlignment(llvm::Align(HONE_BUFFER_ALIGNMENT));
  return local;
}

void FuncEmitter::EmitAlloc(const ir::Alloc& alloc) {
  const ir::BufferNode* buffer = alloc.buffer.get();
  llvm::Value* pointer = AllocateBuffer(*buffer);
  llvm::MDNode* scope = llvm::MDBuilder(context_).createAnonymousAliasScope(alias_domain_, buffer->name);
  scopes_.push_back(scope);
  places_[buffer] = Place{pointer, scope};
  EmitStmt(alloc.body);
  places_.erase(buffer);
  std::erase(scopes_, scope);
}

void FuncEmitter::EmitStore(const ir::Store& store) {
  const ir::Type type{store.buffer->dtype, store.value.type().width};
  if (const ir::Expr condition = BranchCondition(store.mask, type, store.indices[0]); condition.defined()) {
    EmitGuarded(EmitExpr(condition), nullptr, [&] {
      EmitStore({store.buffer, store.indices, store.value, {}});
      return nullptr;
    });
    return ForgetValues();
  }
  llvm::Value* value = EmitExpr(store.value);
  llvm::Type* element = MemoryTypeOf(store.buffer->dtype);
  const int width = store.value.type().width;
  llvm::Type* memory = width == 1 ? element : llvm::FixedVectorType::get(element, width);
  if (store.buffer->dtype == ir::DType::kBool) value = builder_.CreateZExt(value, memory);
  const llvm::Align align(ir::SizeOf(store.buffer->dtype));
  const ir::Expr& index = store.indices[0];
  llvm::Value* mask = store.mask.defined() ? EmitExpr(store.mask) : nullptr;
  llvm::Instruction* access = nullptr;
  if (width == 1) {
    HONE_CHECK(mask == nullptr);
    access = builder_.CreateAlignedStore(value, Address(store.buffer, index, element), align);
  } else if (const ir::Ramp* ramp = index.As<ir::Ramp>(); ramp != nullptr && ir::ConstantValue(ramp->stride) == 1) {
    llvm::Value* address = Address(store.buffer, ramp->base, element, mask != nullptr);
    EmitMasked(store.mask, type, [&](llvm::Value* wanted) -> llvm::Value* {
      Annotate(wanted == nullptr ? static_cast<llvm::Instruction*>(
                                       builder_.CreateAlignedStore(value, address, AlignOf(*store.buffer, ramp->base)))
                                 : builder_.CreateMaskedStore(value, address, align, wanted),
               store.buffer.get());
      return nullptr;
    });
    return ForgetValues();
  } else {
    llvm::Value* addresses = builder_.CreateGEP(element, places_.at(store.buffer.get()).pointer, EmitExpr(index));
    if (mask == nullptr)
      mask = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(builder_.getInt1Ty(), width));
    access = builder_.CreateMaskedScatter(value, addresses, align, mask);
  }
  Annotate(access, store.buffer.get());
  ForgetValues();
}

}  // namespace hone::codegen
