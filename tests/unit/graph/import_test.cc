// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/onnx_import.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

GraphBuilder ReluOf(const Dims& shape) {
  GraphBuilder b;
  b.Input("x", shape).Node("Relu", {"x"}, {"y"}).Output("y");
  return b;
}

TEST(Import, KeepsNamesTypesAndOrder) {
  GraphBuilder b;
  b.Input("x", {2, 3}).Floats("w", {3}, {1, 2, 3});
  b.Node("Add", {"x", "w"}, {"sum"}).Node("Relu", {"sum"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(Ops(graph), ElementsAre("Add", "Relu"));
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.values[graph.inputs[0]].name, "x");
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(2, 3));
  EXPECT_THAT(graph.output_names, ElementsAre("y"));
  EXPECT_EQ(graph.nodes[1].name, "node_of_y");
}

TEST(Import, SortsNodesThatAreOutOfOrder) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"sum"}, {"y"}).Node("Add", {"x", "x"}, {"sum"}).Output("y");
  EXPECT_THAT(Ops(Import(b.Model())), ElementsAre("Add", "Relu"));
}

// A product in each step would read the weights as often as there are steps.
TEST(Import, ARecurrenceOfOpenLengthMultipliesItsInputsBeforeTheLoop) {
  for (const int type : {kFloat, kHalf}) {
    GraphBuilder b;
    b.Input("given", Dims({Dim("time"), Dim(int64_t{1}), Dim(int64_t{3})}))
        .Floats("w32", {1, 8, 3}, RandomFloats(24, 1));
    b.Floats("r32", {1, 8, 2}, RandomFloats(16, 2)).Node("Cast", {"given"}, {"x"}, {Attr("to", type)});
    b.Node("Cast", {"w32"}, {"w"}, {Attr("to", type)}).Node("Cast", {"r32"}, {"r"}, {Attr("to", type)});
    b.Node("LSTM", {"x", "w", "r"}, {"y"}, {Attr("hidden_size", 2)}).Output("y");
    ImportOptions options;
    options.shapes["given"] = {DimRange(1, 9), 1, 3};
    const Graph graph = Import(b.Model(), options);
    EXPECT_EQ(CountOps(graph, "Loop"), 1);
    EXPECT_EQ(CountOps(graph, "MatMul"), type == kFloat ? 1 : 0) << "f16 would round the products";
  }
}

TEST(Import, UnboundDimensionSaysWhatToType) {
  const std::string model = ReluOf(Dims({Dim("batch"), Dim(int64_t{3}), Dim(int64_t{8})})).Model();
  const absl::Status status = ImportError(model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Text(status), HasSubstr("input 'x': dimension 0 ('batch')"));
  EXPECT_THAT(Text(status), HasSubstr("--shape x=1,3,8"));
}

TEST(Import, ADeclaredZeroIsAnExtent) {
  const Graph graph = Import(ReluOf({0, 3}).Model());
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(0, 3));
  EXPECT_THAT(Text(ImportError(ReluOf({-1, 3}).Model())), HasSubstr("dimension 0 ('?') is not known"));
  ImportOptions options;  // some exporters write this for an unknown size
  options.shapes["x"] = {5, 3};
  const Graph given = Import(ReluOf({0, 3}).Model(), options);
  EXPECT_THAT(given.values[given.outputs[0]].type.shape, ElementsAre(5, 3));
}

TEST(Import, ShapesBindSymbolsOfOtherInputsToo) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("n"), Dim(int64_t{4})})).Input("y", Dims({Dim("n"), Dim(int64_t{4})}));
  b.Node("Add", {"x", "y"}, {"z"}).Output("z");
  ImportOptions options;
  options.shapes["x"] = {5, 4};
  const Graph graph = Import(b.Model(), options);
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(5, 4));
  options.shapes["y"] = {6, 4};
  EXPECT_THAT(Text(ImportError(b.Model(), options)), HasSubstr("dimension 'n' is 6 here and 5"));
}

TEST(Import, ShapesMustFitTheModel) {
  const std::string model = ReluOf(Dims({Dim("n"), Dim(int64_t{4})})).Model();
  ImportOptions options;
  options.shapes["x"] = {1, 5};
  EXPECT_THAT(Text(ImportError(model, options)), HasSubstr("the given shape 1,5 does not fit the model's n,4"));
  options.shapes["x"] = {1, 2, 3};
  EXPECT_FALSE(ImportError(model, options).ok());
  options.shapes["x"] = {-1, 4};
  EXPECT_THAT(Text(ImportError(model, options)), HasSubstr("negative"));
  options.shapes = {{"image", {1, 4}}};
  EXPECT_THAT(Text(ImportError(model, options)), HasSubstr("no input 'image'; its inputs are: x"));
}

