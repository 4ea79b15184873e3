// SPDX-License-Identifier: Apache-2.0
// Funcs with a grid: kernels of GPUs. Params in global memory, buffers that a group shares, lanes that wait for each
// other, and indices in 32 bits, which such devices add and multiply in half the time.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/match.h"
#include "compiler/ir/multiple.h"
#include "compiler/ir/plain.h"
#include "compiler/ir/safe_bounds.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

constexpr unsigned kGlobal = 1, kShared = 3;  // address spaces, as LLVM numbers them for NVPTX
constexpr int64_t kWidestAccess = 16;         // bytes that one lane moves at once

bool IsWritten(const ir::Stmt& s, const ir::Buffer& buffer) {
  return ir::AnyStmt(s, [&](const ir::Stmt& x) { return ir::WrittenBy(x) == buffer; });
}

}  // namespace

bool LanesUseSharedCopies(const ir::Stmt& s) {
  std::set<const ir::BufferNode*> shared;
  const auto is_shared = [](const ir::Stmt& x) {
    const ir::Copy* const copy = x.As<ir::Copy>();
    return copy != nullptr && copy->groups > 1;
  };
  ir::AnyStmt(s, [&](const ir::Stmt& x) {
    if (is_shared(x)) shared.insert(ir::WrittenBy(x).get());
    return false;
  });
  return !shared.empty() && ir::AnyStmt(s, [&](const ir::Stmt& x) {
    bool used = !is_shared(x) && shared.contains(ir::WrittenBy(x).get());
    const ir::Contract* const contract = x.As<ir::Contract>();
    const bool blocks = contract != nullptr && ir::EntryOf(contract->instruction).blocks;
    const bool loads_a = blocks && ir::EntryOf(contract->instruction).loads_a;
    const auto reads = [&](const ir::Expr& e) {
      const ir::Load* const load = e.As<ir::Load>();
      used |= load != nullptr && shared.contains(load->buffer.get());
    };
    ir::ForEachChild(
        x, [](const ir::Stmt&) {},
        [&](const ir::Expr& e) {
          const bool by_itself =
              blocks && (e.SameHandle(contract->b.first) || (!loads_a && e.SameHandle(contract->a.first)));
          if (!by_itself) ir::ForEachExpr(e, reads);
        });
    return used;
  });
}

void Emitter::RunGrid() {
  llvm::Type* const pointer = builder_.getPtrTy(kGlobal);
  const std::vector<llvm::Type*> types(func_.params.size(), pointer);
  function_ = MakeFunction(func_.name, llvm::FunctionType::get(builder_.getVoidTy(), types, false), false);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  // One group of a unit at least: without that, ptxas keeps room for several, and spills registers for it.
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"reqntidx", func_.grid.lanes}, {"minctasm", 1}}) {
    llvm::Metadata* const facts[] = {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(context_, name),
                                     llvm::ConstantAsMetadata::get(builder_.getInt32(static_cast<uint32_t>(value)))};
    module_->getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context_, facts));
  }
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  llvm::MDBuilder metadata(context_);
  for (unsigned i = 0; i < func_.params.size(); ++i) {
    const ir::Buffer& buffer = func_.params[i];
    llvm::Argument* const argument = function_->getArg(i);
    argument->addAttr(llvm::Attribute::NoAlias);
    argument->addAttr(llvm::Attribute::getWithAlignment(context_, llvm::Align(HONE_BUFFER_ALIGNMENT)));
    if (!IsWritten(func_.body, buffer)) argument->addAttr(llvm::Attribute::ReadOnly);
    llvm::MDNode* const scope = metadata.createAnonymousAliasScope(alias_domain_, buffer->name);
    if (places_.try_emplace(buffer.get(), Place{argument, scope}).second) scopes_.push_back(scope);
  }
  const std::tuple<const char*, llvm::Intrinsic::ID, int64_t> ids[] = {
      {ir::kGroupVar, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, func_.grid.groups},
      {ir::kLaneVar, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, func_.grid.lanes}};
  for (const auto& [var, id, count] : ids) {
    ranges_[var] = {0, count - 1};
    variables_[var] = builder_.CreateZExt(builder_.CreateIntrinsic(id, {}, {}), builder_.getInt64Ty());
  }
  if (has_products_) NumberFours();
  if (has_group_copies_) BeginBundles();
  if (overlaps_) WaitForLaunchBefore();
  EmitStmt(func_.body);
  builder_.CreateRetVoid();
}

// Until then nobody uses memory that others see. The buffers are known only behind it: what LLVM knows of arguments, it
// takes as true from the first instruction on, and would read before. The next launch may begin once all groups have.
void Emitter::WaitForLaunchBefore() {
  EmitAssembly("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;", {});
  llvm::Type* const pointer = builder_.getPtrTy(kGlobal);
  auto* const same =
      llvm::InlineAsm::get(llvm::FunctionType::get(pointer, {pointer}, false), "mov.b64 $0, $1;", "=l,l", true);
  for (auto& [buffer, place] : places_) place.pointer = builder_.CreateCall(same, {place.pointer});
}

