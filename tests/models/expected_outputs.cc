// SPDX-License-Identifier: Apache-2.0
#include "tests/models/expected_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace hone::models {
namespace {

struct Sample {
  std::string model, output, shape;
  size_t index = 0;
  double value = 0;
};

absl::StatusOr<double> ActualValue(const NpzArrays& outputs, const Sample& sample) {
  const auto found = outputs.find(sample.output);
  if (found == outputs.end()) return absl::NotFoundError(fmt::format("there is no output '{}'", sample.output));
  const NpyArray& array = found->second;
  const std::string shape = fmt::format("{}", fmt::join(array.shape, "x"));
  if (array.descr != "<f4" || shape != sample.shape || (sample.index + 1) * sizeof(float) > array.bytes.size()) {
    return absl::InvalidArgumentError(
        fmt::format("output '{}' is {} {}, should be <f4 {}", sample.output, array.descr, shape, sample.shape));
  }
  float value;
  std::memcpy(&value, array.bytes.data() + sample.index * sizeof(float), sizeof(float));
  return value;
}

}  // namespace

absl::StatusOr<double> LargestDeviation(const NpzArrays& outputs, const std::string& expected_path,
                                        const std::string& model) {
  std::ifstream file(expected_path);
  if (!file) return absl::NotFoundError(fmt::format("cannot open {}", expected_path));
  double difference = 0, largest = 0;
  for (std::string line; std::getline(file, line);) {
    Sample sample;
    std::istringstream fields(line);
    if (!(fields >> sample.model >> sample.output >> sample.shape >> sample.index >> sample.value)) continue;
    if (sample.model != model) continue;
    const auto actual = ActualValue(outputs, sample);
    if (!actual.ok()) return actual.status();
    largest = std::max(largest, std::abs(sample.value));
    const double apart = std::abs(*actual - sample.value);
    difference = std::isfinite(apart) ? std::max(difference, apart) : std::numeric_limits<double>::infinity();
  }
  if (largest == 0) return absl::NotFoundError(fmt::format("{} has nothing of model '{}'", expected_path, model));
  return difference / largest;
}

}  // namespace hone::models
