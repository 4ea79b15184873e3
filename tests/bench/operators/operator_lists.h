// SPDX-License-Identifier: Apache-2.0
// The lists of operators that people choose: what models are made of, odd shapes beside round ones, and what is bound
// by a roof. Those by chance are in random_operators.h.
#ifndef HONE_TESTS_BENCH_OPERATORS_OPERATOR_LISTS_H_
#define HONE_TESTS_BENCH_OPERATORS_OPERATOR_LISTS_H_

#include <vector>

#include "tests/bench/operators/operator.h"

namespace hone::models {

// What people run, 8-bit too, and the odd sizes they run it on.
std::vector<Operator> UsualOperators();
// Every layer shape of ResNet-50 and MobileNetV2, matrix products, BERT's among them, and one or several of each other
// kind of operator that libraries have.
std::vector<Operator> LibraryOperators();
// Odd, prime and narrow extents, each followed by the operator of the nearest round shape, unless that was there
// before.
std::vector<Operator> OddOperators();
// What a good kernel brings to the roof: large products and 3x3 layers to that of the multiply-add units, element-wise
// work, depthwise layers and pooling to that of the memory level that holds them.
std::vector<Operator> RoofOperators();

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_OPERATOR_LISTS_H_
