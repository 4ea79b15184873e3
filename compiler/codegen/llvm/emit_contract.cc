// SPDX-License-Identifier: Apache-2.0
// Tensor instructions: their operands as vectors, and the intrinsic of each.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>

#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"

namespace hone::codegen {
namespace {

struct Spelling {
  llvm::Intrinsic::ID id;
  bool bytes = false;  // of a dot product: takes a and b as vectors of bytes, else of 32-bit elements
};

Spelling IntrinsicOf(ir::TensorInstruction instruction) {
  switch (instruction) {
    case ir::TensorInstruction::kVpdpbusd512:
      return {llvm::Intrinsic::x86_avx512_vpdpbusd_512};
    case ir::TensorInstruction::kVpdpbusd256:  // LLVM spells AVX-VNNI's the same
      return {llvm::Intrinsic::x86_avx512_vpdpbusd_256};
    case ir::TensorInstruction::kUdot:
      return {llvm::Intrinsic::aarch64_neon_udot, true};
    case ir::TensorInstruction::kSdot:
      return {llvm::Intrinsic::aarch64_neon_sdot, true};
    case ir::TensorInstruction::kUsdot:
      return {llvm::Intrinsic::aarch64_neon_usdot, true};
    case ir::TensorInstruction::kMmaTf32:
      return {llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32};
    case ir::TensorInstruction::kMmaF16:
      return {llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32};
    case ir::TensorInstruction::kMmaBf16:
      return {llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16};
    case ir::TensorInstruction::kWgmmaTf32:  // without an intrinsic: emit_products.cc
    case ir::TensorInstruction::kWgmmaF16:
    case ir::TensorInstruction::kWgmmaBf16:
    case ir::TensorInstruction::kWgmmaTf32Registers:
      break;
  }
  return {llvm::Intrinsic::not_intrinsic};
}

}  // namespace

// A quarter of a row of a or b, which is eight bytes, as the two registers that mma takes of it. Which steps of the
// reduction these are is not what mma's own numbers say, but the same for a and b.
std::array<llvm::Value*, 2> Emitter::EmitQuarterRow(const ir::MatrixOperand& operand, llvm::Value* offset,
                                                    const ir::TensorInstructionEntry& entry) {
  const ir::Load& first = *operand.first.As<ir::Load>();
  llvm::Type* const element = MemoryTypeOf(first.buffer->dtype);
  llvm::Type* const word = entry.fraction_bits > 0 ? builder_.getFloatTy() : builder_.getInt32Ty();
  llvm::Value* const address = builder_.CreateGEP(element, Address(first.buffer, first.indices[0], element), offset);
  std::array<llvm::Value*, 2> words;
  if (operand.apart == 1) {
    // The offset leads to another row than the lane's own: so many strides further, or back.
    const auto stride = static_cast<uint64_t>(operand.stride * ir::SizeOf(first.buffer->dtype));
    const llvm::Align own = llvm::commonAlignment(AlignOf(*first.buffer, first.indices[0]), stride);
    const llvm::Align align = std::min(own, llvm::Align(8));
    auto* const load = builder_.CreateAlignedLoad(llvm::FixedVectorType::get(word, 2), address, align);
    Annotate(load, first.buffer.get());
    for (unsigned i = 0; i < 2; ++i) words[i] = builder_.CreateExtractElement(load, i);
  } else {
    for (unsigned i = 0; i < 2; ++i) {
      llvm::Value* const place =
          builder_.CreateConstGEP1_64(element, address, i * static_cast<uint64_t>(operand.apart));
      auto* const load = builder_.CreateAlignedLoad(word, place, llvm::Align(ir::SizeOf(entry.b)));
      Annotate(load, first.buffer.get());
      words[i] = load;
    }
  }
  for (llvm::Value*& w : words) {
    if (entry.fraction_bits > 0) w = EmitHalfMore(builder_, w, entry.fraction_bits);
    if (entry.a == ir::DType::kFloat16) {
      w = builder_.CreateBitCast(w, llvm::FixedVectorType::get(builder_.getHalfTy(), 2));
    }
  }
  return words;
}

// Of 32 lanes together. Each loads what mma wants of it, which lies in the rows and columns of its neighbours.
void Emitter::EmitMma(const ir::Contract& contract) {
  HONE_CHECK(func_.grid.defined());
  const ir::TensorInstructionEntry& entry = EntryOf(contract.instruction);
  const auto number = [&](int64_t n) { return builder_.getInt64(static_cast<uint64_t>(n)); };
  llvm::Value* const lane = builder_.CreateAnd(variables_.at(ir::kLaneVar), number(entry.lanes - 1));
  llvm::Value* const t = builder_.CreateAnd(lane, number(ir::kLanesOfRow - 1));
  llvm::Value* const g = builder_.CreateLShr(lane, number(std::countr_zero<uint64_t>(ir::kLanesOfRow)));
  const int64_t quarter = entry.k / ir::kLanesOfRow;
  const auto times = [&](llvm::Value* value, int64_t factor) { return builder_.CreateMul(value, number(factor)); };
  llvm::Value* const own = times(t, quarter);
  const auto row = EmitQuarterRow(contract.a, own, entry);
  const auto next_row = EmitQuarterRow(contract.a, builder_.CreateAdd(own, number(contract.a.stride)), entry);
  llvm::Value* const column = times(builder_.CreateSub(g, times(t, entry.n)), contract.b.stride);
  const auto b = EmitQuarterRow(contract.b, builder_.CreateAdd(column, times(t, quarter * contract.b.apart)), entry);
  const ir::Load& sum = *contract.sum.first.As<ir::Load>();
  llvm::Value* const first = Address(sum.buffer, sum.indices[0], builder_.getFloatTy());
  Values places, arguments = {row[0], next_row[0], row[1], next_row[1], b[0], b[1]};
  for (const int64_t place : {int64_t{0}, int64_t{1}, contract.sum.stride, contract.sum.stride + 1}) {
    places.push_back(builder_.CreateConstGEP1_64(builder_.getFloatTy(), first, static_cast<uint64_t>(place)));
    auto* const load = builder_.CreateLoad(builder_.getFloatTy(), places.back());
    Annotate(load, sum.buffer.get());
    arguments.push_back(load);
  }
  llvm::Value* const sums = builder_.CreateIntrinsic(IntrinsicOf(contract.instruction).id, {}, arguments);
  for (unsigned i = 0; i < places.size(); ++i) {
    Annotate(builder_.CreateStore(builder_.CreateExtractValue(sums, i), places[i]), sum.buffer.get());
  }
  emitted_.clear();
}

// Of a dot product the sum is n elements of 32 bits, a is k bytes for all of them, b k bytes for each.
void Emitter::EmitContract(const ir::Contract& contract) {
  const ir::TensorInstructionEntry& entry = EntryOf(contract.instruction);
  if (entry.lanes > 1) return EmitMma(contract);
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
  llvm::Value* a = builder_.CreateVectorSplat(width, load(contract.a, builder_.getInt32Ty()));
  llvm::Value* b = load(contract.b, sum_type);
  llvm::Value* sum = load(contract.sum, sum_type);
  const Spelling dot = IntrinsicOf(contract.instruction);
  if (dot.bytes) {
    auto* const bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), width * static_cast<unsigned>(entry.k));
    sum = builder_.CreateIntrinsic(dot.id, {sum_type, bytes},
                                   {sum, builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
  } else {
    sum = builder_.CreateIntrinsic(dot.id, {}, {sum, a, b});
  }
  Annotate(builder_.CreateAlignedStore(sum, address(contract.sum), llvm::Align(ir::SizeOf(entry.sum))),
           contract.sum.first.As<ir::Load>()->buffer.get());
  emitted_.clear();
}

}  // namespace hone::codegen
