// SPDX-License-Identifier: Apache-2.0
// Operators as earlier opsets wrote them.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/opsets/import_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(OldForms, BinaryOperatorsAlignAtAnAxis) {
  const Constant x = Counting({2, 3, 2}), rows = Floats({2}, {10, 20}), middle = Floats({3}, {1, 2, 3});
  const auto at = [](int64_t axis) {
    return std::map<std::string, Attribute>{{"broadcast", Int(1)}, {"axis", Int(axis)}};
  };
  for (const int opset : {1, 6}) {
    ExpectImported({"Add", {x, rows}, at(0), opset}, {2, 3, 2}, {10, 11, 12, 13, 14, 15, 26, 27, 28, 29, 30, 31});
    ExpectImported({"Mul", {x, middle}, at(1), opset}, {2, 3, 2}, {0, 1, 4, 6, 12, 15, 6, 7, 16, 18, 30, 33});
    ExpectImported({"Sub", {x, middle}, at(-2), opset}, {2, 3, 2}, {-1, 0, 0, 1, 1, 2, 5, 6, 6, 7, 7, 8});
    // Without axis, the last dimensions belong together.
    ExpectImported({"Add", {x, rows}, {{"broadcast", Int(1)}}, opset}, {2, 3, 2},
                   {10, 21, 12, 23, 14, 25, 16, 27, 18, 29, 20, 31});
  }
  ExpectImported({"Greater", {Counting({2, 2}), Floats({2}, {0, 2})}, at(0), 6}, {2, 2}, {0, 1, 0, 1});
  ExpectImported({"And", {Bools({2, 2}, {1, 1, 1, 1}), Bools({2}, {0, 1})}, at(0), 6}, {2, 2}, {0, 0, 1, 1});
  ExpectImported({"Pow", {Counting({2, 2}), Floats({2}, {1, 2})}, at(0), 6}, {2, 2}, {0, 1, 4, 9});
  ExpectRefused({"Add", {x, Counting({3, 2, 1})}, at(1), 6}, absl::StatusCode::kInvalidArgument,
                "more dimensions than input 0 has");
  // From opset 7 on, as in numpy.
  ExpectImported({"Add", {Counting({2, 2}), Floats({2}, {10, 20})}, {}, 7}, {2, 2}, {10, 21, 12, 23});
}

TEST(OldForms, PReluHasASlopePerChannel) {
  const Constant x = Floats({1, 2, 2}, {-1, -2, -3, -4}), slope = Floats({2}, {1, 10});
  ExpectImported({"PRelu", {x, slope}, {}, 1}, {1, 2, 2}, {-1, -2, -30, -40});
  ExpectImported({"PRelu", {x, slope}, {}, 6}, {1, 2, 2}, {-1, -2, -30, -40});
  ExpectImported({"PRelu", {x, slope}, {}, 7}, {1, 2, 2}, {-1, -20, -3, -40});
  ExpectImported({"PRelu", {x, Floats({1}, {2})}, {}, 6}, {1, 2, 2}, {-2, -4, -6, -8});
}

TEST(OldForms, GemmWithBroadcast) {
  const std::map<std::string, Attribute> attributes = {{"broadcast", Int(1)}, {"transB", Int(1)}, {"alpha", 2.0}};
  ExpectImported({"Gemm", {Floats({1, 2}, {1, 2}), Floats({2, 2}, {1, 0, 0, 1}), Floats({2}, {10, 20})}, attributes, 6},
                 {1, 2}, {12, 24});
}

TEST(OldForms, BatchNormalizationOfOpsetsBefore9) {
  const Constant x = Floats({2, 2, 1}, {1, 2, 3, 4});
  const Constant scale = Floats({2}, {2, 3}), offset = Floats({2}, {10, 20}), mean = Floats({2}, {1, 1}),
                 variance = Floats({2}, {4, 9});
  const std::vector<double> normalized = {10, 21, 12, 23};
  const auto node = [&](int opset, std::map<std::string, Attribute> attributes, int outputs = 1) {
    attributes["epsilon"] = 0.0;
    return OpCase{"BatchNormalization", {x, scale, offset, mean, variance}, attributes, opset, outputs};
  };
  ExpectImported(node(1, {{"is_test", Int(1)}, {"consumed_inputs", IntList({0, 0, 0, 1, 1})}}), {2, 2, 1}, normalized);
  ExpectImported(node(6, {{"is_test", Int(1)}}), {2, 2, 1}, normalized);
  ExpectImported(node(7, {}), {2, 2, 1}, normalized);
  ExpectImported(node(7, {{"spatial", Int(1)}}), {2, 2, 1}, normalized);
  // Means of the batch are 2 and 3, deviations 1 and 1.
  ExpectImported(node(6, {}), {2, 2, 1}, {8, 17, 12, 23});
  const OpCase training = node(6, {{"momentum", 0.5}}, 3);
  ExpectImported(training, {2, 2, 1}, {8, 17, 12, 23});
  ExpectImported(training, {2}, {1.5, 2}, {}, 1);
  ExpectRefused(node(6, {{"spatial", Int(0)}}), absl::StatusCode::kUnimplemented, "spatial 0");
}

