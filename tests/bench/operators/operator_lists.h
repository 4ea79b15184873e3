// SPDX-License-Identifier: Apache-2.0
// The fixed lists of operators: those of common models, odd shapes beside round ones, and those that a roofline bounds.
// random_operators.h has the random ones.
#ifndef HONE_TESTS_BENCH_OPERATORS_OPERATOR_LISTS_H_
#define HONE_TESTS_BENCH_OPERATORS_OPERATOR_LISTS_H_

#include <vector>

#include "tests/bench/operators/operator.h"

namespace hone::models {

// Operators of common models, 8-bit ones too, with the odd sizes that occur in practice.
std::vector<Operator> UsualOperators();
// Every layer shape of ResNet-50 and MobileNetV2, matrix products including BERT's, and one or more of every other kind
// of operator that the libraries have.
std::vector<Operator> LibraryOperators();
// Odd, prime and narrow extents. Each is followed by the operator of the nearest round shape, unless the list already
// has it.
std::vector<Operator> OddOperators();
// Operators that a good kernel runs at the roofline. Large products and 3x3 layers are bound by the multiply-add units.
// Element-wise work, depthwise layers and pooling are bound by the memory level that holds them.
std::vector<Operator> RoofOperators();
// Work along whole lines, sorts and running sums, and powers of mixed types.
std::vector<Operator> LineOperators();

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_OPERATOR_LISTS_H_
