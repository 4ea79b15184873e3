// Writes a .hone package from plain values. The compile step fills PackageContents, the memory planner
// (memory_plan.h, PlanArena) its offsets, and WritePackage puts it on disk.
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
#include "deploy/package/metadata.h"
#include "deploy/runtime/package_format.h"

namespace hone::package {

using TensorId = uint32_t;  // index into PackageContents::tensors

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
  std::string symbol;
  std::vector<TensorId> arguments;  // inputs, constants, packed constants, outputs
  uint32_t output_count = 1;        // how many of the last arguments are outputs
  uint64_t workspace_bytes = 0;
  uint64_t workspace_offset = 0;  // set by PlanArena
};

// An output that is an input, a constant or another tensor under a second name: done after all calls.
struct PackageCopy {
  TensorId source = 0;
  TensorId target = 0;
};

struct PackageContents {
  Arch arch = Arch::kX86_64;
  std::vector<std::string> cpu_features;  // needed beyond the architecture; LLVM's names, see runtime/cpu_features.h
  std::string shared_object;              // ELF bytes
  std::vector<PackageTensor> tensors;
  std::vector<PackageCall> calls;  // in order of execution
  std::vector<TensorId> inputs, outputs;
  std::vector<PackageCopy> copies;
  uint64_t arena_bytes = 0;  // set by PlanArena
  PackageMetadata metadata;
};

// Writes the file under a temporary name beside `path`, forces it to disk, checks it as the runtime will, and renames
// it; so `path` is the old file or the whole new one at any moment. Returns its size in bytes. Errors leave no
// temporary file behind: InvalidArgument for contents that make no package, ResourceExhausted when the disk is full,
// else Unavailable with the system's reason.
absl::StatusOr<uint64_t> WritePackage(const PackageContents& contents, const std::string& path);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_PACKAGE_WRITER_H_
