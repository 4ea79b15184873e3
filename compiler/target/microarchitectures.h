// SPDX-License-Identifier: Apache-2.0
// The table of CPUs for which code can be generated. To add a CPU, add a row in microarchitectures.cc.
#ifndef HONE_COMPILER_TARGET_MICROARCHITECTURES_H_
#define HONE_COMPILER_TARGET_MICROARCHITECTURES_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler/target/cpu_features.h"
#include "compiler/target/target.h"

namespace hone::target {

// The identity of a core in /proc/cpuinfo. x86-64: vendor_id, cpu family, model. Arm: CPU implementer, 0, CPU part. The
// vendor is spelled as in the file: "GenuineIntel", "0x41".
struct CoreId {
  std::string vendor;
  int family = 0;
  int model = 0;
};

// The cores of one vendor; an empty vendor stands for all, as in x86-64-v3.
struct Family {
  Arch arch;
  std::string_view vendor;
  int family;
};

struct ModelRange {
  int first = -1, last = -1;  // inclusive; last = -1: only `first`; both -1: an empty range
};

// Typical sizes of the data caches in KiB; a detected host states its own. l1 and l2 are those of one core. l3 is what
// eight cores have together, a part of the cache if more cores share it.
struct CacheKilobytes {
  int64_t l1, l2, l3;
};

struct Microarchitecture {
  Family family;
  std::string_view name;             // LLVM's name
  std::array<ModelRange, 8> models;  // all empty if there is no vendor
  // LLVM's names of the features in base/cpu_features.h, separated by blanks; the array only groups them.
  std::array<std::string_view, 4> features;
  // Width of its arithmetic units. The features decide Target::vector_bits, which may be larger: wider vectors are
  // processed in parts, and the target's throughput is lower accordingly.
  int unit_bits;
  CacheKilobytes caches;
  Core core;  // throughput for vectors of unit_bits
};

std::span<const Microarchitecture> Microarchitectures();
// Returns nullptr if the table has no such CPU.
const Microarchitecture* FindMicroarchitecture(Arch arch, std::string_view name);
// Returns the table row for a core; never nullptr. Among the rows of this core, it is the first whose features are all
// in `present`, else the last. Virtual machines may report a wrong model number: if no row of an x86-64 core has all
// features in `present`, the result is the vendor's row with most features that `present` allows. A core without rows
// gets the best generic row.
const Microarchitecture* Identify(Arch arch, const CoreId& id, const FeatureSet& present);

FeatureSet FeaturesOf(const Microarchitecture& row);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_MICROARCHITECTURES_H_
