// SPDX-License-Identifier: Apache-2.0
// Tests of files that violate the specification: those with one meaning are taken, the others are refused by name.
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/ops/signatures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct OneNode {
  std::string op;
  std::vector<std::string> attributes = {};
  std::vector<std::string> inputs = {"x"};
  std::vector<std::string> outputs = {"y"};
  int opset = 17;
};

// A model of one node on x, f32[1,2,4,4].
std::string ModelOfNode(const OneNode& node) {
  GraphBuilder b;
  b.Input("x", {1, 2, 4, 4}).Floats("w", {2, 2, 3, 3}, RandomFloats(36, 1)).Floats("two", {2}, {1, 2});
  b.Ints("axes", {0}).Ints("none", {});
  return b.Node(node.op, node.inputs, node.outputs, node.attributes).Output("y").Model(node.opset);
}

std::string ErrorOf(const OneNode& node) { return std::string(ImportError(ModelOfNode(node)).message()); }

std::vector<std::string> WarningsOf(const std::string& model) {
  std::vector<std::string> warnings;
  ImportOptions options;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  Import(model, options);
  return warnings;
}

TEST(NodeForm, UnknownAttributesAreRefused) {
  EXPECT_THAT(ErrorOf({"Conv", {Attr("kernal_shape", std::vector<int64_t>{3, 3})}, {"x", "w"}}),
              HasSubstr("node 'node_of_y' (Conv): attribute 'kernal_shape' is unknown; 'kernel_shape' is similar"));
  EXPECT_THAT(ErrorOf({"Gemm", {Attr("transb", 1)}, {"two", "two"}}), HasSubstr("'transB' is similar"));
  EXPECT_THAT(ErrorOf({"ReduceMean", {Attr("keepdim", 0)}}), HasSubstr("'keepdims' is similar"));
  EXPECT_THAT(ErrorOf({"Relu", {Attr("slope", 1.0f)}}),
              HasSubstr("attribute 'slope' is unknown; remove it (Relu has no attributes)"));
  EXPECT_THAT(ErrorOf({"Softmax", {Attr("temperature", 1.0f)}}), HasSubstr("(Softmax has axis)"));
  EXPECT_THAT(ErrorOf({"Relu", {Attr("__mark", 1)}}), "") << "runtimes mark their own attributes";
}

TEST(NodeForm, AttributesOfOtherOpsetsAreRefused) {
  EXPECT_THAT(
      ErrorOf({"AveragePool",
               {Attr("kernel_shape", std::vector<int64_t>{2, 2}), Attr("dilations", std::vector<int64_t>{1, 1})}}),
      HasSubstr("attribute 'dilations' is not part of opset 17: AveragePool has it from opset 19 on"));
  EXPECT_THAT(ErrorOf({"Clip", {Attr("min", 0.0f)}}),
              HasSubstr("attribute 'min' is not part of opset 17: Clip has it in older opsets"));
}

TEST(NodeForm, AllReasonsAreNamed) {
  const std::string error = ErrorOf({"Relu", {Attr("a", 1), Attr("b", 1)}, {"x", "x"}});
  EXPECT_THAT(error, HasSubstr("attribute 'a' is unknown"));
  EXPECT_THAT(error, HasSubstr("attribute 'b' is unknown"));
  EXPECT_THAT(error, HasSubstr("it has 2 inputs, but the operator has at most 1"));
}

TEST(NodeForm, MoreInputsOrOutputsThanTheOperatorHas) {
  EXPECT_THAT(ErrorOf({"Sigmoid", {}, {"x", "x"}}), HasSubstr("it has 2 inputs, but the operator has at most 1"));
  EXPECT_THAT(ErrorOf({"Sigmoid", {}, {"x"}, {"y", "z"}}),
              HasSubstr("it has 2 outputs, but the operator has at most 1"));
  EXPECT_THAT(ErrorOf({"Sigmoid", {}, {"x", "", ""}}), "") << "omitted ones do not count";
  EXPECT_THAT(ErrorOf({"Sum", {}, {"x", "x", "x", "x"}}), "");
  GraphBuilder b;  // an operator that got the attribute axes later, and had two inputs before
  b.Input("x", {1, 1, 2, 2}).Ints("sizes", {1, 1, 4, 4}).Node("Resize", {"x", "", "", "sizes"}, {"y"}).Output("y");
  EXPECT_TRUE(ImportError(b.Model(18)).ok());
}

