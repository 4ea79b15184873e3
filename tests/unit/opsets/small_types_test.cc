// SPDX-License-Identifier: Apache-2.0
// Elements of 8-bit floats and of 4 and 2 bits: constants, inputs, outputs, conversions.
#include <cmath>
#include <cstring>

#include "compiler/graph/emit.h"
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
  b.Input("x", {2}, kInt4).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(ErrorOf(b), HasSubstr("input 0 has elements of type int4, which is for storage only"));
}

// The bytes of all outputs of a model, for these bytes of its inputs.
std::vector<std::string> RunBytes(const GraphBuilder& b, const std::vector<std::string>& inputs) {
  const absl::StatusOr<Graph> graph = ImportOnnxBytes(b.Model(25), ".", {});
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  std::vector<ir::Bytes> bytes;
  for (const std::string& input : inputs) {
    const auto* first = reinterpret_cast<const std::byte*>(input.data());
    bytes.emplace_back(first, first + input.size());
  }
  const absl::StatusOr<std::vector<ir::Bytes>> made = InterpretPlan(PlanOf(*graph), bytes);
  EXPECT_TRUE(made.ok()) << made.status();
  std::vector<std::string> outputs;
  for (size_t i = 0; made.ok() && i < made->size(); ++i) {
    outputs.emplace_back(reinterpret_cast<const char*>((*made)[i].data()), (*made)[i].size());
  }
  return outputs;
}

