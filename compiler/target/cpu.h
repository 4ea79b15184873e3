// Inside compiler/target: CPUs as targets, with the capabilities that follow from what they are.
#ifndef HONE_COMPILER_TARGET_CPU_H_
#define HONE_COMPILER_TARGET_CPU_H_

#include "compiler/target/cpu_features.h"
#include "compiler/target/microarchitectures.h"
#include "compiler/target/target.h"

namespace hone::target {

// A CPU of this row with exactly these features, its typical caches and one thread.
Target CpuTarget(const Microarchitecture& row, const FeatureSet& features);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_CPU_H_
