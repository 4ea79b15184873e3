// SPDX-License-Identifier: Apache-2.0
// Constants with elements of 8-bit floats and of 4 and 2 bits.
#include <cmath>
#include <cstring>

#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/onnx_import.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kE4M3Fn = 17, kE4M3Fnuz = 18, kE5M2 = 19, kE5M2Fnuz = 20, kUInt4 = 21, kInt4 = 22, kE2M1 = 23, kE8M0 = 24,
              kUInt2 = 25, kInt2 = 26;

// The f32 outputs of a model without inputs.
std::vector<float> OutputsOf(const GraphBuilder& b, int opset = 25) {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(b.Model(opset), ".", {});
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? RunOnRandom(*graph, 1) : std::vector<float>();
}

std::string ErrorOf(const GraphBuilder& b) {
  return std::string(ImportOnnxBytes(b.Model(25), ".", {}).status().message());
}

// The elements of a constant with these bytes, cast to f32.
std::vector<float> Decoded(int type, int64_t elements, const std::string& bytes) {
  GraphBuilder b;
  b.Initializer(TensorOfBytes("w", type, {elements}, bytes));
  b.Node("Cast", {"w"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  return OutputsOf(b);
}

TEST(SmallTypes, IntegersAreUnpackedFromTheLowBitsOn) {
  EXPECT_THAT(Decoded(kInt4, 4, "\x21\xF8"), ElementsAre(1, 2, -8, -1));
  EXPECT_THAT(Decoded(kUInt4, 3, "\x21\x0F"), ElementsAre(1, 2, 15));
  EXPECT_THAT(Decoded(kInt2, 5, "\xE4\x03"), ElementsAre(0, 1, -2, -1, -1));
  EXPECT_THAT(Decoded(kUInt2, 4, "\xE4"), ElementsAre(0, 1, 2, 3));
}

TEST(SmallTypes, FloatsHaveTheirValues) {
  EXPECT_THAT(Decoded(kE4M3Fn, 4, std::string("\x38\x7E\x01\xC0", 4)), ElementsAre(1, 448, std::ldexp(1.0F, -9), -2));
  EXPECT_THAT(Decoded(kE4M3Fnuz, 3, "\x40\x7F\x01"), ElementsAre(1, 240, std::ldexp(1.0F, -10)));
  EXPECT_THAT(Decoded(kE5M2, 4, "\x3C\x7B\x01\x7C"), ElementsAre(1, 57344, std::ldexp(1.0F, -16), INFINITY));
  EXPECT_THAT(Decoded(kE5M2Fnuz, 3, "\x40\x7F\x01"), ElementsAre(1, 57344, std::ldexp(1.0F, -17)));
  EXPECT_THAT(Decoded(kE2M1, 4, "\x21\xF7"), ElementsAre(0.5, 1, 6, -6));
  EXPECT_THAT(Decoded(kE8M0, 3, std::string("\x80\x7F\x00", 3)), ElementsAre(2, 1, std::ldexp(1.0F, -127)));
  for (const auto& [type, bytes] :
       {std::pair(kE4M3Fn, "\x7F\xFF"), std::pair(kE4M3Fnuz, "\x80\x80"), std::pair(kE5M2, "\x7D\xFF"),
        std::pair(kE5M2Fnuz, "\x80\x80"), std::pair(kE8M0, "\xFF\xFF")}) {
    for (const float x : Decoded(type, 2, bytes)) EXPECT_TRUE(std::isnan(x)) << type;
  }
}

TEST(SmallTypes, WeightsAreDequantized) {
  GraphBuilder b;
  b.Initializer(TensorOfBytes("w", kInt4, {2, 4}, "\x21\xF8\x43\x65"))
      .Initializer(TensorOfBytes("zero", kInt4, {2, 2}, "\x01\x10"));
  b.Floats("scale", {2, 2}, {1, 10, 100, 1000});
  b.Node("DequantizeLinear", {"w", "scale", "zero"}, {"y"}, {Attr("axis", 1), Attr("block_size", 2)}).Output("y");
  EXPECT_THAT(OutputsOf(b), ElementsAre(0, 1, -80, -10, 300, 400, 4000, 5000));

  GraphBuilder floats;
  floats.Initializer(TensorOfBytes("w", kE4M3Fn, {2}, "\x38\xC0")).Floats("scale", {}, {0.5});
  floats.Node("DequantizeLinear", {"w", "scale"}, {"y"}).Output("y");
  EXPECT_THAT(OutputsOf(floats), ElementsAre(0.5, -1));
}

TEST(SmallTypes, MovedElementsKeepTheirType) {
  GraphBuilder b;
  b.Initializer(TensorOfBytes("w", kInt4, {2, 2}, "\x21\x43")).Ints("rows", {1, 0}).Floats("scale", {}, {0.5});
  b.Node("Transpose", {"w"}, {"t"}).Node("Gather", {"t", "rows"}, {"g"});
  b.Node("DequantizeLinear", {"g", "scale"}, {"y"}).Output("y");
  EXPECT_THAT(OutputsOf(b), ElementsAre(1, 2, 0.5, 1.5));
  b.Output("g");
  EXPECT_THAT(ErrorOf(b), HasSubstr("output 'g' has elements of type int4, which only constants may have"));
}

TEST(SmallTypes, BytesMayLieInTheFieldOfIntegers) {
  Message tensor;
  tensor.Int(1, 3).Int(2, kInt4).Int(5, 0x21).Int(5, 0x0F).Text(8, "w");
  GraphBuilder b;
  b.Initializer(tensor.bytes()).Node("Cast", {"w"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  EXPECT_THAT(OutputsOf(b), ElementsAre(1, 2, -1));
}

TEST(SmallTypes, ConstantNodesMayHaveThem) {
  GraphBuilder b;
  b.Node("Constant", {}, {"w"}, {TensorAttr("value", TensorOfBytes("", kUInt4, {2}, "\x5A"))});
  b.Node("Cast", {"w"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  EXPECT_THAT(OutputsOf(b), ElementsAre(10, 5));
}

TEST(SmallTypes, OperatorsThatComputeWithThemAreRefused) {
  GraphBuilder b;
  b.Input("x", {2}).Floats("scale", {}, {1}).Initializer(TensorOfBytes("zero", kInt4, {}, std::string(1, '\0')));
  b.Node("QuantizeLinear", {"x", "scale", "zero"}, {"y"}).Output("y");
  EXPECT_THAT(ErrorOf(b), HasSubstr("input 2 has elements of type int4, which only constants may have"));
  GraphBuilder like;
  like.Input("x", {2}).Initializer(TensorOfBytes("w", kE5M2, {1}, "\x3C"));
  like.Node("CastLike", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(ErrorOf(like), HasSubstr("input 1 has elements of type float8e5m2"));
}

TEST(SmallTypes, DamagedTensorsAreRefused) {
  GraphBuilder b;
  b.Initializer(TensorOfBytes("w", kInt4, {3}, "\x21")).Node("Cast", {"w"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  EXPECT_THAT(ErrorOf(b), HasSubstr("the shape needs 2 bytes, but the file has 1"));
}

}  // namespace
}  // namespace hone::graph
