// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <numeric>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/match.h"

namespace hone::codegen {

Emitter::Emitter(llvm::Module* module, const ir::Func& func, bool fuse, const target::Target& target,
                 const llvm::TargetMachine& machine, Scaling scaling)
    : module_(module),
      machine_(machine),
      context_(module->getContext()),
      func_(func),
      fuse_(fuse),
      scaling_(scaling),
      overlaps_(target.hierarchy.overlapping_launches && func.grid.defined()),
      async_copies_(target.memory.async_copy_bytes > 0),
      has_products_(HasProducts(func.body)),
      has_group_copies_(ir::HasGroupCopies(func.body)),
      sharing_groups_(ir::GroupsThatShare(func.body)),
      lanes_use_copies_(LanesUseSharedCopies(func.body)),
      shared_(PlaceShared(func, target.memory)),
      builder_(context_) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(fuse);
  builder_.setFastMathFlags(flags);
  alias_domain_ = llvm::MDBuilder(context_).createAnonymousAliasScopeDomain(func.name);
}

llvm::Function* Emitter::MakeFunction(const std::string& name, llvm::FunctionType* type, bool internal) {
  auto* function = llvm::Function::Create(
      type, internal ? llvm::Function::InternalLinkage : llvm::Function::ExternalLinkage, name, module_);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return function;
}

void Emitter::Run() {
  if (func_.grid.defined()) return RunGrid();
  llvm::Type* pointer = builder_.getPtrTy();
  function_ = MakeFunction(func_.name,
                           llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, pointer}, false), false);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  buffers_ = function_->getArg(0);
  workspace_ = function_->getArg(1);
  parallel_ = function_->getArg(2);
  LoadParams(buffers_);
  EmitStmt(func_.body);
  builder_.CreateRetVoid();
}

void Emitter::LoadParams(llvm::Value* buffers) {
  llvm::MDBuilder metadata(context_);
  llvm::Type* pointer = builder_.getPtrTy();
  for (size_t i = 0; i < func_.params.size(); ++i) {
    const ir::BufferNode* buffer = func_.params[i].get();
    llvm::LoadInst* load =
        builder_.CreateLoad(pointer, builder_.CreateConstInBoundsGEP1_64(pointer, buffers, i), buffer->name);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    load->setMetadata(
        llvm::LLVMContext::MD_align,
        llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(builder_.getInt64(HONE_BUFFER_ALIGNMENT))));
    auto [place, is_new] = places_.try_emplace(buffer, Place{load, nullptr});
    place->second.pointer = load;
    if (!is_new) continue;
    place->second.scope = metadata.createAnonymousAliasScope(alias_domain_, buffer->name);
    scopes_.push_back(place->second.scope);
  }
}

void Emitter::EmitStmt(const ir::Stmt& s) {
  emitted_.clear();
  if (EmitProducts({&s, 1}) > 0) return;
  ir::Match(
      s, [&](const ir::For& loop) { loop.kind == ir::LoopKind::kParallel ? EmitParallel(loop) : EmitLoop(loop); },
      [&](const ir::Store& store) { EmitStore(store); }, [&](const ir::Block& block) { EmitBlock(block); },
      [&](const ir::If& branch) { EmitIf(branch); }, [&](const ir::Alloc& alloc) { EmitAlloc(alloc); },
      [&](const ir::Let& let) {
        variables_[let.var] = EmitExpr(let.value);
        if (let.value.type() == ir::kIndexType) ranges_[let.var] = ir::RangeOf(let, ranges_);
        lets_[let.var] = ir::Substitute(let.value, lets_);
        EmitStmt(let.body);
        lets_.erase(let.var);
        variables_.erase(let.var);
        ranges_.erase(let.var);
      },
      [&](const ir::Barrier&) { EmitBarrier(); }, [&](const ir::Contract& contract) { EmitContract(contract); },
      [&](const ir::Settle& settle) {
        CommitProducts();
        EmitSettle(settle);
      },
      [&](const ir::Copy& copy) { EmitCopy(copy); }, [&](const ir::Commit&) { EmitCommit(); },
      [&](const ir::Wait& wait) { EmitWait(wait); }, [&](const ir::Merge& merge) { EmitMerge(merge); },
      [&](const ir::Prefetch& prefetch) { EmitPrefetch(prefetch); });
}

void Emitter::EmitPrefetch(const ir::Prefetch& prefetch) {
  if (func_.grid.defined()) return;  // while a lane waits for memory, others compute
  constexpr int kRead = 0, kSecondCache = 2, kData = 1;
  llvm::Value* first = EmitExpr(prefetch.first * ir::Expr(int64_t{ir::SizeOf(prefetch.buffer->dtype)}));
  const int64_t bytes = prefetch.count * ir::SizeOf(prefetch.buffer->dtype);
  for (int64_t line = 0; line < bytes; line += ir::kLineBytes) {
    llvm::Value* place = builder_.CreateGEP(builder_.getInt8Ty(), places_.at(prefetch.buffer.get()).pointer,
                                            builder_.CreateAdd(first, builder_.getInt64(line)));
    builder_.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {builder_.getPtrTy()},
        {place, builder_.getInt32(kRead), builder_.getInt32(kSecondCache), builder_.getInt32(kData)});
  }
}

