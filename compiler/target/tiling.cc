// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/tiling.h"

namespace hone::target {
namespace {

// Tasks; a block in the second cache; blocks of the reduction; tiles of one block in the first cache; steps; registers.
constexpr std::string_view kThreads = "SSRSRS";

}  // namespace

std::string_view TilingOf(const Target& target) { return target.HasLanes() ? std::string_view() : kThreads; }

}  // namespace hone::target
