// SPDX-License-Identifier: Apache-2.0
// Short names for the tensors and attributes of cases with many of them.
#ifndef HONE_TESTS_UNIT_DECOMPOSE_LITERALS_H_
#define HONE_TESTS_UNIT_DECOMPOSE_LITERALS_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/ops/op_case.h"

namespace hone::graph {

inline Constant U8(Shape shape, std::vector<double> numbers) {
  return Tensor(ir::DType::kUInt8, std::move(shape), std::move(numbers));
}
inline Constant I8(Shape shape, std::vector<double> numbers) {
  return Tensor(ir::DType::kInt8, std::move(shape), std::move(numbers));
}
inline Constant U16(Shape shape, std::vector<double> numbers) {
  return Tensor(ir::DType::kUInt16, std::move(shape), std::move(numbers));
}
inline Constant I32(Shape shape, std::vector<double> numbers) {
  return Tensor(ir::DType::kInt32, std::move(shape), std::move(numbers));
}
inline Constant Doubles(Shape shape, std::vector<double> numbers) {
  return Tensor(ir::DType::kFloat64, std::move(shape), std::move(numbers));
}

// A list of floats, as a file stores it: rounded to f32.
inline Attribute Reals(const std::vector<float>& numbers) {
  return std::vector<double>(numbers.begin(), numbers.end());
}
inline Attribute Texts(std::vector<std::string> texts) { return texts; }

}  // namespace hone::graph

#endif  // HONE_TESTS_UNIT_DECOMPOSE_LITERALS_H_
