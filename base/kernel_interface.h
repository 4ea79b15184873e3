// SPDX-License-Identifier: Apache-2.0
// How a compiled kernel is called: its buffers in order, its launches, its scratch memory. The one description that the
// code generator writes and that build messages, the agent, the package and the runtime read.
//
// A value with a text form (Print, ParseKernelInterface), a line per buffer and launch; only std, because the runtime
// that ships with a model uses it. Not the code itself, and not what the kernel computes.
#ifndef HONE_BASE_KERNEL_INTERFACE_H_
#define HONE_BASE_KERNEL_INTERFACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// Bytes; where a buffer inside another starts in the memory of a device, as any device we know can take it.
inline constexpr int64_t kSliceAlignment = 512;

enum class BufferRole : uint8_t {
  kInput,      // known when the model runs
  kConstant,   // known when the model is compiled
  kPacked,     // computed from constants by the launches of `prepare`, once
  kOutput,     // written by every call
  kWorkspace,  // a slice of the workspace, for what goes from launch to launch
};

struct KernelBuffer {
  BufferRole role = BufferRole::kInput;
  std::string dtype;           // as the IR spells it: "f32"
  std::vector<int64_t> shape;  // row-major; empty for a scalar
  bool used = true;            // an input or constant that only `prepare` reads, or nobody, is not used by `main`
  int64_t offset = 0;          // of a kWorkspace buffer: bytes from the start of the workspace
  int64_t bytes() const;       // 0 for an unknown dtype
  friend bool operator==(const KernelBuffer&, const KernelBuffer&) = default;
};

// One function, run once. Launches of a list follow one another; each sees what those before it wrote.
struct KernelLaunch {
  std::string function;
  // A grid: `groups` groups of `lanes` lanes each. Both 0 for a HoneKernel (kernel_abi.h), which takes all buffers but
  // the kWorkspace ones, in order, and slices the workspace itself.
  int64_t groups = 0, lanes = 0;
  std::vector<uint32_t> arguments;  // indices into buffers; of a grid: exactly the function's parameters
  int64_t shared_bytes = 0;         // of a grid: what a group is to have beyond what the function has by itself
  friend bool operator==(const KernelLaunch&, const KernelLaunch&) = default;
};

struct KernelInterface {
  std::string name;  // a C identifier, unique among the kernels linked together
  // Inputs and constants in the workload's order, packed constants, outputs, workspace slices.
  std::vector<KernelBuffer> buffers;
  int64_t workspace_bytes = 0;  // scratch of `main`, and of `prepare`; contents do not matter
  int64_t prepare_workspace_bytes = 0;
  std::vector<KernelLaunch> prepare;  // empty iff nothing is packed
  std::vector<KernelLaunch> main;     // empty only if the outputs have no elements
  friend bool operator==(const KernelInterface&, const KernelInterface&) = default;

  // How many buffers a caller gives: all but the slices of the workspace, which stand last.
  size_t argument_count() const;
  // Indices of the buffers of that role, in order.
  std::vector<uint32_t> Of(BufferRole role) const;
};

int64_t BytesOfDType(std::string_view dtype);  // of one element; 0 for an unknown name

std::string Print(const KernelInterface& interface);

// Reads what Print wrote. Text may come from strangers: everything is checked (names, sizes without overflow, indices
// in range, order of roles, slices inside the workspace). On failure *error says which line and why.
std::optional<KernelInterface> ParseKernelInterface(std::string_view text, std::string* error);

}  // namespace hone

#endif  // HONE_BASE_KERNEL_INTERFACE_H_
