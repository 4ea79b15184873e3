// SPDX-License-Identifier: Apache-2.0
// How LLVM spells tensor instructions: one table for CPUs and GPUs, so that a new instruction does not compile without.
#ifndef HONE_COMPILER_CODEGEN_LLVM_TENSOR_INTRINSICS_H_
#define HONE_COMPILER_CODEGEN_LLVM_TENSOR_INTRINSICS_H_

#include <llvm/IR/Intrinsics.h>

#include "compiler/ir/tensor_instruction.h"

namespace hone::codegen {

struct TensorIntrinsic {
  llvm::Intrinsic::ID id;
  bool takes_bytes = false;  // of a dot product: a and b are vectors of bytes, else of 32-bit elements
};

// not_intrinsic for instructions that LLVM 19 has no intrinsic for: they are written as assembly (wgmma.h).
TensorIntrinsic IntrinsicOf(ir::TensorInstruction instruction);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_TENSOR_INTRINSICS_H_
