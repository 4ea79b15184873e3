// SPDX-License-Identifier: Apache-2.0
// Machines that are not here: what their /proc and /sys say, in a temporary folder.
#ifndef HONE_TESTS_UNIT_TARGET_FAKE_MACHINE_H_
#define HONE_TESTS_UNIT_TARGET_FAKE_MACHINE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.h"

namespace hone::tests {

struct FakeCache {
  int level;
  std::string_view type, size;  // "Data", "32K"
  int shared_by;                // neighbouring CPUs
};

struct FakeMachine {
  // A line per processor is added before each: all but "processor".
  std::vector<std::string> cores;
  std::vector<FakeCache> caches;
  int threads_per_core = 1;
  std::vector<int> capacities;    // of every core; none: the kernel does not say
  std::string allowed = "0-255";  // affinity, as the kernel writes it
  std::string cpu_max = {};       // of its control group, as the kernel writes it; none: it has no group

  // A root for target::HostCpu and agent::DetectHost, ending in a slash.
  TemporaryFolder Write() const;
};

FakeMachine RaspberryPi2();      // 4 Cortex-A7, 32-bit kernel
FakeMachine RaspberryPi4();      // 4 Cortex-A72, without cryptography
FakeMachine RaspberryPi5();      // 4 Cortex-A76
FakeMachine JetsonOrin();        // 8 Cortex-A78AE
FakeMachine Zen4Server();        // 8 cores of 16 threads, bare metal, two last level caches
FakeMachine SapphireRapidsVm();  // 4 CPUs that see the cache of a socket, without AVX512-FP16
FakeMachine Rk3588();            // 4 Cortex-A55 and 4 Cortex-A76, four speeds of them

}  // namespace hone::tests

#endif  // HONE_TESTS_UNIT_TARGET_FAKE_MACHINE_H_
