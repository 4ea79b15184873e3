// This machine as a target: its cores, caches and the threads we may use, as the kernel's files tell.
//
// `root` is the folder under which /proc and /sys are found, so that tests can show other machines. Nothing is measured
// and no instruction is asked; what a machine does not tell is taken from the table of microarchitectures.
#ifndef HONE_COMPILER_TARGET_HOST_H_
#define HONE_COMPILER_TARGET_HOST_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"

namespace hone::target {

// Cores of several kinds: the fastest one, with the features that all have.
Target HostCpu(const std::string& root = "/");

// The OpenCL device whose name contains `device` ('-' for a space), the first one if empty: an ordinary OpenCL target
// with what the driver says of it, unless that is too much (a CPU's "local memory" is as large as a cache, and its
// groups as large as one likes). A device that is not here is taken for an ordinary one, so that compiling needs none.
Target HostOpenCl(std::string_view device);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_HOST_H_
