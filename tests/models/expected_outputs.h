// SPDX-License-Identifier: Apache-2.0
// The judge of the generated models: sampled outputs that ONNX Runtime computed for them, in expected_outputs.txt.
//
// Valid for the inputs that `hone-npz random` makes with its default seed. The file says how it is made anew.
#ifndef HONE_TESTS_MODELS_EXPECTED_OUTPUTS_H_
#define HONE_TESTS_MODELS_EXPECTED_OUTPUTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tests/models/npz_file.h"

namespace hone::models {

// The largest difference between a model's float outputs and the file's values, as a share of the largest value.
// Errors: the file has nothing of the model, or an output is missing or of another type or shape.
absl::StatusOr<double> LargestDeviation(const NpzArrays& outputs, const std::string& expected_path,
                                        const std::string& model);

}  // namespace hone::models

#endif  // HONE_TESTS_MODELS_EXPECTED_OUTPUTS_H_
