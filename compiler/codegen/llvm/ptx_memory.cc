// SPDX-License-Identifier: Apache-2.0
// Memory of GPUs: indices in 32 bits, wide accesses, swizzled buffers, and asynchronous copies.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <numeric>

#include "base/status.h"
#include "compiler/codegen/llvm/ptx_emitter.h"
#include "compiler/ir/match.h"
#include "compiler/ir/multiple.h"
#include "compiler/ir/safe_bounds.h"
#include "compiler/ir/serial_lanes.h"

namespace hone::codegen {
namespace {

constexpr int64_t kAccessBytesMax = 16;  // that one lane moves at once

llvm::Intrinsic::ID LaneCopyIntrinsic(int64_t bytes, bool masked) {
  switch (bytes) {
    case 4:
      return masked ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s
                    : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4;
    case 8:
      return masked ? llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                    : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_8;
    default:  // past the first cache: no other lane of the group reads it
      HONE_CHECK(bytes == 16);
      return masked ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                    : llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16;
  }
}

}  // namespace

// In 32 bits, if neither the operands nor the result need more.
llvm::Value* PtxEmitter::EmitIndexBinary(const ir::Expr& e, const ir::Binary& binary) {
  if (e.type() != ir::kIndexType) return nullptr;
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

ir::Expr PtxEmitter::WithUnrolled(const ir::Expr& e) const {
  ir::VarMap known;
  for (const auto& [name, range] : ranges_) {
    if (range.IsPoint()) known[name] = ir::Expr(range.low);
  }
  return ir::Substitute(e, known);
}

// A lane moves up to 16 bytes at once if they begin on a multiple of that.
llvm::Align PtxEmitter::AlignOf(const ir::BufferNode& buffer, const ir::Expr& first) const {
  const int64_t size = ir::SizeOf(buffer.dtype);
  const ir::Expr place = WithUnrolled(first);
  for (int64_t bytes = kAccessBytesMax; bytes > size; bytes /= 2) {
    if (ir::IsMultipleOf(place, bytes / size)) return llvm::Align(static_cast<uint64_t>(bytes));
  }
  return llvm::Align(static_cast<uint64_t>(size));
}

llvm::Value* PtxEmitter::Address(const ir::Buffer& buffer, const ir::Expr& index, llvm::Type* element,
                                 bool may_be_outside) {
  if (buffer->scope != ir::Scope::kSwizzled) return FuncEmitter::Address(buffer, index, element, may_be_outside);
  return shared_.SwizzledAddress(places_.at(buffer.get()).pointer, *buffer, WithUnrolled(index));
}

// As loads of what a lane moves at once. LLVM 19 is wrong on larger ones: f16 that become f32 are not converted. Bytes
// need a load of 8 where they are not aligned to 16, because LLVM would load 16 at any address, which the device
// cannot.
llvm::Value* PtxEmitter::EmitContiguousLoad(const ir::Load& load, llvm::Value* address, llvm::FixedVectorType* vector,
                                            llvm::Value* mask) {
  const ir::BufferNode& buffer = *load.buffer;
  const llvm::Align align = mask == nullptr ? AlignOf(buffer, load.indices[0].As<ir::Ramp>()->base)
                                            : llvm::Align(static_cast<uint64_t>(ir::SizeOf(buffer.dtype)));
  const int64_t size = ir::SizeOf(buffer.dtype), count = vector->getNumElements();
  const int64_t together =
      size == 1 && align < llvm::Align(kAccessBytesMax) ? kAccessBytesMax / 2 : kAccessBytesMax / size;
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

void PtxEmitter::EmitCopy(const ir::Copy& copy) {
  if (IsBulkCopy(copy)) return bulk_copies_.EmitCopy(copy);
  if (!has_async_copies_) return FuncEmitter::EmitCopy(copy);
  llvm::Type* const element = MemoryTypeOf(copy.buffer->dtype);
  const ir::Load& source = *copy.source.As<ir::Load>();
  Values arguments = {Address(copy.buffer, copy.indices[0], element),
                      Address(source.buffer, source.indices[0], element)};
  const int64_t bytes = copy.count * ir::SizeOf(copy.buffer->dtype);
  const bool masked = copy.mask.defined();
  if (masked) {  // the bytes to read; zeros fill the rest
    arguments.push_back(builder_.CreateSelect(EmitExpr(copy.mask), builder_.getInt32(static_cast<uint32_t>(bytes)),
                                              builder_.getInt32(0)));
  }
  builder_.CreateIntrinsic(LaneCopyIntrinsic(bytes, masked), {}, arguments);
}

void PtxEmitter::EmitCommit() {
  if (bulk_copies_.has_copies()) bulk_copies_.EmitCommit();
  if (has_async_copies_) builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {}, {});
}

void PtxEmitter::EmitWait(const ir::Wait& wait) {
  if (has_async_copies_) {
    builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {},
                             {builder_.getInt32(static_cast<uint32_t>(wait.pending))});
  }
  if (bulk_copies_.has_copies()) bulk_copies_.EmitWait(wait.pending);
}

}  // namespace hone::codegen
