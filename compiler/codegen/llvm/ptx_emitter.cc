// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/ptx_emitter.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <set>
#include <tuple>
#include <utility>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "compiler/codegen/llvm/nvptx.h"
#include "compiler/ir/match.h"
#include "compiler/ir/serial_lanes.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

bool IsWritten(const ir::Stmt& s, const ir::Buffer& buffer) {
  return ir::AnyStmt(s, [&](const ir::Stmt& x) { return ir::WrittenBuffer(x) == buffer; });
}

// Whether lanes themselves read or write buffers that copies shared by several groups write to. Operands of
// asynchronous tensor instructions are not read by lanes.
bool LanesUseSharedCopies(const ir::Stmt& s) {
  std::set<const ir::BufferNode*> shared;
  const auto is_shared = [](const ir::Stmt& x) {
    const ir::Copy* const copy = x.As<ir::Copy>();
    return copy != nullptr && copy->groups > 1;
  };
  ir::AnyStmt(s, [&](const ir::Stmt& x) {
    if (is_shared(x)) shared.insert(ir::WrittenBuffer(x).get());
    return false;
  });
  return !shared.empty() && ir::AnyStmt(s, [&](const ir::Stmt& x) {
    bool used = !is_shared(x) && shared.contains(ir::WrittenBuffer(x).get());
    const ir::Mma* const mma = x.As<ir::Mma>();
    const bool is_async = mma != nullptr && ir::EntryOf(mma->instruction).is_async;
    const bool loads_a = is_async && ir::EntryOf(mma->instruction).loads_a;
    const auto reads = [&](const ir::Expr& e) {
      const ir::Load* const load = e.As<ir::Load>();
      used |= load != nullptr && shared.contains(load->buffer.get());
    };
    ir::ForEachChild(
        x, [](const ir::Stmt&) {},
        [&](const ir::Expr& e) {
          const bool is_asynchronous =
              is_async && (e.SameHandle(mma->b.first) || (!loads_a && e.SameHandle(mma->a.first)));
          if (!is_asynchronous) ir::ForEachExpr(e, reads);
        });
    return used;
  });
}

}  // namespace

PtxEmitter::PtxEmitter(llvm::Module* module, const ir::Func& func, const EmitOptions& options,
                       const target::Target& target)
    : FuncEmitter(module, func, options),
      overlaps_(target.hierarchy.overlapping_launches),
      has_async_copies_(target.memory.async_copy_bytes > 0),
      sharing_groups_(ir::CountSharingGroups(func.body)),
      lanes_use_shared_copies_(LanesUseSharedCopies(func.body)),
      shared_(*this, func, target.memory),
      bulk_copies_(*this, func),
      wgmma_(*this, func) {}

void PtxEmitter::Run() {
  llvm::Type* const pointer = builder_.getPtrTy(kGlobal);
  const std::vector<llvm::Type*> types(func_.params.size(), pointer);
  function_ = MakeFunction(func_.name, llvm::FunctionType::get(builder_.getVoidTy(), types, false), false);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  // At least one group per unit: without this, ptxas keeps registers for several groups, and spills for them.
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"reqntidx", func_.grid.lanes}, {"minctasm", 1}}) {
    llvm::Metadata* const facts[] = {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(context_, name),
                                     llvm::ConstantAsMetadata::get(builder_.getInt32(static_cast<uint32_t>(value)))};
    module_->getOrInsertNamedMetadata("nvvm.annotations")->addOperand(llvm::MDNode::get(context_, facts));
  }
  builder_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", function_));
  EmitParams();
  const std::tuple<const char*, llvm::Intrinsic::ID, int64_t> ids[] = {
      {ir::kGroupVar, llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, func_.grid.groups},
      {ir::kLaneVar, llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, func_.grid.lanes}};
  for (const auto& [var, id, count] : ids) {
    ranges_[var] = {0, count - 1};
    variables_[var] = builder_.CreateZExt(builder_.CreateIntrinsic(id, {}, {}), builder_.getInt64Ty());
  }
  wgmma_.Begin();
  if (bulk_copies_.has_copies()) bulk_copies_.Begin();
  if (overlaps_) WaitForPrecedingLaunch();
  EmitStmt(func_.body);
  builder_.CreateRetVoid();
}

void PtxEmitter::EmitParams() {
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
}

