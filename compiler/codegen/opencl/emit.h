// SPDX-License-Identifier: Apache-2.0
// OpenCL C: lowered functions with a grid as the source of one program, for the compiler of the device's driver.
//
// One __kernel per function, under the function's name, with one __global pointer per param, in order. A kernel is to
// be launched with exactly grid.groups groups of grid.lanes lanes. bool is uchar in memory, bf16 is ushort, f16 is
// half. Nothing of LLVM is in here, so that the source can be made in a process that holds another LLVM (PoCL does).
#ifndef HONE_COMPILER_CODEGEN_OPENCL_EMIT_H_
#define HONE_COMPILER_CODEGEN_OPENCL_EMIT_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::codegen {

// OpenCL C 1.2 that means what docs/IR.md says, if the device rounds / and sqrt of f32 correctly (an option of its
// compiler). exp, log, tanh and the other functions are the device's: within the errors that OpenCL allows.
//
// fuse: the device may contract a * b + c, as tuned kernels do everywhere; false for an independent witness.
// kInvalidArgument: a func without a grid, or not lowered (loops still to be bound or vectorized, several indices), or
// a name that OpenCL C cannot have. Deterministic: equal funcs, equal text. Thread-safe.
absl::StatusOr<std::string> EmitOpenCl(std::span<const ir::Func> funcs, bool fuse = true);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_OPENCL_EMIT_H_
