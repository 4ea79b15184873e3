// SPDX-License-Identifier: Apache-2.0
// The `hone` program as a user runs it: exit codes, the output on each stream, and messages.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "cli/model_workloads.h"
#include "cli/npz_file.h"
#include "records/store.h"
#include "storage/open.h"
#include "storage/sqlite/connection.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/records/sample_records.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::cli {
namespace {

using nlohmann::json;
using package::DType;
using run::Array;
using run::ArrayView;
using run::NpyHeader;
using run::NpzReader;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using tests::CommandResult;
using tests::kColumns;
using tests::kRows;
using tests::ReadWholeFile;
using tests::RunCommand;

class CommandsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>(TemporaryFolder::Create().value());
    contents_ = tests::TinyContents(tests::CompileTinyKernels());
    tests::WriteTinyPackage(File("tiny.hone"), contents_);
    const std::vector<float> x = tests::TinyInput();
    WriteInputs("x.npz", {{"x", DType::kFloat32, kShape, BytesOf(x)}});
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string File(const std::string& name) { return *folder_ / name; }
  static std::span<const uint8_t> BytesOf(const std::vector<float>& values) {
    return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float)};
  }
  static void WriteInputs(const std::string& name, const std::vector<ArrayView>& arrays) {
    ASSERT_TRUE(WriteNpz(File(name), arrays).ok());
  }
  // One program requires a feature that no CPU has, the other does not.
  static package::PackageContents NeedyAndPlain() {
    package::PackageContents several;
    several.metadata.model_name = "several";
    package::PackageProgram needy = contents_.programs[0];
    needy.units[0].cpu_features = {"quantum"};
    tests::AddProgram(several, needy, "cpu -mcpu=quantum");
    tests::AddProgram(several, contents_.programs[0], "cpu -mcpu=plain");
    return several;
  }
  // In `arguments`, {x} stands for the path of the file x in the test's folder.
  static CommandResult Hone(std::string arguments) {
    for (size_t at; (at = arguments.find('{')) != std::string::npos;) {
      const size_t end = arguments.find('}', at);
      arguments.replace(at, end - at + 1, File(arguments.substr(at + 1, end - at - 1)));
    }
    return RunCommand("(" HONE_PROGRAM " " + arguments + ")");
  }

  static const std::vector<int64_t> kShape;
  static std::unique_ptr<TemporaryFolder> folder_;
  static package::PackageContents contents_;
};
const std::vector<int64_t> CommandsTest::kShape = {kRows, kColumns};
std::unique_ptr<TemporaryFolder> CommandsTest::folder_;
package::PackageContents CommandsTest::contents_;

TEST_F(CommandsTest, RunComputesTheOutputs) {
  const CommandResult result = Hone("run {tiny.hone} --input {x.npz} --output {y.npz} --threads 2");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "");
  const absl::StatusOr<NpzReader> reader = NpzReader::Open(File("y.npz"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(reader->names(), ::testing::ElementsAre("bias_out", "x_out", "y"));
  const absl::StatusOr<Array> y = reader->Read("y", [](const NpyHeader&) { return absl::OkStatus(); });
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape, kShape);
  std::vector<float> values(y->data.size() / sizeof(float));
  std::memcpy(values.data(), y->data.data(), y->data.size());
  EXPECT_THAT(values, ElementsAreArray(tests::TinyOutput()));
}

TEST_F(CommandsTest, RunNamesArraysThatDoNotFit) {
  const std::vector<float> x(kRows * kColumns);
  const std::vector<int64_t> turned = {kColumns, kRows};
  WriteInputs("turned.npz", {{"x", DType::kFloat32, turned, BytesOf(x)}});
  WriteInputs("type.npz", {{"x", DType::kInt32, kShape, BytesOf(x)}});
  WriteInputs("extra.npz", {{"x", DType::kFloat32, kShape, BytesOf(x)}, {"z", DType::kFloat32, kShape, BytesOf(x)}});
  WriteInputs("other.npz", {{"q", DType::kFloat32, kShape, BytesOf(x)}});
  const std::pair<std::string, std::string> cases[] = {
      {"--input {turned.npz}", "turned.npz': it is f32 [8, 4], the model wants f32 [4, 8]"},
      {"--input {type.npz}", "array 'x' in"},
      {"--input {type.npz}", "it is i32 [4, 8], the model wants f32 [4, 8]"},
      {"--input {extra.npz}", "unknown 'z'; the inputs are 'x'"},
      {"--input {other.npz}", "missing 'x'; unknown 'q'; the inputs are 'x'"},
      {"", "missing 'x'"},
      {"--input {tiny.hone}", "cannot open .npz file"},
      {"--input {nowhere.npz}", "cannot open .npz file"},
  };
  for (const auto& [input, message] : cases) {
    const CommandResult result = Hone("run {tiny.hone} --output {none.npz} " + input);
    EXPECT_EQ(result.exit_code, 1) << input;
    EXPECT_THAT(result.output, StartsWith("hone: ")) << input;
    EXPECT_THAT(result.output, HasSubstr(message)) << input;
  }
  EXPECT_NE(RunCommand("ls " + File("none.npz")).exit_code, 0) << "a failed run wrote its output";
}

