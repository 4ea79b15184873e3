// SPDX-License-Identifier: Apache-2.0
// The expected outputs are computed by hand; those of the rounding modes are the table of qonnx's documentation.
#include "compiler/graph/decompose/table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

const char kQonnxDomain[] = "qonnx.custom_op.general";

// Without attributes: signed, not narrow, halves to even.
OpCase QuantCase(Constant x, double scale, double zero_point, double bits,
                 std::map<std::string, Attribute> attributes) {
  return {"Quant",
          {std::move(x), Floats({}, {scale}), Floats({}, {zero_point}), Floats({}, {bits})},
          std::move(attributes),
          17,
          1,
          kQonnxDomain};
}

DecomposeOptions KnownBits() { return {.constants = {3}}; }

TEST(DecomposeQuantizers, QuantClipsAndRounds) {
  const Constant x = Floats({6}, {-5, -0.3, 0.25, 0.75, 1.25, 100});
  ExpectDecomposed(QuantCase(x, 0.5, 0, 4, {}), {6}, {-4, -0.5, 0, 1, 1, 3.5}, KnownBits());
  ExpectDecomposed(QuantCase(x, 0.5, 0, 4, {{"narrow", Int(1)}}), {6}, {-3.5, -0.5, 0, 1, 1, 3.5}, KnownBits());
  ExpectDecomposed(QuantCase(x, 0.5, 0, 4, {{"signed", Int(0)}}), {6}, {0, 0, 0, 1, 1, 7.5}, KnownBits());
  ExpectDecomposed(QuantCase(x, 0.5, 0, 4, {{"signed", Int(0)}, {"narrow", Int(1)}}), {6}, {0, 0, 0, 1, 1, 7},
                   KnownBits());
}

TEST(DecomposeQuantizers, QuantHasAZeroPoint) {
  ExpectDecomposed(QuantCase(Floats({3}, {1, -10, 10}), 0.5, 3, 4, {{"signed", Int(0)}}), {3}, {1, -1.5, 6},
                   KnownBits());
}

TEST(DecomposeQuantizers, OneSignedBitIsBipolar) {
  ExpectDecomposed(QuantCase(Floats({3}, {-0.1, 0, 7}), 0.5, 0, 1, {}), {3}, {-0.5, 0.5, 0.5}, KnownBits());
}

TEST(DecomposeQuantizers, QuantHasScalesAndBitsPerChannel) {
  const OpCase test_case = {
      "IntQuant", {Floats({2, 2}, {3, -100, 3, -100}), Floats({2, 1}, {1, 2}), Floats({}, {0}), Floats({2, 1}, {3, 4})},
      {},         17,
      1,          kQonnxDomain};
  ExpectDecomposed(test_case, {2, 2}, {3, -4, 4, -16}, KnownBits());
}

TEST(DecomposeQuantizers, RoundingModes) {
  const Constant x = Floats({10}, {5.5, 2.5, 1.6, 1.1, 1.0, -1.0, -1.1, -1.6, -2.5, -5.5});
  const std::map<std::string, std::vector<double>> expected = {
      {"ROUND", {6, 2, 2, 1, 1, -1, -1, -2, -2, -6}},        {"half_even", {6, 2, 2, 1, 1, -1, -1, -2, -2, -6}},
      {"CEIL", {6, 3, 2, 2, 1, -1, -1, -1, -2, -5}},         {"FLOOR", {5, 2, 1, 1, 1, -1, -2, -2, -3, -6}},
      {"UP", {6, 3, 2, 2, 1, -1, -2, -2, -3, -6}},           {"down", {5, 2, 1, 1, 1, -1, -1, -1, -2, -5}},
      {"HALF_UP", {6, 3, 2, 1, 1, -1, -1, -2, -3, -6}},      {"HALF_DOWN", {5, 2, 2, 1, 1, -1, -1, -2, -2, -5}},
      {"ROUND_TO_ZERO", {5, 2, 1, 1, 1, -1, -1, -1, -2, -5}}};
  for (const auto& [mode, numbers] : expected) {
    SCOPED_TRACE(mode);
    ExpectDecomposed(QuantCase(x, 1, 0, 8, {{"rounding_mode", mode}}), {10}, numbers, KnownBits());
  }
  const OpCase other = QuantCase(x, 1, 0, 8, {{"rounding_mode", std::string("SIDEWAYS")}});
  EXPECT_THAT(RunDecomposed(other, KnownBits()).status().message(), HasSubstr("'SIDEWAYS' is not supported"));
}

TEST(DecomposeQuantizers, BitsMustBeKnown) {
  EXPECT_THAT(RunDecomposed(QuantCase(Floats({1}, {1}), 1, 0, 8, {})).status().message(),
              HasSubstr("input 3 must be known"));
}

