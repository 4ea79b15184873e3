// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kBatch = 2, kUnits = 2, kInputs = 3;

struct Recurrence {
  std::string op = "LSTM";
  int steps = 40;
  std::string direction = "forward";
  bool batch_first = false, lengths = false, states = false;
  std::vector<std::string> attributes = {};
};

std::string ModelOf(const Recurrence& rnn) {
  const int gates = rnn.op == "RNN"   ? 1
                    : rnn.op == "GRU" ? 3
                                      : 4,
            directions = rnn.direction == "bidirectional" ? 2 : 1;
  const Dims state = rnn.batch_first ? Dims{kBatch, directions, kUnits} : Dims{directions, kBatch, kUnits};
  GraphBuilder b;
  b.Input("x", rnn.batch_first ? Dims{kBatch, rnn.steps, kInputs} : Dims{rnn.steps, kBatch, kInputs});
  b.Input("w", {directions, gates * kUnits, kInputs}).Input("r", {directions, gates * kUnits, kUnits});
  b.Input("b", {directions, 2 * gates * kUnits});
  std::vector<std::string> inputs = {"x", "w", "r", "b", "", ""}, outputs = {"y", "y_h"};
  if (rnn.op == "LSTM") {
    inputs.insert(inputs.end(), {"", "p"});
    outputs.emplace_back("y_c");
    b.Input("p", {directions, 3 * kUnits});
  }
  if (rnn.lengths) {
    b.Initializer(Tensor<int32_t>("lengths", kInt32, {kBatch}, {rnn.steps - 3, 9}));
    inputs[4] = "lengths";
  }
  if (rnn.states) {
    b.Input("h", state);
    inputs[5] = "h";
    if (rnn.op == "LSTM") b.Input("c", state);
    if (rnn.op == "LSTM") inputs[6] = "c";
  }
  std::vector<std::string> attributes = rnn.attributes;
  attributes.push_back(Attr("hidden_size", kUnits));
  attributes.push_back(Attr("direction", rnn.direction.c_str()));
  if (rnn.batch_first) attributes.push_back(Attr("layout", 1));
  b.Node(rnn.op, inputs, outputs, attributes);
  for (const std::string& output : outputs) b.Output(output);
  return b.Model();
}

TEST(SplitRecurrences, ChainsOfPiecesMeanTheSame) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool batch_first : {false, true}) {
        for (const bool lengths : {false, true}) {
          SCOPED_TRACE(testing::Message() << op << " " << direction << " " << batch_first << lengths);
          const Graph graph = ExpectPassesKeepMeaning(ModelOf({op, 40, direction, batch_first, lengths, lengths}));
          EXPECT_EQ(CountOps(graph, op), direction == std::string("bidirectional") ? 4 : 2);
        }
      }
    }
  }
}

TEST(SplitRecurrences, PiecesAreOfOneLengthWhereOneDividesTheSteps) {
  const auto calls = [](int steps) { return CallLabels(PlanOf(Optimize(ModelOf({"GRU", steps})))); };
  EXPECT_THAT(calls(32), ElementsAre("gru"));
  EXPECT_THAT(calls(66), ElementsAre("split", "gru", "gru", "gru", "concat"));
  const Plan plan = PlanOf(Optimize(ModelOf({.op = "GRU", .steps = 200, .states = true})));
  EXPECT_EQ(plan.calls.size(), 10u);
  EXPECT_EQ(plan.workloads.size(), 3u) << "split, the pieces, concat";
  ExpectPassesKeepMeaning(ModelOf({"LSTM", 67, "reverse"}));
}

TEST(SplitRecurrences, EachDirectionHasItsActivations) {
  // AttributeProto has the fields name 1, strings 9 and type 20 (8: strings).
  Message names;
  names.Text(1, "activations").Text(9, "Tanh").Text(9, "Relu").Int(20, 8);
  Recurrence rnn{"RNN", 40, "bidirectional"};
  rnn.attributes = {names.bytes()};
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(ModelOf(rnn)), "RNN"), 4);
}

TEST(SplitRecurrences, ActivationsThatAreNoNamesAreRefused) {
  Recurrence rnn{"RNN", 40, "bidirectional"};
  rnn.attributes = {Attr("activations", std::vector<int64_t>{1, 2})};
  EXPECT_THAT(std::string(ImportError(ModelOf(rnn)).message()),
              HasSubstr("attribute 'activations' must be a list of strings"));
  rnn.attributes = {Attr("activations", "Tanh")};  // a list of one
  EXPECT_THAT(std::string(ImportError(ModelOf(rnn)).message()), HasSubstr("activations has 1 names"));
}

TEST(SplitRecurrences, CoefficientsOfTwoDirectionsStayTogether) {
  Recurrence rnn{"RNN", 40, "bidirectional"};
  rnn.attributes = {FloatsAttr("activation_alpha", {0.5f})};
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(ModelOf(rnn)), "RNN"), 1);
  rnn.direction = "forward";
  EXPECT_EQ(CountOps(ExpectPassesKeepMeaning(ModelOf(rnn)), "RNN"), 2);
}

}  // namespace
}  // namespace hone::graph