// The same in every iteration of a loop that is written out.
llvm::Value* Emitter::EmitShared(const ir::BufferNode& buffer) {
  const auto [known, is_new] = shared_buffers_.try_emplace(&buffer);
  if (!is_new) return known->second;
  const auto place = shared_.places.find(&buffer);
  return known->second = EmitShared(llvm::ArrayType::get(MemoryTypeOf(buffer.dtype), ir::NumElements(buffer)),
                                    SharedAlignment(buffer), place == shared_.places.end() ? 0 : place->second);
}

// Memory of that type that lanes share: at the place of what the launch asks for, or by itself.
llvm::Value* Emitter::EmitShared(llvm::Type* type, int64_t alignment, int64_t place) {
  const bool asked = shared_.asked_bytes > 0;
  const llvm::Align align(static_cast<uint64_t>(alignment));
  const std::string name = func_.name + "_shared";
  const auto make = [&](llvm::Type* of, llvm::GlobalValue::LinkageTypes linkage, llvm::Constant* value) {
    return new llvm::GlobalVariable(*module_, of, false, linkage, value, name, nullptr,
                                    llvm::GlobalValue::NotThreadLocal, kShared);
  };
  if (!asked) {
    auto* const shared = make(type, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(type));
    shared->setAlignment(align);
    return shared;
  }
  llvm::Type* const byte = builder_.getInt8Ty();
  if (asked_shared_ == nullptr) {
    asked_shared_ = make(llvm::ArrayType::get(byte, 0), llvm::GlobalValue::ExternalLinkage, nullptr);
  }
  asked_shared_->setAlignment(std::max(asked_shared_->getAlign().valueOrOne(), align));
  return builder_.CreateConstInBoundsGEP1_64(byte, asked_shared_, static_cast<uint64_t>(place));
}

// Where an element of a swizzled buffer is: of the bits of its place, those that count rows, below eight, exchange
// those that count chunks. What counts whole eights of rows changes neither, and is added behind: the rest is mostly
// the lane's, which stays while loops go on.
llvm::Value* Emitter::EmitSwizzled(const ir::BufferNode& buffer, const ir::Expr& index) {
  const int64_t size = ir::SizeOf(buffer.dtype), eight = ir::kSwizzledRows * ir::kSwizzledRow / size;
  ir::Linear near, far;
  const ir::Linear whole = ir::ToLinear(WrittenOut(index), ranges_);
  for (const auto& [atom, factor] : whole.terms) {
    (ir::IsMultipleOf(atom * ir::Expr(factor), eight) ? far : near).Add(atom, factor);
  }
  near.constant = (whole.constant % eight + eight) % eight;
  far.constant = whole.constant - near.constant;
  const ir::Expr eights = ir::FromLinear(far), rest = ir::FromLinear(near);
  llvm::Value* const begin =
      builder_.CreateGEP(MemoryTypeOf(buffer.dtype), places_.at(&buffer).pointer, EmitExpr(eights));
  const auto number = [&](int64_t n) { return builder_.getInt32(static_cast<uint32_t>(n)); };
  llvm::Value* const place =
      builder_.CreateMul(builder_.CreateTrunc(EmitExpr(rest), builder_.getInt32Ty()), number(size));
  llvm::Value* const rows = builder_.CreateLShr(place, std::countr_zero<uint64_t>(ir::kSwizzledRows));
  llvm::Value* const chunks = builder_.CreateAnd(rows, number(ir::kSwizzledRow - ir::kSwizzledChunk));
  return builder_.CreateGEP(builder_.getInt8Ty(), begin,
                            builder_.CreateSExt(builder_.CreateXor(place, chunks), builder_.getInt64Ty()));
}

// Everything a lane wrote before is seen by the lanes of its group after, and by what reads shared memory itself, or
// writes it. Groups that share copies meet, too.
void Emitter::EmitBarrier() {
  MeetGroup();
  AwaitGroups();
}

