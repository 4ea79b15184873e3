// SPDX-License-Identifier: Apache-2.0
// A func of several root nests as one func per nest: what a target with lanes launches one after the other.
#ifndef HONE_COMPILER_PASSES_SPLIT_LAUNCHES_H_
#define HONE_COMPILER_PASSES_SPLIT_LAUNCHES_H_

#include <vector>

#include "compiler/ir/stmt.h"

namespace hone::passes {

struct Launches {
  std::vector<ir::Func> funcs;        // in order; params: those of the func that the nest uses, then of the workspace
  std::vector<ir::Buffer> workspace;  // what lives from launch to launch: the func's workspace as params
};

// func: nests under the Allocs of its workspace. Names are the func's with a number.
Launches SplitLaunches(const ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_SPLIT_LAUNCHES_H_
