// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ops/op_case.h"

#include <cmath>
#include <cstring>

#include "base/half_float.h"
#include "compiler/graph/emit.h"
#include "compiler/ir/numeric.h"
#include "gtest/gtest.h"

namespace hone::graph {
namespace {

using ir::DType;

void Append(std::vector<std::byte>& bytes, DType dtype, double number) {
  std::byte element[8];
  auto put = [&](auto value) { std::memcpy(element, &value, sizeof(value)); };
  switch (dtype) {
    case DType::kFloat16:
      put(HalfBits(number));
      break;
    case DType::kBFloat16:
      put(BFloatBits(number));
      break;
    case DType::kFloat32:
      put(static_cast<float>(number));
      break;
    case DType::kFloat64:
      put(number);
      break;
    default:
      put(ir::FloatToInt(dtype, number));
  }
  bytes.insert(bytes.end(), element, element + ir::SizeOf(dtype));
}

double ReadNumber(DType dtype, const std::byte* element) {
  int64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(ir::SizeOf(dtype)));
  switch (dtype) {
    case DType::kFloat16:
      return FromHalfBits(static_cast<uint16_t>(bits));
    case DType::kBFloat16:
      return FromBFloatBits(static_cast<uint16_t>(bits));
    case DType::kFloat32: {
      float value;
      std::memcpy(&value, element, sizeof(value));
      return value;
    }
    case DType::kFloat64: {
      double value;
      std::memcpy(&value, element, sizeof(value));
      return value;
    }
    default:
      return ir::IntToFloat(dtype, ir::WrapTo(dtype, bits), DType::kFloat64);
  }
}

}  // namespace

Constant Tensor(DType dtype, Shape shape, std::vector<double> numbers) {
  std::vector<std::byte> bytes;
  for (double number : numbers) Append(bytes, dtype, number);
  Constant tensor{{dtype, std::move(shape)}, std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
  EXPECT_EQ(tensor.type.elements(), static_cast<int64_t>(numbers.size())) << "the test's own tensor is wrong";
  return tensor;
}

Constant Floats(Shape shape, std::vector<double> numbers) {
  return Tensor(DType::kFloat32, std::move(shape), std::move(numbers));
}
Constant Ints(Shape shape, std::vector<double> numbers) {
  return Tensor(DType::kInt64, std::move(shape), std::move(numbers));
}
Constant Bools(Shape shape, std::vector<double> numbers) {
  return Tensor(DType::kBool, std::move(shape), std::move(numbers));
}

Constant Counting(Shape shape) {
  std::vector<double> numbers(static_cast<size_t>(TensorType{DType::kFloat32, shape}.elements().value()));
  for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<double>(k);
  return Floats(std::move(shape), std::move(numbers));
}

Constant Absent() { return {}; }

std::vector<double> Numbers(const Constant& tensor) {
  std::vector<double> numbers;
  const size_t size = static_cast<size_t>(ir::SizeOf(tensor.type.dtype));
  for (size_t at = 0; at < tensor.data->size(); at += size) {
    numbers.push_back(ReadNumber(tensor.type.dtype, tensor.data->data() + at));
  }
  return numbers;
}

Attribute Int(int64_t value) { return value; }
Attribute IntList(Shape values) { return values; }

absl::StatusOr<std::vector<Constant>> RunCase(const OpCase& test_case) {
  Graph graph;
  Node node;
  node.name = "node";
  node.op = test_case.op;
  node.domain = test_case.domain;
  node.opset = test_case.opset;
  node.attributes = test_case.attributes;
  for (const Constant& input : test_case.inputs) {
    node.inputs.push_back(input.data == nullptr ? kAbsent : static_cast<ValueId>(graph.values.size()));
    if (input.data != nullptr) graph.values.push_back({"input", input.type, input.data});
  }
  for (int k = 0; k < test_case.outputs; ++k) {
    node.outputs.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back({"output", {}, nullptr});
  }
  constexpr int64_t kMaxSteps = 1 << 20;
  return Evaluate(graph, node, kMaxSteps);
}

void ExpectOutput(const OpCase& test_case, const Shape& shape, const std::vector<double>& numbers, size_t output) {
  SCOPED_TRACE(test_case.op);
  absl::StatusOr<std::vector<Constant>> results = RunCase(test_case);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_LT(output, results->size());
  const Constant& result = (*results)[output];
  EXPECT_EQ(result.type.shape, shape);
  const std::vector<double> got = Numbers(result);
  ASSERT_EQ(got.size(), numbers.size());
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (std::isnan(numbers[k])) {
      EXPECT_TRUE(std::isnan(got[k])) << "element " << k << " is " << got[k];
    } else if (std::isinf(numbers[k])) {
      EXPECT_EQ(got[k], numbers[k]) << "element " << k;
    } else {
      EXPECT_NEAR(got[k], numbers[k], 1e-5 * std::max(1.0, std::abs(numbers[k]))) << "element " << k;
    }
  }
}

void ExpectNumbers(const OpCase& test_case, const std::vector<double>& numbers) {
  ExpectOutput(test_case, {static_cast<int64_t>(numbers.size())}, numbers);
}

}  // namespace hone::graph