// Of a barrier, all but that other groups are there. They need not see what this one wrote: copies write, when all
// have read. What an instruction reads itself it has read when it was waited for; what lanes read, a copy of another
// group comes after only by a release, which waits for the device's whole memory.
void Emitter::MeetGroup() {
  HONE_CHECK(func_.grid.defined());
  if (has_products_ || has_group_copies_) EmitAssembly("fence.proxy.async.shared::cta;", {});
  if (sharing_groups_ > 1) {
    EmitAssembly(fmt::format("barrier.cluster.arrive.{}.aligned;", lanes_use_copies_ ? "release" : "relaxed"), {});
  }
  builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

void Emitter::AwaitGroups() {
  if (sharing_groups_ > 1) EmitAssembly("barrier.cluster.wait.acquire.aligned;", {});
}

// Assembly that lanes run together. Operands are integers, and floats that it changes, which come first: then the
// result is a struct of as many. Else it is an i32, or nothing.
llvm::Value* Emitter::EmitAssembly(const std::string& text, const Values& operands, llvm::Type* result) {
  std::string constraints, taken;
  std::vector<llvm::Type*> types;
  for (const llvm::Value* operand : operands) {
    llvm::Type* const given = operand->getType();
    if (given->isFloatTy()) {
      constraints += "=f,";
      taken += fmt::format("{},", types.size());
    } else {
      taken += given->isIntegerTy(16) ? "h," : given->isIntegerTy(32) ? "r," : "l,";
    }
    types.push_back(given);
  }
  constraints += (result != nullptr && result->isIntegerTy() ? "=r," : "") + taken;
  llvm::Type* const type = result == nullptr ? builder_.getVoidTy() : result;
  llvm::CallInst* const call = builder_.CreateCall(
      llvm::InlineAsm::get(llvm::FunctionType::get(type, types, false), text, constraints + "~{memory}", true),
      operands);
  call->addFnAttr(llvm::Attribute::Convergent);
  return call;
}

// As often as it says, one after the other: arrays that are indexed by its variable become registers.
void Emitter::EmitUnrolled(const ir::For& loop) {
  ForEachTurn(loop, [&] { EmitStmt(loop.body); });
}

// In each turn the loop's variable is a number.
void Emitter::ForEachTurn(const ir::For& loop, const std::function<void()>& turn) {
  const int64_t extent = ir::ConstantValue(loop.extent, ranges_).value_or(-1);
  HONE_CHECK(extent >= 0);
  for (int64_t i = 0; i < extent; ++i) {
    variables_[loop.var] = builder_.getInt64(static_cast<uint64_t>(i));
    ranges_[loop.var] = {i, i};
    emitted_.clear();
    turn();
  }
  variables_.erase(loop.var);
  ranges_.erase(loop.var);
  emitted_.clear();
}

// A few turns that fill shared memory from shared memory: all loads first, so that they are waited for once. That the
// two are apart the assembler cannot see.
bool Emitter::EmitTurns(const ir::For& loop) {
  constexpr int64_t kFewTurns = 8;
  const ir::Store* const store = loop.body.As<ir::Store>();
  const int64_t extent = ir::ConstantValue(loop.extent, ranges_).value_or(0);
  if (store == nullptr || !ir::IsShared(store->buffer->scope) || extent < 2 || extent > kFewTurns) return false;
  bool others = true;
  ir::ForEachExpr(store->value, [&](const ir::Expr& e) {
    const ir::Load* const load = e.As<ir::Load>();
    if (load != nullptr) others &= ir::IsShared(load->buffer->scope) && load->buffer != store->buffer;
  });
  if (!others) return false;
  const std::string name = loop.var + "\nvalue";  // no Var of the func has a line's end
  Values values;
  ForEachTurn(loop, [&] { values.push_back(EmitExpr(store->value)); });
  size_t next = 0;
  ForEachTurn(loop, [&] {
    variables_[name] = values[next++];
    EmitStore({store->buffer, store->indices, ir::MakeVar(name, store->value.type()), store->mask});
  });
  variables_.erase(name);
  return true;
}

// Arithmetic of indices in 32 bits, where no value on the way needs more; null where one may.
llvm::Value* Emitter::EmitNarrow(const ir::Expr& e, const ir::Binary& binary) {
  if (!func_.grid.defined() || e.type() != ir::kIndexType) return nullptr;
  for (const ir::Expr& part : {e, binary.a, binary.b}) {
    if (!ir::FitsInt(ir::SafeBoundsOf(part, ranges_))) return nullptr;
  }
  llvm::Type* const narrow = builder_.getInt32Ty();
  llvm::Value* const a = builder_.CreateTrunc(EmitExpr(binary.a), narrow);
  llvm::Value* const b = builder_.CreateTrunc(EmitExpr(binary.b), narrow);
  llvm::Value* value = nullptr;
  switch (binary.op) {
    case ir::BinaryOp::kAdd:
      value = builder_.CreateNSWAdd(a, b);
      break;
    case ir::BinaryOp::kSub:
      value = builder_.CreateNSWSub(a, b);
      break;
    case ir::BinaryOp::kMul:
      value = builder_.CreateNSWMul(a, b);
      break;
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kMod:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod: {
      const ir::Interval divisor = ir::SafeBoundsOf(binary.b, ranges_);
      if (divisor.low <= 0 || ir::SafeBoundsOf(binary.a, ranges_).low < 0) return nullptr;
      const bool rest = binary.op == ir::BinaryOp::kMod || binary.op == ir::BinaryOp::kFloorMod;
      value = rest ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
      break;
    }
    default:
      return nullptr;
  }
  return builder_.CreateSExt(value, builder_.getInt64Ty());
}

// With the variables of loops that are written out as the numbers they are.
ir::Expr Emitter::WrittenOut(const ir::Expr& e) const {
  ir::VarMap known;
  for (const auto& [name, range] : ranges_) {
    if (range.IsPoint()) known[name] = ir::Expr(range.low);
  }
  return ir::Substitute(e, known);
}

// What is known of where the access begins: a lane moves up to 16 bytes at once, if they begin on a multiple of that.
llvm::Align Emitter::AlignOf(const ir::BufferNode& buffer, const ir::Expr& first) const {
  const int64_t size = ir::SizeOf(buffer.dtype);
  if (!func_.grid.defined()) return llvm::Align(static_cast<uint64_t>(size));
  const ir::Expr place = WrittenOut(first);
  for (int64_t bytes = kWidestAccess; bytes > size; bytes /= 2) {
    if (ir::IsMultipleOf(place, bytes / size)) return llvm::Align(static_cast<uint64_t>(bytes));
  }
  return llvm::Align(static_cast<uint64_t>(size));
}

// A vector in loads of what a lane moves at once; zeros where the mask, if there is one, is not set. LLVM 19 makes
// mistakes with larger ones: halves that become f32 are not converted. And it loads 16 bytes at once wherever they
// begin, which devices do not; of 8 it asks.
llvm::Value* Emitter::EmitParts(const ir::BufferNode& buffer, llvm::Value* address, llvm::FixedVectorType* vector,
                                llvm::Align align, llvm::Value* mask) {
  const int64_t size = ir::SizeOf(buffer.dtype), count = vector->getNumElements();
  const int64_t together = size == 1 && align < llvm::Align(kWidestAccess) ? kWidestAccess / 2 : kWidestAccess / size;
  Values parts;
  for (int64_t first = 0; first < count; first += together) {
    const int64_t elements = std::min(together, count - first), bytes = first * size;
    auto* const type = llvm::FixedVectorType::get(vector->getElementType(), static_cast<unsigned>(elements));
    llvm::Value* const place = builder_.CreateConstGEP1_64(builder_.getInt8Ty(), address, static_cast<uint64_t>(bytes));
    const llvm::Align part_align = llvm::commonAlignment(align, static_cast<uint64_t>(bytes));
    llvm::Instruction* part = nullptr;
    if (mask == nullptr) {
      part = builder_.CreateAlignedLoad(type, place, part_align);
    } else {
      std::vector<int> lanes(static_cast<size_t>(elements));
      std::iota(lanes.begin(), lanes.end(), static_cast<int>(first));
      part = builder_.CreateMaskedLoad(type, place, part_align, builder_.CreateShuffleVector(mask, lanes),
                                       llvm::Constant::getNullValue(type));
    }
    Annotate(part, &buffer);
    parts.push_back(part);
  }
  return llvm::concatenateVectors(builder_, parts);
}

// What a whole access to such elements hangs on: a branch, where they agree on it. Else undefined, and where a CPU
// needs none.
ir::Expr Emitter::BranchOf(const ir::Expr& mask, ir::Type type, const ir::Expr& index) {
  if (!mask.defined() || (!func_.grid.defined() && HasMaskedMoves(type) && !ir::HasLoad(index))) return {};
  if (mask.type().width == 1) return mask;
  const ir::Broadcast* const uniform = mask.As<ir::Broadcast>();
  return uniform != nullptr ? uniform->value : ir::Expr();
}

// Runs `then` where the condition holds; its value, or zero elsewhere. Of void: null.
llvm::Value* Emitter::EmitGuarded(llvm::Value* condition, llvm::Type* type, const std::function<llvm::Value*()>& then) {
  llvm::BasicBlock* const before = builder_.GetInsertBlock();
  llvm::BasicBlock* const taken = llvm::BasicBlock::Create(context_, "guarded", function_);
  llvm::BasicBlock* const join = llvm::BasicBlock::Create(context_, "join", function_);
  builder_.CreateCondBr(condition, taken, join);
  builder_.SetInsertPoint(taken);
  const auto known = emitted_;  // what is computed here does not reach what follows
  llvm::Value* const value = then();
  emitted_ = known;
  llvm::BasicBlock* const end = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  if (type == nullptr) return nullptr;
  llvm::PHINode* const phi = builder_.CreatePHI(type, 2);
  phi->addIncoming(value, end);
  phi->addIncoming(llvm::Constant::getNullValue(type), before);
  return phi;
}

}  // namespace hone::codegen
