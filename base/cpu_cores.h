// SPDX-License-Identifier: Apache-2.0
// Which CPUs of this machine are alike: groups of cores by speed, as in big.LITTLE and hybrid processors.
//
// Read from the kernel's files; nothing but the C++ library, since the runtime that ships with a model takes it too.
// A loop that is shared among fast and slow cores ends with the slowest, so kernels are tuned and run on one group.
// Not here: caches and names of cores (device_agent/devices/cpu/host.h, compiler/target/host.h). Start at
// FindCoreGroups.
#ifndef HONE_BASE_CPU_CORES_H_
#define HONE_BASE_CPU_CORES_H_

#include <string>
#include <vector>

namespace hone {

struct CoreGroup {
  std::vector<int> cores;         // one CPU of each core, ascending
  std::vector<int> siblings;      // further hardware threads of the same cores, ascending
  std::vector<int> Cpus() const;  // all of them, ascending
};

// The CPUs that the calling thread may use, ascending; empty where that cannot be known.
std::vector<int> UsableCpus();

// The groups that `usable` CPUs fall into, the fastest first, none of them empty; one where the kernel tells no
// difference. What is within a fifth of a group's fastest core belongs to it: vendors tell good cores apart, too.
// root: the folder under which /sys is found.
std::vector<CoreGroup> FindCoreGroups(const std::vector<int>& usable, const std::string& root = "/");

// How many threads of a group work best together: one on each core, where they have the time of so many CPUs
// (base/control_groups.h); more than these would only wait for each other.
int ThreadsOf(const CoreGroup& group, double cpus);

// While it lives, the calling thread runs on these CPUs only, as far as the system lets it; empty: as before.
// Threads that it starts meanwhile inherit that, and keep it.
class OnCpus {
 public:
  explicit OnCpus(const std::vector<int>& cpus);
  ~OnCpus();
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;

 private:
  std::vector<int> before_;  // empty: nothing was changed
};

// For good. No effect where the system refuses or `cpus` is empty.
void StayOnCpus(const std::vector<int>& cpus);

}  // namespace hone

#endif  // HONE_BASE_CPU_CORES_H_
