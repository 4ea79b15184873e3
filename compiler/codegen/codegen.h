// SPDX-License-Identifier: Apache-2.0
// Code generation: Emit turns lowered funcs into an object, Link joins objects to one piece of code.
//
// For a CPU these are relocatable ELF and a shared object, for OpenCL source text, for CUDA PTX. Other rooms reach the
// back ends only through this header; the table of back ends is in backend.cc. To compile a workload with a schedule,
// start at kernel.h.
#ifndef HONE_COMPILER_CODEGEN_CODEGEN_H_
#define HONE_COMPILER_CODEGEN_CODEGEN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/code_kind.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace hone::codegen {

enum class Effort : uint8_t {
  kKernel,     // for tuned schedules: a short list of passes; multiply and add may be fused
  kReference,  // for naive loops: LLVM's standard passes. Nothing is fused, because reference outputs must not depend
               // on what tuned kernels do
};

// Names what this thread compiles, as long as the object lives. If LLVM fails, it ends the process, and its last
// message gives this name.
class CompilationSubject {
 public:
  explicit CompilationSubject(std::string name) : before_(std::exchange(current_, std::move(name))) {}
  CompilationSubject(const CompilationSubject&) = delete;
  CompilationSubject& operator=(const CompilationSubject&) = delete;
  ~CompilationSubject() { current_ = std::move(before_); }
  static const std::string& current() { return current_; }  // of this thread; empty if nothing is named

 private:
  static inline thread_local std::string current_;
  std::string before_;
};

enum class Output : uint8_t { kObject, kAssembly, kLlvmIr };

// One object with a function per func, under the func's name: for a CPU a HoneKernel (base/kernel_abi.h) each, for
// OpenCL a __kernel each, as source, for CUDA an .entry each, in a complete module of PTX. Thread-safe.
// InvalidArgument: the kind of target does not have that output.
absl::StatusOr<std::string> Emit(std::span<const ir::Func> funcs, const target::Target& target,
                                 Effort effort = Effort::kKernel, Output output = Output::kObject);

// The CPU features that code for this target may use, sorted: LLVM's names of all that the CPU has beyond its
// architecture, as far as a machine can report them (base/cpu_features.h). Devices are chosen, packages written and
// loaded by this answer alone. Empty for targets other than CPUs.
std::vector<std::string> RequiredFeatures(const target::Target& target);

// The kind of code that Emit and Link make for this target. Devices that run this kind can run the code.
CodeKind CodeKindOf(const target::Target& target);

// The result of Link.
struct Artifact {
  struct Range {
    int64_t offset = 0, bytes = 0;  // in bytes of the code; both 0: a shared object, whose functions are found by name
  };
  std::string code;           // a shared object; for OpenCL and CUDA the texts of the objects, concatenated
  std::vector<Range> ranges;  // per object, in order
};

// One piece of code with the functions of all objects, which Emit made for this target. Undefined symbols (libm,
// memset) are resolved when the code is loaded. Not thread-safe, because the linker keeps state: one call at a time in
// a process.
absl::StatusOr<Artifact> Link(std::span<const std::string> objects, const target::Target& target);

// What a kernel needs when it runs: the maximum over its functions.
struct Resources {
  int64_t registers = 0;     // per lane
  int64_t shared_bytes = 0;  // per group
  int64_t spill_bytes = 0;   // per lane: values that did not fit into registers and go through memory
};

// The result of Assemble.
struct Assembled {
  Resources resources;
  std::string machine_code;  // for exactly the target's architecture
};

// Runs the target's assembler on an object that Emit made. Empty for a CPU and for OpenCL, and for CUDA without a ptxas
// (of a CUDA toolkit) that knows the architecture. Takes as long as ptxas, up to seconds. Thread-safe.
std::optional<Assembled> Assemble(const std::string& object, const target::Target& target);

// `code`, an object or the result of Link, followed by the machine codes of its objects (one per object, in their
// order), in the format that base/code_kind.h describes. Without machine codes, `code` itself.
std::string WithMachineCode(std::string code, std::span<const std::string> machine_codes);

// Why a kernel with these resources cannot be launched on the target or is not worth it; empty if neither holds.
std::string Drawback(const Resources& resources, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_CODEGEN_H_