std::string BytesOf(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

// The codes that numbers get.
std::string Cast(int type, const std::vector<float>& numbers, int saturate = 1) {
  GraphBuilder b;
  b.Input("x", {static_cast<int>(numbers.size())});
  b.Node("Cast", {"x"}, {"y"}, {Attr("to", type), Attr("saturate", saturate)}).Output("y");
  const std::vector<std::string> outputs = RunBytes(b, {BytesOf(numbers)});
  return outputs.size() == 1 ? outputs[0] : "";
}

TEST(SmallTypes, InputsAndOutputsAreTheirBytes) {
  GraphBuilder b;
  b.Input("x", {3, 1}, kInt4).Node("Cast", {"x"}, {"wide"}, {Attr("to", kFloat)}).Output("wide");
  b.Node("Transpose", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(RunBytes(b, {"\x21\x0F"}), ElementsAre(BytesOf({1, 2, -1}), "\x21\x0F"));
  const Graph graph = Import(b.Model(25));
  EXPECT_EQ(Print(graph.values[graph.inputs[0]].type), "u8[2]");
  EXPECT_EQ(graph.values[graph.inputs[0]].name, "x");

  GraphBuilder floats;
  floats.Input("x", {1, 2}, kE5M2).Node("Identity", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(RunBytes(floats, {"\x3C\x7C"}), ElementsAre("\x3C\x7C"));
  EXPECT_EQ(Print(Import(floats.Model(25)).values[0].type), "u8[1,2]");
}

// Every code that is a number stays the same when it is decoded and encoded.
TEST(SmallTypes, DecodingAndEncodingAreInverse) {
  for (const int type : {kE4M3Fn, kE4M3Fnuz, kE5M2, kE5M2Fnuz, kE8M0}) {
    std::string all;
    for (int code = 0; code < 256; ++code) all.push_back(static_cast<char>(code));
    const std::vector<float> numbers = Decoded(type, 256, all);
    std::vector<float> finite;
    std::string expected;
    for (size_t code = 0; code < 256; ++code) {
      if (!std::isfinite(numbers[code])) continue;
      finite.push_back(numbers[code]);
      expected.push_back(all[code]);
    }
    EXPECT_EQ(Cast(type, finite), expected) << type;
  }
  EXPECT_EQ(Cast(kE2M1, Decoded(kE2M1, 16, "\x10\x32\x54\x76\x98\xBA\xDC\xFE")), "\x10\x32\x54\x76\x98\xBA\xDC\xFE");
}

TEST(SmallTypes, CastsRoundToEvenAndSaturate) {
  EXPECT_EQ(Cast(kE4M3Fn, {1.0625, 1.1875, 448, 464, 465, -1e9, 1.5e-3, 9e-4}),
            std::string("\x38\x3A\x7E\x7E\x7E\xFE\x01\x00", 8))
      << "0.0015 is nearer to 2^-9, 0.0009 to 0";
  EXPECT_EQ(Cast(kE4M3Fn, {465, -1e9, INFINITY, NAN, -0.0F}, 0), std::string("\x7F\x7F\x7F\x7F\x80", 5))
      << "NaN has no sign";
  EXPECT_EQ(Cast(kE4M3Fnuz, {-1e-9F, 1e9, NAN}, 1), std::string("\x00\x7F\x80", 3));
  EXPECT_EQ(Cast(kE5M2, {INFINITY, -INFINITY, NAN}, 1), "\x7B\xFB\x7E");
  EXPECT_EQ(Cast(kE5M2, {INFINITY, -1e9, NAN}, 0), "\x7C\xFC\x7E");
  EXPECT_EQ(Cast(kE2M1, {0.25, 0.75, -9, NAN}), std::string("\x20\x8F", 2)) << "halves go to the even code";
  EXPECT_EQ(Cast(kE8M0, {0, 1.0, 1.1F, 2, -1, NAN}), std::string("\x00\x7F\x80\x80\xFF\xFF", 6));
  EXPECT_EQ(Cast(kInt4, {-9, -8, 7.9F, 8}), "\x87\x87") << "high bits are discarded";
  EXPECT_EQ(Cast(kUInt2, {-1, 0, 1, 2, 3, 4}), "\x93\x03");
}

TEST(SmallTypes, QuantizationMakesThem) {
  GraphBuilder b;
  b.Input("x", {2, 2}).Floats("scale", {2}, {1, 2}).Initializer(TensorOfBytes("zero", kInt4, {2}, "\x10"));
  b.Node("QuantizeLinear", {"x", "scale", "zero"}, {"y"}, {Attr("axis", 0)}).Output("y");
  b.Node("DequantizeLinear", {"y", "scale", "zero"}, {"z"}, {Attr("axis", 0)}).Output("z");
  EXPECT_THAT(RunBytes(b, {BytesOf({2.5, -100, 3, 100})}), ElementsAre("\x82\x73", BytesOf({2, -8, 4, 12})))
      << "3 / 2 + 1 is rounded after the division: 2 + 1";

  GraphBuilder floats;
  floats.Input("x", {4}).Floats("scale", {}, {2});
  floats.Node("QuantizeLinear", {"x", "scale"}, {"y"}, {Attr("output_dtype", kE4M3Fn)}).Output("y");
  EXPECT_THAT(RunBytes(floats, {BytesOf({2, -4, 1e9, 0})}), ElementsAre(std::string("\x38\xC0\x7E\x00", 4)));
}

TEST(SmallTypes, CastLikeTakesTheTypeOfItsSecondInput) {
  GraphBuilder b;
  b.Input("x", {3}).Input("like", {0}, kUInt4).Node("CastLike", {"x", "like"}, {"y"}).Output("y");
  EXPECT_THAT(RunBytes(b, {BytesOf({1, 15, 16}), ""}), ElementsAre(std::string("\xF1\x00", 2)));
}

TEST(SmallTypes, ElementsThatShareBytesNeedNumbers) {
  GraphBuilder b;
  b.Input("x", Dims(std::vector<Dim>{std::string("n")}), kInt4);
  b.Node("Cast", {"x"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  ImportOptions options;
  options.shapes["x"] = {DimRange(1, 9)};
  EXPECT_THAT(std::string(ImportError(b.Model(25), options).message()),
              HasSubstr("input 'x': elements of type int4 share bytes"));
  options.shapes["x"] = {DimRange(9)};
  EXPECT_EQ(Print(Import(b.Model(25), options).values[0].type), "u8[5]");
}

TEST(SmallTypes, DamagedTensorsAreRefused) {
  GraphBuilder b;
  b.Initializer(TensorOfBytes("w", kInt4, {3}, "\x21")).Node("Cast", {"w"}, {"y"}, {Attr("to", kFloat)}).Output("y");
  EXPECT_THAT(ErrorOf(b), HasSubstr("the shape needs 2 bytes, but the file has 1"));
}

}  // namespace
}  // namespace hone::graph
