// SPDX-License-Identifier: Apache-2.0
// A Target: what code is generated for, as a value: a kind, and capabilities as data. Not a device (many devices can
// fit one target), and no back end: nothing here knows LLVM.
//
// Text: `cpu` (this host), `cpu -mcpu=znver4 -threads=2`, `arm64 -mcpu=cortex-a76`, with optional -mattr=+a,-b;
// `opencl` (the first device), `opencl -device=NAME -units=8 -lanes=256`; `cuda -arch=sm_87`, `cuda -tf32 -overlap`.
// Print writes the complete canonical text, which is part of every record's key and parses back on any machine. Whoever
// decides something by a target asks for what it can do (vectors, lanes, bytes), never for its architecture. The kinds
// are in kind.h. Start with ParseTarget.
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

enum class Arch : uint8_t { kX86_64, kAArch64 };  // of a CPU

// Who works inside one parallel step, on a device whose groups of lanes share memory and can wait for each other: a
// GPU, as OpenCL sees it. A CPU has one lane; what its kernels spread work over is Target::threads.
struct Hierarchy {
  int units = 1;       // groups that run at the same time
  int max_lanes = 1;   // of a group (work-items of a work-group)
  int lane_width = 1;  // lanes that run in step; a group should be a multiple of it
  // The most that a unit runs at once; as CUDA's largest devices, where a device does not say.
  int unit_lanes = 2048, unit_groups = 32;
  int shuffle_lanes = 0;  // that follow one another and read each other's registers; 0: none do
  // That follow one another, and of which each copies a part of what all of them read to all of their shared memories;
  // 0: no group has copies of its own (compiler/ir/copy.h).
  int sharing_groups = 0;
  // Kernels wait by themselves until what was launched before has ended, and may be launched sooner.
  bool overlapping_launches = false;
};

// Bytes of each memory, from near to far.
struct Memory {
  int64_t registers_bytes = 0;         // of a lane, its private arrays among them; 0 where there are no lanes
  int64_t group_registers = 64 << 10;  // numbers of 32 bits, which the lanes of a group may have together
  int64_t shared_bytes = 0;            // of a group, shared by its lanes; 0 where there are no lanes
  // Of these, what a launch has that asks for nothing. Default schedules stay within it, so that a unit has room for
  // several groups.
  int64_t unasked_shared_bytes = 0;
  int64_t unit_shared_bytes = 200 << 10;  // of all groups of a unit together, as models of default schedules count
  // How many times faster a lane reads what its group shares than what lies in a cache; 1: it is a part of global
  // memory, and copying there gains nothing.
  int shared_gain = 1;
  // The most that a lane moves from global to shared memory by one instruction that it need not wait for; 0: there is
  // none, and an asynchronous copy is a load and a store where it stands.
  int64_t async_copy_bytes = 0;
  int64_t local_bytes = 1 << 20;  // that buffers inside loops may take, of each thread or lane
  int64_t l1_bytes = 32 << 10;    // data cache of a core or unit
  int64_t l2_bytes = 512 << 10;   // of a core; of a device with lanes: of all its units
  int64_t l3_bytes = 8 << 20;     // last level, what all threads together have; 0: none
};

// What one core or unit does in a cycle, in vectors of Target::vector_bits. Typical; the learned model corrects what
// is special about a device.
struct Core {
  double hertz = 3.5e9;
  double multiply_adds = 2;
  double loads = 2;
  double latency = 4;  // cycles from a multiply-add to one that needs its result
  double l2_bytes = 32;
  double l3_bytes = 12;
  double memory_bytes = 5;
  double line_cycles = 1.5;  // extra, per cache line that is not next to the one before
};

struct Target {
  Kind kind = Kind::kCpu;
  Arch arch = Arch::kX86_64;  // of a CPU
  std::string
      cpu;  // of a CPU: a name of the table (microarchitectures.h), of CUDA: an architecture, "sm_87"; as LLVM's
  std::string features;  // of a CPU: where it differs from its row, as LLVM lists it: "-avx512f,+gfni"
  std::string device;    // of OpenCL and CUDA: chosen by name, '-' for a space; empty: the first one

  int threads = 1;  // of this machine's CPU that a kernel may use
  Hierarchy hierarchy;
  Memory memory;
  int vector_bits = 256;  // of the widest vectors that are worth using
  int vector_registers = 16;
  Core core;
  bool has_maximum = true;                                 // IEEE's, of vectors of floats, in one instruction
  std::vector<ir::TensorInstruction> tensor_instructions;  // that it has, the widest first

  // Elements of a vector register.
  int VectorWidth(int element_bytes) const { return vector_bits / 8 / element_bytes; }
  // Elements of four bytes that a core or unit works on in step: a vector, or a lane each.
  int64_t ElementsInStep() const { return facts().has_grid ? hierarchy.lane_width : VectorWidth(4); }
  // Parts of a parallel loop that run at the same time: threads, or units of a device.
  int Workers() const { return facts().has_grid ? hierarchy.units : threads; }
  const ExecutionFacts& facts() const { return FactsOf(EntryOf(kind)->execution); }
};

// InvalidArgument for a text that names an unknown kind, CPU, device, feature or option, or a value that cannot be: the
// message lists what there is. Where it leaves to a device what that can do, a device that does not work is an error,
// too.
absl::StatusOr<Target> ParseTarget(std::string_view text);
std::string Print(const Target& target);
// The name of a kind, as the text of its targets begins: "cpu", "opencl", "cuda".
std::string_view KindName(Kind kind);
// What the text of a target may begin with, for help and messages: "cpu, x86_64, arm64, opencl".
std::string TargetWords();

// One of the kind of which nothing else is known. Asks nothing of this machine.
Target TypicalTarget(Kind kind);
// Which device of this machine runs code for the target, as `hone-agent --device` takes it.
std::string DeviceOf(const Target& target);
// The other way: what is best compiled for that device of this machine, with as many threads of a CPU as it serves.
// InvalidArgument where there is no code for it, as for a CPU without AVX2.
absl::StatusOr<Target> TargetOfDevice(std::string_view device, int threads);

// Whether products of f32 may be rounded to TF32, as `-tf32` allows.
bool AllowsTf32(const Target& target);
// Both are of the same CPU or device, however much of it they use: what was measured for one says much of the other.
bool SameMachine(const Target& a, const Target& b);
std::string_view MachineName(Arch arch);  // as the operating system calls it: "x86_64", "aarch64"

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TARGET_H_
