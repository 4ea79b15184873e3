// SPDX-License-Identifier: Apache-2.0
// Generates the kernels of a plan, one per workload, in parallel: with the workload's best recorded schedule, or else
// with its default schedule. If several targets share the plan, each workload is placed on one of them: on the first
// that can compile it, unless Placement says otherwise.
//
// Not the search (tuner/) and not the file (package_writer.h). A recorded schedule that cannot be compiled is skipped
// with a warning, unless schedules are pinned: then it is an error. Start with CompileKernels.
#ifndef HONE_DEPLOY_PACKAGE_COMPILE_KERNELS_H_
#define HONE_DEPLOY_PACKAGE_COMPILE_KERNELS_H_

#include <cstddef>
#include <functional>
#include <map>
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
  std::string schedule;    // schedule text
  std::string provenance;  // for warnings: "measured on this device"; if pinned, what to say when it does not compile
  bool is_record = true;   // false: a default schedule from a lock file, which was never measured
};

// Returns the recorded schedules of a workload, best first; empty if there are none. An error ends the compilation.
// Must be thread-safe.
using ScheduleLookup = std::function<absl::StatusOr<std::vector<RecordedSchedule>>(const std::string& workload_digest)>;

// A target that computes a part of a plan.
struct UnitOptions {
  target::Target target;
  ScheduleLookup lookup;  // empty: no records
};

// The units that must compile some of the workloads. Units are numbered: 0 is KernelOptions::target, and then those of
// KernelOptions::other_units follow. Every number must be that of a unit; it is not checked.
struct Placement {
  std::map<std::string, int> by_operator;  // Workload::op; an operator that the plan does not have is an error
  std::map<std::string, int> by_digest;    // comes before by_operator; other digests are ignored
};

struct KernelOptions {
  target::Target target;  // the plan is made for it
  ScheduleLookup lookup;  // empty: no records
  int threads = 0;        // threads that generate code; 0: one per CPU
  // A schedule of `lookup` that cannot be compiled is an error instead of a warning, and the package gets no machine
  // code for a device, so that it is equal on every machine that compiles it.
  bool pinned = false;
  bool naive = false;                         // the naive schedule for every workload: quick to compile, slow to run
  std::vector<UnitOptions> other_units = {};  // take what `target` cannot compile: the first of them that can
  Placement placement = {};
  std::string reproducers = {};  // folder for inputs on which a pass failed (pass_runner.h); empty: none are written
  // Called after each generated kernel: `done` of `all` kernels are finished. Any thread may call it, one at a time.
  std::function<void(size_t done, size_t all)> progress = {};
  // Called after every pass over a kernel; an error counts as a failure of the pass. Must be thread-safe.
  std::function<absl::Status(const PassRun& run, const ir::Func& func)> after_pass = {};
};

// The target of a unit, and the text for all units of the options together: "opencl ... + x86_64 ...".
const target::Target& UnitTarget(const KernelOptions& options, int unit);
std::string TargetText(const KernelOptions& options);

struct CompiledKernel {
  int unit = 0;  // where the workload is placed
  codegen::Kernel kernel;
  std::string digest;                           // of the workload
  std::string schedule;                         // text of the schedule that was used
  int record = -1;                              // its index in the lookup's answer; -1: a default or naive schedule
  bool is_record = false;                       // RecordedSchedule::is_record of that schedule
  std::optional<codegen::Assembled> assembled;  // machine code; empty if naive, or if this machine cannot assemble
  std::vector<std::string> warnings;            // which schedules were skipped, and why
};

// Generates one kernel per workload, in order, with unique symbols. Tries the recorded schedules, the default schedule
// and plain loops in this order, first for `target`, then for the other units. Fails if none of them can be compiled
// for any unit, if a lookup fails, or if a pinned schedule cannot be compiled; the error names all workloads that
// cannot be compiled, and with several units what each of them lacks. InvalidArgument: the placement names an operator
// that no workload has.
absl::StatusOr<std::vector<CompiledKernel>> CompileKernels(std::span<const ir::Workload> workloads,
                                                           const KernelOptions& options);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_COMPILE_KERNELS_H_
