// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

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
  ExpectMalformed({"Add", {x, Ints({2}, {1, 2})}}, "input 1 is i64, but input 0 is f32");
  ExpectMalformed({"And", {x, x}}, "must be bool");
  ExpectMalformed({"Gather", {x, x}}, "the indices (input 1) must be integers");
  ExpectMalformed({"MatMulInteger", {Ints({1, 1}, {1}), Ints({1, 1}, {1})}}, "8-bit integers");
  ExpectMalformed({"Mod", {x, x}}, "fmod=1");
  ExpectMalformed(
      {"Resize", {Bools({2}, {0, 1}), Absent(), Absent(), Ints({1}, {4})}, {{"mode", std::string("linear")}}},
      "input 0 is bool, which only mode nearest can resize");
  const Constant flat = Counting({1, 2, 4}), angles = Counting({1, 2, 1});
  ExpectMalformed({"RotaryEmbedding", {flat, angles, angles}, {}, 23}, "attribute num_heads is 0");
  ExpectMalformed({"RotaryEmbedding", {flat, angles, angles}, {{"num_heads", Int(1)}}, 23},
                  "input 1 must be of the type of input 0 and have 2 numbers per position");
  ExpectMalformed({"InstanceNormalization", {x, Floats({1}, {1}), Floats({1}, {1})}}, "at least the dimensions batch");
}

TEST(OpErrors, ShapesThatDoNotFit) {
  const Constant x = Counting({2, 3});
  ExpectMalformed({"Add", {x, Counting({2})}}, "shapes [2,3] and [2] cannot be broadcast");
  ExpectMalformed({"Reshape", {x, Ints({1}, {5})}}, "cannot reshape [2,3] to [5]");
  ExpectMalformed({"Reshape", {x, Ints({2}, {-1, -1})}}, "more than one -1");
  ExpectMalformed({"Reshape", {x, Ints({3}, {15, 9e18, -1})}}, "too large: it has more than 2^63 elements");
  ExpectMalformed({"Reshape", {x, Ints({2}, {-1, 4})}}, "cannot be derived");
  ExpectMalformed({"Squeeze", {x, Ints({1}, {0})}}, "dimension 0 is 2, not 1; it cannot be removed");
  ExpectMalformed({"Concat", {x, Counting({3, 3})}, {{"axis", Int(1)}}}, "differs from input 0 outside axis 1");
  ExpectMalformed({"Split", {x}, {{"axis", Int(1)}}, 13, 2}, "a dimension of 3 does not split into 2 equal parts");
  ExpectMalformed({"MatMul", {x, x}}, "input 0 has 3 columns, but input 1 has 2 rows");
  ExpectMalformed({"Conv", {Counting({1, 2, 4}), Counting({1, 3, 1})}}, "do not fit weights");
  ExpectMalformed({"Conv", {Counting({1, 1, 2}), Counting({1, 1, 3})}}, "the kernel spans 3 elements");
  ExpectMalformed({"MaxPool", {Counting({1, 1, 2})}, {{"kernel_shape", IntList({1, 1})}}},
                  "the kernel has 2 dimensions");
  ExpectMalformed({"Einsum", {x, x}, {{"equation", std::string("ij,jk")}}}, "but the same label is 3");
  ExpectMalformed({"Gather", {x, Ints({1}, {2})}}, "index 2 is outside of 2");
  ExpectMalformed({"GatherElements", {x, Ints({1, 1}, {-3})}}, "index -3 is outside of 2");
  ExpectMalformed({"GatherND", {x, Ints({1, 2}, {1, 3})}}, "index 3 is outside of 3");
  ExpectMalformed({"GatherND", {x, Ints({2, 1}, {-3, 3})}, {{"batch_dims", Int(1)}}}, "index 3 is outside of 3");
  ExpectMalformed({"ScatterElements", {x, Ints({1, 1}, {2}), Floats({1, 1}, {0})}}, "index 2 is outside of 2");
  ExpectMalformed({"ScatterND", {x, Ints({1, 2}, {-2, -4}), Floats({1}, {0})}}, "index -4 is outside of 3");
  ExpectMalformed({"TopK", {x, Ints({1}, {4})}, {}, 11, 2}, "k is 4; the axis has 3 elements");
}