TEST(Import, InputWithoutShapeNeedsOne) {
  GraphBuilder b;
  b.InputWithoutShape("x").Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Text(ImportError(b.Model())), HasSubstr("has no shape"));
  ImportOptions options;
  options.shapes["x"] = {7};
  EXPECT_THAT(Import(b.Model(), options).values[0].type.shape, ElementsAre(7));
}

TEST(Import, BoundInputDecidesAShape) {
  GraphBuilder b;
  b.Input("x", {6}).Input("shape", {2}, kInt64).Node("Reshape", {"x", "shape"}, {"y"}).Output("y");
  EXPECT_THAT(Text(ImportError(b.Model())), HasSubstr("--bind NAME=VALUES"));
  auto bytes = std::make_shared<std::vector<std::byte>>(16);
  (*bytes)[0] = std::byte{2};
  (*bytes)[8] = std::byte{3};
  ImportOptions options;
  options.bound_inputs["shape"] = {{ir::DType::kInt64, {2}}, bytes};
  const Graph graph = Import(b.Model(), options);
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(2, 3));
  EXPECT_EQ(graph.inputs.size(), 1u);
  options.bound_inputs["shape"].type.dtype = ir::DType::kInt32;
  EXPECT_THAT(Text(ImportError(b.Model(), options)), HasSubstr("input 'shape' is i64[2], the bound value is i32[2]"));
}

TEST(Import, BoundTextsTakeTypeAndShapeOfTheInput) {
  GraphBuilder b;
  b.Input("x", {6}).Input("shape", Dims({Dim("rank")}), kInt64).Input("scale", {}, kHalf).Input("on", {2, 1}, kBool);
  b.Node("Reshape", {"x", "shape"}, {"y"}).Output("y").Output("scale").Output("on");
  ImportOptions options;
  options.bound_texts = {{"shape", "3,2"}, {"scale", "-1.5"}, {"on", "true,0"}};
  const Graph graph = Import(b.Model(), options);
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(3, 2));
  EXPECT_THAT(ReadConstant<uint16_t>(graph.values[graph.outputs[1]]), ElementsAre(0xbe00));
  EXPECT_THAT(ReadConstant<uint8_t>(graph.values[graph.outputs[2]]), ElementsAre(1, 0));
  EXPECT_EQ(graph.inputs.size(), 1u);
}

TEST(Import, BoundTextsThatDoNotFitSayWhatIsWanted) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("n"), Dim(int64_t{2})})).Input("flags", {2}, kUInt8);
  b.Node("Relu", {"x"}, {"y"}).Output("y").Output("flags");
  const auto error = [&](const std::string& name, const std::string& text) {
    ImportOptions options;
    if (name == "flags") options.shapes["x"] = {1, 2};
    options.bound_texts[name] = text;
    return Text(ImportError(b.Model(), options));
  };
  EXPECT_THAT(error("flags", "1,2,3"),
              HasSubstr("input 'flags' is u8[2]: it needs 2 numbers, but the bound value has 3"));
  EXPECT_THAT(error("flags", ""), HasSubstr("the bound value has 0"));
  EXPECT_THAT(error("flags", "1,256"), HasSubstr("'256' in the bound value is not a u8"));
  for (const char* text : {"1,2,", ",1,2", "1,,2", ","}) {
    EXPECT_THAT(error("flags", text), HasSubstr("has an empty entry between commas"));
  }
  EXPECT_THAT(error("flags", "1,two"), HasSubstr("'two' in the bound value is not a u8"));
  EXPECT_THAT(error("x", "1,2"), HasSubstr("--shape x=1,2")) << "its shape is open";
  EXPECT_THAT(error("z", "1"), HasSubstr("no input 'z'; its inputs are: x, flags"));
}

TEST(Import, ShapeArithmeticFolds) {
  GraphBuilder b;
  b.Input("x", {2, 3, 4}).Ints("zero", {0}).Ints("minus_one", {-1}).Ints("axis0", {0});
  b.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"first"}, {Attr("axis", 0)});
  b.Node("Concat", {"first", "minus_one"}, {"target"}, {Attr("axis", 0)});
  b.Node("Reshape", {"x", "target"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape"));
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(2, 12));
}

// A large constant is folded only if an operator needs its value.
TEST(Import, LargeConstantsFoldWhereTheyMustBeKnown) {
  const auto model = [](int64_t extent) {
    GraphBuilder b;
    b.Ints("shape", {extent, extent}).Node("ConstantOfShape", {"shape"}, {"zeros"}).Node("Cos", {"zeros"}, {"ones"});
    return b.Node("NonZero", {"ones"}, {"y"}).Output("y").Model();
  };
  const Graph graph = Import(model(300));
  EXPECT_THAT(Ops(graph), ElementsAre("NonZero"));
  EXPECT_THAT(graph.values[graph.outputs[0]].type.shape, ElementsAre(2, 90000));
  EXPECT_THAT(Text(ImportError(model(1 << 13))),
              HasSubstr("node 'node_of_zeros' (ConstantOfShape): too large to compute while compiling"));
}

