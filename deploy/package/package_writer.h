// SPDX-License-Identifier: Apache-2.0
// Writes a .hone package from plain values. compile_model.cc fills a PackageProgram for each target, PlanArena
// (memory_plan.h) sets the offsets, and WritePackage writes the file.
//
// Not the compiler: nothing here uses graphs, workloads or schedules. The format is deploy/runtime/package_format.h.
// Start with WritePackage.
#ifndef HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_
#define HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/kernel_interface.h"
#include "compiler/ir/expr.h"
#include "deploy/package/metadata.h"
#include "deploy/runtime/package_format.h"

namespace hone::package {

using TensorId = uint32_t;  // index into PackageProgram::tensors

struct PackageTensor {
  std::string name;  // an input's or output's name in the model; may be empty for other kinds
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;          // at most kRankMax dimensions; the largest extents
  std::vector<ir::Size> extents = {};  // in terms of the open sizes; empty if no dimension is open
  TensorKind kind = TensorKind::kIntermediate;
  // The bytes of a constant, packed or not; their number is the product of the shape times the element size. Not owned:
  // they must live until WritePackage returns. Empty for other kinds.
  std::span<const uint8_t> data;
  uint32_t home = 0;          // of an intermediate or output: index of the home where it is written
  uint64_t arena_offset = 0;  // bytes; for an intermediate only; set by PlanArena
};

// A node of the model's file. A name has one operator in a program.
struct PackageNode {
  std::string name, op;
};

// A value of the model's file that a tensor holds; as ValueEntry.
struct PackageValue {
  std::string name;
  TensorId tensor = 0;
  std::vector<uint32_t> axes = {};  // empty: the elements are in the value's own order
};

struct PackageCall {
  uint32_t kernel = 0;  // index into PackageProgram::kernels
  // One per buffer of the kernel, except the slices of its workspace; kNoTensor for a buffer that it does not use.
  std::vector<TensorId> arguments;
  uint64_t workspace_offset = 0;  // bytes, in the arena of its unit's home; set by PlanArena
  // The values of the kernel's sizes; the entry of `arguments` for its buffer of sizes is not used.
  std::vector<ir::Size> sizes = {};
  std::vector<PackageNode> nodes = {};  // those that it computes, wholly or in part
};

// Before call number `call`, the runtime copies `source` to `target`, an intermediate of the same size in another home.
struct PackageBorder {
  TensorId source = 0;
  TensorId target = 0;
  uint32_t call = 0;
};

// An output that equals an input, a constant or another tensor: copied after all calls. Or the default value of an
// input, a constant.
struct PackageCopy {
  TensorId source = 0;
  TensorId target = 0;
};

// What a run does between calls; see ActionEntry. Which fields an operation uses is as in graph::PlanAction.
struct PackageAction {
  ActionOp op = ActionOp::kLabel;
  uint32_t call = 0;      // before this call, after the actions before it; the number of calls: after the last
  std::string size = {};  // the open size that gets a value
  ir::Size value = {};
  TensorId source = kNoTensor, target = kNoTensor;
  uint32_t destination = 0;  // index into PackageProgram::actions, of a label
};

// A call whose output equals an input except for some rows; as UpdateEntry.
struct PackageUpdate {
  uint32_t call = 0;  // index into PackageProgram::calls
  TensorId input = 0, output = 0, rows = 0;
  TensorId starts = kNoTensor;
  uint32_t axis = 1;
};

// The code for one target. Code for a CPU requires cpu_features; code for a device with lanes requires lanes,
// shared_bytes and device. The others stay empty (UnitEntry).
struct PackageUnit {
  CodeKind kind = CodeKind::kX86_64;
  std::vector<std::string> cpu_features;  // LLVM's names, see base/cpu_features.h
  uint32_t lanes = 0;                     // most lanes of a group
  uint64_t shared_bytes = 0;              // most shared memory of a group
  std::string device;                     // the only device that can run the code; empty: any
  std::string target;                     // target text
  uint32_t home = 0;                      // index into PackageProgram::arena_bytes
  std::string code;                       // bytes of the kind's format (base/code_kind.h)
};

// The whole model, as one or several units compute it.
struct PackageProgram {
  std::vector<PackageUnit> units = std::vector<PackageUnit>(1);
  std::vector<uint64_t> arena_bytes = std::vector<uint64_t>(1);  // per home; set by PlanArena
  std::vector<PackageTensor> tensors;
  std::vector<KernelInterface> kernels;  // names are unique
  std::vector<uint32_t> kernel_units;    // per kernel: its unit; may be shorter: the kernels after its end are unit 0's
  std::vector<PackageCall> calls;        // in order of execution
  std::vector<TensorId> inputs, outputs;
  std::vector<PackageBorder> borders;  // by ascending call
  std::vector<PackageCopy> copies;     // to outputs
  std::vector<PackageCopy> defaults;   // to inputs
  std::vector<PackageAction> actions;  // by ascending call
  // The open sizes. Each is set by actions, or is a dimension of an input or a divisor of one.
  std::vector<ir::OpenSize> sizes;
  std::vector<PackageUpdate> updates;  // by ascending call
  std::vector<PackageValue> values;    // by ascending tensor

  uint32_t UnitOf(uint32_t kernel) const { return kernel < kernel_units.size() ? kernel_units[kernel] : 0; }
  uint32_t HomeOf(const PackageCall& call) const { return units[UnitOf(call.kernel)].home; }
};

// The oldest version of the format that can hold the program. Version 3 cannot if the package has another program for
// its target.
uint32_t VersionFor(const PackageProgram& program);

// One home for the units of CPUs and one for each unit of a device, in the order of the units. Sets PackageUnit::home
// and the number of arenas.
void AssignHomes(PackageProgram& program);

struct PackageContents {
  // Those for the preferred target first. All have the same inputs and outputs; those for one target, for different
  // shapes.
  std::vector<PackageProgram> programs;
  PackageMetadata metadata;  // one ProgramMetadata per program, in the same order
};

// Writes the package beside `path` (atomic_file.h), runs the runtime's checks on it, forces it to disk, and renames it:
// `path` is the old file or the whole new one at any moment. A `path` that is a device or a pipe is written directly
// and without these checks. Returns the size in bytes. Errors: InvalidArgument (the contents make no valid package),
// and those of AtomicFile.
absl::StatusOr<uint64_t> WritePackage(const PackageContents& contents, const std::string& path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_