TEST(OpErrors, AttributesOutOfRange) {
  const Constant x = Counting({2, 3});
  ExpectMalformed({"Softmax", {x}, {{"axis", Int(2)}}}, "axis 2 is out of range for rank 2");
  ExpectMalformed({"Transpose", {x}, {{"perm", IntList({0, 0})}}}, "name a dimension twice");
  ExpectMalformed({"Transpose", {x}, {{"perm", std::string("columns")}}},
                  "attribute 'perm' must be a list of integers");
  ExpectMalformed({"BitShift", {Tensor(DType::kUInt8, {1}, {1}), Tensor(DType::kUInt8, {1}, {1})}}, "LEFT or RIGHT");
  ExpectMalformed({"Pad", {x, Ints({4}, {1, 0, 0, 0})}, {{"mode", std::string("mirror")}}}, "mode is 'mirror'");
  ExpectMalformed({"Slice", {x, Ints({1}, {0}), Ints({1}, {1}), Ints({1}, {0}), Ints({1}, {0})}}, "a step of 0");
  ExpectMalformed({"Range", {Ints({}, {0}), Ints({}, {1}), Ints({}, {0})}}, "has no end");
  ExpectMalformed({"Conv", {Counting({1, 1, 2}), Counting({1, 1, 1})}, {{"strides", IntList({0})}}},
                  "attribute strides contains 0");
  ExpectMalformed({"Conv", {Counting({1, 1, 2}), Counting({1, 1, 1})}, {{"auto_pad", std::string("SAME")}}},
                  "auto_pad is 'SAME'");
  ExpectMalformed({"RNN",
                   {Counting({1, 1, 1}), Counting({1, 1, 1}), Counting({1, 1, 1})},
                   {{"direction", std::string("sideways")}},
                   14,
                   2},
                  "direction is 'sideways'");
}

TEST(OpErrors, AttributesOfAnotherKind) {
  const Constant x = Counting({2}), cell = Counting({1, 1, 1});
  ExpectMalformed({"ConstantOfShape", {Ints({1}, {2})}, {{"value", Attribute(1.0)}}},
                  "attribute 'value' must be a tensor");
  const std::map<std::string, Attribute> scales = {{"scales", IntList({2})}};
  ExpectMalformed({"Upsample", {x}, scales, 7}, "attribute 'scales' must be a list of floats");
  ExpectMalformed({"Upsample", {x, Floats({1}, {2})}, scales, 9}, "attribute 'scales' must be a list of floats");
  for (const std::string name : {"activation_alpha", "activation_beta"}) {
    ExpectMalformed({"RNN", {cell, cell, cell}, {{name, Int(1)}}, 14, 2},
                    "attribute '" + name + "' must be a list of floats");
  }
  ExpectMalformed({"RNN", {cell, cell, cell}, {{"activations", std::string("Tanh")}}, 14, 2},
                  "attribute 'activations' must be a list of strings");
}

TEST(OpErrors, ParametersOfAnotherShape) {
  const Constant scale = Floats({6, 1}, {1, 1, 1, 1, 1, 1}), zero = Tensor(DType::kUInt8, {1, 6}, {1, 1, 1, 1, 1, 1});
  const std::map<std::string, Attribute> blocks = {{"axis", Int(1)}, {"block_size", Int(4)}};
  ExpectMalformed({"QuantizeLinear", {Counting({6, 4}), scale, zero}, blocks, 21}, "differ in shape");
  const Constant bytes = Tensor(DType::kUInt8, {6, 4}, std::vector<double>(24, 1));
  ExpectMalformed({"DequantizeLinear", {bytes, scale, zero}, blocks, 21}, "differ in shape");
  ExpectMalformed({"Trilu", {Counting({2, 2}), Ints({0}, {})}}, "k (input 1) must be one number");
}

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kHighest = std::numeric_limits<int64_t>::max();