TEST_F(CommandsTest, BenchAndProfileRunOnGivenArrays) {
  const std::vector<float> x(kRows * kColumns);
  const std::vector<int64_t> turned = {kColumns, kRows};
  WriteInputs("turned.npz", {{"x", DType::kFloat32, turned, BytesOf(x)}});
  WriteInputs("given.npz", {{"x", DType::kFloat32, kShape, BytesOf(x)}});
  for (const std::string command : {"bench", "profile"}) {
    const std::string timed = command + " {tiny.hone} --seconds 0.01 ";
    EXPECT_EQ(Hone(timed + "--input {given.npz}").exit_code, 0) << command;
    const CommandResult wrong = Hone(timed + "--input {turned.npz}");
    EXPECT_EQ(wrong.exit_code, 1) << command;
    EXPECT_THAT(wrong.output, HasSubstr("it is f32 [8, 4], the model wants f32 [4, 8]"));
    const CommandResult both = Hone(timed + "--input {given.npz} --shape x=4,8");
    EXPECT_EQ(both.exit_code, 2) << command;
    EXPECT_THAT(both.output, HasSubstr("the arrays of the file have shapes"));
  }
}

TEST_F(CommandsTest, BfloatTypeOfNpzFilesIsReported) {
  const std::vector<int64_t> twice = {kRows, 2 * kColumns};  // as many bytes in bf16 as the kernel's f32 input has
  package::PackageContents halves = contents_;
  halves.programs[0].tensors[0].dtype = DType::kBFloat16;
  halves.programs[0].tensors[0].shape = twice;
  tests::WriteTinyPackage(File("halves.hone"), halves);
  const std::vector<float> x(kRows * kColumns);
  WriteInputs("bits.npz", {{"x", DType::kUInt16, twice, BytesOf(x)}});
  const CommandResult result = Hone("run {halves.hone} --input {bits.npz} --output {none.npz}");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              HasSubstr("it is u16 [4, 16], the model wants bf16 [4, 16]; bf16 is type V2 in .npz files"));
}

TEST_F(CommandsTest, PackagesThatCannotRunAreExplained) {
  tests::WriteWholeFile(File("text.hone"), "hello");
  package::PackageContents needy = contents_;
  needy.programs[0].units[0].cpu_features = {"quantum"};
  tests::WriteTinyPackage(File("needy.hone"), needy);
  const std::pair<std::string, std::string> cases[] = {
      {"{missing.hone}", "hone: cannot open package"},
      {"{text.hone}", "text.hone: bad package: the file does not start"},
      {"{needy.hone}", "the code needs quantum"},
  };
  for (const std::string command : {"bench", "profile", "run --output {o.npz}"}) {
    for (const auto& [package, message] : cases) {
      const CommandResult result = Hone(command + " " + package);
      EXPECT_EQ(result.exit_code, 1) << command << package;
      EXPECT_THAT(result.output, HasSubstr(message)) << command << package;
    }
  }
}

TEST_F(CommandsTest, BenchPrintsOneJsonDocument) {
  const CommandResult result = Hone("bench {tiny.hone} --seconds 0.02 --threads 2 --json 2>/dev/null");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json document = json::parse(result.output);
  EXPECT_EQ(document.size(), 7u);
  EXPECT_LE(document.at("min_ms").get<double>(), document.at("median_ms").get<double>());
  EXPECT_LE(document.at("median_ms").get<double>(), document.at("p90_ms").get<double>());
  EXPECT_GE(document.at("runs").get<int>(), 3);
  EXPECT_EQ(document.at("threads").get<int>(), 2);
  EXPECT_EQ(document.at("target"), "cpu");
  EXPECT_EQ(document.at("passed_over"), json::array());
  const CommandResult text = Hone("bench {tiny.hone} --seconds 0");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("(3 runs, "));
  EXPECT_THAT(text.output, HasSubstr(" threads, target cpu)\n"));
}

TEST_F(CommandsTest, ProfileTellsEveryKernelsTimeAndSchedule) {
  const CommandResult result = Hone("profile {tiny.hone} --seconds 0.02 --threads 1 --json 2>/dev/null");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json document = json::parse(result.output);
  EXPECT_EQ(document.at("model"), "tiny");
  EXPECT_EQ(document.at("threads"), 1);
  EXPECT_GT(document.at("peak_gflops").get<double>(), 0);
  for (const json& level : document.at("levels")) {
    EXPECT_EQ(level.at("bytes").is_null(), &level == &document.at("levels").back()) << "memory has no limit";
    EXPECT_GT(level.at("gbytes_per_second").get<double>(), 0);
  }
  ASSERT_EQ(document.at("kernels").size(), 2u);
  double share = 0;
  for (const json& kernel : document.at("kernels")) {
    EXPECT_EQ(kernel.at("calls"), 1);
    EXPECT_EQ(kernel.at("workload").get<std::string>().size(), 64u);
    EXPECT_FALSE(kernel.at("schedule").get<std::string>().empty());
    EXPECT_GE(kernel.at("roofline_share").get<double>(), 0);
    share += kernel.at("share").get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-6);
  const CommandResult text = Hone("profile {tiny.hone} --seconds 0 --threads 1");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.output, HasSubstr("Add add_bias"));
  EXPECT_THAT(text.output, HasSubstr("    parallel(r)"));
}

TEST_F(CommandsTest, SkippedProgramsAreReported) {
  tests::WriteTinyPackage(File("several.hone"), NeedyAndPlain());
  const std::string why = "program for 'cpu -mcpu=quantum': the code needs quantum";
  for (const std::string command :
       {"run --input {x.npz} --output {told.npz}", "bench --seconds 0", "profile --seconds 0 --threads 1"}) {
    const CommandResult told = Hone(command + " {several.hone} > /dev/null");
    EXPECT_EQ(told.exit_code, 0) << command;
    EXPECT_THAT(told.output, StartsWith("hone: passed over: " + why)) << command;
    EXPECT_EQ(std::count(told.output.begin(), told.output.end(), '\n'), 1) << command;
  }
  for (const std::string command : {"bench", "profile --threads 1"}) {
    const CommandResult result = Hone(command + " {several.hone} --seconds 0 --json 2>/dev/null");
    const json document = json::parse(result.output);
    EXPECT_EQ(document.at("target"), "cpu -mcpu=plain") << command;
    ASSERT_EQ(document.at("passed_over").size(), 1u) << command;
    EXPECT_THAT(document.at("passed_over")[0].get<std::string>(), StartsWith(why)) << command;
  }
}

