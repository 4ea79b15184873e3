// SPDX-License-Identifier: Apache-2.0
// The recipes: each knows one kind of node and what it needs around it.
//
// To cover another operator, write a recipe beside its relatives and a line in the table at the end of that file. What
// an operator allows is asked of the operator: a recipe may try what is refused.
#ifndef HONE_TESTS_FUZZ_RECIPES_H_
#define HONE_TESTS_FUZZ_RECIPES_H_

#include <span>

#include "tests/fuzz/grower.h"

namespace hone::fuzz {

struct Recipe {
  int weight;  // how often it is tried, beside the others
  void (*grow)(Grower& g);
};

std::span<const Recipe> ElementwiseRecipes();  // elementwise.cc: of one and several inputs, casts
std::span<const Recipe> MovementRecipes();     // movement.cc: views, slices, pads, gathers
std::span<const Recipe> ContractionRecipes();  // contraction.cc: products, convolutions, pools
std::span<const Recipe> ReductionRecipes();    // reduction.cc: reductions, softmax, norms

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_RECIPES_H_
