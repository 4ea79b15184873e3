// SPDX-License-Identifier: Apache-2.0
// Tests that an import tells all that a model misses: models with planted gaps, whose problems must be exactly these.
#include "compiler/graph/check_onnx.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/graph/run_graph.h"

namespace hone::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TemporaryFolder NewFolder() {
  absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Create();
  HONE_CHECK(folder.ok());
  return *std::move(folder);
}

std::string WriteModel(const TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = (std::filesystem::path(folder.path()) / "model.onnx").string();
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

ImportReport CheckOf(const std::string& bytes, const ImportOptions& options = {}) {
  const TemporaryFolder folder = NewFolder();
  absl::StatusOr<ImportReport> report = CheckOnnx(WriteModel(folder, bytes), options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : ImportReport{};
}

// A model of a chain of nodes, into which gaps are planted.
struct GapChain {
  GraphBuilder graph;
  std::string value = "x";         // the end of the chain, f32[2,3] unless it follows from a gap
  std::set<std::string> expected;  // "kind: name" of each problem
  std::vector<std::string> functions;
  int next = 0;

  std::string Name() { return "v" + std::to_string(next++); }
  // Appends a node and returns its output.
  std::string Add(const std::string& op, std::vector<std::string> more = {}, std::vector<std::string> attributes = {},
                  const std::string& domain = "") {
    std::vector<std::string> inputs = {value};
    inputs.insert(inputs.end(), more.begin(), more.end());
    value = Name();
    graph.Node(op, inputs, {value}, attributes, domain);
    return value;
  }
  void Expect(const std::string& kind, const std::string& output) { expected.insert(kind + ": node_of_" + output); }
};

void AddRuntimeIf(GapChain& chain) {
  GraphBuilder then_branch, else_branch;
  const std::string outer = chain.value, on = chain.Name(), inner = chain.Name(), y = chain.Name();
  then_branch.Node("Spline", {outer}, {inner}).Node("Relu", {inner}, {"t" + inner}).Output("t" + inner);
  else_branch.Node("Abs", {outer}, {"e" + inner}).Output("e" + inner);
  chain.graph.Input(on, {}, kBool);
  chain.graph.Node("If", {on}, {y},
                   {GraphAttr("then_branch", then_branch.bytes()), GraphAttr("else_branch", else_branch.bytes())});
  chain.value = y;
  chain.Expect("operator", inner);
}

void AddLoop(GapChain& chain) {
  GraphBuilder body;
  const std::string inner = chain.Name();
  body.Input("i", {}, kInt64).Input("c", {}, kBool).Input("s", {2, 3});
  body.Node("Warp", {"s"}, {inner}).Output("c").Output(inner);
  chain.graph.Ints(inner + "n", {3});
  const std::string y = chain.Name();
  chain.graph.Node("Loop", {inner + "n", "", chain.value}, {y}, {GraphAttr("body", body.bytes())});
  chain.value = y;
  chain.Expect("operator", inner);
}

using Gap = std::function<void(GapChain&)>;

std::vector<Gap> Gaps() {
  return {
      [](GapChain& c) { c.Expect("operator", c.Add("Frobnicate")); },
      [](GapChain& c) { c.Expect("operator", c.Add("Blend", {}, {}, "acme")); },
      [](GapChain& c) { c.Expect("invalid", c.Add("Softmax", {}, {Attr("axsi", 1)})); },
      [](GapChain& c) { c.Expect("invalid", c.Add("Relu", {"x"})); },
      [](GapChain& c) { c.Expect("invalid", c.Add("Mish")); },
      AddRuntimeIf,
      AddLoop,
      [](GapChain& c) {
        const std::string shape = c.Name();
        c.graph.Input(shape, {2}, kInt64);
        c.value = "x";
        c.Expect("unknown_value", c.Add("Reshape", {shape}));
      },
      [](GapChain& c) {
        const std::string text = c.Name();
        c.graph.Input(text, {1}, kString);
        c.expected.insert("unsupported: input '" + text + "'");
        c.value = text;
        c.Add("Identity");
      },
      [](GapChain& c) {
        c.value = "x";
        c.Expect("invalid", c.Add("Softmax", {}, {Attr("axis", "last")}));
      },
      [](GapChain& c) {
        const std::string wide = c.Name();
        c.graph.Floats(wide, {2, 4}, std::vector<float>(8));
        c.value = "x";
        c.Expect("invalid", c.Add("Add", {wide}));
      },
      [](GapChain& c) {
        const std::string inner = c.Name();
        c.functions.push_back(SerializeFunction(
            "F" + inner, {"a"}, "b", {SerializeNode("Quux", {"a"}, {inner}), SerializeNode("Relu", {inner}, {"b"})}));
        c.Add("F" + inner, {}, {}, "local");
        c.Expect("operator", inner);
      },
      [](GapChain& c) {
        c.value = "x";
        const std::string y = c.Add("Abs");
        c.graph.Output(y, {2, 3}, kInt64);
        c.expected.insert("invalid: value '" + y + "'");
      },
  };
}

// The problem in the form of GapChain::expected.
std::string Key(const ImportProblem& problem) {
  const std::string kind(NameOf(problem.kind));
  if (!problem.node.empty()) return kind + ": " + problem.node;
  return kind + ": " + problem.text.substr(0, problem.text.find('\'', problem.text.find('\'') + 1) + 1);
}

TEST(CheckOnnx, NamesAllPlantedGaps) {
  const std::vector<Gap> gaps = Gaps();
  constexpr size_t kModels = 30;
  for (size_t model = 0; model < kModels; ++model) {
    GapChain chain;
    chain.graph.Input("x", {2, 3});
    const size_t count = 1 + model % 7;
    for (size_t k = 0; k < count; ++k) {
      chain.Add("Relu");
      gaps[(model + k * 5) % gaps.size()](chain);
      chain.Add("Abs");  // follows from the gap
      chain.graph.Output(chain.value);
    }
    const ImportReport report = CheckOf(chain.graph.Model(17, chain.functions));
    std::set<std::string> needed;
    for (const ImportProblem& problem : report.problems) needed.insert(Key(problem));
    EXPECT_EQ(report.problems.size(), needed.size()) << "a problem is told twice";
    EXPECT_EQ(needed, chain.expected) << "model " << model;
  }
}

TEST(CheckOnnx, ARefusalListsAllReasons) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Foo", {"x"}, {"a"}).Node("Bar", {"a"}, {"b"}).Node("Relu", {"b"}, {"y"}).Output("y");
  const std::string text(ImportError(b.Model()).message());
  EXPECT_THAT(text,
              HasSubstr("2 problems:\n  node 'node_of_a' (Foo): the operator is not supported; --operators FILE can "
                        "define it\n"));
  EXPECT_THAT(text, HasSubstr("\n  node 'node_of_b' (Bar): the operator is not supported"));
}

// A loop without a number of steps that stacks a row in each. x counts down, and the loop ends at 0.
GraphBuilder CountDown() {
  GraphBuilder body, b;
  body.Input("step", {}, kInt64).Input("go", {}, kBool).Input("n", {1}).Floats("one", {}, {1}).Floats("zero", {}, {0});
  body.Node("Sub", {"n", "one"}, {"less"}).Node("Greater", {"less", "zero"}, {"more"});
  body.Node("Squeeze", {"more"}, {"goes_on"}).Node("Identity", {"less"}, {"row"});
  body.Output("goes_on").Output("less").Output("row");
  b.Input("x", {1}).Node("Loop", {"", "", "x"}, {"last", "rows"}, {GraphAttr("body", body.bytes())}).Output("rows");
  return b;
}

TEST(CheckOnnx, LoopsWithoutANumberOfStepsAreNamed) {
  const std::string model = CountDown().Model();
  EXPECT_THAT(CheckOf(model).loops_of_assumed_steps, ElementsAre("node 'node_of_last' (Loop)"));
  ImportOptions options;
  EXPECT_EQ(Import(model, options).values[Import(model, options).outputs[0]].type.shape[0].max(), 1024);
  options.loop_steps = 7;
  EXPECT_EQ(Import(model, options).values[Import(model, options).outputs[0]].type.shape[0].max(), 7);
}

TEST(CheckOnnx, ALongRefusalIsCutOff) {
  GraphBuilder b;
  b.Input("x", {2});
  for (int i = 0; i < 50; ++i) {
    const std::string y = "y" + std::to_string(i);
    b.Node("Foo", {"x"}, {y}).Output(y);
  }
  const std::string text(ImportError(b.Model()).message());
  EXPECT_THAT(text, HasSubstr("50 problems:"));
  EXPECT_THAT(text, HasSubstr("and 30 more; hone check lists all"));
}

TEST(CheckOnnx, UnusedNodesMayBeUnknown) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Foo", {"x"}, {"a"}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(CheckOf(b.Model()).problems, IsEmpty());
}