TEST_F(CommandsTest, ProfileDescribesTheRunningProgram) {
  package::PackageContents several = NeedyAndPlain();
  several.metadata.programs[0].kernels[0].schedule = several.metadata.programs[0].kernels[1].schedule = "of another";
  tests::WriteTinyPackage(File("several.hone"), several);
  const CommandResult result = Hone("profile {several.hone} --seconds 0 --threads 1 --json 2>/dev/null");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json document = json::parse(result.output);
  EXPECT_EQ(document.at("target"), "cpu -mcpu=plain");
  ASSERT_EQ(document.at("kernels").size(), 2u);
  for (const json& kernel : document.at("kernels")) EXPECT_NE(kernel.at("schedule"), "of another");
}

TEST_F(CommandsTest, ProfileNamesTheNodesOfEachCall) {
  package::PackageContents named = contents_;
  named.programs[0].calls[0].nodes = {{"first", "Add"}};
  named.programs[0].calls[1].nodes = {{"second", "Mul"}, {"Relu_2", "Relu"}};
  tests::WriteTinyPackage(File("named.hone"), named);
  const CommandResult result = Hone("profile {named.hone} --seconds 0 --threads 1 --json 2>/dev/null");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const json document = json::parse(result.output);
  EXPECT_EQ(document.at("calls")[0].at("nodes"), json::parse(R"([{"name": "first", "operator": "Add"}])"));
  EXPECT_EQ(document.at("calls")[1].at("nodes").size(), 2u);
  for (const json& kernel : document.at("kernels")) {
    const json& symbol = document.at("calls")[1].at("symbol");
    EXPECT_EQ(kernel.at("nodes").size(), kernel.at("symbol") == symbol ? 2u : 1u);
  }
  EXPECT_THAT(Hone("profile {named.hone} --seconds 0 --threads 1").output, HasSubstr(": second, Relu_2\n"));
  const CommandResult plain = Hone("profile {tiny.hone} --seconds 0 --threads 1 --json 2>/dev/null");
  EXPECT_EQ(json::parse(plain.output).at("calls")[0].at("nodes"), json::array());
}

TEST_F(CommandsTest, CheckListsAllProblems) {
  graph::GraphBuilder b;
  b.Input("x", graph::Dims({graph::Dim("batch"), graph::Dim(int64_t{4})})).Node("Foo", {"x"}, {"a"});
  b.Node("Foo", {"x"}, {"b"}).Node("Softmax", {"x"}, {"c"}, {graph::Attr("axsi", 1)}).Node("Relu", {"x"}, {"d"});
  b.Output("a").Output("b").Output("c").Output("d");
  tests::WriteWholeFile(File("gaps.onnx"), b.Model());
  const CommandResult text = Hone("check {gaps.onnx}");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.output, HasSubstr("gaps.onnx: 4 nodes and constants, 3 problems\n"));
  EXPECT_THAT(text.output, HasSubstr("operator           2  Foo (opset 17)\n"));
  EXPECT_THAT(text.output, HasSubstr("nodes: node_of_a, node_of_b\n"));
  EXPECT_THAT(text.output, HasSubstr("'axis' is similar"));
  EXPECT_THAT(text.output, HasSubstr("  'batch' is 1..8: dimension 0 of 'x'\n"));
  EXPECT_THAT(text.output, HasSubstr("--shape x=1..8,4\n"));
  const CommandResult printed = Hone("check {gaps.onnx} --json 2>/dev/null");
  const json document = json::parse(printed.output);
  EXPECT_EQ(document["fine"], false);
  ASSERT_EQ(document["problems"].size(), 3u);
  EXPECT_EQ(document["problems"][0]["node"], "node_of_a");
  EXPECT_EQ(document["problems"][0]["kind"], "operator");
  EXPECT_EQ(document["summary"][0]["count"], 2);
  EXPECT_EQ(document["open_dimensions"][0]["symbol"], "batch");
  EXPECT_EQ(document["open_dimensions"][0]["range"], "1..8");
  const CommandResult compiled = Hone("compile {gaps.onnx} -o {gaps.hone} --shape x=2,4");
  EXPECT_EQ(compiled.exit_code, 1);
  EXPECT_THAT(compiled.output, HasSubstr("gaps.onnx: 3 problems:\n"));
}

