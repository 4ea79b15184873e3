// The CPUs of this machine as a target: its cores, caches and the threads we may use, as the kernel's files tell.
//
// `root` is the folder under which /proc and /sys are found, so that tests can show other machines. Nothing is measured
// and no instruction is asked; what a machine does not tell is taken from the table of microarchitectures.
#ifndef HONE_COMPILER_TARGET_HOST_H_
#define HONE_COMPILER_TARGET_HOST_H_

#include <string>

#include "compiler/target/target.h"

namespace hone::target {

// Cores of several kinds: the fastest one, with the features that all have.
Target HostCpu(const std::string& root = "/");

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_HOST_H_
