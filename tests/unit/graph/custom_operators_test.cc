// SPDX-License-Identifier: Apache-2.0
// Operators that a file beside the model defines.
#include "compiler/graph/custom_operators.h"

#include <fstream>
#include <memory>

#include "base/temporary_folder.h"
#include "compiler/graph/graph_edit.h"
#include "compiler/graph/text.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kScaled[] = R"(
# A comment before the first operator.
operator "com.example" "Scaled"
attribute factor: f32
attribute shift: f32 = 1.0
workload "scaled"
size n in [0, 1000]
input x: f32[n]
y: f32[n] over i:n = x[i] * factor + shift
output y

operator "com.example" "Scaled"
attribute factor: f32
workload "scaled_matrix"
size n in [0, 1000]
size m in [0, 1000]
input x: f32[n,m]
y: f32[n,m] over i:n, j:m = x[i, j] * factor
output y

operator "com.example" "EverySecond"
attribute step: i64 = 2
workload "every_second"
size n in [1, 1000]
input x: f32[n]
y: f32[(n + step - 1) // step] over i:(n + step - 1) // step = x[min(i * step, n - 1)]
output y
)";

ImportOptions With(const std::string& text) {
  absl::StatusOr<CustomOperators> operators = ParseOperators(text, "my.operators");
  EXPECT_TRUE(operators.ok()) << operators.status();
  ImportOptions options;
  if (operators.ok()) options.operators = std::make_shared<const CustomOperators>(*std::move(operators));
  return options;
}

std::string Error(const std::string& text) {
  return std::string(ParseOperators(text, "my.operators").status().message());
}

// The numbers of the only output of a model whose inputs are constants.
std::vector<float> ValuesOf(const Graph& graph) {
  if (graph.outputs.size() != 1 || graph.values[graph.outputs[0]].data == nullptr) return {};
  return graph::ReadConstant<float>(graph.values[graph.outputs[0]]);
}

std::string ScaledModel(const std::vector<int64_t>& shape, const std::vector<std::string>& attributes) {
  GraphBuilder b;
  b.Floats("x", shape, {1, 2, 3, 4}).Node("Scaled", {"x"}, {"y"}, attributes, "com.example").Output("y");
  return b.Model();
}

