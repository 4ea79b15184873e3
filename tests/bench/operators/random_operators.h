// SPDX-License-Identifier: Apache-2.0
// Random operators, because the default schedules are weakest on shapes that were not chosen by hand.
//
// Extents are round, odd, prime, tiny and large. Windows differ by dimension, with strides, groups, dilation and
// padding that may differ between the two sides. The same seed gives the same operators on every machine.
#ifndef HONE_TESTS_BENCH_OPERATORS_RANDOM_OPERATORS_H_
#define HONE_TESTS_BENCH_OPERATORS_RANDOM_OPERATORS_H_

#include <cstdint>
#include <vector>

#include "tests/bench/operators/operator.h"

namespace hone::models {

// Returns `count` operators with different names. None is so small that the call overhead dominates, and none takes
// more than about a second.
std::vector<Operator> RandomOperators(int64_t count, uint64_t seed);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_RANDOM_OPERATORS_H_