TEST(OpErrors, PadsThatOverflowOrCropTooMuch) {
  auto pad = [](int64_t before, int64_t after) {
    return OpCase{"Pad", {Counting({4})}, {{"pads", IntList({before, after})}}, 10};
  };
  ExpectMalformed(pad(kLowest, kHighest), "the pads contain -9223372036854775808");
  ExpectMalformed(pad(kHighest, kLowest), "the pads contain 9223372036854775807");
  ExpectMalformed(pad(kLowest, kLowest), "the pads contain -9223372036854775808");
  ExpectMalformed(pad(0, kHighest), "the pads contain 9223372036854775807");
  ExpectMalformed({"Pad", {Counting({4}), Ints({2}, {-9e18, 9e18})}}, "the pads contain");
  ExpectMalformed(pad(-2, -3), "take more than dimension 0 has");
  ExpectMalformed(pad(-5, 9), "take more than dimension 0 has");
  ExpectOutput(pad(-2, -2), {0}, {});
}

TEST(OpErrors, ShapesThatOverflowOrAreNegative) {
  const Constant x = Counting({4}), empty = Floats({1, 16, 0, 0}, {}), none = Floats({1, 0, 1, 1}, {});
  ExpectMalformed({"Tile", {x, Ints({1}, {0x1p62})}}, "is too large");
  ExpectMalformed({"Tile", {x, Ints({1}, {0x1p62 + 0x1p20})}}, "is too large");
  ExpectMalformed({"Tile", {x, Ints({1}, {0x1p60})}}, "more than 1 TiB");
  ExpectMalformed({"Expand", {Counting({1}), Ints({1}, {-5})}}, "a dimension of -5 is negative");
  ExpectMalformed({"Split", {x}, {{"split", IntList({kHighest, kHighest, 6})}}, 11, 3}, "is not 3 sizes that sum to 4");
  ExpectMalformed({"DepthToSpace", {none}, {{"blocksize", Int(kHighest)}}}, "attribute blocksize is");
  ExpectMalformed({"DepthToSpace", {none}, {{"blocksize", Int(1 << 30)}}}, "more than 1 TiB");
  ExpectMalformed({"SpaceToDepth", {empty}, {{"blocksize", Int(1 << 30)}}}, "is too large");
  ExpectMalformed({"OneHot", {Ints({1}, {0}), Floats({}, {std::nan("")}), Floats({2}, {0, 1})}}, "the depth (input 1)");
  ExpectMalformed({"Resize", {x, Absent(), Absent(), Ints({1}, {9e18})}, {}, 19}, "cannot resize 4 to");
  ExpectMalformed({"Resize", {x, Absent(), Absent(), Ints({1}, {0x1p63})}, {}, 19}, "cannot resize 4 to");
  ExpectMalformed({"MaxUnpool",
                   {Counting({1, 1, 2}), Ints({1, 1, 2}, {0, 1}), Ints({3}, {1, 1, -4})},
                   {{"kernel_shape", IntList({2})}}},
                  "a dimension of -4 is negative");
  ExpectMalformed({"MaxUnpool",
                   {Counting({1, 1, 2}), Ints({1, 1, 2}, {0, 1}), Ints({3}, {2, 1, 4})},
                   {{"kernel_shape", IntList({2})}}},
                  "the batch and the channels of input 0");
}

