// Code generation: lowered functions to a relocatable ELF object, objects to one shared object. The one way into the
// back end.
#ifndef HONE_COMPILER_CODEGEN_CODEGEN_H_
#define HONE_COMPILER_CODEGEN_CODEGEN_H_

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/target.h"
#include "compiler/ir/stmt.h"

namespace hone::codegen {

enum class Effort : uint8_t {
  kKernel,     // what a tuned schedule wants: our short list of passes; multiply-adds are fused
  kReference,  // plain loops, made fast by LLVM's own standard passes; no fusing, so that it stays an independent
               // witness
};

enum class Output : uint8_t { kObject, kAssembly, kLlvmIr };

// One HoneKernel (base/kernel_abi.h) per function, under the function's name. Thread-safe.
absl::StatusOr<std::string> Emit(std::span<const ir::Func> funcs, const Target& target, Effort effort = Effort::kKernel,
                                 Output output = Output::kObject);

// Bytes of a shared object with the symbols of all objects. Undefined symbols (libm, memset) are resolved when it is
// loaded. Not thread-safe: the linker keeps state; one call at a time in a process.
absl::StatusOr<std::string> LinkShared(std::span<const std::string> objects);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_CODEGEN_H_
