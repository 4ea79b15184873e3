// SPDX-License-Identifier: Apache-2.0
// The expected outputs are those of ONNX Runtime 1.30 (CPU), except where a test computes them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

using ::testing::HasSubstr;

const char kLinearDomain[] = "ai.onnx.ml";

TEST(DecomposeMlLinear, Regressor) {
  const OpCase test_case = {
      "LinearRegressor",
      {Floats({2, 2}, {1, 2, -3, 0.5})},
      {{"coefficients", Reals({1, -0.5, 0.25, 2})}, {"intercepts", Reals({0.1, -1})}, {"targets", Int(2)}},
      17,
      1,
      kLinearDomain};
  ExpectDecomposed(test_case, {2, 2}, {0.1, 3.25, -3.1500001, -0.75});
}

TEST(DecomposeMlLinear, RegressorWithSoftmax) {
  const OpCase test_case = {
      "LinearRegressor",
      {Floats({2, 2}, {1, 2, -3, 0.5})},
      {{"coefficients", Reals({1, -0.5, 0.25, 2})}, {"targets", Int(2)}, {"post_transform", std::string("SOFTMAX")}},
      17,
      1,
      kLinearDomain};
  ExpectDecomposed(test_case, {2, 2}, {0.014063627, 0.9859364, 0.029312231, 0.97068775});
}

TEST(DecomposeMlLinear, RegressorWithSoftmaxZero) {
  const OpCase test_case = {"LinearRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"coefficients", Reals({1, -0.5, 0.25, 2, 0.5, -0.25})},
                             {"targets", Int(3)},
                             {"post_transform", std::string("SOFTMAX_ZERO")}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 3}, {0, 1, 0, 0.025514193, 0.84491402, 0.12957177});
}

TEST(DecomposeMlLinear, RegressorWithProbit) {
  const OpCase test_case = {"LinearRegressor",
                            {Floats({3, 1}, {0.1, 0.5, 0.89999998})},
                            {{"coefficients", Reals({1})}, {"post_transform", std::string("PROBIT")}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {3, 1}, {-1.2817129, 0, 1.2817129});
}

TEST(DecomposeMlLinear, OneTargetHasNoLogistic) {
  const OpCase test_case = {"LinearRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"coefficients", Reals({1, -0.5})}, {"post_transform", std::string("LOGISTIC")}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 1}, {0, -3.25});
}

TEST(DecomposeMlLinear, ClassifierOfThreeClasses) {
  const OpCase test_case = {"LinearClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"coefficients", Reals({1, -0.5, 0.25, 2, -1, 1})},
                             {"intercepts", Reals({0.1, -1, 0})},
                             {"classlabels_ints", IntList({7, 5, 3})},
                             {"post_transform", std::string("LOGISTIC")}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {5, 3});
  ExpectDecomposed(test_case, {2, 3}, {0.52497917, 0.96267313, 0.7310586, 0.041091263, 0.32082132, 0.97068781}, {}, 1);
}

TEST(DecomposeMlLinear, ClassifierWithOneScore) {
  const OpCase test_case = {"LinearClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"coefficients", Reals({1, -0.25})},
                             {"intercepts", Reals({0.1})},
                             {"classlabels_ints", IntList({7, 5})},
                             {"post_transform", std::string("LOGISTIC")}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {5, 7});
  ExpectDecomposed(test_case, {2, 2}, {0.35434371, 0.64565629, 0.95369089, 0.046309114}, {}, 1);
}

TEST(DecomposeMlLinear, SvmRegressorWithKernelLINEAR) {
  const OpCase test_case = {"SVMRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("LINEAR")},
                             {"kernel_params", Reals({0.5, 1, 3})},
                             {"coefficients", Reals({1, -2})},
                             {"support_vectors", Reals({1, 1, -1, 0.5})},
                             {"n_supports", Int(2)},
                             {"rho", Reals({0.25})}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 1}, {3.25, -8.75});
}

TEST(DecomposeMlLinear, SvmRegressorWithKernelPOLY) {
  const OpCase test_case = {"SVMRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("POLY")},
                             {"kernel_params", Reals({0.5, 1, 3})},
                             {"coefficients", Reals({1, -2})},
                             {"support_vectors", Reals({1, 1, -1, 0.5})},
                             {"n_supports", Int(2)},
                             {"rho", Reals({0.25})}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 1}, {13.875, -35.941406});
}

TEST(DecomposeMlLinear, SvmRegressorWithKernelRBF) {
  const OpCase test_case = {"SVMRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("RBF")},
                             {"kernel_params", Reals({0.5, 1, 3})},
                             {"coefficients", Reals({1, -2})},
                             {"support_vectors", Reals({1, 1, -1, 0.5})},
                             {"n_supports", Int(2)},
                             {"rho", Reals({0.25})}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 1}, {0.76865679, -0.020374507});
}

TEST(DecomposeMlLinear, SvmRegressorWithKernelSIGMOID) {
  const OpCase test_case = {"SVMRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("SIGMOID")},
                             {"kernel_params", Reals({0.5, 1, 3})},
                             {"coefficients", Reals({1, -2})},
                             {"support_vectors", Reals({1, 1, -1, 0.5})},
                             {"n_supports", Int(2)},
                             {"rho", Reals({0.25})}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 1}, {-0.28657401, -1.9740381});
}

