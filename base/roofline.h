// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, measured: f32 fused multiply-adds, and reading from each level of memory. `hone
// profile` and the agent's calibration hold kernels against it.
//
// A measurement of about a third of a second on all threads of a pool; run it while nothing else runs. Nothing but the
// C++ library.
#ifndef HONE_BASE_ROOFLINE_H_
#define HONE_BASE_ROOFLINE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace hone {

struct Roofline {
  struct Level {
    uint64_t bytes;           // working sets up to this size stay in it; of the last level (memory): the largest number
    double bytes_per_second;  // reading, all threads together
  };

  double flops_per_second = 0;  // all threads together; a fused multiply-add counts as two
  std::vector<Level> levels;    // from the level-2 caches outwards; at least memory

  // No kernel of `flops` operations that touches `bytes` distinct bytes can take less than this many seconds: the
  // larger of computing time and of reading its bytes from the smallest level that holds them.
  double LeastSeconds(double flops, double bytes) const;
};

Roofline MeasureRoofline(ThreadPool& pool);

// Bytes per second: all threads together read `data`, at least 512 bytes, again and again.
double MeasureRead(ThreadPool& pool, std::span<const uint64_t> data);

}  // namespace hone

#endif  // HONE_BASE_ROOFLINE_H_
