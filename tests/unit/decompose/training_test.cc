// SPDX-License-Identifier: Apache-2.0
// Steps of optimizers. The expected outputs follow from the specification's formulas.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/decompose/decompose_case.h"
#include "tests/unit/decompose/literals.h"

namespace hone::graph {
namespace {

const char kTrainingDomain[] = "ai.onnx.preview.training";

OpCase OptimizerCase(const std::string& op, int steps, const std::vector<std::vector<double>>& tensors,
                     const std::map<std::string, Attribute>& attributes, int outputs) {
  OpCase test_case = {
      op, {Floats({}, {0.1}), Ints({}, {static_cast<double>(steps)})}, attributes, 17, outputs, kTrainingDomain};
  for (const std::vector<double>& tensor : tensors) {
    test_case.inputs.push_back(Floats({static_cast<int64_t>(tensor.size())}, tensor));
  }
  return test_case;
}

TEST(DecomposeTraining, Adagrad) {
  const std::map<std::string, Attribute> attributes = {{"epsilon", 1e-5}, {"decay_factor", 0.5}};
  const OpCase test_case = OptimizerCase("Adagrad", 2, {{1, 1}, {-1, 2}, {2, 5}}, attributes, 2);
  ExpectDecomposed(test_case, {2}, {1 + 0.05 / std::sqrt(3.0), 1 - 0.05 * 2 / 3});
  ExpectDecomposed(test_case, {2}, {3, 9}, {}, 1);
}

TEST(DecomposeTraining, AdamOfTwoTensors) {
  const OpCase first = OptimizerCase("Adam", 0, {{1}, {2}, {1}, {1}, {2}, {3}, {4}, {5}}, {}, 6);
  ExpectDecomposed(first, {1}, {1 - 0.1 * 1.9 / std::sqrt(3.997)});
  ExpectDecomposed(first, {1}, {2 - 0.1 * 2.8 / std::sqrt(4.996)}, {}, 1);
  ExpectDecomposed(first, {1}, {1.9}, {}, 2);
  ExpectDecomposed(first, {1}, {4.996}, {}, 5);
  const OpCase third = OptimizerCase("Adam", 2, {{1}, {1}, {2}, {4}}, {{"norm_coefficient_post", 0.5}}, 3);
  const double rate = 0.1 * std::sqrt(1 - 0.999 * 0.999) / (1 - 0.9 * 0.9);
  ExpectDecomposed(third, {1}, {0.5 * (1 - rate * 1.9 / std::sqrt(3.997))});
}

TEST(DecomposeTraining, Momentum) {
  const std::map<std::string, Attribute> standard = {
      {"alpha", 0.5}, {"beta", 0.5}, {"norm_coefficient", 0.1}, {"mode", std::string("standard")}};
  ExpectDecomposed(OptimizerCase("Momentum", 1, {{2}, {1}, {4}}, standard, 2), {1}, {2 - 0.1 * 2.6});
  ExpectDecomposed(OptimizerCase("Momentum", 0, {{2}, {1}, {4}}, standard, 2), {1}, {3.2}, {}, 1);
  std::map<std::string, Attribute> nesterov = standard;
  nesterov["mode"] = std::string("nesterov");
  ExpectDecomposed(OptimizerCase("Momentum", 1, {{2}, {1}, {4}}, nesterov, 2), {1}, {2 - 0.1 * 2.5});
}

}  // namespace
}  // namespace hone::graph
