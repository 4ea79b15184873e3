// SPDX-License-Identifier: Apache-2.0
// The roofline of this machine, measured: the peak rate of f32 fused multiply-adds, and the read bandwidth of each
// level of memory. `hone profile` and the agent's calibration compare kernels with it.
//
// A measurement takes about a third of a second on all threads of a pool, and the machine must be otherwise idle. Needs
// only the C++ library.
#ifndef HONE_BASE_ROOFLINE_H_
#define HONE_BASE_ROOFLINE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace hone {

struct Roofline {
  struct Level {
    uint64_t bytes;           // working sets up to this size fit in the level; UINT64_MAX for memory, the last level
    double bytes_per_second;  // read bandwidth of all threads together
  };

  double flops_per_second = 0;  // all threads together; a fused multiply-add counts as two
  std::vector<Level> levels;    // the level-2 caches first, memory last; memory is always present

  // The lower bound in seconds for a kernel of `flops` operations that touches `bytes` distinct bytes. It is the larger
  // of the computing time and the time to read the bytes from the smallest level that holds them.
  double LowerBoundSeconds(double flops, double bytes) const;
};

// A roofline with one cache and the memory. cache_bytes: 0 = there is no cache.
Roofline RooflineWithCache(double flops_per_second, int64_t cache_bytes, double cache_bytes_per_second,
                           double memory_bytes_per_second);

// Measures this machine with all threads of `pool`.
Roofline MeasureRoofline(ThreadPool& pool);

// The read bandwidth in bytes per second: all threads together read `data` again and again. data: at least 512 bytes.
double MeasureReadBandwidth(ThreadPool& pool, std::span<const uint64_t> data);

}  // namespace hone

#endif  // HONE_BASE_ROOFLINE_H_
