// SPDX-License-Identifier: Apache-2.0
// Models whose course a run decides. Each is interpreted, and compiled and run through the C interface several times in
// a row with different inputs; the outputs are compared with numbers that the specification gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder.h"
#include "compiler/graph/interpret_plan.h"
#include "compiler/graph/onnx_import.h"
#include "compiler/graph/plan.h"
#include "compiler/graph/text.h"
#include "deploy/package/compile_model.h"
#include "deploy/runtime/hone.h"
#include "tests/conformance/onnx/compare_tensors.h"
#include "tests/conformance/onnx/target_of_test.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::conformance {
namespace {

using graph::Constant;
using graph::GraphAttr;
using graph::GraphBuilder;
using graph::kBool;
using graph::kFloat;
using graph::kInt64;
using ::testing::HasSubstr;
using Extents = std::vector<int64_t>;

template <typename T>
Constant TensorOf(ir::DType dtype, const Extents& shape, const std::vector<T>& values) {
  auto bytes = std::make_shared<ir::Bytes>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  return {{dtype, ir::Shape(shape)}, bytes};
}
Constant Floats(const Extents& shape, const std::vector<float>& values) {
  return TensorOf<float>(ir::DType::kFloat32, shape, values);
}
Constant Ints(const Extents& shape, const std::vector<int64_t>& values) {
  return TensorOf<int64_t>(ir::DType::kInt64, shape, values);
}
Constant Bool(bool value) { return TensorOf<uint8_t>(ir::DType::kBool, {}, {static_cast<uint8_t>(value ? 1 : 0)}); }

// Inputs in the model's order, and what the outputs must be.
struct Case {
  std::vector<Constant> inputs, outputs;
};
struct Model {
  std::string name;
  std::string file;  // of ONNX
  std::vector<Case> runs;
};
void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

// Both branches read x. Their outputs have different shapes.
Model Branches() {
  GraphBuilder twice, doubled, b;
  twice.Node("Concat", {"x", "x"}, {"t"}, {graph::Attr("axis", 0)}).Output("t");
  doubled.Node("Add", {"x", "x"}, {"e"}).Output("e");
  b.Input("c", {}, kBool).Input("x", {2});
  b.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", twice.bytes()), GraphAttr("else_branch", doubled.bytes())});
  b.Node("Neg", {"y"}, {"z"}).Output("z");
  const Constant x = Floats({2}, {1, 5});
  return {"branches",
          b.Model(),
          {{{Bool(true), x}, {Floats({4}, {-1, -5, -1, -5})}},
           {{Bool(false), x}, {Floats({2}, {-2, -10})}},
           {{Bool(true), x}, {Floats({4}, {-1, -5, -1, -5})}}}};
}

// A branch that returns an input or a constant computes nothing.
Model BranchesWithoutNodes() {
  GraphBuilder input, constant, b;
  input.Node("Identity", {"x"}, {"t"}).Output("t");
  constant.Floats("e", {2}, {7, 8}).Output("e");
  b.Input("c", {}, kBool).Input("x", {2});
  b.Node("If", {"c"}, {"y"}, {GraphAttr("then_branch", input.bytes()), GraphAttr("else_branch", constant.bytes())});
  b.Output("y");
  const Constant x = Floats({2}, {1, 5});
  return {"branches_without_nodes", b.Model(), {{{Bool(true), x}, {x}}, {{Bool(false), x}, {Floats({2}, {7, 8})}}}};
}

// (a, b) becomes (b, a + b), so that a state is another state's next value. Every step gives a row.
Model Fibonacci() {
  GraphBuilder body, b;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("p", {1}, kInt64).Input("q", {1}, kInt64);
  body.Node("Identity", {"go"}, {"go_on"}).Node("Identity", {"q"}, {"next_p"});
  body.Node("Add", {"p", "q"}, {"next_q"}).Node("Mul", {"p", "i"}, {"row"});
  for (const char* name : {"go_on", "next_p", "next_q", "row"}) body.Output(name);
  b.Input("steps", {}, kInt64).Input("a", {1}, kInt64).Input("b", {1}, kInt64);
  b.Node("Loop", {"steps", "", "a", "b"}, {"last_a", "last_b", "rows"}, {GraphAttr("body", body.bytes())});
  b.Output("last_a").Output("last_b").Output("rows");
  const Constant zero = Ints({1}, {0}), one = Ints({1}, {1});
  return {"fibonacci",
          b.Model(),
          {{{Ints({}, {5}), zero, one}, {Ints({1}, {5}), Ints({1}, {8}), Ints({5, 1}, {0, 1, 2, 6, 12})}},
           {{Ints({}, {0}), zero, one}, {zero, one, Ints({0, 1}, {})}},
           {{Ints({}, {2}), one, one}, {Ints({1}, {2}), Ints({1}, {3}), Ints({2, 1}, {0, 1})}},
           {{Ints({}, {1}), zero, one}, {one, one, Ints({1, 1}, {0})}}}};
}

// Doubles x until it reaches the limit: the condition alone ends the loop.
Model UntilTheLimit() {
  GraphBuilder body, b;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("v", {1});
  body.Node("Add", {"v", "v"}, {"w"}).Node("Less", {"w", "limit"}, {"less"});
  body.Node("Squeeze", {"less"}, {"go_on"});
  body.Output("go_on").Output("w");
  b.Input("limit", {1}).Input("x", {1}).Node("Less", {"x", "limit"}, {"below"}).Node("Squeeze", {"below"}, {"begin"});
  b.Node("Loop", {"", "begin", "x"}, {"y"}, {GraphAttr("body", body.bytes())}).Output("y");
  return {"until_the_limit",
          b.Model(),
          {{{Floats({1}, {100}), Floats({1}, {3})}, {Floats({1}, {192})}},
           {{Floats({1}, {2}), Floats({1}, {3})}, {Floats({1}, {3})}},
           {{Floats({1}, {4}), Floats({1}, {3})}, {Floats({1}, {6})}}}};
}

// Every second step appends its number to a list: a branch inside a loop, and a state that grows.
Model GrowingList() {
  GraphBuilder append, keep, body, b;
  append.Ints("shape", {1}).Node("Reshape", {"i", "shape"}, {"one"});
  append.Node("Concat", {"list", "one"}, {"longer"}, {graph::Attr("axis", 0)}).Output("longer");
  keep.Node("Identity", {"list"}, {"same"}).Output("same");
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("list", {0}, kInt64);
  body.Ints("two", {2}).Ints("zero", {0}).Node("Mod", {"i", "two"}, {"rest"}).Node("Equal", {"rest", "zero"}, {"even"});
  body.Node("If", {"even"}, {"next"},
            {GraphAttr("then_branch", append.bytes()), GraphAttr("else_branch", keep.bytes())});
  body.Node("Identity", {"go"}, {"go_on"}).Output("go_on").Output("next");
  b.Input("steps", {}, kInt64).Initializer(graph::Tensor<int64_t>("empty", kInt64, {0}, {}));
  b.Node("Loop", {"steps", "", "empty"}, {"list_out"}, {GraphAttr("body", body.bytes())}).Output("list_out");
  return {"growing_list",
          b.Model(),
          {{{Ints({}, {7})}, {Ints({4}, {0, 2, 4, 6})}},
           {{Ints({}, {0})}, {Ints({0}, {})}},
           {{Ints({}, {2})}, {Ints({1}, {0})}}}};
}

// A loop in a loop: x times the number of all inner steps, in rows of the outer one.
Model Triangle() {
  GraphBuilder inner, body, b;
  inner.Input("j", {}, kInt64).Input("go", {}, kBool).Input("s", {1});
  inner.Node("Add", {"s", "x"}, {"t"}).Node("Identity", {"go"}, {"go_on"}).Output("go_on").Output("t");
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("sum", {1});
  body.Node("Loop", {"i", "", "sum"}, {"next"}, {GraphAttr("body", inner.bytes())});
  body.Node("Identity", {"next"}, {"row"}).Node("Identity", {"go"}, {"go_on"});
  body.Output("go_on").Output("next").Output("row");
  b.Input("steps", {}, kInt64).Input("x", {1}).Floats("zero", {1}, {0});
  b.Node("Loop", {"steps", "", "zero"}, {"sum_out", "rows"}, {GraphAttr("body", body.bytes())});
  b.Output("sum_out").Output("rows");
  return {"triangle",
          b.Model(),
          {{{Ints({}, {4}), Floats({1}, {2})}, {Floats({1}, {12}), Floats({4, 1}, {0, 2, 6, 12})}},
           {{Ints({}, {1}), Floats({1}, {2})}, {Floats({1}, {0}), Floats({1, 1}, {0})}}}};
}

// Sums the columns of a matrix from the last to the first; rows become columns, in the order of the steps.
Model ScanColumns() {
  GraphBuilder body, b;
  body.Input("s", {2}).Input("x", {2}).Node("Add", {"s", "x"}, {"t"}).Node("Identity", {"t"}, {"row"});
  body.Output("t").Output("row");
  b.Input("first", {2}).Input("m", {2, 3});
  b.Node("Scan", {"first", "m"}, {"last", "sums"},
         {GraphAttr("body", body.bytes()), graph::Attr("num_scan_inputs", 1),
          graph::Attr("scan_input_axes", Extents{1}), graph::Attr("scan_input_directions", Extents{1}),
          graph::Attr("scan_output_axes", Extents{-1}), graph::Attr("scan_output_directions", Extents{1})});
  b.Output("last").Output("sums");
  return {"scan_columns",
          b.Model(),
          {{{Floats({2}, {0, 10}), Floats({2, 3}, {1, 2, 3, 4, 5, 6})},
            {Floats({2}, {6, 25}), Floats({2, 3}, {6, 5, 3, 25, 21, 16})}}}};
}

// The scan of opset 8: a batch of two, and x from the last element to the first.
Model ScanOfBatches() {
  GraphBuilder body, b;
  body.Input("s", {1}).Input("e", {1}).Node("Add", {"s", "e"}, {"t"}).Node("Identity", {"t"}, {"row"});
  body.Output("t").Output("row");
  b.Input("first", {2, 1}).Input("x", {2, 3, 1});
  b.Node("Scan", {"", "first", "x"}, {"last", "sums"},
         {GraphAttr("body", body.bytes()), graph::Attr("num_scan_inputs", 1), graph::Attr("directions", Extents{1})});
  b.Output("last").Output("sums");
  return {"scan_of_batches",
          b.Model(8),
          {{{Floats({2, 1}, {0, 100}), Floats({2, 3, 1}, {1, 2, 3, 4, 5, 6})},
            {Floats({2, 1}, {6, 115}), Floats({2, 3, 1}, {3, 5, 6, 106, 111, 115})}}}};
}

// The number of selected elements decides the shapes of what follows.
Model Selected() {
  GraphBuilder b;
  b.Input("x", {2, 3}).Node("NonZero", {"x"}, {"places"}).Node("Transpose", {"places"}, {"rows"});
  b.Node("GatherND", {"x", "rows"}, {"values"}).Node("ReduceSum", {"values"}, {"sum"});
  b.Node("Shape", {"values"}, {"count"}).Node("ConstantOfShape", {"count"}, {"zeros"});
  b.Output("places").Output("values").Output("sum").Output("count").Output("zeros");
  return {"selected",
          b.Model(),
          {{{Floats({2, 3}, {0, 1, 0, 2, 3, 0})},
            {Ints({2, 3}, {0, 1, 1, 1, 0, 1}), Floats({3}, {1, 2, 3}), Floats({1}, {6}), Ints({1}, {3}),
             Floats({3}, {0, 0, 0})}},
           {{Floats({2, 3}, {0, 0, 0, 0, 0, 0})},
            {Ints({2, 0}, {}), Floats({0}, {}), Floats({1}, {0}), Ints({1}, {0}), Floats({0}, {})}},
           {{Floats({2, 3}, {1, 1, 1, 1, 1, 1})},
            {Ints({2, 6}, {0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}), Floats({6}, {1, 1, 1, 1, 1, 1}), Floats({1}, {6}),
             Ints({1}, {6}), Floats({6}, {0, 0, 0, 0, 0, 0})}}}};
}

// Different elements as they first occur, with the place of each element among them, and counts.
Model DifferentElements() {
  GraphBuilder b;
  b.Input("x", {6}).Node("Unique", {"x"}, {"y", "places", "counts"}, {}, "com.microsoft");
  b.Output("y").Output("places").Output("counts");
  return {"different_elements",
          b.Model(),
          {{{Floats({6}, {2, 1, 1, 3, 4, 3})},
            {Floats({4}, {2, 1, 3, 4}), Ints({6}, {0, 1, 1, 2, 3, 2}), Ints({4}, {1, 2, 2, 1})}},
           {{Floats({6}, {5, 5, 5, 5, 5, 5})}, {Floats({1}, {5}), Ints({6}, {0, 0, 0, 0, 0, 0}), Ints({1}, {6})}}}};
}

class ControlFlow : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    std::ofstream(Path("model.onnx"), std::ios::binary) << GetParam().file;
    if (const std::string reason = MissingDevice(TargetOfTest()); !reason.empty()) {
      std::printf("[SKIP] %s\n", reason.c_str());
      GTEST_SKIP() << reason;
    }
  }
  std::string Path(std::string_view file) const { return folder_ / file; }

  TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

