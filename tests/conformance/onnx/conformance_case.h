// SPDX-License-Identifier: Apache-2.0
// One conformance case of ONNX's own test data: a model, its input tensors, and the outputs it must give.
//
// A case is a folder SUITE/test_NAME with model.onnx and test_data_set_0/{input,output}_K.pb. Tensors are read here and
// not by the compiler's reader, so that a fault there cannot hide itself. Start with ListCases and LoadCase.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_CONFORMANCE_CASE_H_
#define HONE_TESTS_CONFORMANCE_ONNX_CONFORMANCE_CASE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::conformance {

struct NamedTensor {
  std::string name;  // as the model names the input or output
  graph::Constant value;
};

struct ConformanceCase {
  std::string name;  // "node/test_abs"
  std::string model_path;
  std::vector<NamedTensor> inputs, expected;
};

// The names of all cases under `data`, sorted. NotFound if there is none.
absl::StatusOr<std::vector<std::string>> ListCases(const std::string& data);

// Unimplemented where an input or output is not a tensor of numbers (sequences, optionals, strings).
absl::StatusOr<ConformanceCase> LoadCase(const std::string& data, const std::string& name);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_CONFORMANCE_CASE_H_
