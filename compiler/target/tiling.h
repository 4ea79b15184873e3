// SPDX-License-Identifier: Apache-2.0
// The tile string of a target: the levels of loops into which reductions are tiled for it.
#ifndef HONE_COMPILER_TARGET_TILING_H_
#define HONE_COMPILER_TARGET_TILING_H_

#include <string_view>

#include "compiler/target/target.h"

namespace hone::target {

// Returns one letter per level, outermost first. S tiles every axis of the result (spatial), R every reduction axis.
// The first S level is distributed over threads; the last stays in registers. Empty for targets with lanes.
std::string_view TilingOf(const Target& target);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TILING_H_
