// SPDX-License-Identifier: Apache-2.0
// A model of one operator, as hone-make-operators writes it, read again: what a library has to know to compute it.
//
// f32 only. It checks no more than its readers need: these files are our own.
#ifndef HONE_TESTS_BENCH_OPERATORS_ONNX_OPERATOR_H_
#define HONE_TESTS_BENCH_OPERATORS_ONNX_OPERATOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/models/onnx_proto.h"

namespace hone::models {

struct Constant {
  std::vector<int64_t> shape;
  std::vector<float> values;  // row-major; of int64 tensors, their numbers
};

struct OnnxOperator {
  onnx::NodeProto node;             // the last one
  bool by_itself_transposed;        // before it, x was transposed in its last two dimensions, for the second operand
  std::vector<int64_t> shape;       // of x, the only input
  std::vector<Constant> constants;  // the other operands of the node, in order
  std::string output;               // name

  // Of an attribute of the node, or what it is without one.
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> without) const;
  int64_t Int(std::string_view name, int64_t without) const;
  float Float(std::string_view name, float without) const;
};

// NotFound or DataLoss: no model can be read there; Unimplemented: it is not of one operator on one f32 input.
absl::StatusOr<OnnxOperator> ReadOperator(const std::string& path);

int64_t ElementsOf(const std::vector<int64_t>& shape);

}  // namespace hone::models

#endif  // HONE_TESTS_BENCH_OPERATORS_ONNX_OPERATOR_H_
