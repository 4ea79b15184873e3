// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/random_graph.h"

#include <vector>

#include "tests/fuzz/grower.h"
#include "tests/fuzz/recipes.h"

namespace hone::fuzz {
namespace {

std::vector<Recipe> AllRecipes() {
  std::vector<Recipe> all;
  for (const auto recipes :
       {ElementwiseRecipes(), MovementRecipes(), ContractionRecipes(), ReductionRecipes(), QuantizedRecipes()}) {
    all.insert(all.end(), recipes.begin(), recipes.end());
  }
  return all;
}

const Recipe& Draw(Grower& grower, const std::vector<Recipe>& recipes) {
  int64_t total = 0;
  for (const Recipe& recipe : recipes) total += recipe.weight;
  int64_t at = grower.Below(total);
  for (const Recipe& recipe : recipes) {
    if ((at -= recipe.weight) < 0) return recipe;
  }
  return recipes.back();
}

}  // namespace

absl::StatusOr<graph::Graph> MakeRandomGraph(uint64_t seed, bool open) {
  using ir::DType;
  constexpr DType kFirst[] = {DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat32,
                              DType::kFloat32, DType::kFloat32, DType::kFloat16, DType::kFloat64};
  constexpr DType kOthers[] = {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kBool,
                               DType::kFloat16, DType::kInt8,  DType::kUInt8, DType::kBFloat16};
  const std::vector<Recipe> recipes = AllRecipes();
  Grower grower(seed, open);
  grower.Input(grower.OneOf(kFirst), grower.Shape(1, 4));
  if (grower.OneIn(2)) grower.Input(grower.OneOf(kOthers), grower.Shape(0, 4));
  const auto wanted = static_cast<size_t>(grower.Between(5, 15));
  while (grower.nodes() < wanted) {
    Draw(grower, recipes).grow(grower);
    if (!grower.fault().ok()) return grower.fault();
  }
  return grower.Finish();
}

}  // namespace hone::fuzz
