// SPDX-License-Identifier: Apache-2.0
// Arithmetic on shapes with open sizes, as exporters write it: it is evaluated on import, and no node of it stays.
#include "compiler/graph/size_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/graph/emit.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/text.h"
#include "compiler/ir/size.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Dims kTokens(std::vector<Dim>{"batch", "sequence", 768});

ImportOptions Open() {
  ImportOptions options;
  options.shapes["x"] = {DimRange(1, 8), DimRange(1, 512), DimRange(768)};
  return options;
}

// A model whose input is x; its shape is "shape", and "batch" and "sequence" are i64[1] with its first two dimensions.
GraphBuilder Start() {
  GraphBuilder b;
  b.Input("x", kTokens).Node("Shape", {"x"}, {"shape"});
  b.Initializer(Tensor<int64_t>("zero", kInt64, {}, {0})).Initializer(Tensor<int64_t>("one", kInt64, {}, {1}));
  b.Ints("axis0", {0});
  b.Node("Gather", {"shape", "zero"}, {"batch_scalar"}).Node("Unsqueeze", {"batch_scalar", "axis0"}, {"batch"});
  b.Node("Gather", {"shape", "one"}, {"sequence_scalar"}).Node("Unsqueeze", {"sequence_scalar", "axis0"}, {"sequence"});
  return b;
}

std::string OutputType(const Graph& graph) {
  return graph.outputs.empty() ? "none" : Print(graph.values[graph.outputs[0]].type);
}

TEST(SizeElements, ReshapeToAConcatOfDimensions) {
  GraphBuilder b = Start();
  b.Ints("heads", {12, 64}).Node("Concat", {"batch", "sequence", "heads"}, {"to"}, {Attr("axis", 0)});
  b.Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape"));
  EXPECT_EQ(OutputType(graph), "f32[batch,sequence,12,64]");
}

TEST(SizeElements, TheRestOfAReshapeIsKnown) {
  GraphBuilder b = Start();
  b.Ints("rest", {-1}).Node("Concat", {"batch", "rest"}, {"to"}, {Attr("axis", 0)});
  b.Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  EXPECT_EQ(OutputType(Import(b.Model(), Open())), "f32[batch,sequence * 768]");
}

TEST(SizeElements, AProductOfDimensions) {
  GraphBuilder b = Start();
  b.Node("Mul", {"batch", "sequence"}, {"rows"}).Ints("columns", {768});
  b.Node("Concat", {"rows", "columns"}, {"to"}, {Attr("axis", 0)}).Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape"));
  EXPECT_EQ(OutputType(graph), "f32[batch * sequence,768]");
}

TEST(SizeElements, SliceOfAShape) {
  GraphBuilder b = Start();
  b.Ints("begin", {0}).Ints("end", {2}).Node("Slice", {"shape", "begin", "end"}, {"leading"});
  b.Ints("heads", {12, 64}).Node("Concat", {"leading", "heads"}, {"to"}, {Attr("axis", 0)});
  b.Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_THAT(Ops(graph), ElementsAre("Reshape"));
  EXPECT_EQ(OutputType(graph), "f32[batch,sequence,12,64]");
}