TEST(NodeForm, OperatorsNewerThanTheOpset) {
  EXPECT_THAT(ErrorOf({"Mish"}), HasSubstr("Mish exists from opset 18 on, but the model uses opset 17"));
  EXPECT_THAT(ErrorOf({"Mish", {}, {"x"}, {"y"}, 18}), "");
  EXPECT_THAT(ErrorOf({"LayerNormalization", {}, {"x", "two"}, {"y"}, 13}), HasSubstr("LayerNormalization"))
      << "ONNX Runtime defines it in all opsets: the shape is wrong, the opset is not";
  EXPECT_THAT(ErrorOf({"LayerNormalization", {}, {"x", "two"}, {"y"}, 13}),
              ::testing::Not(HasSubstr("exists from opset")));
}

TEST(NodeForm, DeprecatedOperatorsAreAWarning) {
  GraphBuilder b;
  b.Input("x", {1, 1, 2, 2}).Floats("scales", {4}, {1, 1, 2, 2}).Node("Upsample", {"x", "scales"}, {"y"}).Output("y");
  EXPECT_THAT(WarningsOf(b.Model(10)), ElementsAre("node 'node_of_y' (Upsample): Upsample is deprecated in opset 10"));
  EXPECT_THAT(WarningsOf(b.Model(9)), IsEmpty());
}

// One node with an attribute of the right type and one of nearly right type: both models must give the same graph.
void ExpectSameMeaning(const OneNode& right, const OneNode& nearly) {
  const Graph a = Import(ModelOfNode(right)), b = Import(ModelOfNode(nearly));
  ASSERT_EQ(a.nodes.size(), 1u);
  ASSERT_EQ(b.nodes.size(), 1u);
  EXPECT_EQ(a.nodes[0].attributes, b.nodes[0].attributes) << right.op;
  EXPECT_EQ(a.values[a.outputs[0]].type, b.values[b.outputs[0]].type) << right.op;
}

TEST(NodeForm, AttributesOfNearlyRightTypeAreConverted) {
  using Ints = std::vector<int64_t>;
  ExpectSameMeaning({"Softmax", {Attr("axis", 1)}}, {"Softmax", {Attr("axis", 1.0f)}});
  ExpectSameMeaning({"Softmax", {Attr("axis", 1)}}, {"Softmax", {Attr("axis", Ints{1})}});
  ExpectSameMeaning({"Softmax", {Attr("axis", 1)}}, {"Softmax", {FloatsAttr("axis", {1})}});
  ExpectSameMeaning({"Softmax", {Attr("axis", 1)}}, {"Softmax", {Attr("axis", "1")}});
  ExpectSameMeaning({"Elu", {Attr("alpha", 2.0f)}}, {"Elu", {Attr("alpha", 2)}});
  ExpectSameMeaning({"Elu", {Attr("alpha", 0.5f)}}, {"Elu", {FloatsAttr("alpha", {0.5f})}});
  ExpectSameMeaning({"IsInf", {Attr("detect_negative", 0)}}, {"IsInf", {Attr("detect_negative", 0.0f)}});
  ExpectSameMeaning({"ReduceMean", {Attr("axes", Ints{1})}}, {"ReduceMean", {Attr("axes", 1)}});
  ExpectSameMeaning({"ReduceMean", {Attr("axes", Ints{1, 2})}}, {"ReduceMean", {FloatsAttr("axes", {1, 2})}});
  ExpectSameMeaning({"Conv", {Attr("auto_pad", "VALID")}, {"x", "w"}},
                    {"Conv", {StringsAttr("auto_pad", {"VALID"})}, {"x", "w"}});
  ExpectSameMeaning({"Cast", {Attr("to", kDouble)}}, {"Cast", {Attr("to", "DOUBLE")}});
}

TEST(NodeForm, AttributesWithoutCertainMeaningStayWrong) {
  EXPECT_THAT(ErrorOf({"Softmax", {Attr("axis", 0.5f)}}), HasSubstr("attribute 'axis' must be an integer"));
  EXPECT_THAT(ErrorOf({"Softmax", {Attr("axis", std::vector<int64_t>{1, 2})}}), HasSubstr("must be an integer"));
  EXPECT_THAT(ErrorOf({"Softmax", {Attr("axis", "last")}}), HasSubstr("must be an integer"));
  EXPECT_THAT(ErrorOf({"Conv", {Attr("auto_pad", 1)}, {"x", "w"}}), HasSubstr("'auto_pad' must be a string"));
}

TEST(NodeForm, ClipOfRecurrencesMayBeAnInteger) {
  const auto model = [](const std::string& clip) {
    GraphBuilder b;
    b.Input("x", {3, 1, 2}).Floats("w", {1, 8, 2}, RandomFloats(16, 1)).Floats("r", {1, 8, 2}, RandomFloats(16, 2));
    b.Node("LSTM", {"x", "w", "r"}, {"y"}, {Attr("hidden_size", 2), clip}).Output("y");
    return b.Model();
  };
  EXPECT_EQ(RunOnRandom(Import(model(Attr("clip", 1))), 3), RunOnRandom(Import(model(Attr("clip", 1.0f))), 3));
  EXPECT_EQ(RunOnRandom(Import(model(FloatsAttr("clip", {1}))), 3), RunOnRandom(Import(model(Attr("clip", 1.0f))), 3));
}

