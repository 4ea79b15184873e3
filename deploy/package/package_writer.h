// SPDX-License-Identifier: Apache-2.0
// Writes a .hone package from plain values. The compile step fills a PackageProgram for each target, the memory planner
// (memory_plan.h, PlanArena) their offsets, and WritePackage puts all on disk.
//
// Not the compiler: nothing here knows graphs, workloads or schedules. The format is deploy/runtime/package_format.h.
#ifndef HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_
#define HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/kernel_interface.h"
#include "deploy/package/metadata.h"
#include "deploy/runtime/package_format.h"

namespace hone::package {

using TensorId = uint32_t;  // index into PackageProgram::tensors

struct PackageTensor {
  std::string name;  // of inputs and outputs: as the model names them; else may be empty
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // at most kMaxRank dimensions
  TensorKind kind = TensorKind::kIntermediate;
  // Of a constant, packed or not: its bytes, shape times element size of them. Not owned; must live until WritePackage
  // returns. Empty for other kinds.
  std::span<const uint8_t> data;
  uint64_t arena_offset = 0;  // of an intermediate; set by PlanArena
};

struct PackageCall {
  uint32_t kernel = 0;  // index into PackageProgram::kernels
  // One for each buffer of the kernel but slices of its workspace; kNoTensor for one that it does not use.
  std::vector<TensorId> arguments;
  uint64_t workspace_offset = 0;  // set by PlanArena
};

// An output that is an input, a constant or another tensor under a second name: done after all calls.
struct PackageCopy {
  TensorId source = 0;
  TensorId target = 0;
};

// The model for one target. What `kind` of code needs of a machine: cpu_features if it is for a CPU, else the other
// three; see ManifestHeader.
struct PackageProgram {
  CodeKind kind = CodeKind::kX86_64;
  std::vector<std::string> cpu_features;  // LLVM's names, see base/cpu_features.h
  uint32_t lanes = 0;
  uint64_t shared_bytes = 0;
  std::string device;
  std::string code;
  std::vector<PackageTensor> tensors;
  std::vector<KernelInterface> kernels;  // names are unique
  std::vector<PackageCall> calls;        // in order of execution
  std::vector<TensorId> inputs, outputs;
  std::vector<PackageCopy> copies;
  uint64_t arena_bytes = 0;  // set by PlanArena
};

struct PackageContents {
  std::vector<PackageProgram> programs;  // the best first; inputs and outputs are the same in all
  PackageMetadata metadata;              // its programs: the targets of these, in the same order
};

// Writes the file under a temporary name beside `path`, forces it to disk, checks it as the runtime will, and renames
// it; so `path` is the old file or the whole new one at any moment. Returns its size in bytes. Errors leave no
// temporary file behind: InvalidArgument for contents that make no package, ResourceExhausted when the disk is full,
// else Unavailable with the system's reason.
absl::StatusOr<uint64_t> WritePackage(const PackageContents& contents, const std::string& path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_
