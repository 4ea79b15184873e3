// SPDX-License-Identifier: Apache-2.0
// The tile string of a target: into which levels of loops a reduction is split there.
#ifndef HONE_COMPILER_TARGET_TILING_H_
#define HONE_COMPILER_TARGET_TILING_H_

#include <string_view>

#include "compiler/target/target.h"

namespace hone::target {

// A letter a level, outermost first: S splits every axis of the result, R those that are summed over. The first S is
// what threads share out, the last stays in registers. Empty where lanes share out the work.
std::string_view TilingOf(const Target& target);

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_TILING_H_
