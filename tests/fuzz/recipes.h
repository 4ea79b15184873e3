// SPDX-License-Identifier: Apache-2.0
// The recipes: each adds one kind of node and whatever that node needs.
//
// To cover another operator, write a recipe beside related ones and add a line to the table at the end of that file. A
// recipe may try invalid nodes, because the operator itself decides what it accepts.
#ifndef HONE_TESTS_FUZZ_RECIPES_H_
#define HONE_TESTS_FUZZ_RECIPES_H_

#include <span>

#include "tests/fuzz/grower.h"

namespace hone::fuzz {

struct Recipe {
  int weight;  // relative frequency
  void (*grow)(Grower& g);
};

std::span<const Recipe> ElementwiseRecipes();  // elementwise.cc: unary and n-ary operators, casts
std::span<const Recipe> MovementRecipes();     // movement.cc: views, slices, pads, gathers
std::span<const Recipe> ContractionRecipes();  // contraction.cc: products, convolutions, pools
std::span<const Recipe> ReductionRecipes();    // reduction.cc: reductions, softmax, norms
std::span<const Recipe> QuantizedRecipes();    // quantized.cc: products in QDQ form

}  // namespace hone::fuzz

#endif  // HONE_TESTS_FUZZ_RECIPES_H_
