// SPDX-License-Identifier: Apache-2.0
// Random contents for a tensor of any element type. The same seed gives the same contents on every platform.
#ifndef HONE_DEPLOY_RUN_RANDOM_VALUES_H_
#define HONE_DEPLOY_RUN_RANDOM_VALUES_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "base/random.h"
#include "deploy/package/metadata.h"
#include "deploy/runtime/package_format.h"

namespace hone::run {

// Values v with low <= v < high. Integer types take the whole numbers in the range; bool takes 0 and 1, whatever the
// range.
struct ValueRange {
  double low, high;
};

// [-1, 1) for floats, [0, 2) for the rest.
ValueRange DefaultRange(package::DType dtype);

// Fills `bytes`, whose size is a multiple of the element size. An empty range (high <= low) gives `low` everywhere.
void FillRandom(package::DType dtype, ValueRange range, Random& random, std::span<uint8_t> bytes);

// An input of a package that is to be filled.
struct RandomInput {
  std::string_view name;
  package::DType dtype;
  std::span<uint8_t> bytes;
};
// Fills the inputs one after the other, from one generator. ranges: those of the package's description; other inputs
// get the range of their type.
void FillRandomInputs(std::span<const RandomInput> inputs, std::span<const package::InputRange> ranges, uint64_t seed);

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_RANDOM_VALUES_H_