TEST(NodeForm, AxesAsAttributeAndAsInput) {
  using Ints = std::vector<int64_t>;
  const OneNode attribute = {"Squeeze", {Attr("axes", Ints{0})}};
  EXPECT_THAT(WarningsOf(ModelOfNode(attribute)),
              ElementsAre(HasSubstr("the attribute axes is taken, although Squeeze has an input for it in opset 17")));
  const Graph input = Import(ModelOfNode({"Squeeze", {}, {"x", "axes"}, {"y"}, 11}));
  EXPECT_THAT(input.values[input.outputs[0]].type.shape, ElementsAre(2, 4, 4));
}

std::vector<int64_t> ShapeOf(const OneNode& node) {
  const Graph graph = Import(ModelOfNode(node));
  return graph.outputs.empty() ? std::vector<int64_t>{} : ir::Values(graph.values[graph.outputs[0]].type.shape);
}

TEST(Squeeze, TakesWhatOnnxRuntimeTakes) {
  using Ints = std::vector<int64_t>;
  EXPECT_THAT(ShapeOf({"Squeeze", {}, {"x", "none"}}), ElementsAre(2, 4, 4)) << "no axes: all";
  EXPECT_THAT(ShapeOf({"Squeeze", {Attr("axes", Ints{})}, {"x"}, {"y"}, 11}), ElementsAre(2, 4, 4));
  EXPECT_THAT(ShapeOf({"Squeeze", {Attr("axes", Ints{0, -4})}, {"x"}, {"y"}, 11}), ElementsAre(2, 4, 4)) << "one axis";
  EXPECT_THAT(ErrorOf({"Squeeze", {Attr("axes", Ints{1})}, {"x"}, {"y"}, 11}), HasSubstr("dimension 1 is 2, not 1"));
  EXPECT_THAT(ErrorOf({"Squeeze", {Attr("axes", Ints{4})}, {"x"}, {"y"}, 11}), HasSubstr("axis 4 is out of range"));
}

// The product of x, of the given shape, with a constant [6,4], plus a constant of shape `bias`.
std::string GemmModel(const Dims& shape, const std::vector<int64_t>& bias,
                      const std::vector<int64_t>& weights = {6, 4}) {
  GraphBuilder b;
  int64_t elements = 1;
  for (int64_t extent : bias) elements *= extent;
  b.Input("x", shape).Floats("w", weights, RandomFloats(24, 1)).Floats("c", bias, RandomFloats(elements, 2));
  return b.Node("Gemm", {"x", "w", "c"}, {"y"}).Output("y").Model();
}

TEST(Gemm, TakesOperandsWithOneMeaning) {
  const Graph plain = ExpectPassesKeepMeaning(GemmModel({1, 6}, {4}));
  const std::vector<float> expected = RunOnRandom(plain, 7);
  EXPECT_EQ(expected.size(), 4u);
  for (const Dims& shape : {Dims{6}, Dims{1, 6, 1, 1}, Dims{1, 1, 6}}) {
    const Graph graph = ExpectPassesKeepMeaning(GemmModel(shape, {4}));
    EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(1, 4));
    EXPECT_EQ(RunOnRandom(graph, 7), expected);
  }
  EXPECT_EQ(RunOnRandom(ExpectPassesKeepMeaning(GemmModel({1, 6}, {1, 1, 4})), 7), expected);
  EXPECT_EQ(RunOnRandom(ExpectPassesKeepMeaning(GemmModel({1, 6}, {4}, {1, 6, 4})), 7), expected);
}

TEST(Gemm, RefusesOtherRanksByName) {
  EXPECT_THAT(std::string(ImportError(GemmModel({2, 3, 6}, {4})).message()),
              HasSubstr("node 'node_of_y' (Gemm): inputs 0 and 1 must be matrices, but one has rank 3"));
  EXPECT_THAT(std::string(ImportError(GemmModel({1, 6}, {2, 1, 4})).message()), HasSubstr("does not broadcast"));
}

