// SPDX-License-Identifier: Apache-2.0
// Runs packages, which are whole compiled models, in children: first each package once in a child of its own, which
// tells its memory and stores its outputs, then all of them in one child, in turns. Start at PackageRunner::Run.
//
// The process must have one thread, because this class forks. Like VisitRunner, which does the same for kernels, it
// maps no code of a package, and checks all that a child says (package_convert.h).
#ifndef HONE_DEVICE_AGENT_LAUNCHER_PACKAGE_RUNNER_H_
#define HONE_DEVICE_AGENT_LAUNCHER_PACKAGE_RUNNER_H_

#include <cstdint>
#include <vector>

#include "base/memory_file.h"
#include "base/run_limits.h"
#include "device_agent/devices/device.h"
#include "device_agent/sandbox/system_calls.h"
#include "hone/v1/measure.pb.h"

namespace hone::agent {

// A run that has ended.
struct PackageVisit {
  v1::BatchResult result;
  std::vector<MemoryFile> outputs;  // of each package, sealed; empty without outputs
};

class PackageRunner {
 public:
  struct Options {
    int64_t memory_limit = 0;                      // bytes of address space of one child; 0: no limit
    CallFilter filter = CallFilter::kListener;     // as for VisitRunner
    std::vector<int> cpus;                         // for this process and its children; empty: any
    double load_seconds = kPackageLoadSecondsMax;  // for one package, and for its inputs
    double run_seconds = kPackageRunSecondsMax;    // for one run of one package
  };
  // `device` must outlive the runner.
  PackageRunner(const Device& device, Options options) : device_(device), options_(std::move(options)) {}

  // Runs the packages of batch.run(). files: the packages in order, then the inputs if there are any. A failure of a
  // package is the outcome of the batch's candidate; other failures are in BatchResult.error, which is "cancelled" when
  // `cancel_fd` (or -1: never) becomes readable.
  PackageVisit Run(const v1::Batch& batch, const std::vector<MemoryFile>& files, int cancel_fd) const;

 private:
  const Device& device_;
  const Options options_;
};

}  // namespace hone::agent

#endif  // HONE_DEVICE_AGENT_LAUNCHER_PACKAGE_RUNNER_H_
