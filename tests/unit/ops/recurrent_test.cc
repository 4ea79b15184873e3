// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One unit and one input, so that every number can be checked by hand.
TEST(RecurrentOps, RnnForwardReverseAndBoth) {
  const Constant x = Floats({2, 1, 1}, {1, 2}), w = Floats({1, 1, 1}, {0.5}), r = Floats({1, 1, 1}, {0.1});
  const double first = std::tanh(0.5), second = std::tanh(1 + 0.1 * first);
  ExpectOutput({"RNN", {x, w, r}, {}, 14, 2}, {2, 1, 1, 1}, {first, second}, 0);
  ExpectOutput({"RNN", {x, w, r}, {}, 14, 2}, {1, 1, 1}, {second}, 1);
  const double late = std::tanh(1), early = std::tanh(0.5 + 0.1 * late);
  ExpectOutput({"RNN", {x, w, r}, {{"direction", std::string("reverse")}}, 14, 2}, {2, 1, 1, 1}, {early, late}, 0);
  ExpectOutput({"RNN",
                {x, Floats({2, 1, 1}, {0.5, 0.5}), Floats({2, 1, 1}, {0.1, 0.1})},
                {{"direction", std::string("bidirectional")}},
                14,
                2},
               {2, 2, 1, 1}, {first, early, second, late}, 0);
}

TEST(RecurrentOps, AProjectedInputReplacesTheWeights) {
  const Constant r = Floats({1, 1, 1}, {0.1}), projected = Floats({2, 1, 1}, {0.5, 1});
  const double first = std::tanh(0.5), second = std::tanh(1 + 0.1 * first);
  ExpectOutput({"ProjectedRNN", {projected, Absent(), r}, {}, 1, 2, "hone"}, {2, 1, 1, 1}, {first, second}, 0);
  ExpectOutput({"ProjectedRNN", {Floats({1, 2, 1}, {0.5, 1}), Absent(), r}, {{"layout", Int(1)}}, 1, 2, "hone"},
               {1, 1, 1}, {second}, 1);
}

TEST(RecurrentOps, BiasInitialStateAndClip) {
  const Constant x = Floats({1, 1, 1}, {1}), w = Floats({1, 1, 1}, {1}), r = Floats({1, 1, 1}, {2});
  const Constant b = Floats({1, 2}, {10, 20}), h = Floats({1, 1, 1}, {3});
  const std::map<std::string, Attribute> relu = {{"activations", std::vector<std::string>{"Relu"}}};
  ExpectOutput({"RNN", {x, w, r, b, Absent(), h}, relu, 14, 2}, {1, 1, 1}, {37}, 1);
  const std::map<std::string, Attribute> lower = {{"activations", std::vector<std::string>{"relu"}}};
  ExpectOutput({"RNN", {x, w, r, b, Absent(), h}, lower, 14, 2}, {1, 1, 1}, {37}, 1);
  std::map<std::string, Attribute> clipped = relu;
  clipped["clip"] = 5.0;
  ExpectOutput({"RNN", {x, w, r, b, Absent(), h}, clipped, 14, 2}, {1, 1, 1}, {5}, 1);
  const std::map<std::string, Attribute> affine = {{"activations", std::vector<std::string>{"Affine"}},
                                                   {"activation_alpha", std::vector<double>{2}},
                                                   {"activation_beta", std::vector<double>{1}}};
  ExpectOutput({"RNN", {x, w, r, b, Absent(), h}, affine, 14, 2}, {1, 1, 1}, {75}, 1);
}