TEST(Import, ShapeTakesAPart) {
  GraphBuilder b;
  b.Input("x", {2, 3, 4}).Node("Shape", {"x"}, {"s"}, {Attr("start", -2), Attr("end", 9)}).Output("s");
  const Graph graph = Import(b.Model());
  EXPECT_THAT(ReadConstant<int64_t>(graph.values[graph.outputs[0]]), ElementsAre(3, 4));
}

TEST(Import, ConstantsInAllForms) {
  GraphBuilder b;
  b.Node("Constant", {}, {"a"}, {Attr("value_float", 1.5f)});
  b.Node("Constant", {}, {"b"}, {FloatsAttr("value_floats", {2, 3})});
  b.Node("Constant", {}, {"c"}, {Attr("value_int", 4)});
  b.Node("Constant", {}, {"d"}, {Attr("value_ints", std::vector<int64_t>{5, 6})});
  b.Node("Constant", {}, {"e"}, {TensorAttr("value", Tensor<float>("", kFloat, {1}, {7}))});
  for (const char* name : {"a", "b", "c", "d", "e"}) b.Output(name);
  const Graph graph = Import(b.Model());
  auto value = [&](int i) -> const Value& { return graph.values[graph.outputs[i]]; };
  EXPECT_THAT(ReadConstant<float>(value(0)), ElementsAre(1.5f));
  EXPECT_TRUE(value(0).type.shape.empty());
  EXPECT_THAT(ReadConstant<float>(value(1)), ElementsAre(2, 3));
  EXPECT_THAT(ReadConstant<int64_t>(value(2)), ElementsAre(4));
  EXPECT_THAT(ReadConstant<int64_t>(value(3)), ElementsAre(5, 6));
  EXPECT_THAT(ReadConstant<float>(value(4)), ElementsAre(7));
}

TEST(Import, TypedTensorData) {
  const auto typed = [](int dtype, int field, std::vector<int64_t> values) {
    Message tensor;
    tensor.Int(1, static_cast<int64_t>(values.size())).Int(2, dtype).Text(8, "t");
    for (int64_t value : values) tensor.Int(field, value);
    GraphBuilder b;
    b.Initializer(tensor.bytes()).Output("t");
    const Graph graph = Import(b.Model());
    return graph.values[graph.outputs[0]];
  };
  EXPECT_THAT(ReadConstant<int8_t>(typed(kInt8, 5, {-3, 4})), ElementsAre(-3, 4));
  EXPECT_THAT(ReadConstant<uint16_t>(typed(kHalf, 5, {0x3c00})), ElementsAre(0x3c00));
  EXPECT_THAT(ReadConstant<uint16_t>(typed(kBFloat, 5, {0x3f80})), ElementsAre(0x3f80));
  EXPECT_THAT(ReadConstant<uint8_t>(typed(kBool, 5, {1, 0})), ElementsAre(1, 0));
  EXPECT_THAT(ReadConstant<int64_t>(typed(kInt64, 7, {-9})), ElementsAre(-9));
  EXPECT_THAT(ReadConstant<uint32_t>(typed(12, 11, {7})), ElementsAre(7u));
}

TEST(Import, InitializersOfOldFilesAreNoInputs) {
  GraphBuilder b;
  b.Input("x", {2}).Input("w", {2}).Floats("w", {2}, {1, 2}).Node("Mul", {"x", "w"}, {"y"}).Output("y");
  EXPECT_EQ(Import(b.Model(17, {}, 3)).inputs.size(), 1u);
}

TEST(Import, AnInputWithADefaultStaysAnInput) {
  GraphBuilder b;
  b.Input("x", {2}).Input("w", {2}).Floats("w", {2}, {1, 2}).Node("Mul", {"x", "w"}, {"y"}).Output("y");
  ImportOptions options;
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  const Graph graph = Import(b.Model(), options);
  ASSERT_EQ(graph.inputs.size(), 2u);
  const ValueId w = graph.inputs[1];
  EXPECT_EQ(graph.values[w].name, "w");
  EXPECT_EQ(graph.values[w].data, nullptr);
  ASSERT_EQ(graph.defaults.count(w), 1u);
  EXPECT_EQ(graph.defaults.at(w)->size(), 8u);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("input 'w' need not be set at run time")));
  options.defaults_are_constants = true;
  EXPECT_EQ(Import(b.Model(), options).inputs.size(), 1u);
}

