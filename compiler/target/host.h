// SPDX-License-Identifier: Apache-2.0
// The CPUs of this machine as a target: its cores, caches and the threads we may use, as the kernel's files tell.
//
// `root` is the folder under which /proc and /sys are found, so that tests can show other machines. Nothing is measured
// and no instruction is asked; what a machine does not tell is taken from the table of microarchitectures.
#ifndef HONE_COMPILER_TARGET_HOST_H_
#define HONE_COMPILER_TARGET_HOST_H_

#include <optional>
#include <string>

#include "compiler/target/target.h"

namespace hone::target {

// Cores of several kinds: the fastest one, with the features that all have. `runs`: what code runs here; where the
// files tell of other processors, as an emulator leaves them, nothing is known of these. Without it, what the files
// tell.
Target HostCpu(const std::string& root, std::optional<Arch> runs = {});

// Of this machine, for what this program is compiled for.
Target HostCpu();

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_HOST_H_
