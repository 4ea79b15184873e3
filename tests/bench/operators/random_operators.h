// SPDX-License-Identifier: Apache-2.0
// Operators by chance: what nobody chose is where a default is bad.
//
// Extents are round, odd, prime, tiny and large; windows differ by dimension, with strides, groups, dilation and
// padding that need not be the same on both sides. The same seed gives the same operators everywhere.
#ifndef HONE_TESTS_BENCH_OPERATORS_RANDOM_OPERATORS_H_
#define HONE_TESTS_BENCH_OPERATORS_RANDOM_OPERATORS_H_

#include <cstdint>
#include <vector>

#include "tests/bench/operators/operator.h"

namespace hone::models {

// As many, of different names. None is so small that the call is all there is to time, or takes more than about a
// second.
std::vector<Operator> RandomOperators(int64_t count, uint64_t seed);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_RANDOM_OPERATORS_H_
