// SPDX-License-Identifier: Apache-2.0
// Optional outputs of operators: an output without a reader must not affect the result.
#include "compiler/graph/graph_edit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Unread { kNamed, kLeftOut };

// A model with a chain of operators with optional outputs; each time only one output is read.
std::string Chain(Unread unread) {
  int next = 0;
  const auto no = [&] { return unread == Unread::kNamed ? "unread" + std::to_string(next++) : std::string(); };
  GraphBuilder b;
  b.Input("x", {1, 2, 4, 4}).Floats("c", {2}, {1, 1}).Ints("k", {2}).Floats("r", {1, 8, 2}, RandomFloats(16, 1));
  b.Node("Dropout", {"x"}, {"a", no()});
  b.Node("MaxPool", {"a"}, {"b", no()}, {Attr("kernel_shape", std::vector<int64_t>{1, 1})});
  b.Node("BatchNormalization", {"b", "c", "c", "c", "c"}, {"d", no(), no()});
  b.Node("TopK", {"d", "k"}, {"e", no()});
  b.Node("LayerNormalization", {"e", "c"}, {"f", no(), no()});
  b.Ints("steps", {4, 2, 2}).Node("Reshape", {"f", "steps"}, {"g"});
  b.Node("LSTM", {"g", "r", "r"}, {no(), "y", no()}, {Attr("hidden_size", 2)}).Output("y");
  return b.Model();
}

TEST(OptionalOutputs, UnreadOutputsAreIgnored) {
  for (const Unread unread : {Unread::kNamed, Unread::kLeftOut}) {
    const Graph graph = ExpectPassesKeepMeaning(Chain(unread));
    EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(1, 2, 2));
  }
}

TEST(OptionalOutputs, UnreadNodesAreIgnored) {
  GraphBuilder b;
  b.Input("x", {2}).Node("NoSuchOperator", {"x"}, {"a"}).Node("Relu", {"a"}, {"b"}).Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(Ops(Import(b.Output("y").Model())), ElementsAre("Relu"));
}

TEST(OptionalOutputs, BodiesMakeOnlyWhatIsRead) {
  GraphBuilder branch, b;
  branch.Node("Relu", {"x"}, {"t"}).Node("NoSuchOperator", {"x"}, {"u"}).Output("t").Output("u");
  b.Input("x", {3}).Initializer(Tensor<uint8_t>("c", kBool, {}, {1}));
  b.Node("If", {"c"}, {"y", "unread"},
         {GraphAttr("then_branch", branch.bytes()), GraphAttr("else_branch", branch.bytes())});
  EXPECT_THAT(Ops(Import(b.Output("y").Model())), ElementsAre("Relu"));
}

TEST(OptionalOutputs, OneThatIsReadAndNotMadeIsNamed) {
  GraphBuilder b;
  b.Input("x", {1, 2, 4}).Floats("c", {2}, {1, 1});
  b.Node("BatchNormalization", {"x", "c", "c", "c", "c"}, {"y", "running", "", "saved"}).Node("Relu", {"saved"}, {"z"});
  const absl::Status status = ImportError(b.Output("y").Output("z").Model(9));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("node 'node_of_y' (BatchNormalization)"), HasSubstr("reads its output 3 ('saved')"),
                    HasSubstr("export the model for inference")));
}

TEST(OptionalOutputs, MaskOfDropoutIsAllTrue) {
  GraphBuilder b;
  b.Floats("x", {3}, {1, 2, 3}).Node("Dropout", {"x"}, {"", "mask"}).Output("mask");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(ReadConstant<uint8_t>(graph.values[graph.outputs[0]]), AllOf(testing::SizeIs(3), Each(1)));
}

TEST(OptionalOutputs, MeanAndInverseDeviationOfLayerNormalization) {
  GraphBuilder b;
  b.Floats("x", {1, 2}, {1, 5}).Floats("c", {2}, {1, 1});
  b.Node("LayerNormalization", {"x", "c"}, {"y", "mean", "inverse"}).Output("mean").Output("inverse");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(ReadConstant<float>(graph.values[graph.outputs[0]]), ElementsAre(3));
  EXPECT_THAT(ReadConstant<float>(graph.values[graph.outputs[1]]), ElementsAre(testing::FloatNear(0.5f, 1e-5f)));
}

}  // namespace
}  // namespace hone::graph
