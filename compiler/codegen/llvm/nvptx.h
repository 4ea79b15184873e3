// SPDX-License-Identifier: Apache-2.0
// Address spaces, as LLVM numbers them for NVPTX.
#ifndef HONE_COMPILER_CODEGEN_LLVM_NVPTX_H_
#define HONE_COMPILER_CODEGEN_LLVM_NVPTX_H_

namespace hone::codegen {

inline constexpr unsigned kGlobal = 1, kShared = 3;

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_LLVM_NVPTX_H_
