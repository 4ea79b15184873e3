// SPDX-License-Identifier: Apache-2.0
// The CPUs that code can be generated for, as one table of data: a new CPU is a new row of microarchitectures.cc.
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

// How /proc/cpuinfo names a core. x86-64: vendor_id, cpu family, model. Arm: CPU implementer, 0, CPU part.
struct CoreId {
  std::string vendor;
  int family = 0;
  int model = 0;
};

// Cores of one maker; of any without a vendor, as x86-64-v3 is.
struct Family {
  Arch arch;
  std::string_view vendor;
  int family;
};

struct ModelRange {
  int first = -1, last = -1;  // both included; without a last one it is the first alone, without both it is none
};

// Typical; a detected host has its own. The third level is what eight cores have of it (of the second, where that is
// the last).
struct CacheKilobytes {
  int64_t l1, l2, l3;
};

struct Microarchitecture {
  Family family;
  std::string_view name;             // LLVM's
  std::array<ModelRange, 8> models;  // none where there is no vendor
  // LLVM's names of those in base/cpu_features.h, in groups of words.
  std::array<std::string_view, 4> features;
  int unit_bits;  // of its arithmetic units: wider vectors go through in parts
  CacheKilobytes caches;
  Core core;  // for vectors that its units take whole
};

std::span<const Microarchitecture> Microarchitectures();
// Null if the table has no such CPU.
const Microarchitecture* FindMicroarchitecture(Arch arch, std::string_view name);
// Of the rows for this core the first all of whose features are in `present`, else the last of them. An x86-64 core
// with a feature that none of its rows has is another one under a false number, as virtual machines show them: it gets
// the richest row of its maker that `present` allows. A core without a row gets the best general one. Never null.
const Microarchitecture* Identify(Arch arch, const CoreId& id, const FeatureSet& present);

FeatureSet FeaturesOf(const Microarchitecture& row);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_MICROARCHITECTURES_H_
