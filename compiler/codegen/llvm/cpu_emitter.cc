// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/cpu_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <tuple>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "compiler/codegen/llvm/tensor_intrinsics.h"
#include "compiler/ir/op_names.h"

namespace hone::codegen {

CpuEmitter::CpuEmitter(llvm::Module* module, const ir::Func& func, const EmitOptions& options,
                       const llvm::TargetMachine& machine)
    : FuncEmitter(module, func, options), machine_(machine), fuse_(options.fuse) {}

void CpuEmitter::Run() {
  llvm::Type* pointer = builder_.getPtrTy();
  function_ = MakeFunction(func_.name,
                           llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, pointer}, false), false);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  buffers_ = function_->getArg(0);
  workspace_ = function_->getArg(1);
  parallel_ = function_->getArg(2);
  LoadParams();
  EmitStmt(func_.body);
  builder_.CreateRetVoid();
}

// Loads the pointers of all params from buffers_. Scopes are those of the kernel, in a parallel body, too.
void CpuEmitter::LoadParams() {
  llvm::MDBuilder metadata(context_);
  llvm::Type* pointer = builder_.getPtrTy();
  for (size_t i = 0; i < func_.params.size(); ++i) {
    const ir::BufferNode* buffer = func_.params[i].get();
    llvm::LoadInst* load =
        builder_.CreateLoad(pointer, builder_.CreateConstInBoundsGEP1_64(pointer, buffers_, i), buffer->name);
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

// The body becomes a function of its own. The values that it needs are passed in an array of 64-bit slots.
void CpuEmitter::EmitParallel(const ir::For& loop) {
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
  // Sorted by name, because the order of addresses would make the code differ from one compilation to the next.
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

void CpuEmitter::EmitParallelBody(llvm::Function* body, const ir::For& loop, const std::vector<std::string>& captured,
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
  LoadParams();
  variables_[loop.var] = body->getArg(1);
  ranges_[loop.var] = {0, ir::BoundsOf(loop.extent, ranges_).high - 1};
  EmitStmt(loop.body);
  builder_.CreateRetVoid();
  ranges_.erase(loop.var);
  std::tie(function_, buffers_, workspace_, parallel_, places_, variables_) = outer;
  builder_.restoreIP(outer_point);
  ForgetValues();
}

void CpuEmitter::EmitPrefetch(const ir::Prefetch& prefetch) {
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

llvm::Value* CpuEmitter::AllocateBuffer(const ir::BufferNode& buffer) {
  if (buffer.scope != ir::Scope::kWorkspace) return FuncEmitter::AllocateBuffer(buffer);
  llvm::Value* pointer =
      builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), workspace_, workspace_used_, buffer.name);
  workspace_used_ += (ir::NumBytes(buffer) + 63) / 64 * 64;
  return pointer;
}

// A dot product: the sum is n elements of 32 bits, a is k bytes that all of them share, b is k bytes for each.
void CpuEmitter::EmitMma(const ir::Mma& mma) {
  const ir::TensorInstructionEntry& entry = EntryOf(mma.instruction);
  HONE_CHECK(entry.lanes == 1);
  const auto width = static_cast<unsigned>(entry.n);
  auto* const sum_type = llvm::FixedVectorType::get(builder_.getInt32Ty(), width);
  const auto address = [&](const ir::MatrixOperand& operand) {
    const ir::Load& first = *operand.first.As<ir::Load>();
    return Address(first.buffer, first.indices[0], MemoryTypeOf(first.buffer->dtype));
  };
  const auto load = [&](const ir::MatrixOperand& operand, llvm::Type* type) {
    const ir::BufferNode* buffer = operand.first.As<ir::Load>()->buffer.get();
    llvm::LoadInst* access = builder_.CreateAlignedLoad(type, address(operand), llvm::Align(ir::SizeOf(buffer->dtype)));
    Annotate(access, buffer);
    return access;
  };
  llvm::Value* a = builder_.CreateVectorSplat(width, load(mma.a, builder_.getInt32Ty()));
  llvm::Value* b = load(mma.b, sum_type);
  llvm::Value* sum = load(mma.sum, sum_type);
  const TensorIntrinsic dot = IntrinsicOf(mma.instruction);
  if (dot.takes_bytes) {
    auto* const bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), width * static_cast<unsigned>(entry.k));
    sum = builder_.CreateIntrinsic(dot.id, {sum_type, bytes},
                                   {sum, builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
  } else {
    sum = builder_.CreateIntrinsic(dot.id, {}, {sum, a, b});
  }
  Annotate(builder_.CreateAlignedStore(sum, address(mma.sum), llvm::Align(ir::SizeOf(entry.sum))),
           mma.sum.first.As<ir::Load>()->buffer.get());
  ForgetValues();
}

llvm::Value* CpuEmitter::EmitFloatMod(llvm::Value* a, llvm::Value* b) { return builder_.CreateFRem(a, b); }

// The C library's function is only called for vectors that have a large angle.
llvm::Value* CpuEmitter::EmitLargeAngles(const ir::Call& call, const Values& args, llvm::Value* value) {
  llvm::Value* const size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]);
  llvm::Value* const large = builder_.CreateFCmpOGE(size, llvm::ConstantFP::get(size->getType(), kAngleMax));
  llvm::Value* const any = call.type.width == 1 ? large : builder_.CreateOrReduce(large);
  llvm::Value* const exact = EmitGuarded(any, TypeOf(call.type), [&] { return CallLibm(call, args); });
  return builder_.CreateSelect(large, exact, value);
}

llvm::Value* CpuEmitter::EmitFloat64Call(const ir::Call& call, const Values& args) { return CallLibm(call, args); }

// One call of the C library per element; its functions have the names of the IR. errno is never read, so LLVM may treat
// a call as a function of its arguments alone.
llvm::Value* CpuEmitter::CallLibm(const ir::Call& call, const Values& args) {
  std::string name(ir::Name(call.function));
  if (call.type.dtype == ir::DType::kFloat32) name += "f";
  llvm::Type* scalar = MemoryTypeOf(call.type.dtype);
  const std::vector<llvm::Type*> parameters(args.size(), scalar);
  llvm::FunctionCallee callee = module_->getOrInsertFunction(name, llvm::FunctionType::get(scalar, parameters, false));
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  if (call.type.width == 1) return builder_.CreateCall(callee, args);
  llvm::Value* result = llvm::PoisonValue::get(TypeOf(call.type));
  for (int i = 0; i < call.type.width; ++i) {
    Values element_args;
    for (llvm::Value* arg : args) element_args.push_back(builder_.CreateExtractElement(arg, i));
    result = builder_.CreateInsertElement(result, builder_.CreateCall(callee, element_args), i);
  }
  return result;
}

}  // namespace hone::codegen
