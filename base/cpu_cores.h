// SPDX-License-Identifier: Apache-2.0
// Groups of cores of equal speed on this machine, as in big.LITTLE and hybrid processors. Start at FindCoreGroups.
//
// A parallel loop ends with its slowest core, so kernels are tuned and run on the cores of one group. The groups are
// read from the kernel's files. This header needs only the C++ library, because the runtime that ships with a model
// includes it. Caches and names of cores are in device_agent/devices/cpu/host.h and compiler/target/host.h.
#ifndef HONE_BASE_CPU_CORES_H_
#define HONE_BASE_CPU_CORES_H_

#include <string>
#include <vector>

namespace hone {

struct CoreGroup {
  std::vector<int> cores;         // one CPU of each core, ascending
  std::vector<int> siblings;      // further hardware threads of the same cores, ascending
  std::vector<int> Cpus() const;  // cores and siblings, ascending
};

// The CPUs that the calling thread may run on, ascending; empty if the system does not tell.
std::vector<int> UsableCpus();

// Splits the CPUs `usable` into groups, the fastest group first; no group is empty. A core belongs to a group if it has
// at least 80 % of the speed of the group's fastest core, because vendors also rank cores of one kind. The result is
// one group if the kernel reports no speeds, and empty if `usable` is empty. root: the folder that contains sys, with a
// slash at its end.
std::vector<CoreGroup> FindCoreGroups(const std::vector<int>& usable, const std::string& root = "/");

// The number of threads that run a parallel loop fastest on `group`: one for each core, but at most `cpus`, rounded up.
// It is at least 1. cpus: the CPU quota of the process (ProcessCpuQuota in base/control_groups.h), above 0; infinite if
// there is no limit. Threads beyond it would wait for one another.
int LoopThreads(const CoreGroup& group, double cpus);

// Restricts the calling thread to `cpus` from construction to destruction. Has no effect if `cpus` is empty or the
// system refuses. Threads that are started in between inherit the restriction and keep it.
class ScopedCpuAffinity {
 public:
  explicit ScopedCpuAffinity(const std::vector<int>& cpus);
  ~ScopedCpuAffinity();
  ScopedCpuAffinity(const ScopedCpuAffinity&) = delete;
  ScopedCpuAffinity& operator=(const ScopedCpuAffinity&) = delete;

 private:
  std::vector<int> before_;  // the CPUs to restore; empty = nothing was changed
};

// Restricts the calling thread to `cpus` permanently. Has no effect if `cpus` is empty or the system refuses.
void SetCpuAffinity(const std::vector<int>& cpus);

}  // namespace hone

#endif  // HONE_BASE_CPU_CORES_H_