TEST(SizeElements, SliceUpToADimension) {
  GraphBuilder b = Start();
  b.Ints("two", {2}).Node("Div", {"sequence", "two"}, {"half"});
  b.Ints("begin", {0}).Ints("axis1", {1}).Node("Slice", {"x", "begin", "half", "axis1"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_THAT(Ops(graph), ElementsAre("Slice"));
  ASSERT_EQ(graph.outputs.size(), 1u);
  const ir::Shape& shape = graph.values[graph.outputs[0]].type.shape;
  ASSERT_EQ(shape.size(), 3u);
  for (const int64_t sequence : {1, 2, 3, 511, 512}) {
    EXPECT_EQ(shape[1].Substitute({{"sequence", sequence}}).value(), sequence / 2);
  }
}

// torch.expand writes 1 where the wanted size is -1: Where(Equal(sizes, -1), ones, sizes).
TEST(SizeElements, ExpandAsTorchWritesIt) {
  GraphBuilder b = Start();
  b.Ints("three", {3}).Ints("width", {768}).Ints("minus_one", {-1});
  b.Node("Concat", {"batch", "sequence", "width"}, {"sizes"}, {Attr("axis", 0)});
  b.Node("ConstantOfShape", {"three"}, {"ones"}, {TensorAttr("value", Tensor<int64_t>("", kInt64, {1}, {1}))});
  b.Node("Mul", {"ones", "minus_one"}, {"minus_ones"}).Node("Equal", {"sizes", "minus_ones"}, {"keep"});
  b.Node("Where", {"keep", "ones", "sizes"}, {"to"});
  b.Floats("row", {768}, std::vector<float>(768, 1)).Node("Expand", {"row", "to"}, {"wide"});
  b.Node("Add", {"x", "wide"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_THAT(Ops(graph), ElementsAre("Expand", "Add"));
  EXPECT_EQ(OutputType(graph), "f32[batch,sequence,768]");
}

TEST(SizeElements, ConstantOfAnOpenShape) {
  GraphBuilder b = Start();
  b.Node("Concat", {"batch", "sequence"}, {"to"}, {Attr("axis", 0)});
  b.Node("ConstantOfShape", {"to"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_EQ(OutputType(graph), "f32[batch,sequence]");
  EXPECT_THAT(Ops(graph), ElementsAre("ConstantOfShape")) << "a tensor of an open shape is no constant";
}

// A size that the model computes by floats: y has as many elements as `arithmetic` makes of the sequence, a float.
absl::StatusOr<Graph> SizeByFloats(const std::function<void(GraphBuilder&)>& arithmetic) {
  GraphBuilder b = Start();
  b.Node("Cast", {"sequence"}, {"f"}, {Attr("to", kFloat)}).Floats("c", {}, {32}).Floats("odd", {}, {0.7F});
  b.Floats("eighth", {}, {0.125F});
  arithmetic(b);
  b.Node("Cast", {"whole"}, {"to"}, {Attr("to", kInt64)}).Node("ConstantOfShape", {"to"}, {"y"}).Output("y");
  return ImportOnnxBytes(b.Model(), ".", Open());
}

TEST(SizeElements, FloatArithmeticThatIsCertain) {
  const auto rounded_up = SizeByFloats([](GraphBuilder& b) {
    b.Node("ReduceMax", {"f"}, {"max"})
        .Node("Div", {"max", "c"}, {"q"})
        .Node("Ceil", {"q"}, {"up"})
        .Node("Mul", {"up", "c"}, {"whole"});
  });
  const auto eighth =
      SizeByFloats([](GraphBuilder& b) { b.Node("Mul", {"f", "eighth"}, {"q"}).Node("Floor", {"q"}, {"whole"}); });
  ASSERT_TRUE(rounded_up.ok() && eighth.ok()) << rounded_up.status() << eighth.status();
  for (const auto& [n, up, part] : {std::tuple(1, 32, 0), {32, 32, 4}, {33, 64, 4}, {511, 512, 63}, {512, 512, 64}}) {
    const auto at = [&](const Graph& graph) {
      return graph.values[graph.outputs[0]].type.shape[0].Substitute({{"sequence", ir::Size(n)}});
    };
    EXPECT_EQ(at(*rounded_up), ir::Size(up)) << n;
    EXPECT_EQ(at(*eighth), ir::Size(part)) << n;
  }
}

TEST(SizeElements, FloatArithmeticThatMayRound) {
  const auto result = SizeByFloats([](GraphBuilder& b) { b.Node("Mul", {"f", "odd"}, {"whole"}); });
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("must be known when the model is compiled"));
}

// Sizes that are negative, or beyond all dimensions, for each value of the open sizes are no sizes that a run may read.
TEST(SizeElements, NoResizeToImpossibleSizes) {
  for (const float offset : {-1000.0f, 4e9f}) {
    GraphBuilder b = Start();
    b.Node("Cast", {"sequence"}, {"f"}, {Attr("to", kFloat)})
        .Floats("factor", {}, {0.3f})
        .Floats("offset", {}, {offset});
    b.Node("Mul", {"f", "factor"}, {"scaled"}).Node("Add", {"scaled", "offset"}, {"moved"});
    b.Node("Floor", {"moved"}, {"floor"}).Node("Cast", {"floor"}, {"rows"}, {Attr("to", kInt64)});
    b.Ints("last", {768}).Node("Concat", {"batch", "rows", "last"}, {"sizes"}, {Attr("axis", 0)});
    b.Node("Resize", {"x", "", "", "sizes"}, {"y"}).Output("y");
    EXPECT_THAT(std::string(ImportError(b.Model(), Open()).message()), HasSubstr("node 'node_of_y' (Resize)"));
  }
}

TEST(SizeElements, NumbersBecomeConstants) {
  GraphBuilder b = Start();
  b.Ints("last", {2}).Ints("heads", {12}).Node("Gather", {"shape", "last"}, {"width"});
  b.Node("Div", {"width", "heads"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), Open());
  EXPECT_THAT(Ops(graph), IsEmpty());
  const Value& value = graph.values[graph.outputs[0]];
  ASSERT_NE(value.data, nullptr);
  EXPECT_EQ(value.elements, nullptr);
  EXPECT_THAT(ReadConstant<int64_t>(value), ElementsAre(64));
}

TEST(SizeElements, AFixedModelIsAsBefore) {
  GraphBuilder b = Start();
  b.Ints("heads", {12, 64}).Node("Concat", {"batch", "sequence", "heads"}, {"to"}, {Attr("axis", 0)});
  b.Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  ImportOptions options;
  options.shapes["x"] = {2, 128, 768};
  const Graph graph = Import(b.Model(), options);
  EXPECT_TRUE(graph.sizes.empty());
  EXPECT_EQ(OutputType(graph), "f32[2,128,12,64]");
  for (const Value& value : graph.values) EXPECT_EQ(value.elements, nullptr) << value.name;
}

TEST(SizeElements, WhatASizeMayOrMayNotBeIsNoShape) {
  GraphBuilder b = Start();
  b.Ints("four", {4}).Ints("width", {768}).Ints("other", {-1});
  b.Node("Equal", {"batch", "four"}, {"is_four"}).Node("Where", {"is_four", "width", "other"}, {"to"});
  b.Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  EXPECT_FALSE(ImportError(b.Model(), Open()).ok()) << "it depends on the batch whether the Reshape is possible";
}

TEST(SizeElements, InputsGiveTheOpenSizes) {
  GraphBuilder b;
  b.Input("x", Dims(std::vector<Dim>{"batch", 3, "height", "width"})).Node("Relu", {"x"}, {"y"}).Output("y");
  ImportOptions options;
  options.shapes["x"] = {1, 3, DimRange(224, 640, 32), DimRange(1, 640)};
  const Graph graph = Import(b.Model(), options);
  EXPECT_THAT(graph.sizes, ElementsAre(ir::OpenSize{"height", 7, 20}, ir::OpenSize{"width", 1, 640}));
  EXPECT_EQ(OutputType(graph), "f32[1,3,height * 32,width]");
  EXPECT_EQ(ByteSize(graph.values[graph.inputs[0]].type), 4 * 3 * 640 * 640);
}

TEST(SizeElements, RangesMustMakeSense) {
  GraphBuilder b;
  b.Input("x", Dims(std::vector<Dim>{"n", 3})).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto error = [&](std::vector<DimRange> shape) {
    ImportOptions options;
    options.shapes["x"] = std::move(shape);
    return std::string(ImportError(b.Model(), options).message());
  };
  EXPECT_THAT(error({DimRange(4, 2), 3}), HasSubstr("the given shape 4..2,3 has a range without values"));
  EXPECT_THAT(error({DimRange(-1, 2), 3}), HasSubstr("has a negative dimension"));
  EXPECT_THAT(error({DimRange(3, 16, 4), 3}), HasSubstr("has a range whose ends are not multiples of its step"));
  EXPECT_THAT(error({DimRange(1, 8), DimRange(1, 3)}), HasSubstr("the given shape 1..8,1..3 does not fit the model's"));
  EXPECT_EQ(error({DimRange(1, 8), 3}), "");
}

TEST(SizeElements, OneSymbolHasOneRange) {
  GraphBuilder b;
  b.Input("x", Dims(std::vector<Dim>{"n"})).Input("w", Dims(std::vector<Dim>{"n"}));
  b.Node("Add", {"x", "w"}, {"y"}).Output("y");
  ImportOptions options;
  options.shapes["x"] = {DimRange(1, 8)};
  const Graph graph = Import(b.Model(), options);
  EXPECT_EQ(OutputType(graph), "f32[n]");
  EXPECT_EQ(graph.sizes.size(), 1u);
  options.shapes["w"] = {DimRange(1, 9)};
  EXPECT_THAT(std::string(ImportError(b.Model(), options).message()), HasSubstr("dimension 'n' is 1..9 here and 1..8"));
}

TEST(SizeElements, DimRangesPrint) {
  EXPECT_EQ(Print(DimRange(128)), "128");
  EXPECT_EQ(Print(DimRange(1, 512)), "1..512");
  EXPECT_EQ(Print(DimRange(224, 640, 32)), "224..640:32");
}

// --- One node at a time

class OneNodeModel : public ::testing::Test {
 protected:
  // Adds the node and evaluates it: the elements of its output as text; "unknown" if it cannot be evaluated.
  std::vector<std::string> Elements(const std::string& op, std::vector<ValueId> inputs,
                                    std::map<std::string, Attribute> attributes = {}) {
    EXPECT_TRUE(AddOp(graph_, op, std::move(inputs), std::move(attributes)).ok());
    const auto results = EvaluateElements(graph_, graph_.nodes.back());
    EXPECT_TRUE(results.ok()) << results.status();
    if (!results.ok() || results->empty() || results->front() == nullptr) return {"unknown"};
    std::vector<std::string> texts;
    for (const ir::Expr& element : *results->front()) {
      const std::optional<ir::Size> size = ir::ToSize(element, graph_.sizes);
      texts.push_back(size.has_value() ? ir::Print(*size) : "no size");
    }
    return texts;
  }

  const ir::Size n_ = ir::Size::Open({"n", 1, 64}), m_ = ir::Size::Open({"m", 4, 8});
  Graph graph_;
  const ValueId sizes_ = AddSizes(graph_, "sizes", {n_, m_, 5});
};

TEST_F(OneNodeModel, AddSizesDeclaresItsSymbols) {
  EXPECT_THAT(graph_.sizes, ElementsAre(ir::OpenSize{"n", 1, 64}, ir::OpenSize{"m", 4, 8}));
  EXPECT_EQ(graph_.values[sizes_].data, nullptr);
  ASSERT_NE(graph_.values[sizes_].elements, nullptr);
  EXPECT_EQ(graph_.values[sizes_].elements->size(), 3u);
  EXPECT_NE(graph_.values[AddSizes(graph_, "numbers", {4, 5})].data, nullptr) << "numbers are a constant";
}

TEST_F(OneNodeModel, Arithmetic) {
  const ValueId numbers = AddInts(graph_, "numbers", {2, 3, 4});
  EXPECT_THAT(Elements("Add", {sizes_, numbers}), ElementsAre("n + 2", "m + 3", "9"));
  EXPECT_THAT(Elements("Sub", {sizes_, numbers}), ElementsAre("n - 2", "m - 3", "1"));
  EXPECT_THAT(Elements("Mul", {sizes_, numbers}), ElementsAre("n * 2", "m * 3", "20"));
  EXPECT_THAT(Elements("Max", {sizes_, numbers}), ElementsAre("max(2, n)", "m", "5"));
}

TEST_F(OneNodeModel, MovesElements) {
  const ValueId two = AddInts(graph_, "two", {2, 0});
  EXPECT_THAT(Elements("Gather", {sizes_, two}), ElementsAre("5", "n"));
  EXPECT_THAT(Elements("Concat", {sizes_, two}, {{"axis", int64_t{0}}}), ElementsAre("n", "m", "5", "2", "0"));
  EXPECT_THAT(Elements("ReduceProd", {sizes_}, {{"keepdims", int64_t{0}}}), ElementsAre("m * n * 5"));
}

TEST_F(OneNodeModel, ConditionsThatTheRangesDecide) {
  const ValueId ones = AddInts(graph_, "ones", {-1, 3, 5}), other = AddInts(graph_, "other", {7, 7, 7});
  const auto equal = AddOp(graph_, "Equal", {sizes_, ones});
  ASSERT_TRUE(equal.ok());
  const auto known = EvaluateElements(graph_, graph_.nodes.back());
  ASSERT_TRUE(known.ok()) << known.status();
  ASSERT_EQ(known->size(), 1u);
  graph_.values[*equal].elements = known->front();
  EXPECT_THAT(Elements("Where", {*equal, other, sizes_}), ElementsAre("n", "m", "7"));
}

TEST_F(OneNodeModel, WhatIsNotKnownStaysUnknown) {
  const ValueId x = AddValue(graph_, "x", {ir::DType::kInt64, {3}});
  EXPECT_THAT(Elements("Add", {sizes_, x}), ElementsAre("unknown"));
  const ValueId open = AddValue(graph_, "open", {ir::DType::kFloat32, {n_, 4}});
  EXPECT_THAT(Elements("Relu", {open}), ElementsAre("unknown"));
  const ValueId table = AddInts(graph_, "table", std::vector<int64_t>(64, 1));
  EXPECT_THAT(Elements("Gather", {table, sizes_}), ElementsAre("unknown")) << "an index is open";
}

TEST_F(OneNodeModel, TooMuchStaysUnknown) {
  const ValueId many = AddInts(graph_, "many", std::vector<int64_t>(5000, 1));
  EXPECT_THAT(Elements("Concat", {sizes_, many}, {{"axis", int64_t{0}}}), ElementsAre("unknown"));
}

TEST_F(OneNodeModel, SqueezeWithoutAxesNeedsToKnowWhichDimensionsAreOne) {
  const auto squeezed = [&](const ir::OpenSize& size) {
    const ValueId x = AddValue(graph_, "x", {ir::DType::kFloat32, {ir::Size::Open(size), 1, 4}});
    return AddOp(graph_, "Squeeze", {x});
  };
  EXPECT_THAT(squeezed({"may_be_one", 1, 8}).status().message(), HasSubstr("dimension 0 (may_be_one) may be 1"));
  const auto known = squeezed({"is_more", 2, 8});
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(graph_.values[static_cast<size_t>(*known)].type.shape.size(), 2u);
}

TEST(SizeElements, TextOfAGraphRoundTrips) {
  GraphBuilder b = Start();
  b.Ints("heads", {12, 64}).Node("Concat", {"batch", "sequence", "heads"}, {"to"}, {Attr("axis", 0)});
  b.Node("Reshape", {"x", "to"}, {"y"}).Output("y");
  const std::string text = Print(Import(b.Model(), Open()));
  EXPECT_THAT(text, HasSubstr("size batch in [1, 8]\n"));
  EXPECT_THAT(text, HasSubstr("= sizes [batch, sequence, 12, 64]"));
  const auto parsed = ParseGraph(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed), text);
}

}  // namespace
}  // namespace hone::graph