TEST(Import, UnnamedDimensionsAreNeverShared) {
  for (const char* name : {"", "?", "-1", "unk__7", "None"}) {
    GraphBuilder b;
    b.Input("a", ::hone::graph::Dims({Dim(name)})).Input("b", ::hone::graph::Dims({Dim(name)}));
    b.Node("Relu", {"a"}, {"c"}).Node("Relu", {"b"}, {"d"}).Output("c").Output("d");
    ImportOptions options;
    options.shapes = {{"a", {2}}, {"b", {3}}};
    EXPECT_TRUE(ImportError(b.Model(), options).ok()) << name;
    options.shapes.erase("b");
    EXPECT_THAT(std::string(ImportError(b.Model(), options).message()), HasSubstr("input 'b': dimension 0 ('?')"))
        << name;
  }
}

TEST(Import, ADomainWithoutAVersionHasTheFirst) {
  GraphBuilder b, onnx;
  b.Input("x", {2}).Node("Gelu", {"x"}, {"y"}, {}, "acme").Output("y");
  EXPECT_THAT(std::string(ImportError(b.Model()).message()), HasSubstr("(acme.Gelu): the operator is not"));
  onnx.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y");
  Message model;
  model.Int(1, 8).Text(8, SerializeOpset("com.microsoft", 1)).Text(7, onnx.bytes());
  EXPECT_THAT(WarningsOf(model.bytes()), ElementsAre(HasSubstr("does not state its version of domain 'ai.onnx'")));
}

TEST(Import, FilesBeforeOpsetsMeanOpsetOne) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y");
  Message model;
  model.Int(1, 2).Text(7, b.bytes());
  EXPECT_THAT(std::string(ImportError(model.bytes()).message()), ::testing::Not(HasSubstr("does not state its opset")));
}

TEST(Duplicates, EqualOnesAndUnusedOnesAreTaken) {
  GraphBuilder equal, unused, initializer;
  equal.Input("x", {2}).Node("Relu", {"x"}, {"a"}).Node("Relu", {"x"}, {"a"}).Node("Abs", {"a"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(Import(equal.Model())), ElementsAre("Relu", "Abs"));
  unused.Input("x", {2}).Node("Relu", {"x"}, {"a"}).Node("Abs", {"x"}, {"a"}).Node("Neg", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(Import(unused.Model())), ElementsAre("Neg"));
  initializer.Input("x", {2}).Floats("w", {2}, {1, 2}).Node("Relu", {"x"}, {"w"}).Node("Abs", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Ops(Import(initializer.Model())), ElementsAre("Abs"));
}

TEST(Duplicates, OfInitializers) {
  const auto model = [](float second) {
    GraphBuilder b;
    return b.Floats("w", {1}, {1}).Floats("w", {1}, {second}).Node("Relu", {"w"}, {"y"}).Output("y").Model();
  };
  EXPECT_TRUE(ImportError(model(1)).ok());
  EXPECT_THAT(std::string(ImportError(model(2)).message()), HasSubstr("'w' is defined twice"));
}

TEST(Duplicates, InsideABranch) {
  const auto model = [](const char* second) {
    GraphBuilder branch, b;
    branch.Node("Relu", {"x"}, {"a"}).Node(second, {"x"}, {"a"}).Node("Neg", {"a"}, {"t"}).Output("t");
    b.Input("x", {2}).Initializer(Tensor<uint8_t>("on", kBool, {}, {1}));
    b.Node("If", {"on"}, {"y"}, {GraphAttr("then_branch", branch.bytes()), GraphAttr("else_branch", branch.bytes())});
    return b.Output("y").Model();
  };
  EXPECT_THAT(Ops(Import(model("Relu"))), ElementsAre("Relu", "Neg"));
  EXPECT_THAT(std::string(ImportError(model("Abs")).message()), HasSubstr("value 'a' is defined twice, differently"));
}

TEST(Declared, AnotherElementTypeIsRefused) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y", {2}, kInt64);
  EXPECT_THAT(std::string(ImportError(b.Model()).message()),
              HasSubstr("value 'y' is f32[2], but the file declares it as i64"));
}

TEST(Declared, AnotherShapeIsAWarning) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Node("Abs", {"x"}, {"z"}).Output("y", {3}).Output("z", {2});
  EXPECT_THAT(WarningsOf(b.Model()), ElementsAre(HasSubstr("for 1 of its values are ignored, because they are wrong: "
                                                           "'y' is f32[2]")));
}

TEST(Signatures, AreFoundByOpset) {
  EXPECT_EQ(FindSignature("Mish", 17), nullptr);
  EXPECT_EQ(FindSignature("Frobnicate", 17), nullptr);
  ASSERT_NE(FindSignature("Squeeze", 12), nullptr);
  EXPECT_EQ(FindSignature("Squeeze", 12)->inputs_max, 1);
  EXPECT_EQ(FindSignature("Squeeze", 20)->inputs_max, 2);
  EXPECT_EQ(SignaturesOf("Resize").size(), 3u);
}

}  // namespace
}  // namespace hone::graph
