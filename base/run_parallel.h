// SPDX-License-Identifier: Apache-2.0
// Runs independent pieces of work on several threads that start and end with the call: compiling kernels, packing
// constants, proposing candidates. Kernels' own loops run on base/thread_pool.h, which keeps its threads.
#ifndef HONE_BASE_RUN_PARALLEL_H_
#define HONE_BASE_RUN_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace hone {

// Runs work(i) for every i in [0, count) on up to `threads` threads (0: one per CPU), the calling one included, and
// waits for all. An error does not stop the others; returns the error of the lowest i.
absl::Status RunParallel(size_t count, int threads, const std::function<absl::Status(size_t)>& work);

}  // namespace hone

#endif  // HONE_BASE_RUN_PARALLEL_H_
