// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/tiling.h"

namespace hone::target {
namespace {

// Tasks; blocks in L2; reduction blocks; tiles of one block in L1; reduction steps; registers.
constexpr std::string_view kThreads = "SSRSRS";

}  // namespace

std::string_view TilingOf(const Target& target) { return target.HasLanes() ? std::string_view() : kThreads; }

}  // namespace hone::target