TEST(DecomposeMlLinear, OneClassSvm) {
  const OpCase test_case = {"SVMRegressor",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("LINEAR")},
                             {"kernel_params", Reals({0, 0, 0})},
                             {"coefficients", Reals({1, 0.25})},
                             {"n_supports", Int(0)},
                             {"rho", Reals({0.25})},
                             {"one_class", Int(1)}},
                            17,
                            1,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2, 1}, {1, -1});
}

TEST(DecomposeMlLinear, SvmClassifierVotes) {
  const OpCase test_case = {"SVMClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("RBF")},
                             {"kernel_params", Reals({0.2, 0, 0})},
                             {"coefficients", Reals({1, -0.5, 0.75, 0.5, -1, 2, 0.25, -2})},
                             {"support_vectors", Reals({1, 1, -1, 0.5, 2, -2, 0, 3})},
                             {"vectors_per_class", IntList({1, 2, 1})},
                             {"rho", Reals({0.1, -0.2, 0.050000001})},
                             {"classlabels_ints", IntList({4, 8, 2})}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {2, 8});
  ExpectDecomposed(test_case, {2, 3}, {0.80050832, -0.68357074, -0.70928717, -0.084442429, -0.21509475, 0.85442269}, {},
                   1);
}

TEST(DecomposeMlLinear, SvmClassifierWithProbabilities) {
  const OpCase test_case = {"SVMClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("RBF")},
                             {"kernel_params", Reals({0.2, 0, 0})},
                             {"coefficients", Reals({1, -0.5, 0.75, 0.5, -1, 2, 0.25, -2})},
                             {"support_vectors", Reals({1, 1, -1, 0.5, 2, -2, 0, 3})},
                             {"vectors_per_class", IntList({1, 2, 1})},
                             {"rho", Reals({0.1, -0.2, 0.050000001})},
                             {"classlabels_ints", IntList({4, 8, 2})},
                             {"prob_a", Reals({-1.5, -2, -1})},
                             {"prob_b", Reals({0.1, 0, -0.2})}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {2, 8}, {}, 0, 1e-4);
  ExpectDecomposed(test_case, {2, 3}, {0.21908191, 0.20615095, 0.57476729, 0.27762759, 0.48095998, 0.24141249}, {}, 1,
                   1e-4);
}

TEST(DecomposeMlLinear, SvmOfTwoClasses) {
  const OpCase test_case = {"SVMClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("RBF")},
                             {"kernel_params", Reals({0.2, 0, 0})},
                             {"coefficients", Reals({1, -0.5, -1.75})},
                             {"support_vectors", Reals({1, 1, -1, 0.5, 2, -2})},
                             {"vectors_per_class", IntList({1, 2})},
                             {"rho", Reals({0.1})},
                             {"classlabels_ints", IntList({4, 8})}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {4, 8});
  ExpectDecomposed(test_case, {2, 2}, {-0.71707517, 0.71707517, 0.089268565, -0.089268565}, {}, 1);
}

TEST(DecomposeMlLinear, SvmOfTwoClassesWithLogistic) {
  const OpCase test_case = {"SVMClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("RBF")},
                             {"kernel_params", Reals({0.2, 0, 0})},
                             {"coefficients", Reals({1, -0.5, -1.75})},
                             {"support_vectors", Reals({1, 1, -1, 0.5, 2, -2})},
                             {"vectors_per_class", IntList({1, 2})},
                             {"rho", Reals({0.1})},
                             {"classlabels_ints", IntList({4, 8})},
                             {"post_transform", std::string("LOGISTIC")}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {4, 8});
  ExpectDecomposed(test_case, {2, 2}, {0.32803738, 0.67196262, 0.52230233, 0.47769767}, {}, 1);
}

TEST(DecomposeMlLinear, LinearSvmOfTwoClasses) {
  const OpCase test_case = {"SVMClassifier",
                            {Floats({2, 2}, {1, 2, -3, 0.5})},
                            {{"kernel_type", std::string("LINEAR")},
                             {"kernel_params", Reals({0, 0, 0})},
                             {"coefficients", Reals({1, -0.5, 0.5, 0.25})},
                             {"rho", Reals({-0.1})},
                             {"classlabels_ints", IntList({4, 8})}},
                            17,
                            2,
                            kLinearDomain};
  ExpectDecomposed(test_case, {2}, {8, 8});
  ExpectDecomposed(test_case, {2, 2}, {-0.1, 0.89999998, -3.3499999, -1.475}, {}, 1);
}

TEST(DecomposeMlLinear, AttributesThatDoNotFitAreErrors) {
  OpCase test_case = {
      "LinearRegressor", {Floats({1, 2}, {1, 2})}, {{"coefficients", Reals({1, 2, 3})}, {"targets", Int(2)}}, 17, 1,
      kLinearDomain};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("coefficients has 3 numbers"));
  test_case.attributes = {{"coefficients", Reals({1, 2})}, {"post_transform", std::string("CUBE")}};
  EXPECT_THAT(RunDecomposed(test_case).status().message(), HasSubstr("post_transform is 'CUBE'"));
}

}  // namespace
}  // namespace hone::graph
