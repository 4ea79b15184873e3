// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of lanes, and of groups (compiler/ir/copy.h).
//
// What a group copies is counted by objects in shared memory ("mbarrier"), in which lanes see that so many bytes have
// arrived. Bundles have them in turn: bundle n has object n % kMostBundles, and of that the phase n / kMostBundles, of
// which the lowest bit is enough to know it from the one before. How many bundles a lane committed, and how many it
// knows to be there, are registers, alike in all lanes. "PTX ISA", 9.7.13.15.
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <bit>
#include <utility>

#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/plain.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

constexpr int64_t kObjectBytes = ir::kBundlesBytes / ir::kMostBundles;

llvm::Intrinsic::ID CopyOfLane(int64_t bytes, bool masked) {
  switch (bytes) {
    case 4:
      return masked ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s
                    : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4;
    case 8:
      return masked ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                    : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8;
    default:  // past the first cache: nobody else of the group reads it
      HONE_CHECK(bytes == 16);
      return masked ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                    : llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16;
  }
}

}  // namespace

// The first lane makes the objects. Each waits for one arrival, that of the first lane when it commits, and for the
// bytes that are announced before. No group copies to another that has none yet.
void Emitter::BeginBundles() {
  committed_ = builder_.CreateAlloca(builder_.getInt32Ty());
  arrived_ = builder_.CreateAlloca(builder_.getInt32Ty());
  for (llvm::Value* count : {committed_, arrived_}) builder_.CreateStore(builder_.getInt32(0), count);
  bundles_ = builder_.CreatePtrToInt(
      EmitShared(llvm::ArrayType::get(builder_.getInt64Ty(), ir::kMostBundles), kObjectBytes, shared_.bundles),
      builder_.getInt32Ty());
  EmitGuarded(IsFirstLane(), nullptr, [&]() -> llvm::Value* {
    for (int64_t n = 0; n < ir::kMostBundles; ++n) {
      EmitAssembly("mbarrier.init.shared::cta.b64 [$0], 1;",
                   {builder_.CreateAdd(bundles_, builder_.getInt32(static_cast<uint32_t>(n * kObjectBytes)))});
    }
    EmitAssembly("fence.mbarrier_init.release.cluster;", {});
    return nullptr;
  });
  EmitBarrier();
}

llvm::Value* Emitter::IsFirstLane() { return builder_.CreateICmpEQ(variables_.at(ir::kLaneVar), builder_.getInt64(0)); }

// The object of bundle `number`.
llvm::Value* Emitter::BundleOf(llvm::Value* number) {
  llvm::Value* const turn = builder_.CreateAnd(number, builder_.getInt32(ir::kMostBundles - 1));
  return builder_.CreateAdd(bundles_, builder_.CreateMul(turn, builder_.getInt32(kObjectBytes)));
}

void Emitter::EmitCopy(const ir::Copy& copy) {
  if (IsOfGroup(copy)) return EmitGroupCopy(copy);
  if (!async_copies_) return EmitStmt(ir::AsStore(copy));
  llvm::Type* const element = MemoryTypeOf(copy.buffer->dtype);
  const ir::Load& source = *copy.source.As<ir::Load>();
  Values arguments = {Address(copy.buffer, copy.indices[0], element),
                      Address(source.buffer, source.indices[0], element)};
  const int64_t bytes = copy.count * ir::SizeOf(copy.buffer->dtype);
  const bool masked = copy.mask.defined();
  if (masked) {  // bytes that are read; zeros fill the rest
    arguments.push_back(builder_.CreateSelect(EmitExpr(copy.mask), builder_.getInt32(static_cast<uint32_t>(bytes)),
                                              builder_.getInt32(0)));
  }
  builder_.CreateIntrinsic(CopyOfLane(bytes, masked), {}, arguments);
}