using LoadedModel = std::unique_ptr<HoneModel, decltype(&hone_free)>;

LoadedModel CompileAndLoad(const std::string& onnx, const std::string& package,
                           const graph::ImportOptions& import = {}) {
  package::KernelOptions options;
  options.target = TargetOfTest();
  options.threads = 2;
  const auto summary = package::CompileModel(onnx, import, {&options, 1}, package);
  EXPECT_TRUE(summary.ok()) << summary.status();
  const HoneLoadOptions load = {sizeof(HoneLoadOptions), 1, 0};
  HoneModel* loaded = nullptr;
  EXPECT_EQ(hone_load(package.c_str(), &load, &loaded), HONE_OK) << hone_error();
  return {loaded, &hone_free};
}

DLDataType TypeOf(ir::DType dtype) {
  if (dtype == ir::DType::kBool) return {kDLBool, 8, 1};
  return dtype == ir::DType::kInt64 ? DLDataType{kDLInt, 64, 1} : DLDataType{kDLFloat, 32, 1};
}

HoneStatus SetInputs(HoneModel* model, const std::vector<Constant>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Extents shape = ir::Values(inputs[i].type.shape);
    DLTensor view = {const_cast<std::byte*>(inputs[i].data->data()),
                     {kDLCPU, 0},
                     static_cast<int32_t>(shape.size()),
                     TypeOf(inputs[i].type.dtype),
                     shape.data(),
                     nullptr,
                     0};
    if (const HoneStatus status = hone_set_input(model, i, &view); status != HONE_OK) return status;
  }
  return HONE_OK;
}

