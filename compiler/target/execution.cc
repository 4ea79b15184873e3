// SPDX-License-Identifier: Apache-2.0
#include "compiler/target/execution.h"

#include "base/status.h"

namespace hone::target {
namespace {

constexpr ExecutionFacts kThreads = {
    // Tasks; a block in the second cache; blocks of the reduction; tiles of one block in the first cache; steps;
    // registers.
    .tiling = "SSRSRS",
};

constexpr ExecutionFacts kLanes = {
    .has_grid = true,
    .links_candidates = false,
    .joins_products = false,
    .vector_stays_in_group = false,
    .winograd_needs_channels_last = false,
    .sums_planes_in_groups = true,
};

}  // namespace

const ExecutionFacts& FactsOf(Execution execution) {
  switch (execution) {
    case Execution::kThreads:
      return kThreads;
    case Execution::kLanes:
      return kLanes;
  }
  HONE_CHECK(false);
  return kThreads;
}

}  // namespace hone::target