// Until then no lane may use memory that others see. LLVM takes what it knows of arguments as true from the first
// instruction on, and would read before the wait: so the addresses of buffers become known only behind it. The next
// launch may begin once all groups have come here.
void PtxEmitter::WaitForPrecedingLaunch() {
  EmitAssembly("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;", {});
  llvm::Type* const pointer = builder_.getPtrTy(kGlobal);
  auto* const same =
      llvm::InlineAsm::get(llvm::FunctionType::get(pointer, {pointer}, false), "mov.b64 $0, $1;", "=l,l", true);
  // In the order of params, because the order of addresses, which places_ has, differs from one compilation to the
  // next.
  std::set<const ir::BufferNode*> done;
  for (const ir::Buffer& buffer : func_.params) {
    if (!done.insert(buffer.get()).second) continue;
    llvm::Value*& address = places_.at(buffer.get()).pointer;
    address = builder_.CreateCall(same, {address});
  }
}

void PtxEmitter::EmitStmt(const ir::Stmt& s) {
  ForgetValues();
  if (wgmma_.EmitProducts({&s, 1}) > 0) return;
  FuncEmitter::EmitStmt(s);
}

void PtxEmitter::EmitBlock(const ir::Block& block) {
  const std::span<const ir::Stmt> stmts = block.stmts;
  for (size_t i = 0; i < stmts.size();) {
    const size_t products = wgmma_.EmitProducts(stmts.subspan(i));
    if (products == 0) EmitStmt(stmts[i]);
    i += std::max<size_t>(1, products);
  }
}

void PtxEmitter::EmitLet(const ir::Let& let) {
  lets_[let.var] = ir::Substitute(let.value, lets_);
  FuncEmitter::EmitLet(let);
  lets_.erase(let.var);
}

llvm::Value* PtxEmitter::AllocateBuffer(const ir::BufferNode& buffer) {
  return ir::IsShared(buffer.scope) ? shared_.Place(buffer) : FuncEmitter::AllocateBuffer(buffer);
}

void PtxEmitter::EmitMmaWait(const ir::MmaWait& wait) {
  wgmma_.EmitCommit();
  wgmma_.EmitWait(wait);
}

llvm::Value* PtxEmitter::IsFirstLane() {
  return builder_.CreateICmpEQ(variables_.at(ir::kLaneVar), builder_.getInt64(0));
}

// A few iterations that fill shared memory from shared memory: all loads first, so that they are waited for once. ptxas
// cannot see that source and destination do not overlap.
bool PtxEmitter::EmitLoopByPattern(const ir::For& loop) {
  constexpr int64_t kIterationsMax = 8;
  const ir::Store* const store = loop.body.As<ir::Store>();
  const int64_t extent = ir::ConstantValue(loop.extent, ranges_).value_or(0);
  if (store == nullptr || !ir::IsShared(store->buffer->scope) || extent < 2 || extent > kIterationsMax) return false;
  bool from_other_buffers = true;
  ir::ForEachExpr(store->value, [&](const ir::Expr& e) {
    const ir::Load* const load = e.As<ir::Load>();
    if (load != nullptr) from_other_buffers &= ir::IsShared(load->buffer->scope) && load->buffer != store->buffer;
  });
  if (!from_other_buffers) return false;
  const std::string name = loop.var + "\nvalue";  // no Var of a func has a line break
  Values values;
  ForEachIteration(loop, [&] { values.push_back(EmitExpr(store->value)); });
  size_t next = 0;
  ForEachIteration(loop, [&] {
    variables_[name] = values[next++];
    EmitStore({store->buffer, store->indices, ir::MakeVar(name, store->value.type()), store->mask});
  });
  variables_.erase(name);
  return true;
}

void PtxEmitter::EmitBarrier() {
  SyncGroupAndArrive();
  WaitForSharingGroups();
}

// If lanes read what copies write, the arrival is a release: only that orders another group's copy after the reads, and
// it waits for all of the device's memory. An asynchronous instruction has read its operands when it was waited for.
void PtxEmitter::SyncGroupAndArrive() {
  if (wgmma_.has_products() || bulk_copies_.has_copies()) EmitAssembly("fence.proxy.async.shared::cta;", {});
  if (sharing_groups_ > 1) {
    EmitAssembly(fmt::format("barrier.cluster.arrive.{}.aligned;", lanes_use_shared_copies_ ? "release" : "relaxed"),
                 {});
  }
  builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
}

void PtxEmitter::WaitForSharingGroups() {
  if (sharing_groups_ > 1) EmitAssembly("barrier.cluster.wait.acquire.aligned;", {});
}

llvm::Value* PtxEmitter::EmitAssembly(const std::string& text, const Values& operands, llvm::Type* result) {
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

}  // namespace hone::codegen
