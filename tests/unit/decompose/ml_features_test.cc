// SPDX-License-Identifier: Apache-2.0
// The expected outputs are those of ONNX Runtime 1.30 (CPU), except where a test computes them.
#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

const char kFeaturesDomain[] = "ai.onnx.ml";

TEST(DecomposeMlFeatures, Scaler) {
  const OpCase test_case = {
      "Scaler",       {Ints({2, 2}, {1, 2, 3, -4})}, {{"offset", Reals({1, 0.5})}, {"scale", Reals({2, 0.25})}}, 17, 1,
      kFeaturesDomain};
  ExpectDecomposed(test_case, {2, 2}, {0, 0.375, 4, -1.125});
}

TEST(DecomposeMlFeatures, ScalerOfDoublesRoundsOnce) {
  const OpCase test_case = {
      "Scaler",       {Doubles({1}, {16777217})}, {{"offset", Reals({16777216})}, {"scale", Reals({3})}}, 17, 1,
      kFeaturesDomain};
  ExpectDecomposed(test_case, {1}, {3});
}

TEST(DecomposeMlFeatures, NormalizerByMAX) {
  const OpCase test_case = {
      "Normalizer", {Floats({3, 2}, {3, -4, 0, 0, -1, -2})}, {{"norm", std::string("MAX")}}, 17, 1, kFeaturesDomain};
  ExpectDecomposed(test_case, {3, 2}, {1, -1.3333334, 0, 0, 1, 2});
}

TEST(DecomposeMlFeatures, NormalizerByL1) {
  const OpCase test_case = {
      "Normalizer", {Floats({3, 2}, {3, -4, 0, 0, -1, -2})}, {{"norm", std::string("L1")}}, 17, 1, kFeaturesDomain};
  ExpectDecomposed(test_case, {3, 2}, {0.42857143, -0.5714286, 0, 0, -0.33333334, -0.66666669});
}

TEST(DecomposeMlFeatures, NormalizerByL2) {
  const OpCase test_case = {
      "Normalizer", {Floats({3, 2}, {3, -4, 0, 0, -1, -2})}, {{"norm", std::string("L2")}}, 17, 1, kFeaturesDomain};
  ExpectDecomposed(test_case, {3, 2}, {0.60000002, -0.80000001, 0, 0, -0.44721359, -0.89442718});
}

TEST(DecomposeMlFeatures, ImputerOfNan) {
  const OpCase test_case = {"Imputer",
                            {Floats({2, 2}, {1, kNan, kNan, 4})},
                            {{"imputed_value_floats", Reals({7.5, 8.5})}, {"replaced_value_float", kNan}},
                            17,
                            1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {2, 2}, {1, 8.5, 7.5, 4});
}

TEST(DecomposeMlFeatures, ImputerOfIntegers) {
  const OpCase test_case = {"Imputer",
                            {Ints({4}, {1, -1, 3, -1})},
                            {{"imputed_value_int64s", IntList({9})}, {"replaced_value_int64", Int(-1)}},
                            17,
                            1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {4}, {1, 9, 3, 9});
}

TEST(DecomposeMlFeatures, Binarizer) {
  const OpCase test_case = {"Binarizer",    {Floats({4}, {0.2, 0.25, 0.30000001, -1})}, {{"threshold", 0.25}}, 17, 1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {4}, {0, 0, 1, 0});
}

TEST(DecomposeMlFeatures, ArrayFeatureExtractor) {
  const OpCase test_case = {
      "ArrayFeatureExtractor", {Floats({2, 3}, {1, 2, 3, 4, 5, 6}), Ints({1, 2}, {2, 0})}, {}, 17, 1, kFeaturesDomain};
  ExpectDecomposed(test_case, {2, 2}, {3, 1, 6, 4});
}

TEST(DecomposeMlFeatures, FeaturesOfAVectorAreOneRow) {
  const OpCase test_case = {"ArrayFeatureExtractor", {Floats({3}, {1, 2, 3}), Ints({2}, {2, 0})}, {}, 17, 1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {1, 2}, {3, 1});
}

TEST(DecomposeMlFeatures, FeatureVectorizer) {
  const OpCase test_case = {"FeatureVectorizer",
                            {Ints({2, 2}, {1, 2, 3, 4}), Ints({2, 1}, {5, 6})},
                            {{"inputdimensions", IntList({2, 1})}},
                            17,
                            1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {2, 3}, {1, 2, 5, 3, 4, 6});
}