void Emitter::EmitBlock(const ir::Block& block) {
  const std::span<const ir::Stmt> stmts = block.stmts;
  for (size_t i = 0, next = 0; i < stmts.size(); ++i) {
    if (const size_t products = EmitProducts(stmts.subspan(i)); products > 0) {
      i += products - 1;
      continue;
    }
    if (i >= next) next = i + std::max<size_t>(1, EmitTransposedLoads(stmts.subspan(i)));
    EmitStmt(stmts[i]);
  }
  transposed_.clear();
}

// for v { s[c] = s[c] op b[base + v] }: the last step of a reduction over the elements of a vector, as one vector load
// and a tree of shuffles.
bool Emitter::EmitHorizontal(const ir::For& loop) {
  const ir::IntImm* extent = loop.extent.As<ir::IntImm>();
  const ir::Store* store = loop.body.As<ir::Store>();
  if (!fuse_ || extent == nullptr || extent->value < 4 || extent->value > 64 ||
      (extent->value & (extent->value - 1)) != 0)
    return false;
  if (store == nullptr || store->mask.defined() || store->value.type() != ir::Type{ir::DType::kFloat32, 1})
    return false;
  const ir::Binary* update = store->value.As<ir::Binary>();
  if (update == nullptr || ir::UsesVar(store->indices[0], loop.var)) return false;
  const ir::Load* total = update->a.As<ir::Load>();
  const ir::Load* part = update->b.As<ir::Load>();
  if (total == nullptr || part == nullptr || total->buffer != store->buffer ||
      !ir::Equal(total->indices[0], store->indices[0]))
    return false;
  if (part->buffer == store->buffer || part->mask.defined()) return false;
  const ir::Expr step =
      ir::Substitute(part->indices[0], {{loop.var, ir::MakeVar(loop.var) + ir::Expr(1)}}) - part->indices[0];
  if (ir::ConstantValue(step) != 1) return false;
  const bool is_min = update->op == ir::BinaryOp::kMin;
  if (!is_min && update->op != ir::BinaryOp::kMax && update->op != ir::BinaryOp::kAdd) return false;
  const ir::Expr first = ir::Simplify(ir::Substitute(part->indices[0], {{loop.var, ir::Expr(0)}}), ranges_);
  llvm::Value* parts =
      EmitExpr(ir::MakeLoad(part->buffer, {ir::MakeRamp(first, ir::Expr(1), static_cast<int>(extent->value))}));
  llvm::Value* before = EmitExpr(update->a);
  llvm::Value* result = nullptr;
  if (update->op == ir::BinaryOp::kAdd) {
    llvm::CallInst* sum = builder_.CreateFAddReduce(before, parts);
    sum->setHasAllowReassoc(true);
    result = sum;
  } else {
    for (int half = static_cast<int>(extent->value) / 2; half > 0; half /= 2) {
      llvm::SmallVector<int> low(static_cast<size_t>(half)), high(static_cast<size_t>(half));
      std::iota(low.begin(), low.end(), 0);
      std::iota(high.begin(), high.end(), half);
      parts =
          EmitFloatMinMax(is_min, builder_.CreateShuffleVector(parts, low), builder_.CreateShuffleVector(parts, high));
    }
    result = EmitFloatMinMax(is_min, before, builder_.CreateExtractElement(parts, uint64_t{0}));
  }
  llvm::Type* element = MemoryTypeOf(store->buffer->dtype);
  Annotate(builder_.CreateAlignedStore(result, Address(store->buffer, store->indices[0], element), llvm::Align(4)),
           store->buffer.get());
  emitted_.clear();
  return true;
}

void Emitter::EmitLoop(const ir::For& loop) {
  if (loop.kind == ir::LoopKind::kUnrolled) return EmitUnrolled(loop);
  HONE_CHECK(loop.kind == ir::LoopKind::kSerial);
  if (func_.grid.defined() ? EmitTurns(loop) : EmitHorizontal(loop)) return;
  llvm::Value* extent = EmitExpr(loop.extent);
  const ir::Interval bounds = ir::BoundsOf(loop.extent, ranges_);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, loop.var, function_);
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, loop.var + ".end", function_);
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
  emitted_.clear();
}