// b = twice a, by an operator that Hone does not have and the fake of ONNX Runtime computes.
TEST_F(CommandsTest, AFallbackComputesWhatHoneCannot) {
  graph::GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"a"}).Node("Twice", {"a"}, {"b"}).Node("Neg", {"b"}, {"y"});
  b.Declared("b", {2}).Output("y");
  tests::WriteWholeFile(File("twice.onnx"), b.Model());
  EXPECT_THAT(Hone("check {twice.onnx}").output, HasSubstr("--fallback onnxruntime leaves the nodes of 1 of these"));
  const CommandResult checked = Hone("check {twice.onnx} --fallback onnxruntime");
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.output,
              HasSubstr("  1 node left to ONNX Runtime: node_of_b; node 'node_of_b' (Twice): the operator"));
  const json report = json::parse(Hone("check {twice.onnx} --fallback onnxruntime --json 2>/dev/null").output);
  ASSERT_EQ(report.at("fallbacks").size(), 1u);
  EXPECT_EQ(report.at("fallbacks")[0].at("nodes"), json({"node_of_b"}));
  EXPECT_EQ(report.at("fallbacks")[0].at("reasons")[0].at("operator"), "Twice");
  EXPECT_EQ(Hone("check {twice.onnx} --fallback other").exit_code, 2);

  const CommandResult compiled = Hone("compile {twice.onnx} -o {twice.hone} --fallback onnxruntime");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  EXPECT_THAT(compiled.output, HasSubstr("1 node left to ONNX Runtime: node_of_b"));
  const json summary =
      json::parse(Hone("compile {twice.onnx} -o {twice.hone} --fallback onnxruntime --json 2>/dev/null").output);
  EXPECT_EQ(summary.at("programs")[0].at("foreign"), json({"node_of_b"}));
  const CommandResult refused = Hone("bench {twice.hone} --seconds 0");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("nothing allows this process to load its library; give --fallback"));
  ASSERT_EQ(setenv("HONE_ONNX_RUNTIME", HONE_FAKE_ONNX_RUNTIME, 1), 0);
  const CommandResult profiled = Hone("profile {twice.hone} --seconds 0 --fallback onnxruntime --json 2>/dev/null");
  unsetenv("HONE_ONNX_RUNTIME");
  ASSERT_EQ(profiled.exit_code, 0) << profiled.output;
  const json profile = json::parse(profiled.output);
  const auto of_part = [](const json& kernel) { return kernel.at("target") == "onnxruntime"; };
  const auto part = std::ranges::find_if(profile.at("kernels"), of_part);
  ASSERT_NE(part, profile.at("kernels").end());
  EXPECT_EQ(part->at("operator"), "node_of_b");
  EXPECT_EQ(part->at("calls"), 1);
}

// A tuning is refused where compile refuses: if a kernel is placed on a device that cannot share memory with the part.
TEST_F(CommandsTest, AFallbackIsTunedBesideCpusOnly) {
  graph::GraphBuilder b;
  b.Input("x", {2}).Node("Relu", {"x"}, {"a"}).Node("Twice", {"a"}, {"b"}).Node("Exp", {"b"}, {"y"});
  b.Declared("b", {2}).Output("y");
  tests::WriteWholeFile(File("twice.onnx"), b.Model());
  ModelOptions model;
  model.models = {File("twice.onnx")};
  model.fallback = "onnxruntime";
  const std::vector<target::Target> units = {target::ParseTarget("x86_64").value(),
                                             target::ParseTarget("opencl").value()};
  EXPECT_TRUE(WorkloadsByUnit(model, model.models.front(), units, {}).ok()) << "the CPU computes everything";
  model.places = {"elementwise=opencl"};
  const absl::Status refused = WorkloadsByUnit(model, model.models.front(), units, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("beside CPUs only"));
}

TEST_F(CommandsTest, OpenDimensionsGetRangesThatCompilePrints) {
  graph::GraphBuilder b;
  b.Input("ids", graph::Dims({graph::Dim("batch"), graph::Dim("sequence")})).Node("Relu", {"ids"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("open.onnx"), b.Model());
  const CommandResult compiled = Hone("compile {open.onnx} -o {open.hone}");
  EXPECT_EQ(compiled.exit_code, 0) << compiled.output;
  EXPECT_THAT(compiled.output, HasSubstr("they get ranges, which --shape changes: --shape ids=1..8,1..512\n"));
  EXPECT_EQ(Hone("bench {open.hone} --seconds 0.01 --shape ids=7,511").exit_code, 0);
  EXPECT_EQ(Hone("bench {open.hone} --seconds 0.01 --shape ids=9,511").exit_code, 1);
  const CommandResult checked = Hone("check {open.onnx}");
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.output, HasSubstr("  without --shape, compile takes --shape ids=1..8,1..512\n"));
}

// The product of two inputs, [batch, sequence] each.
std::string ModelWithTwoOpenInputs() {
  graph::GraphBuilder b;
  const graph::Dims shape({graph::Dim("batch"), graph::Dim("sequence")});
  b.Input("ids", shape).Input("mask", shape).Node("Mul", {"ids", "mask"}, {"y"}).Output("y");
  return b.Model();
}

TEST_F(CommandsTest, SeveralShapesOfAnInputAreProgramsOfOnePackage) {
  tests::WriteWholeFile(File("two.onnx"), ModelWithTwoOpenInputs());
  const CommandResult compiled =
      Hone("compile {two.onnx} -o {two.hone} --shape ids=1..4,1..64 --shape ids=8,128 --json 2>/dev/null");
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  const json programs = json::parse(compiled.output).at("programs");
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].at("shapes"), json({"ids=1..4,1..64", "mask=1..4,1..64"}));
  EXPECT_EQ(programs[1].at("shapes"), json({"ids=8,128", "mask=8,128"}));
  EXPECT_EQ(Hone("bench {two.hone} --seconds 0.01 --shape ids=8,128 --shape mask=8,128").exit_code, 0);
  EXPECT_EQ(Hone("profile {two.hone} --seconds 0.01 --shape ids=3,9 --shape mask=3,9").exit_code, 0);
  const CommandResult neither = Hone("bench {two.hone} --seconds 0.01 --shape ids=8,64");
  EXPECT_EQ(neither.exit_code, 1);
  EXPECT_THAT(neither.output, HasSubstr("the model wants [8, 128] or [1..4, 1..64]"));
}