TEST(RecurrentOps, SequencesEndWhereTheirLengthsSay) {
  const Constant x = Floats({2, 2, 1}, {1, 1, 2, 2}), w = Floats({1, 1, 1}, {1}), r = Floats({1, 1, 1}, {10});
  std::map<std::string, Attribute> attributes = {{"activations", std::vector<std::string>{"Relu"}}};
  const Constant lengths = Tensor(ir::DType::kInt32, {2}, {1, 2});
  ExpectOutput({"RNN", {x, w, r, Absent(), lengths}, attributes, 14, 2}, {2, 1, 2, 1}, {1, 1, 0, 12}, 0);
  ExpectOutput({"RNN", {x, w, r, Absent(), lengths}, attributes, 14, 2}, {1, 2, 1}, {1, 12}, 1);
  attributes["direction"] = std::string("reverse");
  ExpectOutput({"RNN", {x, w, r, Absent(), lengths}, attributes, 14, 2}, {2, 1, 2, 1}, {1, 21, 0, 2}, 0);
}

TEST(RecurrentOps, GruResetsBeforeOrAfterTheProduct) {
  const Constant x = Floats({1, 1, 1}, {1}), w = Floats({1, 3, 1}, {0.1, 0.2, 0.3});
  const Constant r = Floats({1, 3, 1}, {0.4, 0.5, 0.6}), h = Floats({1, 1, 1}, {2}),
                 b = Floats({1, 6}, {0, 0, 0, 0, 0, 1});
  const double update = Sigmoid(0.1 + 0.8), reset = Sigmoid(0.2 + 1.0);
  auto mix = [&](double candidate) { return (1 - update) * candidate + update * 2; };
  ExpectOutput({"GRU", {x, w, r, b, Absent(), h}, {}, 14, 2}, {1, 1, 1}, {mix(std::tanh(0.3 + reset * 2 * 0.6 + 1))},
               1);
  ExpectOutput({"GRU", {x, w, r, b, Absent(), h}, {{"linear_before_reset", Int(1)}}, 14, 2}, {1, 1, 1},
               {mix(std::tanh(0.3 + reset * (2 * 0.6 + 1)))}, 1);
}

TEST(RecurrentOps, LstmWithPeepholes) {
  const Constant x = Floats({1, 1, 1}, {1}), w = Floats({1, 4, 1}, {0.1, 0.2, 0.3, 0.4});
  const Constant r = Floats({1, 4, 1}, {0, 0, 0, 0}), c = Floats({1, 1, 1}, {2}), p = Floats({1, 3}, {0.5, 0.6, 0.7});
  const double input = Sigmoid(0.1 + 1), forget = Sigmoid(0.3 + 1.4), carry = forget * 2 + input * std::tanh(0.4);
  const double hidden = Sigmoid(0.2 + 0.6 * carry) * std::tanh(carry);
  const OpCase lstm{"LSTM", {x, w, r, Absent(), Absent(), Absent(), c, p}, {}, 14, 3};
  ExpectOutput(lstm, {1, 1, 1, 1}, {hidden}, 0);
  ExpectOutput(lstm, {1, 1, 1}, {hidden}, 1);
  ExpectOutput(lstm, {1, 1, 1}, {carry}, 2);
}

TEST(RecurrentOps, LstmForgetsWhatItDoesNotTakeIn) {
  const Constant x = Floats({1, 1, 1}, {1}), w = Floats({1, 4, 1}, {0.1, 0.2, 0.3, 0.4});
  const Constant r = Floats({1, 4, 1}, {0, 0, 0, 0}), c = Floats({1, 1, 1}, {2}), p = Floats({1, 3}, {0.5, 0.6, 0.7});
  const double input = Sigmoid(0.1 + 1), carry = (1 - input) * 2 + input * std::tanh(0.4);
  ExpectOutput({"LSTM", {x, w, r, Absent(), Absent(), Absent(), c, p}, {{"input_forget", Int(1)}}, 14, 3}, {1, 1, 1},
               {carry}, 2);
}

TEST(RecurrentOps, BatchFirst) {
  const Constant x = Floats({1, 2, 1}, {1, 2}), w = Floats({1, 1, 1}, {1}), r = Floats({1, 1, 1}, {0});
  ExpectOutput({"RNN", {x, w, r}, {{"layout", Int(1)}, {"activations", std::vector<std::string>{"Relu"}}}, 14, 2},
               {1, 2, 1, 1}, {1, 2}, 0);
}

}  // namespace
}  // namespace hone::graph
