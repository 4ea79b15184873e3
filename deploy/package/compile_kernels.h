// SPDX-License-Identifier: Apache-2.0
// The kernels of a plan, one per workload, generated in parallel: the best recorded schedule of each, or its default.
//
// Not the search (tuner/) and not the file (package_writer.h). A recorded schedule is only advice, unless it is pinned:
// one that does not fit any more is skipped with a warning. Start with CompileKernels.
#ifndef HONE_DEPLOY_PACKAGE_COMPILE_KERNELS_H_
#define HONE_DEPLOY_PACKAGE_COMPILE_KERNELS_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/kernel.h"
#include "compiler/ir/workload.h"
#include "compiler/target/target.h"

namespace hone::package {

struct RecordedSchedule {
  std::string schedule;    // text
  std::string provenance;  // for messages: "measured on this device"
  bool is_record = true;   // or a default that was written down
};

// The recorded schedules of a workload, best first; empty if there are none. An error ends the compilation. Called from
// several threads at once.
using ScheduleLookup = std::function<absl::StatusOr<std::vector<RecordedSchedule>>(const std::string& workload_digest)>;

struct KernelOptions {
  target::Target target;
  ScheduleLookup lookup;         // may be empty: no records
  int threads = 0;               // that generate code; 0: one per CPU
  bool pinned = false;           // the first schedule of `lookup` is used, and every workload has one; else an error
  bool plain = false;            // unscheduled loops for every workload: quick to compile, slow to run
  std::string reproducers = {};  // folder for what shows the failure of a pass again (pass_runner.h); empty: none
  // Told of each kernel that was generated, how many that are and of how many. From several threads, one at a time.
  std::function<void(size_t done, size_t all)> progress = {};
  // Called after every pass over a kernel; an error is the pass's failure. From several threads.
  std::function<absl::Status(const PassRun& run, const ir::Func& func)> after_pass = {};
};

struct CompiledKernel {
  codegen::Kernel kernel;
  std::string digest;                           // of the workload
  std::string schedule;                         // text of the one that was used
  int record = -1;                              // which one of the lookup's answer that is; none: -1
  bool is_record = false;                       // and whether that was a record
  std::optional<codegen::Assembled> assembled;  // where this machine can (codegen.h)
  std::vector<std::string> warnings;
};

// One per workload, in order; symbols are unique. Fails only where a workload cannot be compiled at all.
absl::StatusOr<std::vector<CompiledKernel>> CompileKernels(std::span<const ir::Workload> workloads,
                                                           const KernelOptions& options);

// Runs work(i) for every i in [0, count) on up to `threads` threads (0: one per CPU); the error of the lowest i.
absl::Status RunParallel(size_t count, int threads, const std::function<absl::Status(size_t)>& work);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_COMPILE_KERNELS_H_