TEST_F(CommandsTest, SeveralShapesMustBelongTogether) {
  tests::WriteWholeFile(File("two.onnx"), ModelWithTwoOpenInputs());
  const auto error_of = [&](const std::string& options) {
    const CommandResult result = Hone("compile {two.onnx} -o {two.hone}" + options);
    EXPECT_EQ(result.exit_code, 2) << options;
    return result.output;
  };
  EXPECT_THAT(error_of(" --shape ids=1,2 --shape ids=1,2"), HasSubstr("--shape gives the same shapes twice"));
  EXPECT_THAT(error_of(" --shape ids=1,2 --shape ids=1,3 --shape mask=1,2 --shape mask=1,3 --shape mask=1,4"),
              HasSubstr("--shape gives input 'ids' 2 shapes and another input 3"));
  const CommandResult checked = Hone("check {two.onnx} --shape ids=1,2 --shape ids=1,3");
  EXPECT_EQ(checked.exit_code, 2);
  EXPECT_THAT(checked.output, HasSubstr("--shape gives an input 2 shapes, and this command takes one"));
}

TEST_F(CommandsTest, PointsOfATuneAreInTheRanges) {
  tests::WriteWholeFile(File("two.onnx"), ModelWithTwoOpenInputs());
  for (const auto& [at, error] :
       {std::pair("ids=1,65", "does not take these shapes"),
        std::pair("'ids=1,5 mask=1,6'", "the shapes contradict each other"),
        std::pair("'ids=1,5 mask=1,65'", "does not take these shapes"), std::pair("''", "is empty"),
        std::pair("' '", "names no input"), std::pair("ids=1..2,3", "a number for each dimension"),
        std::pair("ids=5", "1 dimensions are given; the input has 2"), std::pair("other=5,5", "no input of that name"),
        std::pair("7", "the name")}) {
    const CommandResult refused =
        Hone("tune {two.onnx} --trials 1 --records {two.db} --shape ids=1..4,1..64 --at " + std::string(at));
    EXPECT_EQ(refused.exit_code, 2) << at << ": " << refused.output;
    EXPECT_THAT(refused.output, HasSubstr(error)) << at;
  }
  std::string many = "tune {two.onnx} --trials 1 --records {two.db} --shape ids=1..4,1..64";
  for (int columns = 1; columns <= 17; ++columns) many += fmt::format(" --at ids=1,{}", columns);
  const CommandResult refused = Hone(many);
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--at is given 17 times; at most 16 points are measured"));
}

// One dimension is the sum of two sizes, which it alone does not decide.
TEST_F(CommandsTest, APointGivesTheSizesOfASum) {
  graph::GraphBuilder b;
  b.Input("x", graph::Dims({graph::Dim("sequence")})).Input("old", graph::Dims({graph::Dim("past")}));
  b.Input("mask", graph::Dims({graph::Dim("past + sequence")}))
      .Node("Concat", {"old", "x"}, {"all"}, {graph::Attr("axis", 0)});
  b.Node("Mul", {"all", "mask"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("sum.onnx"), b.Model());
  ModelOptions model;
  model.models = {File("sum.onnx")};
  model.shapes = {"x=1..8", "old=1..64"};
  const auto workloads_at = [&](const std::string& at) {
    return WorkloadsOf(model, model.models.front(), target::ParseTarget("x86_64").value(), {at});
  };
  EXPECT_TRUE(workloads_at("x=5 old=35 mask=40").ok()) << workloads_at("x=5 old=35 mask=40").status();
  EXPECT_THAT(std::string(workloads_at("mask=40").status().message()),
              HasSubstr("--at mask=40: the shapes contradict each other, or leave a size open; name the other inputs"));
  EXPECT_THAT(std::string(workloads_at("mask=100").status().message()), HasSubstr("does not take these shapes"));
}

TEST_F(CommandsTest, PointsOfAWorkload) {
  graph::GraphBuilder b;
  b.Input("x", graph::Dims({graph::Dim("rows"), 64})).Floats("w", {64, 64}, std::vector<float>(64 * 64, 0.5F));
  b.Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("rows.onnx"), b.Model());
  const auto points_of = [&](const std::string& shape, const std::vector<std::string>& at) {
    ModelOptions model;
    model.models = {File("rows.onnx")};
    model.shapes = {shape};
    const auto workloads = WorkloadsOf(model, model.models.front(), target::ParseTarget("x86_64").value(), at);
    EXPECT_TRUE(workloads.ok()) << workloads.status();
    return workloads.ok() ? PrintSizePoints(workloads->front().points) : "";
  };
  EXPECT_EQ(points_of("x=1..100,64", {}), "n0=10;n0=100");
  EXPECT_EQ(points_of("x=7,64", {}), "");
  EXPECT_EQ(points_of("x=1..100,64", {"x=3,64", "x=90,64", "x=3,64"}), "n0=3;n0=90");
  // 8.6e9 operations at the end, which only a user asks for.
  EXPECT_EQ(points_of("x=1..1048576,64", {}), "n0=1024");
  EXPECT_EQ(points_of("x=1..1048576,64", {"x=1048576,64"}), "n0=1048576");
}

TEST_F(CommandsTest, CheckOfAModelWithoutProblems) {
  graph::GraphBuilder b;
  b.Input("x", {2, 4}).Node("Relu", {"x"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("fine.onnx"), b.Model());
  const CommandResult result = Hone("check {fine.onnx} --target cpu");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("0 problems\nHone can compile this model\n"));
}