// The body becomes a function of its own; what it needs from here travels in an array of 64-bit slots.
void Emitter::EmitParallel(const ir::For& loop) {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::Type* slot = builder_.getInt64Ty();
  llvm::Value* extent = EmitExpr(loop.extent);
  std::vector<std::string> captured;
  Values slots = {builder_.CreatePtrToInt(buffers_, slot), builder_.CreatePtrToInt(workspace_, slot)};
  for (const auto& [name, value] : variables_) {
    captured.push_back(name);
    slots.push_back(value);
  }
  std::vector<const ir::BufferNode*> locals;
  for (const auto& [buffer, place] : places_) {
    if (buffer->scope != ir::Scope::kParam) locals.push_back(buffer);
  }
  // By name, not by where they are in memory: the same kernel has the same code, whoever compiles it.
  std::ranges::sort(locals, {}, &ir::BufferNode::name);
  for (const ir::BufferNode* buffer : locals) {
    slots.push_back(builder_.CreatePtrToInt(places_.at(buffer).pointer, slot));
  }
  llvm::Type* array = llvm::ArrayType::get(slot, slots.size());
  llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::Value* closure = entry.CreateAlloca(array, nullptr, "closure");
  for (size_t i = 0; i < slots.size(); ++i) {
    builder_.CreateStore(slots[i], builder_.CreateConstInBoundsGEP2_64(array, closure, 0, i));
  }
  llvm::Function* body = MakeFunction(func_.name + ".parallel" + std::to_string(outlined_++),
                                      llvm::FunctionType::get(builder_.getVoidTy(), {pointer, slot}, false), true);
  EmitParallelBody(body, loop, captured, locals);
  llvm::Value* entry_point = builder_.CreateLoad(pointer, parallel_, "parallel_for");
  builder_.CreateCall(llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, pointer, slot}, false),
                      entry_point, {parallel_, body, closure, extent});
}

void Emitter::EmitParallelBody(llvm::Function* body, const ir::For& loop, const std::vector<std::string>& captured,
                               const std::vector<const ir::BufferNode*>& locals) {
  const auto outer_point = builder_.saveIP();
  const auto outer = std::make_tuple(function_, buffers_, workspace_, parallel_, places_, variables_);
  function_ = body;
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", body));
  llvm::Type* slot = builder_.getInt64Ty();
  size_t next = 0;
  const auto take = [&] {
    return builder_.CreateLoad(slot, builder_.CreateConstInBoundsGEP1_64(slot, body->getArg(0), next++));
  };
  buffers_ = builder_.CreateIntToPtr(take(), builder_.getPtrTy());
  workspace_ = builder_.CreateIntToPtr(take(), builder_.getPtrTy());
  parallel_ = nullptr;  // parallel loops do not nest
  variables_.clear();
  for (const std::string& name : captured) variables_[name] = take();
  for (const ir::BufferNode* buffer : locals)
    places_[buffer].pointer = builder_.CreateIntToPtr(take(), builder_.getPtrTy());
  LoadParams(buffers_);
  variables_[loop.var] = body->getArg(1);
  ranges_[loop.var] = {0, ir::BoundsOf(loop.extent, ranges_).high - 1};
  EmitStmt(loop.body);
  builder_.CreateRetVoid();
  ranges_.erase(loop.var);
  std::tie(function_, buffers_, workspace_, parallel_, places_, variables_) = outer;
  builder_.restoreIP(outer_point);
  emitted_.clear();
}

void Emitter::EmitIf(const ir::If& branch) {
  llvm::Value* condition = EmitExpr(branch.condition);
  llvm::BasicBlock* then_block = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* else_block =
      branch.else_case.defined() ? llvm::BasicBlock::Create(context_, "else", function_) : nullptr;
  llvm::BasicBlock* after = llvm::BasicBlock::Create(context_, "endif", function_);
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
  emitted_.clear();
}

void Emitter::EmitAlloc(const ir::Alloc& alloc) {
  const ir::BufferNode* buffer = alloc.buffer.get();
  llvm::Value* pointer = nullptr;
  if (buffer->scope == ir::Scope::kWorkspace) {
    pointer = builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), workspace_, workspace_used_, buffer->name);
    workspace_used_ += (ir::NumBytes(*buffer) + 63) / 64 * 64;
  } else if (ir::IsShared(buffer->scope)) {
    pointer = EmitShared(*buffer);
  } else {
    llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    llvm::AllocaInst* local = entry.CreateAlloca(
        llvm::ArrayType::get(MemoryTypeOf(buffer->dtype), ir::NumElements(*buffer)), nullptr, buffer->name);
    local->setAlignment(llvm::Align(HONE_BUFFER_ALIGNMENT));
    pointer = local;
  }
  llvm::MDNode* scope = llvm::MDBuilder(context_).createAnonymousAliasScope(alias_domain_, buffer->name);
  scopes_.push_back(scope);
  places_[buffer] = Place{pointer, scope};
  EmitStmt(alloc.body);
  places_.erase(buffer);
  std::erase(scopes_, scope);
}

void Emitter::EmitStore(const ir::Store& store) {
  const ir::Type type{store.buffer->dtype, store.value.type().width};
  if (const ir::Expr condition = BranchOf(store.mask, type, store.indices[0]); condition.defined()) {
    EmitGuarded(EmitExpr(condition), nullptr, [&] {
      EmitStore({store.buffer, store.indices, store.value, {}});
      return nullptr;
    });
    return emitted_.clear();
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
    return emitted_.clear();
  } else {
    llvm::Value* addresses = builder_.CreateGEP(element, places_.at(store.buffer.get()).pointer, EmitExpr(index));
    if (mask == nullptr)
      mask = llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(builder_.getInt1Ty(), width));
    access = builder_.CreateMaskedScatter(value, addresses, align, mask);
  }
  Annotate(access, store.buffer.get());
  emitted_.clear();
}

}  // namespace hone::codegen