TEST(CheckOnnx, OpenDimensionsGetRanges) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("batch"), Dim(int64_t{4})})).Input("z", Dims({Dim("batch"), Dim("?")}));
  b.Node("Relu", {"x"}, {"a"}).Node("Foo", {"a"}, {"y"}).Node("Concat", {"x", "z"}, {"c"}, {Attr("axis", 1)});
  b.Output("y").Output("c");
  const ImportReport report = CheckOf(b.Model());
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].op, "Foo");
  ASSERT_EQ(report.open_dimensions.size(), 3u);
  EXPECT_EQ(report.open_dimensions[0].symbol, "batch");
  EXPECT_EQ(report.open_dimensions[2].symbol, "");
  EXPECT_EQ(report.open_dimensions[0].range, "1..8");
  EXPECT_EQ(report.open_dimensions[2].range, "1..512");
  EXPECT_THAT(report.assumed_shapes, ElementsAre("x=1..8,4", "z=1..8,1..512"));
  ImportOptions options;
  options.shapes = {{"x", {2, 4}}, {"z", {2, 5}}};
  EXPECT_THAT(CheckOf(b.Model(), options).open_dimensions, IsEmpty());
}

TEST(CheckOnnx, EveryOpenInputIsNamedByARefusal) {
  GraphBuilder b;
  b.Input("x", Dims({Dim("n")})).Input("z", Dims({Dim("m")})).Node("Foo", {"x", "z"}, {"y"}).Output("y");
  const std::string text(ImportError(b.Model()).message());
  EXPECT_THAT(text, HasSubstr("3 problems:"));
  EXPECT_THAT(text, HasSubstr("input 'x': dimension 0 ('n') is not known"));
  EXPECT_THAT(text, HasSubstr("input 'z': dimension 0 ('m') is not known"));
  EXPECT_THAT(text, HasSubstr("node 'node_of_y' (Foo): the operator is not supported"));
}