TEST(OpErrors, WindowsThatOverflow) {
  const Constant x = Counting({1, 1, 2}), w = Counting({1, 1, 1}), plane = Counting({1, 1, 1, 1});
  const Constant none = Floats({1, 0, 2}, {}), no_weights = Floats({0, 4, 1}, {});
  ExpectMalformed({"Conv", {none, no_weights}, {{"group", Int(int64_t{1} << 62)}}}, "do not fit weights");
  ExpectMalformed({"ConvTranspose", {none, no_weights}, {{"group", Int(int64_t{1} << 62)}}}, "is too large");
  ExpectMalformed({"ConvTranspose", {x, w}, {{"output_shape", IntList({kLowest})}}},
                  "spatial dimension 0 of the output would be -9223372036854775808");
  ExpectMalformed({"MaxUnpool", {x, Ints({1, 1, 2}, {0, 1})}, {{"kernel_shape", IntList({kHighest})}}},
                  "attribute kernel_shape contains 9223372036854775807");
  ExpectMalformed({"LRN", {plane}, {{"size", Int(kHighest)}}}, "attribute size is 9223372036854775807");
  ExpectMalformed(
      {"RoiAlign", {plane, Floats({1, 4}, {0, 0, 1, 1}), Ints({1}, {0})}, {{"sampling_ratio", Int(int64_t{1} << 40)}}},
      "2^63 steps");
  const int64_t most = 1 << 30, wide = 1 << 25;
  ExpectMalformed({"MaxPool",
                   {Counting({1, 1, 1, 1, 1})},
                   {{"kernel_shape", IntList({most, most, most})}, {"pads", IntList({most, most, most, 0, 0, 0})}}},
                  "is too large");
  // The output has four elements, the padded input has 2^50.
  ExpectMalformed(
      {"AveragePool", {plane}, {{"kernel_shape", IntList({wide, wide})}, {"pads", IntList({wide, wide, 0, 0})}}},
      "more than 1 TiB");
}

TEST(OpErrors, ScalesOfQuantizedProducts) {
  const Constant a = Tensor(DType::kUInt8, {2, 2}, {1, 2, 3, 4}), zero = Tensor(DType::kUInt8, {}, {0});
  const Constant one = Floats({1}, {1}), three = Floats({3}, {1, 2, 3}), column = Floats({2, 1}, {1, 2});
  ExpectMalformed({"QLinearMatMul", {a, three, zero, a, one, zero, one, zero}},
                  "input 1 has shape [3]; it must be one number or one per row (2)");
  ExpectMalformed({"QLinearMatMul", {a, one, zero, a, column, zero, one, zero}},
                  "input 4 has shape [2,1]; it must be one number or one per column (2)");
  ExpectMalformed({"QLinearMatMul", {a, one, zero, a, one, zero, three, zero}}, "input 6 has shape [3]");
}

TEST(OpErrors, WhatWeDoNotSupport) {
  const Constant x = Floats({1}, {1});
  ExpectUnsupported({"Cast", {x}, {{"to", Int(8)}}}, "element type 8 of ONNX");
  ExpectUnsupported({"Dropout", {x, Floats({}, {0.5}), Bools({}, {1})}}, "random dropout");
  ExpectUnsupported({"RoiAlign", {Counting({1, 1, 2, 2}), Floats({1, 4}, {0, 0, 1, 1}), Ints({1}, {0})}},
                    "attribute sampling_ratio is 0");
  ExpectUnsupported({"RNN",
                     {Counting({1, 1, 1}), Counting({1, 1, 1}), Counting({1, 1, 1})},
                     {{"activations", std::vector<std::string>{"Swirl"}}},
                     14,
                     2},
                    "the activation 'Swirl'");
  ExpectUnsupported({"RNN", {Counting({20000, 1, 1}), Counting({1, 1, 1}), Counting({1, 1, 1})}, {}, 14, 2},
                    "the sequences have 20000 steps; at most");
  ExpectUnsupported({"QuantizeLinear", {x, x}, {{"precision", Int(10)}}, 23}, "attribute precision is f16");
  ExpectUnsupported({"NoSuchOperator", {x}}, "the operator is not supported");
}

}  // namespace
}  // namespace hone::graph