// Output number `index`, of the type that is expected.
Constant OutputOf(HoneModel* model, size_t index, ir::DType dtype) {
  DLTensor view;
  EXPECT_EQ(hone_get_output(model, index, &view), HONE_OK) << hone_error();
  const Extents shape(view.shape, view.shape + view.ndim);
  int64_t bytes = ir::SizeOf(dtype);
  for (const int64_t extent : shape) bytes *= extent;
  const auto* first = static_cast<const std::byte*>(view.data);
  return {{dtype, ir::Shape(shape)},
          bytes == 0 ? std::make_shared<ir::Bytes>() : std::make_shared<ir::Bytes>(first, first + bytes)};
}

TEST_P(ControlFlow, Interpreted) {
  const auto plan = graph::BuildPlan(Path("model.onnx"), {}, {}, {.verify = true});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const Case& run : GetParam().runs) {
    std::vector<ir::Bytes> inputs;
    for (const Constant& input : run.inputs) inputs.push_back(*input.data);
    std::vector<ir::Shape> shapes;
    auto outputs = graph::InterpretPlan(*plan, inputs, &shapes);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), run.outputs.size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      const Constant output = {{run.outputs[i].type.dtype, shapes[i]}, std::make_shared<ir::Bytes>((*outputs)[i])};
      EXPECT_EQ(CompareTensors(output, run.outputs[i]), absl::OkStatus()) << i;
    }
  }
}