TEST(DecomposeQuantizers, BipolarQuant) {
  const OpCase test_case = {"BipolarQuant", {Floats({3}, {-1, 0, 2}), Floats({}, {0.5})}, {}, 17, 1, "onnx.brevitas"};
  ExpectDecomposed(test_case, {3}, {-0.5, 0.5, 0.5});
}

TEST(DecomposeQuantizers, TruncOfVersion1DropsBits) {
  const OpCase test_case = {
      "Trunc", {Floats({3}, {5, -3.5, 16.5}), Floats({}, {0.5}), Floats({}, {0}), Floats({}, {8}), Floats({}, {4})},
      {},      17,
      1,       kQonnxDomain};
  ExpectDecomposed(test_case, {3}, {0, -0.5, 1}, {.constants = {3, 4}});  // 10, -7 and 33, divided by 16
}

TEST(DecomposeQuantizers, TruncOfVersion2HasAScaleOfTheOutput) {
  const OpCase test_case = {"Trunc",
                            {Floats({4}, {10, -7, 33, 100}), Floats({}, {1}), Floats({}, {0}), Floats({}, {8}),
                             Floats({}, {16}), Floats({}, {3})},
                            {},
                            17,
                            1,
                            kQonnxDomain};
  ExpectDecomposed(test_case, {4}, {0, -16, 32, 48}, {.constants = {3, 5}});
}

TEST(DecomposeQuantizers, AllDomainsHaveTheOperators) {
  for (const char* domain : {"", "finn.custom_op.general", "onnx.brevitas", "qonnx.custom_op.general"}) {
    EXPECT_NE(decompose::FindRow(domain, "Quant", 17), nullptr) << domain;
  }
  for (const char* domain : {"", "PACTOps", "ai.onnx.contrib"}) {
    EXPECT_NE(decompose::FindRow(domain, "RequantShift", 17), nullptr) << domain;
  }
  EXPECT_EQ(decompose::FindRow("com.microsoft", "Quant", 17), nullptr);
}

OpCase RequantCase(Constant x, Constant multiplier, Constant offset, std::map<std::string, Attribute> attributes) {
  return {"RequantShift", {std::move(x), std::move(multiplier), std::move(offset)}, std::move(attributes), 17, 1,
          "PACTOps"};
}

TEST(DecomposeQuantizers, RequantShiftHasNumbersPerChannel) {
  const std::map<std::string, Attribute> attributes = {
      {"div", Floats({1}, {16})}, {"signed", Floats({1}, {1})}, {"n_levels_out", Floats({1}, {256})}};
  // (300 + 10 + 8) / 16, (-300 + 10 + 8) / 16, (35 - 20 + 8) / 16, (5000 - 20 + 8) / 16
  ExpectDecomposed(
      RequantCase(Floats({1, 2, 1, 2}, {100, -100, 7, 1000}), Floats({2}, {3, 5}), Floats({2}, {10, -20}), attributes),
      {1, 2, 1, 2}, {19, -18, 1, 127});
}

TEST(DecomposeQuantizers, RequantShiftRoundsHalvesUp) {
  const std::map<std::string, Attribute> attributes = {{"div", Int(16)}, {"signed", Int(1)}, {"n_levels", Int(16)}};
  ExpectDecomposed(RequantCase(I32({5}, {8, -8, 24, 7, -9}), I32({}, {1}), I32({}, {0}), attributes), {5},
                   {1, 0, 2, 0, -1});
}

TEST(DecomposeQuantizers, RequantShiftOfUnsignedLevels) {
  const std::map<std::string, Attribute> attributes = {{"div", Int(1)}, {"signed", Int(0)}, {"n_levels", Int(16)}};
  ExpectDecomposed(RequantCase(Floats({3}, {-3, 9, 99}), Floats({}, {1}), Floats({}, {1}), attributes), {3},
                   {0, 10, 15});
}

// 2^24 + 1 and a product of 2^40 are not lost in f32.
TEST(DecomposeQuantizers, RequantShiftIsExactInIntegers) {
  const std::map<std::string, Attribute> attributes = {
      {"div", Int(1 << 20)}, {"signed", Int(1)}, {"n_levels", Floats({}, {4294967296.0})}};
  ExpectDecomposed(RequantCase(I32({2}, {16777217, -16777217}), I32({}, {65536}), I32({}, {0}), attributes), {2},
                   {1048576, -1048576});
  ExpectDecomposed(RequantCase(I32({1}, {1 << 20}), I32({}, {1 << 20}), I32({}, {(1 << 19) - 1}), attributes), {1},
                   {1048576});
}

}  // namespace
}  // namespace hone::graph