TEST(Import, ADefaultThatDecidesAShapeIsAConstant) {
  GraphBuilder b;
  b.Input("x", {2, 3}).Input("last", {1}, kInt64).Ints("last", {3}).Ints("first", {2});
  b.Node("Concat", {"first", "last"}, {"shape"}, {Attr("axis", 0)}).Node("Reshape", {"x", "shape"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model());
  EXPECT_EQ(graph.inputs.size(), 1u);
  EXPECT_TRUE(graph.defaults.empty());
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape"));
}

TEST(Import, BoundValuesReplaceDefaults) {
  GraphBuilder b;
  b.Input("x", {2}).Input("w", {2}).Floats("w", {2}, {1, 2}).Node("Mul", {"x", "w"}, {"y"}).Output("y").Output("w");
  ImportOptions options;
  options.bound_texts["w"] = "3,4";
  const Graph graph = Import(b.Model(), options);
  EXPECT_EQ(graph.inputs.size(), 1u);
  EXPECT_THAT(ReadConstant<float>(graph.values[graph.outputs[1]]), ElementsAre(3, 4));
}

TEST(Import, AnOutputThatIsThereTwiceIsNamed) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y").Output("y");
  EXPECT_THAT(Text(ImportError(b.Model())), HasSubstr("the model lists output 'y' twice; remove one entry"));
}

TEST(Import, OpsetsOutsideOursAreRefused) {
  EXPECT_THAT(Text(ImportError(ReluOf({2}).Model(29))), HasSubstr("opset 29; supported are 1 to 28"));
  EXPECT_FALSE(ImportError(ReluOf({2}).Model(0)).ok());
  for (const int opset : {1, 6, 23, 28}) EXPECT_TRUE(ImportError(ReluOf({2}).Model(opset)).ok()) << opset;
}

TEST(Import, UnknownOperatorIsNamed) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Frobnicate", {"x"}, {"y"}).Output("y");
  const absl::Status status = ImportError(b.Model());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Text(status), HasSubstr("node 'node_of_y' (Frobnicate): the operator is not supported"));
}

TEST(Import, OperatorsOfThePassesAreNotForModels) {
  GraphBuilder b;
  b.Input("x", {2, 2, 2, 2}).Node("SumTaps", {"x"}, {"y"}, {}, "hone").Output("y");
  const absl::Status status = ImportError(b.Model());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Text(status), HasSubstr("node 'node_of_y' (SumTaps): domain 'hone' is internal to Hone"));
}

TEST(Import, WrongAttributeTypeIsAnError) {
  GraphBuilder b;
  b.Input("x", {2, 2}).Node("Softmax", {"x"}, {"y"}, {Attr("axis", "last")}).Output("y");
  EXPECT_THAT(Text(ImportError(b.Model())), HasSubstr("attribute 'axis' must be an integer"));
}

TEST(Import, StringTensorsAreRefused) {
  GraphBuilder b;
  b.Input("x", {2}, kString).Node("Identity", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(ImportError(b.Model()).code(), absl::StatusCode::kUnimplemented);
}

// A model with a string in each place that may hold a constant.
GraphBuilder WithStrings() {
  const std::string tensor = TensorOfBytes("s", kString, {1}, "");
  GraphBuilder b, branch, other;
  branch.Node("Relu", {"x"}, {"t"}).Output("t");
  other.Initializer(TensorOfBytes("inner", kString, {1}, "")).Node("Equal", {"inner", "inner"}, {"t"}).Output("t");
  b.Input("x", {2}).Initializer(tensor).Initializer(Tensor<uint8_t>("on", kBool, {}, {1}));
  b.Node("Constant", {}, {"c"}, {TensorAttr("value", tensor)}).Node("Equal", {"s", "c"}, {"unread"});
  b.Node("If", {"on"}, {"y"}, {GraphAttr("then_branch", branch.bytes()), GraphAttr("else_branch", other.bytes())});
  return b.Output("y");
}

TEST(Import, ConstantsOfOtherTypesMatterWhereTheyAreRead) {
  EXPECT_THAT(Ops(Import(WithStrings().Model())), ElementsAre("Relu"));
  const auto error = [](GraphBuilder b) { return Text(ImportError(b.Model())); };
  const std::string strings = "tensor 's': string tensors are not supported";
  EXPECT_THAT(error(WithStrings().Output("s")), HasSubstr(strings));
  EXPECT_THAT(error(WithStrings().Output("c")), HasSubstr("node 'node_of_c' (Constant): " + strings));
  EXPECT_THAT(error(WithStrings().Node("Shape", {"s"}, {"z"}).Output("z")),
              HasSubstr("node 'node_of_z' (Shape): " + strings));
}

TEST(Import, MissingFileIsNotFound) {
  const absl::Status status = ImportOnnx("no/such/model.onnx", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(status), HasSubstr("no/such/model.onnx"));
}

}  // namespace
}  // namespace hone::graph
