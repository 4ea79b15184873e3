// SPDX-License-Identifier: Apache-2.0
// Counts the heap allocations of the process: the C library's functions are replaced by ones that count.
//
// It counts no mapped pages; ResidentBytes sees those. See counted_allocations.cc for the functions that are replaced.
#ifndef HONE_TESTS_BENCH_OPEN_COUNTED_ALLOCATIONS_H_
#define HONE_TESTS_BENCH_OPEN_COUNTED_ALLOCATIONS_H_

#include <cstdint>

namespace hone {

// How many blocks any thread has allocated so far, `new` included.
int64_t Allocations();

// The bytes of memory that the process occupies now, mapped files included. 0 if the system does not tell.
int64_t ResidentBytes();

}  // namespace hone

#endif  // HONE_TESTS_BENCH_OPEN_COUNTED_ALLOCATIONS_H_
