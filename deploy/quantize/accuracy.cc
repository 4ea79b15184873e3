// SPDX-License-Identifier: Apache-2.0
#include "deploy/quantize/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/status.h"
#include "compiler/ir/elements.h"

namespace hone::quantize {

void OutputAccuracy::Add(const run::ArrayView& expected, const run::ArrayView& actual) {
  same_shapes_ &= std::ranges::equal(expected.shape, actual.shape);
  if (!same_shapes_) return;
  const auto bytes = static_cast<size_t>(SizeOf(expected.dtype));
  const auto element = [&](const run::ArrayView& array, size_t at) {
    return ir::ElementAsDouble(array.dtype, reinterpret_cast<const std::byte*>(array.data.data()) + at * bytes);
  };
  for (size_t at = 0; at * bytes < expected.data.size(); ++at) {
    const double wanted = element(expected, at), found = element(actual, at), difference = found - wanted;
    signal_ += wanted * wanted;
    actual_ += found * found;
    noise_ += difference * difference;
    product_ += wanted * found;
    largest_difference_ = std::max(largest_difference_, std::abs(difference));
    largest_element_ = std::max(largest_element_, std::abs(wanted));
  }
}

double OutputAccuracy::Sqnr() const {
  if (!std::isfinite(noise_) || std::isnan(signal_)) return -std::numeric_limits<double>::infinity();
  if (noise_ == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal_ / noise_);
}

double OutputAccuracy::Cosine() const {
  const double lengths = std::sqrt(signal_) * std::sqrt(actual_);
  return lengths > 0 ? product_ / lengths : signal_ == actual_ ? 1 : 0;
}

namespace {

void AddRun(const std::vector<run::ArrayView>& wanted, const std::vector<run::ArrayView>& found, Accuracy& accuracy) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (accuracy.size() == i) accuracy.emplace_back(wanted[i].name);
    accuracy[i].Add(wanted[i], found[i]);
  }
}

}  // namespace

double WorstSqnr(const Accuracy& accuracy) {
  double worst = std::numeric_limits<double>::infinity();
  for (const OutputAccuracy& output : accuracy) {
    if (output.same_shapes()) worst = std::min(worst, output.Sqnr());
  }
  return worst;
}

absl::StatusOr<Accuracy> CompareModels(CompiledModel& expected, CompiledModel& actual, const Samples& samples) {
  Accuracy accuracy;
  HONE_RETURN_IF_ERROR(samples.ForEach([&](size_t, std::span<const run::ArrayView> arrays) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> wanted, expected.Run(arrays));
    HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> found, actual.Run(arrays));
    AddRun(wanted, found, accuracy);
    return absl::OkStatus();
  }));
  return accuracy;
}

absl::StatusOr<Accuracy> CompareOnRandomInputs(CompiledModel& expected, CompiledModel& actual) {
  Accuracy accuracy;
  HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> wanted, expected.RunOnRandomInputs());
  HONE_ASSIGN_OR_RETURN(const std::vector<run::ArrayView> found, actual.RunOnRandomInputs());
  AddRun(wanted, found, accuracy);
  return accuracy;
}

}  // namespace hone::quantize
