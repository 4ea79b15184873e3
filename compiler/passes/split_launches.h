// SPDX-License-Identifier: Apache-2.0
// Splits a func into one func per top-level nest: a target with lanes launches them one after the other.
#ifndef HONE_COMPILER_PASSES_SPLIT_LAUNCHES_H_
#define HONE_COMPILER_PASSES_SPLIT_LAUNCHES_H_

#include <vector>

#include "compiler/ir/stmt.h"

namespace hone::passes {

struct Launches {
  std::vector<ir::Func>
      funcs;  // in order; params: those of the func that the nest uses, then the workspace buffers it uses
  // One new param per workspace Alloc of the func, used or not, with its name, type and shape. Data pass from launch to
  // launch in them.
  std::vector<ir::Buffer> workspace;
};

// func: top-level nests inside the Lets of its open sizes and the Allocs of its workspace. Each launch binds the sizes
// that it uses. The new names are the func's name with a number.
Launches SplitLaunches(const ir::Func& func);

}  // namespace hone::passes

#endif  // HONE_COMPILER_PASSES_SPLIT_LAUNCHES_H_
