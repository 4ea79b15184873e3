#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;
using ::testing::HasSubstr;

void ExpectError(const OpCase& test_case, absl::StatusCode code, const std::string& text) {
  const auto result = RunCase(test_case);
  ASSERT_FALSE(result.ok()) << test_case.op << " should fail: " << text;
  EXPECT_EQ(result.status().code(), code) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("node 'node' (" + test_case.op));
}

void ExpectMalformed(const OpCase& test_case, const std::string& text) {
  ExpectError(test_case, absl::StatusCode::kInvalidArgument, text);
}
void ExpectUnsupported(const OpCase& test_case, const std::string& text) {
  ExpectError(test_case, absl::StatusCode::kUnimplemented, text);
}

TEST(OpErrors, InputsThatAreMissingOrOfTheWrongType) {
  const Constant x = Floats({2}, {1, 2});
  ExpectMalformed({"Exp", {}}, "input 0 is missing");
  ExpectMalformed({"Exp", {Ints({1}, {1})}}, "input 0 is i64; its elements must be floats");
  ExpectMalformed({"Add", {x, Ints({2}, {1, 2})}}, "input 1 is i64 where input 0 is f32");
  ExpectMalformed({"And", {x, x}}, "must be bool");
  ExpectMalformed({"Gather", {x, x}}, "the indices (input 1) must be integers");
  ExpectMalformed({"MatMulInteger", {Ints({1, 1}, {1}), Ints({1, 1}, {1})}}, "8-bit integers");
  ExpectMalformed({"Mod", {x, x}}, "fmod=1");
}

TEST(OpErrors, ShapesThatDoNotFit) {
  const Constant x = Counting({2, 3});
  ExpectMalformed({"Add", {x, Counting({2})}}, "shapes [2,3] and [2] cannot be broadcast");
  ExpectMalformed({"Reshape", {x, Ints({1}, {5})}}, "cannot reshape [2,3] to [5]");
  ExpectMalformed({"Reshape", {x, Ints({2}, {-1, -1})}}, "more than one -1");
  ExpectMalformed({"Reshape", {x, Ints({3}, {15, 9e18, -1})}}, "too large");
  ExpectMalformed({"Reshape", {x, Ints({2}, {-1, 4})}}, "cannot be derived");
  ExpectMalformed({"Squeeze", {x, Ints({1}, {0})}}, "dimension 0 is 2, not 1");
  ExpectMalformed({"Concat", {x, Counting({3, 3})}, {{"axis", Int(1)}}}, "differs from input 0 outside axis 1");
  ExpectMalformed({"Split", {x}, {{"axis", Int(1)}}, 13, 2}, "3 does not split into 2 parts");
  ExpectMalformed({"MatMul", {x, x}}, "3 columns of input 0 meet 2 rows of input 1");
  ExpectMalformed({"Conv", {Counting({1, 2, 4}), Counting({1, 3, 1})}}, "do not fit weights");
  ExpectMalformed({"Conv", {Counting({1, 1, 2}), Counting({1, 1, 3})}}, "the kernel reaches over 3 elements");
  ExpectMalformed({"MaxPool", {Counting({1, 1, 2})}, {{"kernel_shape", IntList({1, 1})}}},
                  "the kernel has 2 dimensions");
  ExpectMalformed({"Einsum", {x, x}, {{"equation", std::string("ij,jk")}}}, "where the same label is 3");
  ExpectMalformed({"Gather", {x, Ints({1}, {2})}}, "index 2 is outside of 2");
  ExpectMalformed({"TopK", {x, Ints({1}, {4})}, {}, 11, 2}, "k is 4; the axis has 3 elements");
}

TEST(OpErrors, AttributesOutOfRange) {
  const Constant x = Counting({2, 3});
  ExpectMalformed({"Softmax", {x}, {{"axis", Int(2)}}}, "axis 2 is out of range for rank 2");
  ExpectMalformed({"Transpose", {x}, {{"perm", IntList({0, 0})}}}, "name a dimension twice");
  ExpectMalformed({"Transpose", {x}, {{"perm", Int(1)}}}, "attribute 'perm' must be a list of integers");
  ExpectMalformed({"BitShift", {Tensor(DType::kUInt8, {1}, {1}), Tensor(DType::kUInt8, {1}, {1})}}, "LEFT or RIGHT");
  ExpectMalformed({"Pad", {x, Ints({4}, {1, 0, 0, 0})}, {{"mode", std::string("mirror")}}}, "mode is 'mirror'");
  ExpectMalformed({"Slice", {x, Ints({1}, {0}), Ints({1}, {1}), Ints({1}, {0}), Ints({1}, {0})}}, "a step of 0");
  ExpectMalformed({"Range", {Ints({}, {0}), Ints({}, {1}), Ints({}, {0})}}, "has no end");
  ExpectMalformed({"Conv", {Counting({1, 1, 2}), Counting({1, 1, 1})}, {{"strides", IntList({0})}}},
                  "has the number 0");
  ExpectMalformed({"Conv", {Counting({1, 1, 2}), Counting({1, 1, 1})}, {{"auto_pad", std::string("SAME")}}},
                  "auto_pad is 'SAME'");
  ExpectMalformed({"RNN",
                   {Counting({1, 1, 1}), Counting({1, 1, 1}), Counting({1, 1, 1})},
                   {{"direction", std::string("sideways")}},
                   14,
                   2},
                  "direction is 'sideways'");
}

TEST(OpErrors, WhatWeDoNotSupport) {
  const Constant x = Floats({1}, {1});
  ExpectUnsupported({"Cast", {x}, {{"to", Int(8)}}}, "element type 8 of ONNX");
  ExpectUnsupported({"Dropout", {x, Floats({}, {0.5}), Bools({}, {1})}}, "random dropout");
  ExpectUnsupported({"RoiAlign", {Counting({1, 1, 2, 2}), Floats({1, 4}, {0, 0, 1, 1}), Ints({1}, {0})}},
                    "sampling_ratio=0");
  ExpectUnsupported({"RNN",
                     {Counting({1, 1, 1}), Counting({1, 1, 1}), Counting({1, 1, 1})},
                     {{"activations", std::vector<std::string>{"Swirl"}}},
                     14,
                     2},
                    "the activation 'Swirl'");
  ExpectUnsupported({"RNN", {Counting({3000, 1, 1}), Counting({1, 1, 1}), Counting({1, 1, 1})}, {}, 14, 2}, "unrolled");
  ExpectUnsupported({"NoSuchOperator", {x}}, "the operator is not supported");
}

}  // namespace
}  // namespace hone::graph
