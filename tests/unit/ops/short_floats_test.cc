// SPDX-License-Identifier: Apache-2.0
// Operators in f16 and bf16 of which ONNX's conformance cases have no floats, against f32. The others are in
// tests/conformance/onnx/f16 and bf16.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

// Numbers between -3 and 3 that do not repeat soon.
Constant Wave(Shape shape) {
  const Constant counting = Counting(shape);
  std::vector<double> numbers = Numbers(counting);
  for (double& number : numbers) number = 3 * std::sin(number * 1.7 + 0.3);
  return Floats(std::move(shape), std::move(numbers));
}

std::vector<OpCase> OwnCases() {
  const Constant image = Wave({1, 4, 5, 6});
  return {
      {"Equal", {Floats({4}, {0.1, 1.0, -2.0, 3.0}), Floats({4}, {0.10001, 1.0, 2.0, 3.0})}, {}, 19},
      {"GlobalLpPool", {image}, {{"p", Int(2)}}, 22},
      {"GroupNormalization",
       {image, Floats({4}, {1, 0.5, 2, 1}), Floats({4}, {0, 1, 0.25, -1})},
       {{"num_groups", Int(2)}, {"epsilon", 1e-3}},
       21},
      {"MaxRoiPool", {image, Floats({2, 5}, {0, 0, 0, 4, 4, 0, 1, 2, 5, 3})}, {{"pooled_shape", IntList({2, 2})}}, 22},
      {"Mish", {Wave({50})}, {}, 22},
      {"Trilu", {Wave({5, 6})}, {}, 14},
  };
}

OpCase With(OpCase test_case, DType dtype) {
  for (Constant& input : test_case.inputs) {
    input = Tensor(dtype, ir::Values(input.type.shape), Numbers(input));
  }
  return test_case;
}

// The bits of a short float as integers in the order of the numbers.
std::vector<int> Places(const Constant& tensor) {
  std::vector<int> places;
  for (size_t at = 0; at < tensor.data->size(); at += sizeof(uint16_t)) {
    uint16_t bits;
    std::memcpy(&bits, tensor.data->data() + at, sizeof(bits));
    places.push_back(bits & 0x8000 ? -(bits & 0x7fff) : bits);
  }
  return places;
}

class ShortOps : public testing::TestWithParam<DType> {};

// The numbers are rounded first. A result may be the neighbour of the rounded result in f32.
TEST_P(ShortOps, RoundOnce) {
  const DType dtype = GetParam();
  for (const OpCase& test_case : OwnCases()) {
    SCOPED_TRACE(test_case.op);
    const OpCase narrow = With(test_case, dtype);
    const auto expected = RunCase(With(narrow, DType::kFloat32)), actual = RunCase(narrow);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(actual.ok()) << actual.status();
    const Constant &wide = expected->front(), &found = actual->front();
    if (wide.type.dtype != DType::kFloat32) {
      EXPECT_EQ(*found.data, *wide.data);
      continue;
    }
    ASSERT_EQ(found.type.dtype, dtype);
    const std::vector<int> places = Places(found);
    const std::vector<int> wanted = Places(Tensor(dtype, ir::Values(wide.type.shape), Numbers(wide)));
    ASSERT_EQ(places.size(), wanted.size());
    for (size_t i = 0; i < places.size(); ++i) EXPECT_LE(std::abs(places[i] - wanted[i]), 1) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ShortOps, testing::Values(DType::kFloat16, DType::kBFloat16));

}  // namespace
}  // namespace hone::graph
