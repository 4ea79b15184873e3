// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/bulk_copies.h"

#include <bit>

#include "compiler/codegen/llvm/ptx_emitter.h"
#include "fmt/format.h"

namespace hone::codegen {
namespace {

constexpr int64_t kMbarrierBytes = ir::kMbarriersBytes / ir::kCommitGroupsMax;
static_assert(kMbarrierBytes == sizeof(uint64_t));

}  // namespace

BulkCopies::BulkCopies(PtxEmitter& emitter, const ir::Func& func)
    : emitter_(emitter), builder_(emitter.builder()), has_copies_(ir::HasBulkCopies(func.body)) {}

// The first lane initializes the mbarriers. Each waits for one arrival, that of the first lane when it commits, and for
// the bytes that are announced before. The barrier keeps a group from copying to another that has no mbarriers yet.
void BulkCopies::Begin() {
  committed_ = builder_.CreateAlloca(builder_.getInt32Ty());
  arrived_ = builder_.CreateAlloca(builder_.getInt32Ty());
  for (llvm::Value* count : {committed_, arrived_}) builder_.CreateStore(builder_.getInt32(0), count);
  mbarriers_ =
      builder_.CreatePtrToInt(emitter_.shared_buffers().PlaceMbarriers(ir::kCommitGroupsMax), builder_.getInt32Ty());
  emitter_.EmitGuarded(emitter_.IsFirstLane(), nullptr, [&]() -> llvm::Value* {
    for (int64_t n = 0; n < ir::kCommitGroupsMax; ++n) {
      emitter_.EmitAssembly(
          "mbarrier.init.shared::cta.b64 [$0], 1;",
          {builder_.CreateAdd(mbarriers_, builder_.getInt32(static_cast<uint32_t>(n * kMbarrierBytes)))});
    }
    emitter_.EmitAssembly("fence.mbarrier_init.release.cluster;", {});
    return nullptr;
  });
  emitter_.EmitBarrier();
}

// The mbarrier of commit group `number`.
llvm::Value* BulkCopies::MbarrierOf(llvm::Value* number) {
  llvm::Value* const turn = builder_.CreateAnd(number, builder_.getInt32(ir::kCommitGroupsMax - 1));
  return builder_.CreateAdd(mbarriers_, builder_.CreateMul(turn, builder_.getInt32(kMbarrierBytes)));
}

void BulkCopies::EmitCopy(const ir::Copy& copy) {
  llvm::Type* const element = emitter_.MemoryTypeOf(copy.buffer->dtype);
  const ir::Load& source = *copy.source.As<ir::Load>();
  const int64_t bytes = copy.count * ir::SizeOf(copy.buffer->dtype), part = bytes / copy.groups;
  llvm::Value* const mbarrier = MbarrierOf(builder_.CreateLoad(builder_.getInt32Ty(), committed_));
  const auto number = [&](int64_t n) { return builder_.getInt32(static_cast<uint32_t>(n)); };
  emitter_.EmitAssembly("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", {mbarrier, number(bytes)});
  llvm::Value* const to =
      builder_.CreatePtrToInt(emitter_.Address(copy.buffer, copy.indices[0], element), builder_.getInt32Ty());
  llvm::Value* const from =
      builder_.CreatePtrToInt(emitter_.Address(source.buffer, source.indices[0], element), builder_.getInt64Ty());
  Values operands = {to, from, number(part), mbarrier};
  const bool shared = copy.groups > 1;
  if (shared) {
    const auto groups = static_cast<uint64_t>(copy.groups);
    llvm::Value* const before =
        builder_.CreateMul(builder_.CreateURem(emitter_.variables().at(ir::kGroupVar), builder_.getInt64(groups)),
                           builder_.getInt64(static_cast<uint64_t>(part)));
    operands[0] = builder_.CreateAdd(to, builder_.CreateTrunc(before, to->getType()));
    operands[1] = builder_.CreateAdd(from, before);
    operands.push_back(builder_.getInt16(static_cast<uint16_t>((uint64_t{1} << groups) - 1)));
  }
  emitter_.EmitAssembly(
      fmt::format("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{} [$0], [$1], $2, [$3]{};",
                  shared ? ".multicast::cluster" : "", shared ? ", $4" : ""),
      operands);
}

void BulkCopies::EmitCommit() {
  llvm::Value* const number = builder_.CreateLoad(builder_.getInt32Ty(), committed_);
  emitter_.EmitGuarded(emitter_.IsFirstLane(), nullptr, [&]() -> llvm::Value* {
    return emitter_.EmitAssembly("{ .reg .b64 state; mbarrier.arrive.release.cta.shared::cta.b64 state, [$0]; }",
                                 {MbarrierOf(number)});
  });
  builder_.CreateStore(builder_.CreateAdd(number, builder_.getInt32(1)), committed_);
}

// One commit group after the other.
void BulkCopies::EmitWait(int64_t pending) {
  llvm::BasicBlock* const any = emitter_.MakeBlock("any");
  llvm::BasicBlock* const wait = emitter_.MakeBlock("wait");
  llvm::BasicBlock* const there = emitter_.MakeBlock("there");
  llvm::BasicBlock* const end = emitter_.MakeBlock("waited");
  llvm::Type* const word = builder_.getInt32Ty();
  builder_.CreateBr(any);
  builder_.SetInsertPoint(any);
  llvm::Value* const number = builder_.CreateLoad(word, arrived_);
  llvm::Value* const left = builder_.CreateSub(builder_.CreateLoad(word, committed_), number);
  builder_.CreateCondBr(builder_.CreateICmpSGT(left, builder_.getInt32(static_cast<uint32_t>(pending))), wait, end);
  builder_.SetInsertPoint(wait);
  llvm::Value* const phase = builder_.CreateAnd(
      builder_.CreateLShr(number, std::countr_zero(static_cast<uint64_t>(ir::kCommitGroupsMax))), builder_.getInt32(1));
  llvm::Value* const done = emitter_.EmitAssembly(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2; selp.b32 $0, 1, 0, p; }",
      {MbarrierOf(number), phase}, word);
  builder_.CreateCondBr(builder_.CreateICmpNE(done, builder_.getInt32(0)), there, wait);
  builder_.SetInsertPoint(there);
  builder_.CreateStore(builder_.CreateAdd(number, builder_.getInt32(1)), arrived_);
  builder_.CreateBr(any);
  builder_.SetInsertPoint(end);
  emitter_.ForgetValues();
}

}  // namespace hone::codegen
