// SPDX-License-Identifier: Apache-2.0
// How far the outputs of one version of a model are from those of another, over samples.
#ifndef HONE_DEPLOY_QUANTIZE_ACCURACY_H_
#define HONE_DEPLOY_QUANTIZE_ACCURACY_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/quantize/compiled_model.h"
#include "deploy/quantize/samples.h"
#include "deploy/run/npz.h"

namespace hone::quantize {

// The difference between two versions of one output, over all samples.
class OutputAccuracy {
 public:
  explicit OutputAccuracy(std::string name) : name_(std::move(name)) {}
  // Both have the same type.
  void Add(const run::ArrayView& expected, const run::ArrayView& actual);

  const std::string& name() const { return name_; }
  // The ratio of the signal to the noise of quantization, in dB: 10 log10(sum of expected^2 / sum of differences^2).
  // Infinite if there is no difference, and -infinite if an element is NaN or infinite on one side.
  double Sqnr() const;
  // False if some pair had two shapes, because the shape depends on values. The other results are then meaningless.
  bool same_shapes() const { return same_shapes_; }
  double Cosine() const;  // of the angle between both, as vectors; 1 if both are 0
  double LargestDifference() const { return largest_difference_; }
  double LargestElement() const { return largest_element_; }  // of the expected output

 private:
  std::string name_;
  bool same_shapes_ = true;
  double signal_ = 0, noise_ = 0, product_ = 0, actual_ = 0;  // sums over the elements
  double largest_difference_ = 0, largest_element_ = 0;
};

using Accuracy = std::vector<OutputAccuracy>;  // by output

// The smallest Sqnr of all outputs with same_shapes(); infinite if there is none.
double WorstSqnr(const Accuracy& accuracy);

// Runs both models on all samples.
absl::StatusOr<Accuracy> CompareModels(CompiledModel& expected, CompiledModel& actual, const Samples& samples);
// Runs both models once on the same random inputs (CompiledModel::RunOnRandomInputs).
absl::StatusOr<Accuracy> CompareOnRandomInputs(CompiledModel& expected, CompiledModel& actual);

}  // namespace hone::quantize

#endif  // HONE_DEPLOY_QUANTIZE_ACCURACY_H_
