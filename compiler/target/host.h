// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine as a target: cores, caches and usable threads, read from /proc and /sys.
//
// `root` is the folder that contains proc and sys, with a slash at its end, so that tests can present other machines.
// Nothing is measured and no CPUID instruction is executed. What the files do not state comes from the table of
// microarchitectures.
#ifndef HONE_COMPILER_TARGET_HOST_H_
#define HONE_COMPILER_TARGET_HOST_H_

#include <optional>
#include <string>

#include "compiler/target/target.h"

namespace hone::target {

// Describes the machine under `root`. If its cores differ, the result describes the fastest core that this thread may
// use, with the features that all cores have; Target::threads counts only the usable cores about as fast, and is at
// most the CPU quota of the process, rounded up. `runs` is the architecture that this machine executes. If the files
// describe processors of another architecture, as under an emulator, the result is a generic CPU of `runs`, with the
// number of cores and the caches that the files state. Without `runs`, the architecture comes from the files.
Target HostCpu(const std::string& root, std::optional<Arch> runs = {});

// This machine, for the architecture that this program is compiled for.
Target HostCpu();

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_HOST_H_
