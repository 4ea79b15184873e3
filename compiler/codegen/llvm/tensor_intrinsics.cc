// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/tensor_intrinsics.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/IntrinsicsX86.h>

namespace hone::codegen {

TensorIntrinsic IntrinsicOf(ir::TensorInstruction instruction) {
  switch (instruction) {
    case ir::TensorInstruction::kVpdpbusd512:
      return {llvm::Intrinsic::x86_avx512_vpdpbusd_512};
    case ir::TensorInstruction::kVpdpbusd256:  // AVX-VNNI's has the same intrinsic
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
    case ir::TensorInstruction::kWgmmaTf32:
    case ir::TensorInstruction::kWgmmaF16:
    case ir::TensorInstruction::kWgmmaBf16:
    case ir::TensorInstruction::kWgmmaTf32Registers:
      break;
  }
  return {llvm::Intrinsic::not_intrinsic};
}

}  // namespace hone::codegen
