// SPDX-License-Identifier: Apache-2.0
// Prints lowered funcs with a grid as the OpenCL C source of one program, which the device's driver compiles.
//
// Each func becomes a __kernel of its name, with one __global pointer per param, in order. It must be launched with
// exactly grid.groups groups of grid.lanes lanes. In memory a bool is a uchar, a bf16 a ushort, an f16 a half. This
// folder uses nothing of LLVM, because the process may hold another LLVM (PoCL's).
#ifndef HONE_COMPILER_CODEGEN_OPENCL_EMIT_H_
#define HONE_COMPILER_CODEGEN_OPENCL_EMIT_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::codegen {

// OpenCL C 1.2 with the meaning of docs/IR.md, provided that the device rounds / and sqrt of f32 correctly (an option
// of its compiler). exp, log, tanh and the other functions are the device's own, with the errors that OpenCL allows.
//
// fuse: the device may contract a * b + c. Tuned kernels allow it; reference kernels do not.
// InvalidArgument: a func has no grid, is not fully lowered (loops still to be bound or vectorized, several indices),
// or has a name that OpenCL C does not allow. Equal funcs give equal text. Thread-safe.
absl::StatusOr<std::string> EmitOpenCl(std::span<const ir::Func> funcs, bool fuse = true);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_OPENCL_EMIT_H_
