// SPDX-License-Identifier: Apache-2.0
// Code generation: lowered functions to an object, objects to one piece of code: for a CPU relocatable ELF and a shared
// object, for OpenCL source, for CUDA PTX. The only way to the back ends, whose table is in backend.cc.
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
  kKernel,     // what a tuned schedule wants: our short list of passes; multiply-adds are fused
  kReference,  // plain loops, made fast by LLVM's own standard passes; no fusing, so that it stays an independent
               // witness
};

// Names what this thread compiles, as long as it lives: where LLVM is at fault itself it ends the process, and what it
// was about is all that can be told then.
class Subject {
 public:
  explicit Subject(std::string name) : before_(std::exchange(current_, std::move(name))) {}
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  ~Subject() { current_ = std::move(before_); }
  static const std::string& current() { return current_; }  // of this thread; empty if nothing is named

 private:
  static inline thread_local std::string current_;
  std::string before_;
};

enum class Output : uint8_t { kObject, kAssembly, kLlvmIr };

// For a CPU one HoneKernel (base/kernel_abi.h) per function, under the function's name; for OpenCL one __kernel each,
// as source; for CUDA one .entry each, in a module of PTX that stands alone. Thread-safe. InvalidArgument for an output
// that the kind of target does not have.
absl::StatusOr<std::string> Emit(std::span<const ir::Func> funcs, const target::Target& target,
                                 Effort effort = Effort::kKernel, Output output = Output::kObject);

// The CPU features that code for this target may use, sorted: all that the CPU has beyond its architecture, as LLVM
// names them, of those that a machine can be asked for (base/cpu_features.h). The one answer for choosing a device, for
// packages and for loading them.
std::vector<std::string> RequiredFeatures(const target::Target& target);

// What Emit and Link make for this target, and with it which devices can run it.
CodeKind CodeKindOf(const target::Target& target);

// What several objects became.
struct Artifact {
  struct Range {
    int64_t offset = 0, bytes = 0;  // both 0: the object is all over the code
  };
  std::string code;           // a shared object; for OpenCL and CUDA the texts one after the other
  std::vector<Range> ranges;  // per object, in order
};

// One piece of code with the functions of all objects, each made by Emit for this target. Undefined symbols (libm,
// memset) are resolved when it is loaded. Not thread-safe: the linker keeps state; one call at a time in a process.
absl::StatusOr<Artifact> Link(std::span<const std::string> objects, const target::Target& target);

// What the functions of a kernel take when they run, each the most of any of them.
struct Resources {
  int64_t registers = 0;     // of a lane
  int64_t shared_bytes = 0;  // of a group
  int64_t spill_bytes = 0;   // of a lane: registers that are kept in memory meanwhile, for there are too few
};

// What else a target's own assembler makes of code.
struct Assembled {
  Resources resources;
  std::string machine_code;  // for exactly the target's architecture
};

// Of an object that Emit made. Empty where it is machine code already, or becomes that only on a device: a CPU's and
// OpenCL's; CUDA's without a ptxas (of a CUDA toolkit) that knows the architecture. Takes as long as that. Thread-safe.
std::optional<Assembled> Assemble(const std::string& object, const target::Target& target);

// An object, or what several were linked to, with the machine code of all of it behind it, as base/code_kind.h says.
std::string WithMachineCode(std::string code, std::span<const std::string> machine_codes);

// Why such code is not worth being launched, or cannot be; empty if nothing speaks against it.
std::string Drawback(const Resources& resources, const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_COMPILER_CODEGEN_CODEGEN_H_
