// SPDX-License-Identifier: Apache-2.0
// Reads the models of one operator that hone-make-operators writes, with the facts that a library needs to compute it.
//
// f32 only. It checks only what its readers need, because the files are our own.
#ifndef HONE_TESTS_BENCH_OPERATORS_ONNX_OPERATOR_H_
#define HONE_TESTS_BENCH_OPERATORS_ONNX_OPERATOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/onnx_proto.h"

namespace hone::models {

struct Constant {
  std::vector<int64_t> shape;
  std::vector<float> values;  // row-major; int64 tensors are converted
};

struct OnnxOperator {
  onnx::NodeProto node;             // the model's last node
  bool by_itself_transposed;        // the second operand is x with its last two dimensions transposed
  std::vector<int64_t> shape;       // shape of x, the only input
  std::vector<Constant> constants;  // the node's other operands, in order
  std::string output;               // name of the output

  // Value of an attribute of the node, or `without` if the node lacks it.
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> without) const;
  int64_t Int(std::string_view name, int64_t without) const;
  float Float(std::string_view name, float without) const;
};

// NotFound or DataLoss: the file has no readable model. Unimplemented: the model is not one operator on one f32 input.
absl::StatusOr<OnnxOperator> ReadOperator(const std::string& path);

int64_t ElementsOf(const std::vector<int64_t>& shape);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_ONNX_OPERATOR_H_
