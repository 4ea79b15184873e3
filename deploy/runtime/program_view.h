// SPDX-License-Identifier: Apache-2.0
// A ProgramView is one checked program of a package: the tables of its manifest (package_format.h), its units and
// homes, and its kernels. Programs of format 2 give the same view, with one unit and one home.
//
// After ViewProgram has succeeded, every offset, count and id is in range and every text is terminated. Every call
// gives its kernel the buffers that the kernel's interface requires, in the home of its unit, and no call or action
// writes an input or a constant. Therefore the rest of the runtime indexes without further checks. Not checked here:
// the code itself, and whether this machine can run it (backend.h).
#ifndef HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_
#define HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_interface.h"
#include "deploy/runtime/fault.h"
#include "deploy/runtime/package_format.h"

namespace hone::runtime {

struct UnitView {
  package::UnitEntry entry;  // the requirements of the code
  std::span<const uint8_t> code;
};

// A memory space, and the parts of the program that work in it. Tensor ids are ascending, those of inputs and outputs
// in the order of the program.
struct HomeView {
  uint64_t arena_bytes = 0;
  bool has_lanes = false;           // it is the memory of a device; else of this process
  std::vector<uint32_t> units;      // indices in ProgramView::units
  std::vector<uint32_t> inputs;     // those that its calls and copies read; an input that nothing reads is in home 0
  std::vector<uint32_t> outputs;    // those that its calls and copies write
  std::vector<uint32_t> constants;  // those that its calls and copies read
  std::vector<package::CopyEntry> copies;
};

// Refers to the bytes from which it was made; they must outlive it. The spans are the tables of ManifestHeader.
struct ProgramView {
  package::TextRef target;
  uint64_t io_bytes = 0;
  std::vector<UnitView> units;  // at least one
  std::vector<HomeView> homes;  // at least one; each has a unit
  std::span<const package::TensorEntry> tensors;
  std::span<const int64_t> shapes;
  std::vector<KernelInterface> kernels;  // parsed from the table of kernel texts
  std::vector<uint32_t> kernel_units;    // per kernel: its unit
  std::span<const package::CallEntry> calls;
  std::span<const uint32_t> arguments, inputs, outputs;
  std::span<const package::BorderEntry> borders;
  std::span<const package::CopyEntry> copies;    // those done after the calls
  std::span<const package::CopyEntry> defaults;  // the default values of inputs: copied when the program is loaded
  std::span<const char> strings;
  std::span<const package::SizeEntry> sizes;
  std::span<const package::SizeStep> size_steps;
  std::span<const uint32_t> extents;  // one per element of `shapes`, or empty
  std::span<const uint32_t> size_arguments;
  std::span<const package::ActionEntry> actions;
  std::span<const package::UpdateEntry> updates;
  std::span<const package::NodeEntry> nodes;
  std::span<const package::CallNodeEntry> call_nodes;
  std::span<const package::ValueEntry> values;
  std::span<const uint32_t> value_axes;

  std::string_view Text(package::TextRef text) const { return {strings.data() + text.offset, text.bytes}; }
  // The largest shape.
  std::span<const int64_t> Shape(const package::TensorEntry& tensor) const {
    return shapes.subspan(tensor.shape, tensor.rank);
  }
  const KernelInterface& Kernel(const package::CallEntry& call) const { return kernels[call.kernel]; }
  const UnitView& Unit(const package::CallEntry& call) const { return units[kernel_units[call.kernel]]; }
  uint32_t Home(const package::CallEntry& call) const { return Unit(call).entry.home; }
  // The entries of a call number; none for a call that is not there.
  std::span<const package::CallNodeEntry> NodesOf(size_t call) const {
    const auto of_call = std::ranges::equal_range(call_nodes, call, {}, &package::CallNodeEntry::call);
    return {of_call.begin(), of_call.end()};
  }
  // The values that a tensor holds; none for a tensor that is not there.
  std::span<const package::ValueEntry> ValuesOf(size_t tensor) const {
    const auto of_tensor = std::ranges::equal_range(values, tensor, {}, &package::ValueEntry::tensor);
    return {of_tensor.begin(), of_tensor.end()};
  }
  // The tensor ids (or kNoTensor, or for sizes an index in size_arguments) of a call: one per buffer of the kernel in
  // order, except the slices of its workspace.
  std::span<const uint32_t> Arguments(const package::CallEntry& call) const {
    return arguments.subspan(call.arguments, Kernel(call).argument_count());
  }
};

// The bytes of a program in a package.
struct ProgramSections {
  uint32_t version = package::kFormatVersion;   // of the format: 2 to 6
  std::span<const uint8_t> manifest;            // 8-byte aligned
  std::vector<std::span<const uint8_t>> codes;  // in order
};

// Checks a program. constants_bytes: size of the constants section. where: prefix of the error texts that says which
// program it is; may be empty. BadPackage says what is wrong. *view is set on success only.
Fault ViewProgram(const ProgramSections& sections, uint64_t constants_bytes, const std::string& where,
                  ProgramView* view);

}  // namespace hone::runtime

#endif  // HONE_DEPLOY_RUNTIME_PROGRAM_VIEW_H_