TEST(OldForms, BatchNormalizationPerElement) {
  const Constant x = Floats({2, 1, 2}, {1, 2, 3, 4});
  const Constant scale = Floats({1, 2}, {2, 3}), offset = Floats({1, 2}, {10, 20}), mean = Floats({1, 2}, {1, 1}),
                 variance = Floats({1, 2}, {4, 9});
  for (const int opset : {6, 7, 8}) {
    OpCase node = {
        "BatchNormalization", {x, scale, offset, mean, variance}, {{"epsilon", 0.0}, {"spatial", Int(0)}}, opset};
    if (opset == 6) node.attributes["is_test"] = Int(1);
    ExpectImported(node, {2, 1, 2}, {10, 21, 12, 23});
  }
}

TEST(OldForms, MeanVarianceNormalizationByChannels) {
  const Constant x = Floats({1, 2, 1, 2}, {1, 3, 10, 20});
  const auto node = [&](std::map<std::string, Attribute> attributes) {
    return OpCase{"MeanVarianceNormalization", {x}, std::move(attributes), 8};
  };
  ExpectImported(node({}), {1, 2, 1, 2}, {-1, 1, -1, 1});
  ExpectImported(node({{"normalize_variance", Int(0)}}), {1, 2, 1, 2}, {-1, 1, -5, 5});
  ExpectImported(node({{"normalize_variance", Int(0)}, {"across_channels", Int(1)}}), {1, 2, 1, 2},
                 {-7.5, -5.5, 1.5, 11.5});
}

TEST(OldForms, AttributesThatWereNamedOrTypedOtherwise) {
  ExpectImported({"Cast", {Floats({2}, {1.75, -2})}, {{"to", std::string("INT32")}}, 1}, {2}, {1, -2});
  ExpectRefused({"Cast", {Floats({1}, {1})}, {{"to", std::string("STRING")}}, 1}, absl::StatusCode::kUnimplemented,
                "'STRING'");
  ExpectImported({"Pad", {Floats({2}, {1, 2})}, {{"paddings", IntList({1, 2})}, {"value", 9.0}}, 1}, {5},
                 {9, 1, 2, 9, 9});
  ExpectImported({"LpPool", {Floats({1, 1, 2}, {3, 4})}, {{"kernel_shape", IntList({2})}, {"p", 2.0}}, 1}, {1, 1, 1},
                 {5});
  ExpectImported({"Reshape", {Counting({2, 3})}, {{"shape", IntList({3, -1})}}, 1}, {3, 2}, {0, 1, 2, 3, 4, 5});
  ExpectImported({"Tile", {Floats({1, 2}, {1, 2}), Floats({1}, {2}), Floats({1}, {1})}, {}, 1}, {1, 4}, {1, 2, 1, 2},
                 {.constants = {1, 2}});
  ExpectImported({"Selu", {Floats({2}, {1, -1e3})}, {}, 1}, {2}, {1.0507, -1.0507 * 1.6732}, {}, 0, 1e-7);
  ExpectImported({"Concat", {Floats({1, 1}, {1}), Floats({1, 1}, {2})}, {}, 1}, {1, 2}, {1, 2});
}

TEST(OldForms, UpsampleWithAttributes) {
  const Constant x = Floats({1, 1, 1, 2}, {1, 2});
  ExpectImported({"Upsample", {x}, {{"height_scale", 2.0}, {"width_scale", 2.0}}, 1}, {1, 1, 2, 4},
                 {1, 1, 2, 2, 1, 1, 2, 2});
  ExpectImported({"Upsample", {x}, {{"scales", std::vector<double>{1, 1, 1, 2}}}, 7}, {1, 1, 1, 4}, {1, 1, 2, 2});
}

TEST(OldForms, ConsumedInputsMeanNothing) {
  ExpectImported({"Relu", {Floats({2}, {-1, 1})}, {{"consumed_inputs", IntList({0})}}, 1}, {2}, {0, 1});
}

TEST(OldForms, OperatorsThatOnnxRemoved) {
  for (const int opset : {1, 9, 17}) {
    ExpectImported({"Affine", {Floats({2}, {1, 2})}, {{"alpha", 2.0}, {"beta", 1.0}}, opset}, {2}, {3, 5});
    ExpectImported({"ScaledTanh", {Floats({1}, {0.5})}, {{"alpha", 3.0}, {"beta", 2.0}}, opset}, {1},
                   {3 * std::tanh(1)});
    ExpectImported({"ParametricSoftplus", {Floats({1}, {0.5})}, {{"alpha", 3.0}, {"beta", 2.0}}, opset}, {1},
                   {3 * std::log(std::exp(1) + 1)});
    ExpectImported({"Scale", {Floats({1}, {0.5})}, {{"scale", 3.0}}, opset}, {1}, {1.5});
    ExpectImported(
        {"ImageScaler", {Floats({1, 2, 1, 1}, {1, 2})}, {{"scale", 2.0}, {"bias", std::vector<double>{10, 20}}}, opset},
        {1, 2, 1, 1}, {12, 24});
    const Constant image = Counting({1, 1, 4, 5});
    ExpectImported({"Crop", {image}, {{"border", IntList({1, 2, 3, 0})}}, opset}, {1, 1, 2, 1}, {11, 16});
    ExpectImported({"Crop", {image}, {{"border", IntList({1, 2, 0, 0})}, {"scale", IntList({1, 2})}}, opset},
                   {1, 1, 1, 2}, {11, 12});
  }
}

}  // namespace
}  // namespace hone::graph
