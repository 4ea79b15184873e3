// SPDX-License-Identifier: Apache-2.0
// The version of the code generator: part of every record's key and of every package.
//
// A record is valid only under the version it was measured with, since the same schedule means other machine code
// elsewhere. Raise the revision when lowering or code generation changes what a schedule compiles to, or when kernels
// are run or timed in another way.
#ifndef HONE_COMPILER_VERSION_H_
#define HONE_COMPILER_VERSION_H_

namespace hone {

inline constexpr char kCompilerVersion[] = "hone-0.1.0 codegen-4 llvm-19";

}  // namespace hone

#endif  // HONE_COMPILER_VERSION_H_
