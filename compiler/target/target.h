// SPDX-License-Identifier: Apache-2.0
// A Target describes what code is generated for, as a value: a kind and its capabilities as data. It is not a device
// (many devices can match one target) and not a back end (nothing here depends on LLVM).
//
// Text forms: `cpu` (this host), `cpu -mcpu=znver4 -threads=2`, `arm64 -mcpu=cortex-a76`, with optional -mattr=+a,-b;
// `opencl` (the first device), `opencl -device=NAME -units=8 -lanes=256`; `cuda -arch=sm_87`, `cuda -tf32 -overlap`.
// Print writes the complete canonical text, which is part of every record's key and parses to the same target on any
// machine. Code that depends on a target asks for its capabilities (vectors, lanes, bytes), never for its architecture.
// The kinds are in kind.h. Start with ParseTarget.
#ifndef HONE_COMPILER_TARGET_TARGET_H_
#define HONE_COMPILER_TARGET_TARGET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/tensor_instruction.h"
#include "compiler/target/kind.h"

namespace hone::target {

enum class Arch : uint8_t { kX86_64, kAArch64, kArm };  // architectures of CPUs; kArm is 32-bit Armv7 with NEON

// The parallel hierarchy of a device whose lanes form groups, share memory within a group, and can wait for each other:
// a GPU, as OpenCL describes it. A CPU has one lane; its kernels are spread over Target::threads.
struct Hierarchy {
  int units = 1;       // compute units (CUDA: multiprocessors); each runs up to unit_groups groups at a time
  int max_lanes = 1;   // maximum lanes of a group (work-items of a work-group) in generated code
  int lane_width = 1;  // lanes that run in step (a warp); group sizes should be multiples of it
  // The maximum lanes and groups resident on one unit. The defaults, for devices that do not state them, are those of
  // the largest CUDA devices.
  int unit_lanes = 2048, unit_groups = 32;
  int shuffle_lanes = 0;  // consecutive lanes that can read each other's registers (shuffle); 0: not supported
  // The maximum number of consecutive groups that can share a copy: each copies a part of the common data to the shared
  // memories of all (a CUDA cluster with multicast). 0: not supported (compiler/ir/copy.h).
  int sharing_groups = 0;
  // True if a kernel may be launched before the preceding launch has ended; it then waits itself for that launch to
  // end.
  bool overlapping_launches = false;
};

// Memory sizes, from near to far, in bytes unless the comment says otherwise.
struct Memory {
  int64_t registers_bytes = 0;         // per lane, including private arrays; 0 for targets without lanes
  int64_t group_registers = 64 << 10;  // 32-bit registers available to all lanes of a group together
  int64_t shared_bytes = 0;            // per group, shared by its lanes; 0 for targets without lanes
  // The part of shared_bytes that a launch may use without requesting more. Default schedules stay within it, so that a
  // unit has room for several groups.
  int64_t default_shared_bytes = 0;
  int64_t unit_shared_bytes =
      200 << 10;  // per unit, for all its groups together; value used by the analytic cost models
  // How many times faster a lane reads shared memory than a cache. 1: shared memory is a part of global memory, and
  // copying data there gains nothing.
  int shared_gain = 1;
  // The maximum bytes that a lane moves from global to shared memory by one asynchronous copy instruction. 0: there is
  // none, and an asynchronous copy is executed at once, as a load and a store.
  int64_t async_copy_bytes = 0;
  int64_t local_bytes = 1 << 20;  // for buffers inside loops, per thread or lane
  int64_t l1_bytes = 32 << 10;    // data cache, per core or unit
  int64_t l2_bytes = 512 << 10;   // per core; with lanes: shared by all units
  int64_t l3_bytes = 8 << 20;     // last level, available to all threads together; 0: none
};

// Throughput of one core or unit per cycle, in vectors of Target::vector_bits unless the name says bytes. The values
// are typical; the learned cost model corrects for a particular device.
struct Core {
  double hertz = 3.5e9;
  double multiply_adds = 2;
  double loads = 2;
  double latency = 4;  // cycles from a multiply-add to one that depends on its result
  double l2_bytes = 32;
  double l3_bytes = 12;
  double memory_bytes = 5;
  double line_cycles = 1.5;  // extra cycles per cache line that does not follow the previous one
};

struct Target {
  Kind kind = Kind::kCpu;
  Arch arch = Arch::kX86_64;  // CPU only
  // CPU: its name in the table (microarchitectures.h). CUDA: the architecture, "sm_87". Both are LLVM's names.
  std::string cpu;
  std::string features;  // CPU: differences from the features of its row, in LLVM's notation: "-avx512f,+gfni"
  // OpenCL and CUDA: the device selector as it was given: an index, or a part of the name, with '-' for a blank
  // (drivers/choose_device.h). Empty: the first device.
  std::string device;

