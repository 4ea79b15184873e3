// Tensor instructions: their operands as vectors, and the intrinsic of each.
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/codegen/llvm/emitter.h"

namespace hone::codegen {
namespace {

// Of the dot products: the sum is n elements of 32 bits, a is k bytes for all of them, b k bytes for each.
struct DotProduct {
  llvm::Intrinsic::ID id;
  bool bytes;  // takes a and b as vectors of bytes, else of 32-bit elements
};

DotProduct IntrinsicOf(ir::TensorInstruction instruction) {
  switch (instruction) {
    case ir::TensorInstruction::kVpdpbusd512:
      return {llvm::Intrinsic::x86_avx512_vpdpbusd_512, false};
    case ir::TensorInstruction::kVpdpbusd256:  // LLVM spells AVX-VNNI's the same
      return {llvm::Intrinsic::x86_avx512_vpdpbusd_256, false};
    case ir::TensorInstruction::kUdot:
      return {llvm::Intrinsic::aarch64_neon_udot, true};
    case ir::TensorInstruction::kSdot:
      return {llvm::Intrinsic::aarch64_neon_sdot, true};
    case ir::TensorInstruction::kUsdot:
      return {llvm::Intrinsic::aarch64_neon_usdot, true};
  }
  return {llvm::Intrinsic::not_intrinsic, false};
}

}  // namespace

void Emitter::EmitContract(const ir::Contract& contract) {
  const ir::TensorInstructionEntry& entry = EntryOf(contract.instruction);
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
  const DotProduct dot = IntrinsicOf(contract.instruction);
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