// Announces the bytes of all groups that share the copy, and begins this one's part. Only the first lane comes here.
void Emitter::EmitGroupCopy(const ir::Copy& copy) {
  llvm::Type* const element = MemoryTypeOf(copy.buffer->dtype);
  const ir::Load& source = *copy.source.As<ir::Load>();
  const int64_t bytes = copy.count * ir::SizeOf(copy.buffer->dtype), part = bytes / copy.groups;
  llvm::Value* const bundle = BundleOf(builder_.CreateLoad(builder_.getInt32Ty(), committed_));
  const auto number = [&](int64_t n) { return builder_.getInt32(static_cast<uint32_t>(n)); };
  EmitAssembly("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", {bundle, number(bytes)});
  llvm::Value* const to =
      builder_.CreatePtrToInt(Address(copy.buffer, copy.indices[0], element), builder_.getInt32Ty());
  llvm::Value* const from =
      builder_.CreatePtrToInt(Address(source.buffer, source.indices[0], element), builder_.getInt64Ty());
  Values operands = {to, from, number(part), bundle};
  const bool shared = copy.groups > 1;
  if (shared) {
    const auto groups = static_cast<uint64_t>(copy.groups);
    llvm::Value* const before =
        builder_.CreateMul(builder_.CreateURem(variables_.at(ir::kGroupVar), builder_.getInt64(groups)),
                           builder_.getInt64(static_cast<uint64_t>(part)));
    operands[0] = builder_.CreateAdd(to, builder_.CreateTrunc(before, to->getType()));
    operands[1] = builder_.CreateAdd(from, before);
    operands.push_back(builder_.getInt16(static_cast<uint16_t>((uint64_t{1} << groups) - 1)));
  }
  EmitAssembly(
      fmt::format("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{} [$0], [$1], $2, [$3]{};",
                  shared ? ".multicast::cluster" : "", shared ? ", $4" : ""),
      operands);
}

void Emitter::EmitCommit() {
  if (has_group_copies_) {
    llvm::Value* const number = builder_.CreateLoad(builder_.getInt32Ty(), committed_);
    EmitGuarded(IsFirstLane(), nullptr, [&]() -> llvm::Value* {
      return EmitAssembly("{ .reg .b64 state; mbarrier.arrive.release.cta.shared::cta.b64 state, [$0]; }",
                          {BundleOf(number)});
    });
    builder_.CreateStore(builder_.CreateAdd(number, builder_.getInt32(1)), committed_);
  }
  if (async_copies_) builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
}

void Emitter::EmitWait(const ir::Wait& wait) {
  if (async_copies_) {
    builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                             {builder_.getInt32(static_cast<uint32_t>(wait.pending))});
  }
  if (has_group_copies_) WaitForBundles(wait.pending);
}

// One bundle after the other, until at most `pending` are left.
void Emitter::WaitForBundles(int64_t pending) {
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context_, name, function_); };
  llvm::BasicBlock *const any = block("any"), *const wait = block("wait"), *const there = block("there"),
                          *const end = block("waited");
  llvm::Type* const word = builder_.getInt32Ty();
  builder_.CreateBr(any);
  builder_.SetInsertPoint(any);
  llvm::Value* const number = builder_.CreateLoad(word, arrived_);
  llvm::Value* const left = builder_.CreateSub(builder_.CreateLoad(word, committed_), number);
  builder_.CreateCondBr(builder_.CreateICmpSGT(left, builder_.getInt32(static_cast<uint32_t>(pending))), wait, end);
  builder_.SetInsertPoint(wait);
  llvm::Value* const phase = builder_.CreateAnd(
      builder_.CreateLShr(number, std::countr_zero(static_cast<uint64_t>(ir::kMostBundles))), builder_.getInt32(1));
  llvm::Value* const done =
      EmitAssembly("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }",
                   {BundleOf(number), phase}, word);
  builder_.CreateCondBr(builder_.CreateICmpNE(done, builder_.getInt32(0)), there, wait);
  builder_.SetInsertPoint(there);
  builder_.CreateStore(builder_.CreateAdd(number, builder_.getInt32(1)), arrived_);
  builder_.CreateBr(any);
  builder_.SetInsertPoint(end);
  emitted_.clear();
}

}  // namespace hone::codegen
