// SPDX-License-Identifier: Apache-2.0
// One conformance case of ONNX's own test data: a model, its input tensors, and the outputs it must give.
//
// A case is a folder SUITE/test_NAME with model.onnx and test_data_set_0/{input,output}_K.pb. Tensors are read by code
// of this folder, so that a bug in the compiler's reader cannot hide itself. Start with ListCases and LoadCase.
#ifndef HONE_TESTS_CONFORMANCE_ONNX_CONFORMANCE_CASE_H_
#define HONE_TESTS_CONFORMANCE_ONNX_CONFORMANCE_CASE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone::conformance {

struct NamedTensor {
  std::string name;  // name of the input or output in the model
  graph::Constant value;
  // The elements are of a type for storage (4 bits, 8-bit floats, ...), and the value is their bytes as a program takes
  // and gives them: u8, with the shape of the tensor for 8 bits, else a list.
  bool is_small = false;
};

struct ConformanceCase {
  std::string name;  // for example "node/test_abs"
  std::string model_path;
  std::vector<NamedTensor> inputs, expected;  // the elements of a sequence are tensors NAME.0, NAME.1, ...
  std::vector<std::string> empty_sequences;   // inputs that are sequences without elements
};

// Returns the names of all cases under `data`, sorted. NotFound if there are none.
absl::StatusOr<std::vector<std::string>> ListCases(const std::string& data);

// Unimplemented if an input or output has no tensors of numbers (strings, maps, absent optional values).
absl::StatusOr<ConformanceCase> LoadCase(const std::string& data, const std::string& name);

}  // namespace hone::conformance

#endif  // HONE_TESTS_CONFORMANCE_ONNX_CONFORMANCE_CASE_H_