TEST_P(ControlFlow, Compiled) {
  const LoadedModel model = CompileAndLoad(Path("model.onnx"), Path("model.hone"));
  ASSERT_NE(model, nullptr);
  for (int round = 0; round < 2; ++round) {
    for (const Case& run : GetParam().runs) {
      ASSERT_EQ(SetInputs(model.get(), run.inputs), HONE_OK) << hone_error();
      ASSERT_EQ(hone_run(model.get()), HONE_OK) << hone_error();
      for (size_t i = 0; i < run.outputs.size(); ++i) {
        const Constant output = OutputOf(model.get(), i, run.outputs[i].type.dtype);
        EXPECT_EQ(CompareTensors(output, run.outputs[i]), absl::OkStatus()) << i;
      }
    }
  }
}

TEST_P(ControlFlow, GraphsInsideNodesHaveText) {
  const auto graph = graph::ImportOnnx(Path("model.onnx"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto parsed = graph::ParseGraph(graph::Print(*graph));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(graph::Print(*parsed), graph::Print(*graph));
}

INSTANTIATE_TEST_SUITE_P(Models, ControlFlow,
                         ::testing::Values(Branches(), BranchesWithoutNodes(), Fibonacci(), UntilTheLimit(),
                                           GrowingList(), Triangle(), ScanColumns(), ScanOfBatches(), Selected(),
                                           DifferentElements()),
                         [](const auto& info) { return info.param.name; });

class TooLong : public ControlFlow {};

// A loop whose number of steps the model does not state has memory for a limited number of rows.
TEST_P(TooLong, IsAnErrorOfTheRun) {
  const LoadedModel model = CompileAndLoad(Path("model.onnx"), Path("model.hone"));
  ASSERT_NE(model, nullptr);
  const std::vector<Constant> inputs = {Ints({}, {1025}), Ints({1}, {0}), Ints({1}, {1})};
  ASSERT_EQ(SetInputs(model.get(), inputs), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model.get()), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("became 1025 in the run; the package has memory for 0 to 1024"));
  const Case& run = GetParam().runs.front();
  ASSERT_EQ(SetInputs(model.get(), run.inputs), HONE_OK) << hone_error();
  EXPECT_EQ(hone_run(model.get()), HONE_OK) << "the model works after the error: " << hone_error();
}
INSTANTIATE_TEST_SUITE_P(Models, TooLong, ::testing::Values(Fibonacci()),
                         [](const auto& info) { return info.param.name; });

// x is resized so that its shorter side becomes 8: the sizes are float arithmetic on the open sizes of x.
std::string ToShorterSide() {
  GraphBuilder b;
  b.Input("x", graph::Dims(std::vector<graph::Dim>{int64_t{1}, int64_t{1}, std::string("h"), std::string("w")}));
  b.Node("Shape", {"x"}, {"shape"}).Ints("two", {2}).Ints("four", {4}).Ints("ones", {1, 1}).Floats("eight", {}, {8});
  b.Node("Slice", {"shape", "two", "four"}, {"sides"}).Node("Cast", {"sides"}, {"floats"}, {graph::Attr("to", kFloat)});
  b.Node("ReduceMin", {"floats"}, {"shorter"}).Node("Div", {"eight", "shorter"}, {"scale"});
  b.Node("Mul", {"floats", "scale"}, {"scaled"}).Node("Floor", {"scaled"}, {"floor"});
  b.Node("Cast", {"floor"}, {"whole"}, {graph::Attr("to", kInt64)});
  b.Node("Concat", {"ones", "whole"}, {"sizes"}, {graph::Attr("axis", 0)});
  b.Node("Resize", {"x", "", "", "sizes"}, {"y"},
         {graph::Attr("mode", "nearest"), graph::Attr("coordinate_transformation_mode", "asymmetric"),
          graph::Attr("nearest_mode", "floor")});
  return b.Output("y").Model();
}

TEST(SizesOfARun, ResizeByFloatArithmeticOnOpenSizes) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "model.onnx";
  std::ofstream(path, std::ios::binary) << ToShorterSide();
  graph::ImportOptions open;
  open.shapes["x"] = {1, 1, graph::DimRange(4, 9), graph::DimRange(4, 9)};
  const LoadedModel model = CompileAndLoad(path, folder / "model.hone", open);
  ASSERT_NE(model, nullptr);
  for (const auto& [h, w] : {std::pair(4, 4), std::pair(4, 9), std::pair(7, 5), std::pair(9, 8), std::pair(5, 6)}) {
    const Constant x = Floats({1, 1, h, w}, graph::RandomFloats(int64_t{h} * w, 1));
    graph::ImportOptions fixed;
    fixed.shapes["x"] = {1, 1, h, w};
    const auto plan = graph::BuildPlan(path, fixed, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto expected = graph::InterpretPlan(*plan, {*x.data});
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(SetInputs(model.get(), {x}), HONE_OK) << hone_error();
    ASSERT_EQ(hone_run(model.get()), HONE_OK) << hone_error();
    const Constant y = OutputOf(model.get(), 0, ir::DType::kFloat32);
    const Constant wanted = {plan->tensors[static_cast<size_t>(plan->outputs[0])].type,
                             std::make_shared<ir::Bytes>((*expected)[0])};
    EXPECT_EQ(CompareTensors(y, wanted), absl::OkStatus()) << h << " x " << w;
  }
}

}  // namespace
}  // namespace hone::conformance