  int threads = 1;  // CPU threads that a kernel may use
  Hierarchy hierarchy;
  Memory memory;
  int vector_bits = 256;  // width of the widest vectors worth using
  int vector_registers = 16;
  Core core;
  bool has_maximum = true;  // has IEEE maximum of float vectors as one instruction
  // Those that the target supports. On CPUs the preferred ones come first; with lanes the order has no meaning.
  std::vector<ir::TensorInstruction> tensor_instructions;

  // Elements of a vector register.
  int VectorWidth(int element_bytes) const { return vector_bits / 8 / element_bytes; }
  // Elements of four bytes that a core or unit works on in step: a vector, or a lane each.
  int64_t ElementsInStep() const { return facts().has_grid ? hierarchy.lane_width : VectorWidth(4); }
  // Parts of a parallel loop that run at the same time: threads, or units of a device.
  int Workers() const { return facts().has_grid ? hierarchy.units : threads; }
  const ExecutionFacts& facts() const { return EntryOf(kind)->facts; }
};

// Parses a target's text. InvalidArgument, listing the possible values, if the kind, CPU, device, feature or option is
// unknown or a value is invalid. If the text leaves capabilities to a device of this machine, a failing device is
// InvalidArgument too.
absl::StatusOr<Target> ParseTarget(std::string_view text);
std::string Print(const Target& target);
// The name of a kind, which is the first word of its targets' texts: "cpu", "opencl", "cuda".
std::string_view KindName(Kind kind);
// The possible first words of a target's text, for help and messages: "cpu, x86_64, arm64, opencl".
std::string TargetWords();

// Returns a typical target of the kind. Does not inspect this machine.
Target TypicalTarget(Kind kind);
// Returns the text that selects the target's device in `hone-agent --device`: "cpu", "opencl:NAME", or "cuda" for the
// first device. Does not inspect this machine, so the device may be absent.
std::string DeviceSelector(const Target& target);
// The inverse: returns the best target for that device of this machine, with `threads` threads if it is a CPU. Of
// "cpu:N" the number is ignored: the caller must already run on those cores. If the text names no device and this
// machine has none of the kind, the typical target. InvalidArgument if the named device is absent, or if Hone cannot
// compile for the device, for example a CPU without AVX2.
absl::StatusOr<Target> TargetOfDevice(std::string_view device, int threads);
// Measures the roofline of the device of this machine that the target selects. Nothing else should run on it. A CPU
// target measures this machine's CPUs with `threads` threads, even if the target is for another CPU or architecture.
// Unavailable: there is no such device, or it failed.
absl::StatusOr<Roofline> MeasureRoofline(const Target& target, int threads);

// Returns true if factors of f32 products may be rounded to TF32 (option -tf32), that is, if tensor_instructions has
// kMmaTf32.
bool AllowsTf32(const Target& target);
// Returns true if both targets have the same kind, architecture, CPU model and device selector. Threads, caches and
// features may differ. Measurements for one then say much about the other.
bool SameMachine(const Target& a, const Target& b);
std::string_view MachineName(Arch arch);  // the operating system's name

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TARGET_H_