TEST(CustomOperators, AnExpressionGivesTheValues) {
  const ImportOptions options = With(kScaled);
  EXPECT_THAT(ValuesOf(Import(ScaledModel({4}, {Attr("factor", 2.0f)}), options)), ElementsAre(3, 5, 7, 9));
  EXPECT_THAT(ValuesOf(Import(ScaledModel({4}, {Attr("factor", 2.0f), Attr("shift", 0.0f)}), options)),
              ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(ValuesOf(Import(ScaledModel({2, 2}, {Attr("factor", 3)}), options)), ElementsAre(3, 6, 9, 12))
      << "the second definition fits";
}

TEST(CustomOperators, NodesThatDoNotFitAreRefused) {
  const ImportOptions options = With(kScaled);
  const auto error = [&](const std::string& model) { return std::string(ImportError(model, options).message()); };
  EXPECT_THAT(error(ScaledModel({4}, {})),
              HasSubstr("node 'node_of_y' (Scaled): my.operators: line 3: attribute 'factor' is missing"));
  EXPECT_THAT(error(ScaledModel({4}, {Attr("factor", 1.0f), Attr("faktor", 1.0f)})),
              HasSubstr("its definition has no attribute 'faktor'"));
  EXPECT_THAT(error(ScaledModel({2, 1, 2}, {Attr("factor", 1.0f)})),
              HasSubstr("its inputs are f32[2,1,2], and no definition takes them (my.operators: line 3, my.operators: "
                        "line 12); add a definition for these types"));
}

TEST(CustomOperators, SizesMayBeOpenAndDependOnAttributes) {
  GraphBuilder b;
  b.Input("x", Dims(std::vector<Dim>{std::string("n")}));
  b.Node("EverySecond", {"x"}, {"y"}, {}, "com.example").Output("y");
  ImportOptions options = With(kScaled);
  options.shapes["x"] = {DimRange(1, 9)};
  const Graph graph = Import(b.Model(), options);
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(ir::Print(graph.values[graph.outputs[0]].type.shape[0]), "(n + 1) // 2");
  options.shapes["x"] = {DimRange(1, 2000)};
  EXPECT_THAT(std::string(ImportError(b.Model(), options).message()), HasSubstr("no definition takes them"));

  GraphBuilder known;
  known.Floats("x", {5}, {1, 2, 3, 4, 5});
  known.Node("EverySecond", {"x"}, {"y"}, {Attr("step", 3)}, "com.example").Output("y");
  EXPECT_THAT(ValuesOf(Import(known.Model(), With(kScaled))), ElementsAre(1, 4));
}

// The nodes around it are fused with it, and a kernel that reduces has the name of the workload.
TEST(CustomOperators, KernelsAreFusedAndNamed) {
  GraphBuilder b;
  b.Input("x", {8}).Node("Scaled", {"x"}, {"t"}, {Attr("factor", 0.5f)}, "com.example");
  b.Node("Relu", {"t"}, {"y"}).Output("y");
  const Graph graph = Import(b.Model(), With(kScaled));
  EXPECT_EQ(Print(*ParseGraph(Print(graph))), Print(graph));
  EXPECT_EQ(PlanOf(graph).workloads.size(), 1u);

  GraphBuilder sum;
  sum.Input("x", {4, 8}).Node("Squares", {"x"}, {"t"}, {}, "com.example").Node("Sqrt", {"t"}, {"y"}).Output("y");
  const Plan plan = PlanOf(Import(sum.Model(), With("operator \"com.example\" \"Squares\"\nworkload \"squares\"\n"
                                                    "input x: f32[4,8]\n"
                                                    "y: f32[4] over i:4 = sum j:8 of x[i, j] * x[i, j]\noutput y\n")));
  ASSERT_EQ(plan.workloads.size(), 1u);
  EXPECT_EQ(plan.workloads[0].op, "squares");
}

TEST(CustomOperators, ErrorsNameFileAndLine) {
  EXPECT_THAT(Error("workload \"x\"\n"), HasSubstr("my.operators: line 1: the text must begin with operator"));
  EXPECT_THAT(Error("operator \"a\" \"B\"\n\ninput x: f32[4]\n"),
              HasSubstr("my.operators: line 3, column 1: expected 'attribute' or 'workload'"));
  EXPECT_THAT(Error("operator \"a\" \"B\"\nworkload \"b\"\ninput x: f32[4]\ny: f32[4] over i:4 = x[i] + 1\noutput y\n"),
              HasSubstr("my.operators: line 4, column"));
  EXPECT_THAT(Error("operator \"hone\" \"B\"\nworkload \"b\"\n"), HasSubstr("domain 'hone' is internal"));
  EXPECT_THAT(Error("operator \"a\" \"B\"\nattribute k: u8\n"),
              HasSubstr("line 2, column 14: an attribute is of type f32, f64 or i64"));
  EXPECT_THAT(Error("operator \"a\" \"B\"\nattribute i: f32\nworkload \"b\"\ninput x: f32[4]\n"
                    "y: f32[4] over i:4 = x[i]\noutput y\n"),
              HasSubstr("line 5, column 16: axis 'i' has the name of a number"));
}

TEST(CustomOperators, IndicesMustStayInside) {
  const auto text = [](const char* index) {
    return fmt::format(
        "operator \"a\" \"B\"\nworkload \"b\"\nsize n in [1, 9]\ninput x: f32[n,4]\ninput k: i64[n]\n"
        "y: f32[n] over i:n = x[{}, 3]\noutput y\n",
        index);
  };
  for (const char* inside :
       {"i", "n - 1 - i", "max(min(i + 1, n - 1), 0)", "(i + 5) %% n", "i // 2", "0", "max(min(k[i], n - 1), 0)"}) {
    EXPECT_EQ(Error(text(inside)), "") << inside;
  }
  for (const char* outside : {"i + 1", "i - 1", "n", "i * 2", "k[i]", "1", "max(min(k[i], n - 1) - 5, 0)"}) {
    EXPECT_THAT(Error(text(outside)), HasSubstr("stage 'y' may read outside 'x': index 0 is")) << outside;
  }
  EXPECT_THAT(Error("operator \"a\" \"B\"\nworkload \"b\"\ninput x: f32[4]\n"
                    "y: f32[4] over i:4 = x[(i * 4611686018427387904) // 2305843009213693952]\noutput y\n"),
              HasSubstr("may read outside 'x'"))
      << "the product wraps";
}

// A double does not have the default.
TEST(CustomOperators, IntegersKeepAllDigits) {
  const auto text = [](const char* type) {
    return fmt::format(
        "operator \"a\" \"B\"\nattribute k: {}\nworkload \"b\"\ninput x: i64[4]\n"
        "y: i64[4] over i:4 = x[i] + k\noutput y\n",
        type);
  };
  for (const char* number : {"9007199254740993", "-9007199254740993"}) {
    const absl::StatusOr<CustomOperators> operators =
        ParseOperators(text(fmt::format("i64 = {}", number).c_str()), "my.operators");
    ASSERT_TRUE(operators.ok()) << operators.status();
    const absl::StatusOr<ir::Workload> workload = Instantiate(operators->expressions.begin()->second.front(), {});
    ASSERT_TRUE(workload.ok()) << workload.status();
    EXPECT_THAT(ir::Print(*workload), HasSubstr(fmt::format("x[i] + {}\n", number)));
  }
  EXPECT_THAT(Error(text("i64 = 0.5")), HasSubstr("line 2, column 20: expected the number"));
  EXPECT_THAT(Error(text("i64 = 9223372036854775808")), HasSubstr("an integer of 64 bits"));
}

TEST(CustomOperators, HalfTypesAreStoredOnly) {
  const std::string head = "operator \"a\" \"B\"\nworkload \"b\"\ninput x: f16[4]\n";
  EXPECT_THAT(Error(head + "y: f16[4] over i:4 = x[i] + x[i]\noutput y\n"), HasSubstr("cast to f32 first"));
  EXPECT_EQ(Error(head + "y: f16[4] over i:4 = f16(f32(x[i]) * 2.0f32)\noutput y\n"), "");
}

class OperatorFiles : public testing::Test {
 protected:
  OperatorFiles() : folder_(TemporaryFolder::Create().value()) {}
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static ImportOptions Read(const std::vector<std::string>& paths) {
    absl::StatusOr<CustomOperators> operators = ReadOperators(paths);
    EXPECT_TRUE(operators.ok()) << operators.status();
    ImportOptions options;
    if (operators.ok()) options.operators = std::make_shared<const CustomOperators>(*std::move(operators));
    return options;
  }

  TemporaryFolder folder_;
};

// A model with only functions: no graph.
std::string FunctionsFile(const std::vector<std::string>& functions) {
  Message model;
  model.Int(1, 8).Text(8, SerializeOpset("", 17));
  for (const std::string& function : functions) model.Text(25, function);
  return model.bytes();
}

TEST_F(OperatorFiles, FunctionsOfAnOnnxFileDefineOperators) {
  const std::string path = Write(
      "f.onnx", FunctionsFile({SerializeFunction("Twice", {"a"}, "b", {SerializeNode("Add", {"a", "a"}, {"b"})})}));
  GraphBuilder b;
  b.Floats("x", {2}, {1, 2}).Node("Twice", {"x"}, {"y"}, {}, "local").Output("y");
  EXPECT_THAT(ValuesOf(Import(b.Model(), Read({path}))), ElementsAre(2, 4));
  EXPECT_THAT(std::string(ImportError(b.Model()).message()), HasSubstr("--operators FILE can define it"));
}

// The file takes precedence over a function of the model and over Hone's own operators.
TEST_F(OperatorFiles, DefinitionsTakePrecedence) {
  const std::string model_function = SerializeFunction("F", {"a"}, "b", {SerializeNode("Neg", {"a"}, {"b"})});
  const std::string path =
      Write("f.onnx", FunctionsFile({SerializeFunction("F", {"a"}, "b", {SerializeNode("Add", {"a", "a"}, {"b"})})}));
  const std::string text = Write("relu.operators",
                                 "operator \"ai.onnx\" \"Relu\"\nworkload \"relu\"\nsize n in [0, 9]\n"
                                 "input x: f32[n]\ny: f32[n] over i:n = x[i] + 10.0f32\noutput y\n");
  GraphBuilder b;
  b.Floats("x", {2}, {1, 2}).Node("F", {"x"}, {"t"}, {}, "local").Node("Relu", {"t"}, {"y"}).Output("y");
  EXPECT_THAT(ValuesOf(Import(b.Model(17, {model_function}), Read({path, text}))), ElementsAre(12, 14));
}

TEST_F(OperatorFiles, BadFilesAreRefused) {
  const auto error = [](const std::vector<std::string>& paths) {
    return std::string(ReadOperators(paths).status().message());
  };
  GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(error({Write("plain.onnx", b.Model())}), HasSubstr("has no local functions"));
  EXPECT_THAT(error({Write("odd.txt", "Operators of mine\n")}),
              HasSubstr("neither an ONNX model nor a text that begins with the word operator"));
  EXPECT_THAT(error({Write("empty.operators", "")}),
              HasSubstr("empty.operators: the file cannot be read: it is empty"));
  const std::string path = Write("scaled.operators", kScaled);
  EXPECT_THAT(error({path, path}), HasSubstr("operator com.example.EverySecond is defined twice"));
}

// The example of the guide, as it stands there.
TEST(CustomOperators, TheExampleOfTheGuideWorks) {
  std::ifstream file(std::string(HONE_SOURCE_DIR) + "/docs/howto/define-an-operator.md");
  ASSERT_TRUE(file.good());
  std::string text;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      is_inside = line == "```operators";
    } else if (is_inside) {
      text += line + "\n";
    }
  }
  GraphBuilder b;
  b.Floats("x", {2, 2}, {1, -2, 3, 4}).Floats("gain", {2}, {2, 10});
  b.Node("SoftShrink", {"x", "gain"}, {"y"}, {Attr("bound", 1.5f)}, "com.example").Output("y");
  EXPECT_THAT(ValuesOf(Import(b.Model(), With(text))), ElementsAre(0, -5, 3, 25));
}

}  // namespace
}  // namespace hone::graph