TEST(CheckOnnx, AProblemHasTheOpsetOfItsDomain) {
  GraphBuilder b;
  b.Input("x", {2}).Node("Foo", {"x"}, {"a"}).Node("Bar", {"x"}, {"y"}, {}, "acme").Output("a").Output("y");
  const ImportReport report = CheckOf(b.Model(15));
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_EQ(report.problems[0].opset, 15);
  EXPECT_EQ(report.problems[1].domain, "acme");
  EXPECT_EQ(report.problems[1].opset, 1);
}

// The file of the weights is sparse: it takes no space and would take seconds to read.
TEST(CheckOnnx, LargeExternalDataIsNotRead) {
  const TemporaryFolder folder = NewFolder();
  constexpr int64_t kSide = 16384;  // 1 GiB of f32
  std::filesystem::path data = std::filesystem::path(folder.path()) / "weights.bin";
  std::ofstream(data, std::ios::binary).put('\0');
  std::filesystem::resize_file(data, kSide * kSide * 4);
  const std::string location = Message().Text(1, "location").Text(2, "weights.bin").bytes();
  Message tensor;
  tensor.Int(1, kSide).Int(1, kSide).Int(2, kFloat).Text(8, "w").Text(13, location).Int(14, 1);
  GraphBuilder b;
  b.Input("x", {1, kSide}).Initializer(tensor.bytes()).Node("MatMul", {"x", "w"}, {"a"});
  b.Node("Foo", {"a"}, {"y"}).Output("y");
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<ImportReport> report = CheckOnnx(WriteModel(folder, b.Model()), {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->problems.size(), 1u);
  EXPECT_LT(seconds.count(), 1.0);
}

TEST(CheckOnnx, MissingExternalDataIsOneProblem) {
  GraphBuilder b;
  b.Input("x", {2});
  for (const char* name : {"v", "w"}) {
    const std::string location = Message().Text(1, "location").Text(2, "weights.bin").bytes();
    Message tensor;
    b.Initializer(tensor.Int(1, 2).Int(2, kFloat).Text(8, name).Text(13, location).Int(14, 1).bytes());
  }
  b.Node("Add", {"x", "v"}, {"a"}).Node("Foo", {"w"}, {"y"}).Output("a").Output("y");
  const ImportReport report = CheckOf(b.Model());
  ASSERT_EQ(report.problems.size(), 2u);
  EXPECT_THAT(report.problems[0].text, HasSubstr("tensor 'v': external data file 'weights.bin' is missing"));
  EXPECT_EQ(report.problems[1].op, "Foo");
}

// The values of a large external tensor decide a shape: the check reads them because it must.
TEST(CheckOnnx, ExternalDataThatDecidesAShapeIsRead) {
  const TemporaryFolder folder = NewFolder();
  constexpr int64_t kCount = 1 << 15;
  std::ofstream data(std::filesystem::path(folder.path()) / "indices.bin", std::ios::binary);
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t number = 2;
    data.write(reinterpret_cast<const char*>(&number), sizeof number);
  }
  data.close();
  const std::string location = Message().Text(1, "location").Text(2, "indices.bin").bytes();
  Message tensor;
  tensor.Int(1, kCount).Int(2, kInt64).Text(8, "many").Text(13, location).Int(14, 1);
  GraphBuilder b;
  b.Input("x", {4}).Initializer(tensor.bytes()).Ints("zero", {0}).Ints("two", {2});
  b.Node("Slice", {"many", "zero", "two"}, {"shape"}).Node("Reshape", {"x", "shape"}, {"y"}).Output("y");
  const absl::StatusOr<ImportReport> report = CheckOnnx(WriteModel(folder, b.Model()), {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->problems, IsEmpty());
}

}  // namespace
}  // namespace hone::graph