TEST(DecomposeMlFeatures, OneHotEncoder) {
  const OpCase test_case = {"OneHotEncoder", {Floats({3}, {2.7, -1, 5})}, {{"cats_int64s", IntList({-1, 2, 0})}}, 17, 1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {3, 3}, {0, 1, 0, 1, 0, 0, 0, 0, 0});
}

TEST(DecomposeMlFeatures, LabelEncoderOfDenseKeys) {
  const OpCase test_case = {
      "LabelEncoder",
      {Ints({5}, {3, 1, 0, 7, 2})},
      {{"keys_int64s", IntList({1, 2, 3})}, {"values_floats", Reals({0.5, 1.5, 2.5})}, {"default_float", -9.0}},
      17,
      1,
      kFeaturesDomain};
  ExpectDecomposed(test_case, {5}, {2.5, 0.5, -9, -9, 1.5});
}

TEST(DecomposeMlFeatures, LabelEncoderOfSparseKeys) {
  const OpCase test_case = {
      "LabelEncoder",
      {Ints({4}, {1000000000000, 1, 0, -5})},
      {{"keys_int64s", IntList({-5, 1000000000000})}, {"values_int64s", IntList({10, 20})}, {"default_int64", Int(3)}},
      17,
      1,
      kFeaturesDomain};
  ExpectDecomposed(test_case, {4}, {20, 3, 3, 10});
}

// NaN equals NaN, as version 4 of ai.onnx.ml says. ONNX Runtime does so from that version on.
TEST(DecomposeMlFeatures, LabelEncoderOfFloats) {
  const OpCase test_case = {"LabelEncoder",
                            {Floats({4}, {0.5, kNan, 2, 0.25})},
                            {{"keys_floats", Reals({0.5, kNan, 0.25})}, {"values_int64s", IntList({10, 20, 30})}},
                            17,
                            1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {4}, {10, 20, -1, 30});
}

// The outputs of the next tests are computed by hand.
TEST(DecomposeMlFeatures, FeatureVectorizerFillsAndCuts) {
  const OpCase test_case = {"FeatureVectorizer",
                            {Floats({2, 2}, {1, 2, 3, 4}), Floats({2, 2}, {5, 6, 7, 8})},
                            {{"inputdimensions", IntList({3, 1})}},
                            17,
                            1,
                            kFeaturesDomain};
  ExpectDecomposed(test_case, {2, 4}, {1, 2, 0, 5, 3, 4, 0, 7});
}

TEST(DecomposeMlFeatures, LabelEncoderOfTensors) {
  OpCase test_case = {"LabelEncoder",
                      {I32({3}, {4, 2, 9})},
                      {{"keys_tensor", I32({2}, {2, 4})},
                       {"values_tensor", Doubles({2}, {0.5, 0.25})},
                       {"default_tensor", Doubles({1}, {-1})}},
                      17,
                      1,
                      kFeaturesDomain};
  ExpectDecomposed(test_case, {3}, {0.25, 0.5, -1});
  test_case.inputs = {Ints({1}, {4})};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("input 0 has type i64, and the keys i32"));
  test_case.attributes.erase("keys_tensor");
  test_case.attributes["keys_strings"] = Texts({"a", "b"});
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("strings are not supported"));
}

TEST(DecomposeMlFeatures, LabelsKeepAllBitsOf64) {
  constexpr int64_t kLarge = (int64_t{1} << 60) + 1;
  const auto integer = [](int64_t value) {
    std::vector<std::byte> bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    return Constant{{ir::DType::kInt64, {1}}, std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
  };
  OpCase test_case = {
      "LabelEncoder",
      {integer(kLarge)},
      {{"keys_int64s", IntList({kLarge - 1, kLarge, kLarge + 1})}, {"values_int64s", IntList({1, kLarge + 1, 3})}},
      17,
      1,
      kFeaturesDomain};
  const auto result = RunDecomposed(test_case);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*(*result)[0].data, *integer(kLarge + 1).data);
  test_case = {"Imputer",
               {integer(kLarge)},
               {{"imputed_value_int64s", IntList({kLarge + 2})}, {"replaced_value_int64", Int(kLarge)}},
               17,
               1,
               kFeaturesDomain};
  const auto imputed = RunDecomposed(test_case);
  ASSERT_TRUE(imputed.ok()) << imputed.status();
  EXPECT_EQ(*(*imputed)[0].data, *integer(kLarge + 2).data);
}

TEST(DecomposeMlFeatures, ZipMapIsRefused) {
  const OpCase test_case = {"ZipMap", {Floats({1, 2}, {0.5, 0.5})}, {}, 17, 1, kFeaturesDomain};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("its input has the scores"));
}

}  // namespace
}  // namespace hone::graph