TEST_F(CommandsTest, AnInputWithADefaultNeedNotBeGiven) {
  graph::GraphBuilder b;
  b.Input("x", {kRows, kColumns}).Input("w", {1}).Floats("w", {1}, {3}).Node("Mul", {"x", "w"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("default.onnx"), b.Model());
  const std::string compile = "HOME= XDG_DATA_HOME= " HONE_PROGRAM " compile ";
  const CommandResult compiled = RunCommand(compile + File("default.onnx") + " -o " + File("default.hone"));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;
  EXPECT_THAT(compiled.output, HasSubstr("warning: input 'w' need not be set at run time"));
  const auto first = [&] {
    EXPECT_EQ(Hone("run {default.hone} --input {given.npz} --output {z.npz}").exit_code, 0);
    const absl::StatusOr<NpzReader> reader = NpzReader::Open(File("z.npz"));
    const absl::StatusOr<Array> y = reader->Read("y", [](const NpyHeader&) { return absl::OkStatus(); });
    float value = 0;
    std::memcpy(&value, y->data.data(), sizeof value);
    return value;
  };
  const std::vector<float> x(kRows * kColumns, 2), w = {5};
  WriteInputs("given.npz", {{"x", DType::kFloat32, kShape, BytesOf(x)}});
  EXPECT_EQ(first(), 6);
  const std::vector<int64_t> one = {1};
  WriteInputs("given.npz", {{"x", DType::kFloat32, kShape, BytesOf(x)}, {"w", DType::kFloat32, one, BytesOf(w)}});
  EXPECT_EQ(first(), 10);
}

TEST_F(CommandsTest, WrongUseExitsWithTwo) {
  for (const char* arguments : {"",
                                "walk",
                                "run",
                                "run {tiny.hone}",
                                "run {tiny.hone} --output",
                                "bench",
                                "bench {tiny.hone} --threads -1",
                                "bench {tiny.hone} --threads two",
                                "bench {tiny.hone} --seconds -1",
                                "bench {tiny.hone} extra",
                                "profile {tiny.hone} --unknown",
                                "submit {no.onnx} --tracker 127.0.0.1:1",
                                "tune {no.onnx} --space outer",
                                "tune {no.onnx} --without luck",
                                "compile {no.onnx} -o -",
                                "compile {no.onnx} -o {o} --header -",
                                "compile {no.onnx} -o {o} --header-name net",
                                "records lock --model {no.onnx} -o -",
                                "run {tiny.hone} --output -",
                                "tune {no.onnx} --tracker 127.0.0.1:1 --reproducers {repro}"}) {
    const CommandResult result = Hone(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.output;
    EXPECT_NE(result.output, "") << arguments;
  }
}

TEST_F(CommandsTest, AmbiguousOptionValuesAreRejected) {
  for (const char* arguments : {"bench {tiny.hone} --seconds nan",
                                "tune {no.onnx} --seed -1",
                                "tune {no.onnx} --seed 99999999999999999999999",
                                "tune {no.onnx} --time ''",
                                "tune {no.onnx} --until ''",
                                "tune {no.onnx} --records ''",
                                "tune {no.onnx} --tracker ''",
                                "records query --limit -1",
                                "records query --after -1",
                                "tune {no.onnx} --seed 010",
                                "tune {no.onnx} --trials 010",
                                "tune {no.onnx} --threads 010",
                                "tune {no.onnx} --threads 0",
                                "records query --limit 010",
                                "bench {tiny.hone} --threads 0x2",
                                "compile {no.onnx} -o ''",
                                "records best --workload ''",
                                "records query --operator ''",
                                "records query --failed ''",
                                "records prune --keep-best 1 --yes --device ''",
                                "records export --compiler ''",
                                "records export --target ''",
                                "records best --model ''",
                                "records lock --model {no.onnx} --device '' -o {a}",
                                "records lock --model {no.onnx} --compiler '' -o {a}",
                                "compile {no.onnx} --target '' -o {a}",
                                "tune {no.onnx} --device ''",
                                "jobs --identity ''",
                                "up --state ''",
                                "token create --role agent --name ''",
                                "compile {no.onnx} -o {a} --header {./a}"}) {
    const CommandResult result = Hone(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.output;
  }
}

TEST_F(CommandsTest, InvalidTimeIsReportedBeforeModelIsRead) {
  for (const char* arguments : {"tune {no.onnx} --time soon", "tune {no.onnx} --until soon"}) {
    const CommandResult result = Hone(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.output, HasSubstr("soon: write a")) << arguments;
  }
}

TEST_F(CommandsTest, UnknownCommandsAreNamed) {
  EXPECT_THAT(Hone("walk").output, HasSubstr("hone: hone does not know 'walk'; hone --help lists"));
  EXPECT_THAT(Hone("records walk").output, HasSubstr("hone: hone records does not know 'walk'"));
}

TEST_F(CommandsTest, InputsAreNotOverwritten) {
  tests::WriteWholeFile(File("a.npy"), "an array");
  for (const char* arguments :
       {"compile {no.onnx} --bind x={a.npy} -o {a.npy}", "compile {no.onnx} --bind x={a.npy} -o {o} --header {a.npy}",
        "records lock --model {no.onnx} --bind x={a.npy} -o {a.npy}", "tune {a.npy} --records {a.npy}",
        "records import {a.npy} --records {a.npy}"}) {
    const CommandResult result = Hone(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_THAT(result.output, HasSubstr("a.npy is also an input of this command")) << arguments;
  }
  EXPECT_EQ(ReadWholeFile(File("a.npy")), "an array");
  EXPECT_FALSE(std::filesystem::exists(File("a.npy.lock")));
}

// The files are protected whether they exist or not: an existing one would be lost, and a new one would keep the
// database from being written.
TEST_F(CommandsTest, DatabaseFilesAreNotOverwritten) {
  ASSERT_EQ(Hone("records import - --records {kept.db} < /dev/null").exit_code, 0);
  std::filesystem::create_symlink(File("kept.db"), File("kept_link.db"));
  for (const char* output : {"{kept.db.lock}", "{kept.db-wal}", "{./kept.db-shm}"}) {
    for (const char* command :
         {"compile {no.onnx} --records {kept.db} -o ", "compile {no.onnx} --records {kept_link.db} -o ",
          "compile {no.onnx} --records {kept.db} -o {o} --header ",
          "records lock --model {no.onnx} --records {kept.db} -o ", "records export --records {kept.db} -o "}) {
      const CommandResult result = Hone(std::string(command) + output);
      EXPECT_EQ(result.exit_code, 2) << command << output << "\n" << result.output;
      EXPECT_THAT(result.output, HasSubstr("a file that belongs to it")) << command << output;
    }
  }
}

TEST_F(CommandsTest, UnwritableOutputIsReportedBeforeTheWork) {
  for (const char* command :
       {"compile {no.onnx} -o ", "compile {no.onnx} -o {o.hone} --header ", "records lock --model {no.onnx} -o ",
        "run {no.hone} --output ", "records export --records {no.db} -o "}) {
    const CommandResult missing = Hone(std::string(command) + "{nowhere/x}");
    EXPECT_EQ(missing.exit_code, 1) << command;
    EXPECT_THAT(missing.output, HasSubstr(File("nowhere/x") + "': No such file or directory")) << command;
    EXPECT_THAT(Hone(std::string(command) + folder_->path().string()).output, HasSubstr("it is a folder")) << command;
  }
  EXPECT_FALSE(std::filesystem::exists(File("o.hone")));
}

// Ctrl-C also works while the command waits for its tracker, which may be migrating a large file of an older Hone.
TEST_F(CommandsTest, CtrlCEndsTheStartOfAFarm) {
  const std::filesystem::path programs = File("programs");
  std::filesystem::create_directories(programs);
  std::filesystem::copy_file(HONE_PROGRAM, programs / "hone");
  tests::WriteWholeFile(programs / "hone-tracker", "#!/bin/sh\nkill -INT $PPID\nexec sleep 60\n");
  std::filesystem::permissions(programs / "hone-tracker", std::filesystem::perms::owner_all);
  const CommandResult result = RunCommand("(" + (programs / "hone").string() + " up --state " + File("up") + ")");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("ended before the tracker had started"));
}

TEST_F(CommandsTest, PruneReportsRowsWhenFileKeepsItsSize) {
  {
    const auto store = storage::OpenRecords(File("large.db"), records::OpenMode::kReadWrite);
    std::vector<records::Record> rows;
    for (int i = 0; i < 3000; ++i)
      rows.push_back(records::SampleTiming(i, fmt::format("split {}", i), 1e-3 + 1e-6 * i));
    ASSERT_TRUE(store.ok() && (*store)->Append(rows)->appended == rows.size());
  }
  const CommandResult result = RunCommand("(ulimit -f 600; " HONE_PROGRAM
                                          " records prune --keep-best 2990 --yes --json "
                                          "--records " +
                                          File("large.db") + ")");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("\"removed\": 9,"));
  EXPECT_THAT(result.output, HasSubstr("the rows were removed, but the file could not be made smaller"));
  EXPECT_THAT(result.output, HasSubstr("SQLITE_TMPDIR names another folder"));
}

// A missing default records file of the user is no error.
TEST_F(CommandsTest, RecordsThatAreNotThereAreNone) {
  const std::string data = "XDG_DATA_HOME=" + File("own");
  const std::string compile = " " HONE_PROGRAM " compile " + File("own.onnx") + " -o " + File("own.hone");
  graph::GraphBuilder b;
  b.Input("x", {3}).Node("Exp", {"x"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("own.onnx"), b.Model());
  EXPECT_EQ(RunCommand("env -u XDG_DATA_HOME HOME=nowhere" + compile).exit_code, 0) << "there is no home";
  EXPECT_EQ(RunCommand("env " + data + compile).exit_code, 0) << "nothing was tuned";
  std::filesystem::create_directories(File("own/hone"));
  tests::WriteWholeFile(File("own/hone/records.db"), "");
  EXPECT_EQ(RunCommand("env " + data + compile).exit_code, 0) << "the first tune was killed";
  std::filesystem::remove_all(File("own"));
  std::filesystem::create_symlink(File("own"), File("own"));
  const CommandResult loop = RunCommand("env " + data + compile);
  EXPECT_EQ(loop.exit_code, 1);
  EXPECT_THAT(loop.output, HasSubstr("is not the path of a records file: Too many levels of symbolic links"));
  std::filesystem::remove(File("own"));
}

TEST_F(CommandsTest, LockedCompileNeedsNoHomeFolder) {
  const CommandResult result = RunCommand("env -u XDG_DATA_HOME HOME=nowhere " HONE_PROGRAM " compile " +
                                          File("no.onnx") + " -o " + File("o.hone") + " --locked /dev/null");
  EXPECT_THAT(result.output, HasSubstr("cannot read lock file /dev/null"));
}

TEST_F(CommandsTest, ExternalDataIsNotWrittenOver) {
  graph::Message weights;
  weights.Int(1, 3).Int(2, graph::kFloat).Text(8, "w").Int(14, 1);
  weights.Text(13, graph::Message().Text(1, "location").Text(2, "w.bin").bytes());
  graph::GraphBuilder b;
  b.Input("x", {3}).Initializer(weights.bytes()).Node("Add", {"x", "w"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("external.onnx"), b.Model());
  tests::WriteWholeFile(File("w.bin"), std::string(12, 'w'));
  ASSERT_EQ(Hone("records import - --records {none.db} < /dev/null").exit_code, 0);
  for (const char* arguments : {"compile {external.onnx} -o {w.bin}", "compile {external.onnx} -o {o} --header {w.bin}",
                                "records lock --model {external.onnx} --records {none.db} -o {w.bin}"}) {
    const CommandResult result = Hone(arguments);
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_THAT(result.output, HasSubstr("w.bin is also an input of this command")) << arguments;
    EXPECT_EQ(ReadWholeFile(File("w.bin")), std::string(12, 'w')) << arguments;
  }
  EXPECT_FALSE(std::filesystem::exists(File("o")));
}

TEST_F(CommandsTest, AnEmptyLockFileIsCalledEmpty) {
  EXPECT_THAT(Hone("compile {no.onnx} -o {o.hone} --locked /dev/null").output,
              HasSubstr("cannot read lock file /dev/null: it is empty"));
}

TEST_F(CommandsTest, HelpAndVersionSucceed) {
  EXPECT_EQ(Hone("--version").output, "hone 0.1.0\n");
  EXPECT_EQ(Hone("--version").exit_code, 0);
  const CommandResult help = Hone("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"run", "bench", "profile", "records"}) EXPECT_THAT(help.output, HasSubstr(command));
  EXPECT_EQ(Hone("bench --help").exit_code, 0);
}

TEST_F(CommandsTest, UnwritableOutputIsAFailure) {
  const CommandResult result = Hone("bench {tiny.hone} --seconds 0 --json > /dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(Hone("--help > /dev/full").exit_code, 1);
}

TEST_F(CommandsTest, OutputFileOpenedForAppendKeepsItsContents) {
  ASSERT_EQ(Hone("records import - --records {append.db} < /dev/null").exit_code, 0);
  for (const std::string output : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/fd/3"}) {
    tests::WriteWholeFile(File("appended"), "first\n");
    const std::string to = File("appended");
    const CommandResult result = RunCommand("(" HONE_PROGRAM " records export --records " + File("append.db") + " -o " +
                                            output + " >> " + to + " 3>> " + to + ")");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(ReadWholeFile(to), "first\nwrote 0 records to " + output + "\n");
  }
}

TEST_F(CommandsTest, FileSizeLimitIsAnErrorAndNoSignal) {
  const auto limited = [](const std::string& arguments) {
    return RunCommand("(ulimit -f 1; " HONE_PROGRAM " " + arguments + ")");
  };
  const CommandResult help = limited("--help > " + File("help.txt"));
  EXPECT_EQ(help.exit_code, 1);
  EXPECT_THAT(help.output, HasSubstr("cannot write to standard output: File too large"));
  const CommandResult run = limited("run " + File("tiny.hone") + " --output " + File("none.npz"));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("raise its limit (ulimit -f, LimitFSIZE= of systemd)"));
}

TEST_F(CommandsTest, UnwritableMessagesAreDropped) {
  const std::string records = " --records " + File("empty.db");
  ASSERT_EQ(RunCommand(HONE_PROGRAM " records import -" + records + " < /dev/null").exit_code, 0);
  EXPECT_EQ(RunCommand(HONE_PROGRAM " records best" + records).output, "no verified timing matches\n");
  EXPECT_EQ(RunCommand("(" HONE_PROGRAM " records best" + records + " 2> /dev/full)").exit_code, 0);
  EXPECT_EQ(RunCommand("(" HONE_PROGRAM " records best" + records + " 2>&-)").exit_code, 0);
}

// No SIGPIPE ends the command. Messages without a reader are lost; a result without a reader is a failure.
TEST_F(CommandsTest, ClosedPipeRaisesNoSignal) {
  const std::string records = " --records " + File("reader.db"), pipe = File("reader");
  ASSERT_EQ(RunCommand(HONE_PROGRAM " records import -" + records + " < /dev/null").exit_code, 0);
  ASSERT_EQ(RunCommand("mkfifo " + pipe).exit_code, 0);
  // Descriptor 4 is the writing end of a pipe without a reader.
  const std::string ended = "(exec 3<>" + pipe + " 4>" + pipe + " 3<&-; ";
  EXPECT_EQ(RunCommand(ended + HONE_PROGRAM " records best" + records + " 2>&4)").exit_code, 0);
  const CommandResult result = RunCommand(ended + HONE_PROGRAM " records stats" + records + " >&4)");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("cannot write to standard output: Broken pipe"));
}

TEST_F(CommandsTest, WarningsGoToStandardError) {
  const std::string file = File("unreadable.db");
  {
    const auto store = storage::OpenRecords(file, records::OpenMode::kReadWrite);
    ASSERT_TRUE(store.ok() && (*store)->Append(std::vector{records::SampleTiming(1, "a", 1e-3)}).ok());
  }
  ASSERT_TRUE(storage::Connection::Open(file, SQLITE_OPEN_READWRITE, "")
                  ->Execute("UPDATE measurements SET seconds = '[1,x]'")
                  .ok());
  EXPECT_THAT(Hone("records query --json --records {unreadable.db}").output,
              HasSubstr("row 1 of the records cannot be read"));
  const CommandResult result = RunCommand("(" HONE_PROGRAM " records query --json --records " + file + " 2>/dev/null)");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(json::parse(result.output).at("records").empty());
}

TEST_F(CommandsTest, UnreadableInputIsAnErrorAndNotEndOfFile) {
  const CommandResult result = Hone("records import - --records {stdin.db} < " + folder_->path().string());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("standard input cannot be read after 0 lines"));
}

TEST_F(CommandsTest, ClosedStandardStreamIsNotReused) {
  const std::string import = HONE_PROGRAM " records import - --records " + File("closed.db");
  const CommandResult result = RunCommand("(" + import + " < /dev/null >&-)");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("cannot write to standard output"));
}

}  // namespace
}  // namespace hone::cli
