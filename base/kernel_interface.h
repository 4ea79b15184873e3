// SPDX-License-Identifier: Apache-2.0
// The interface of a compiled kernel: its buffers in order, its launches, its scratch memory. The code generator writes
// this description; build messages, the agent, packages and the runtime read it.
//
// It is a value with a text form (Print, ParseKernelInterface) of one line per buffer, step and launch. It holds
// neither the kernel's code nor its meaning. This header needs only the C++ library, because the runtime that ships
// with a model includes it.
#ifndef HONE_BASE_KERNEL_INTERFACE_H_
#define HONE_BASE_KERNEL_INTERFACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/size_steps.h"

namespace hone {

// Alignment in bytes of a buffer that is a slice of another buffer in device memory. All supported devices accept it.
inline constexpr int64_t kSliceAlignment = 512;

enum class BufferRole : uint8_t {
  kInput,      // given with every call
  kConstant,   // known when the model is compiled
  kPacked,     // computed once, from constants, by the launches of `prepare`
  kOutput,     // written by every call
  kSizes,      // i64: the values of the kernel's open sizes, given with every call; at most one buffer
  kWorkspace,  // a slice of the workspace: values that one launch writes and a later launch of the same call reads
};

struct KernelBuffer {
  BufferRole role = BufferRole::kInput;
  std::string dtype;           // as the IR spells it: "f32"
  std::vector<int64_t> shape;  // row-major; empty for a scalar
  bool used = true;            // false: no launch of `main` reads this input or constant
  int64_t offset = 0;          // kWorkspace: bytes from the start of the workspace; else 0
  int64_t bytes() const;       // size in bytes; 0 for an unknown dtype
  friend bool operator==(const KernelBuffer&, const KernelBuffer&) = default;
};

// One run of one function. The launches of a list run in order; each sees the writes of the launches before it.
struct KernelLaunch {
  std::string function;
  // The grid: `groups` groups of `lanes` lanes each. Both are 0 for a HoneKernel (kernel_abi.h), which has no grid. A
  // HoneKernel takes all buffers except the kWorkspace ones, in order, and slices the workspace itself.
  int64_t groups = 0, lanes = 0;
  std::vector<uint32_t> arguments;  // indices into buffers; with a grid: the function's parameters, in order
  int64_t shared_bytes = 0;         // with a grid: shared memory per group, added to what the function declares itself
  // With a grid whose groups depend on sizes: the number of the value that says how many groups have work (values of
  // KernelInterface::size_steps). `groups` is the most; the function does nothing in groups without work.
  std::optional<uint32_t> groups_value = {};

  // How many groups to launch; may be 0. values: those of KernelInterface::ComputeValues.
  int64_t GroupsFor(std::span<const int64_t> values) const;
  friend bool operator==(const KernelLaunch&, const KernelLaunch&) = default;
};

struct KernelInterface {
  std::string name;  // a C identifier, unique among the kernels linked together
  // Inputs and constants in the workload's order, packed constants, outputs, workspace slices.
  std::vector<KernelBuffer> buffers;
  int64_t workspace_bytes = 0;          // scratch memory of `main`; its contents are undefined before a call
  int64_t prepare_workspace_bytes = 0;  // scratch memory of `prepare`, likewise
  std::vector<SizeStep> size_steps;     // they compute values from the elements of the buffer of sizes
  std::vector<KernelLaunch> prepare;    // run once, before the first call; empty if and only if no buffer is kPacked
  std::vector<KernelLaunch> main;       // run by every call; empty only if the outputs have no elements
  friend bool operator==(const KernelInterface&, const KernelInterface&) = default;

  // The number of buffers that a caller passes: all except the slices of the workspace, which come last.
  size_t argument_count() const;
  // The indices of the buffers of that role, in order.
  std::vector<uint32_t> Of(BufferRole role) const;
  // The number of elements of the buffer of sizes; 0 if there is none.
  size_t size_count() const;
  // The values that launches refer to. sizes: the elements of the buffer of sizes.
  std::vector<int64_t> ComputeValues(std::span<const int64_t> sizes) const;
};

int64_t BytesOfDType(std::string_view dtype);  // bytes of one element; 0 for an unknown name

// The text form, which ParseKernelInterface reads.
std::string Print(const KernelInterface& interface);

// Parses the text that Print writes. The text may come from an untrusted source, so everything is checked: names, sizes
// without overflow, indices in range, order of roles, slices inside the workspace. On failure the result is empty and
// *error names the line and the problem.
std::optional<KernelInterface> ParseKernelInterface(std::string_view text, std::string* error);

}  // namespace hone

#endif  // HONE_BASE_KERNEL_INTERFACE_H_
