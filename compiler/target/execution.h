// SPDX-License-Identifier: Apache-2.0
// How kernels run on a kind of target, as data: what graph passes, the search and packages must know of it before there
// is a kernel. Each kind of target states its facts in its table entry (kind.h). Which passes lower a schedule, and
// which schedule is the naive one, says compiler/execution/model.h.
#ifndef HONE_COMPILER_TARGET_EXECUTION_H_
#define HONE_COMPILER_TARGET_EXECUTION_H_

#include <string_view>

namespace hone::target {

struct ExecutionFacts {
  // A launch has a grid. Its groups run in any order, and so a kernel may need several launches.
  bool has_grid = false;
  // The candidates of a batch are linked into one object. Else the code of each stands alone, with the launches that
  // prepare its constants, and a driver on the device's side loads it.
  bool links_candidates = true;
  // One kernel can compute a product and what consumes it row by row: attention, a depthwise convolution and the
  // pointwise one after it.
  bool joins_products = true;
  // A vector of output channels of a grouped convolution never covers channels of two groups, because the channels of a
  // group read the same inputs. The layout pass then counts the vectors of each group.
  bool vector_stays_in_group = true;
  // Winograd's algorithm can be faster only if channels are side by side in memory. The layout pass then counts its
  // gain in favour of channels last.
  bool winograd_needs_channels_last = true;
  // One group of lanes sums all pixels of a channel in InstanceNormalization. These pixels should be contiguous, so the
  // layout pass keeps channels first there.
  bool sums_planes_in_groups = false;
  // Into which levels of loops a reduction is split, a letter a level, outermost first: S splits every axis of the
  // result, R those that are summed over. The first S is what threads share out, the last stays in registers. Empty
  // where lanes share out the work.
  std::string_view tiling;
};

// The facts of every kind whose kernels are launches over a grid of groups of lanes.
inline constexpr ExecutionFacts kGridFacts = {
    .has_grid = true,
    .links_candidates = false,
    .joins_products = false,
    .vector_stays_in_group = false,
    .winograd_needs_channels_last = false,
    .sums_planes_in_groups = true,
};

}  // namespace hone::target

#endif  // HONE_COMPILER_TARGET_EXECUTION_H_
