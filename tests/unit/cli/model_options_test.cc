// SPDX-License-Identifier: Apache-2.0
// The effect of --shape and --bind on a model: import options, jobs, packages.
#include "cli/model_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/farm_devices.h"
#include "cli/job_text.h"
#include "cli/records_lock.h"
#include "cli/submission.h"
#include "compiler/version.h"
#include "deploy/run/npy.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::cli {
namespace {

using run::NpyPrefix;
using ::testing::HasSubstr;

class ModelOptionsTest : public ::testing::Test {
 protected:
  ModelOptionsTest() : folder_(TemporaryFolder::Create().value()) {
    graph::GraphBuilder b;
    b.Input("x", {2, 3}).Input("repeats", {2}, graph::kInt64);
    b.Node("Tile", {"x", "repeats"}, {"t"}).Node("Exp", {"t"}, {"y"}).Output("y");
    Write("tile.onnx", b.Model());
    search_.trials = 1;
  }
  std::string File(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(File(name), std::ios::binary) << bytes;
  }
  // Writes a .npy file with these integers.
  template <typename T>
  void WriteArray(const std::string& name, package::DType dtype, const std::vector<T>& values) const {
    const std::vector<int64_t> shape = {static_cast<int64_t>(values.size())};
    Write(name, NpyPrefix(dtype, shape) +
                    std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
  }
  absl::StatusOr<v1::JobSpec> Job(const std::vector<std::string>& bindings) const {
    ModelOptions options;
    options.models = {File("tile.onnx")};
    options.bindings = bindings;
    const absl::StatusOr<std::vector<Part>> parts = PartsOf(options, search_, {});
    if (!parts.ok()) return parts.status();
    const absl::StatusOr<std::vector<v1::JobSpec>> specs = MakeJobSpecs(options, search_, *parts);
    if (!specs.ok()) return specs.status();
    return specs->front();
  }
  std::string Error(const std::vector<std::string>& bindings) const {
    return std::string(Job(bindings).status().message());
  }

  TemporaryFolder folder_;
  SearchOptions search_;
};

TEST_F(ModelOptionsTest, BoundValuesAreInTheJob) {
  EXPECT_THAT(Error({}), HasSubstr("--bind NAME=VALUES"));
  const auto wide = Job({"repeats=1,4"});
  const auto tall = Job({"repeats=4,1"});
  ASSERT_TRUE(wide.ok() && tall.ok()) << wide.status() << tall.status();
  EXPECT_THAT(wide->workloads(0).text(), HasSubstr("[2,12]"));
  EXPECT_THAT(tall->workloads(0).text(), HasSubstr("[8,3]"));
  EXPECT_NE(wide->model_digest(), tall->model_digest());
}

// A job consists of workloads, so the tracker needs no file of operators.
TEST_F(ModelOptionsTest, DefinitionsOfOperatorsAreInTheJob) {
  graph::GraphBuilder b;
  b.Input("x", {6}).Node("Cube", {"x"}, {"y"}, {}, "com.example").Output("y");
  Write("cube.onnx", b.Model());
  Write("cube.operators",
        "operator \"com.example\" \"Cube\"\nworkload \"cube\"\nsize n in [0, 100]\ninput x: f32[n]\n"
        "y: f32[n] over i:n = x[i] * x[i] * x[i]\noutput y\n");
  ModelOptions options;
  options.models = {File("cube.onnx")};
  EXPECT_THAT(std::string(MakeJobSpecs(options, search_, *PartsOf(options, search_, {})).status().message()),
              HasSubstr("(com.example.Cube): the operator is not supported; --operators FILE can define it"));
  options.operators = {File("cube.operators")};
  const auto specs = MakeJobSpecs(options, search_, *PartsOf(options, search_, {}));
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->front().workloads_size(), 1);
  EXPECT_THAT(specs->front().workloads(0).text(),
              HasSubstr("\ninput p0: f32[6] in [-1, 1]\nt0: f32[6] over i0:6 = p0[i0] * p0[i0] * "
                        "p0[i0]"));
  EXPECT_THAT(options.Files(), testing::ElementsAre(File("cube.onnx"), File("cube.operators")));
  options.operators = {File("none.operators")};
  EXPECT_THAT(std::string(options.Imports().status().message()), HasSubstr("none.operators: the file cannot be read"));
}

TEST_F(ModelOptionsTest, AFileSaysTheSameAsText) {
  WriteArray<int64_t>("repeats.npy", package::DType::kInt64, {1, 4});
  const auto text = Job({"repeats=1,4"});
  const auto file = Job({"repeats=" + File("repeats.npy")});
  ASSERT_TRUE(text.ok() && file.ok()) << text.status() << file.status();
  EXPECT_EQ(text->model_digest(), file->model_digest());
}

TEST_F(ModelOptionsTest, BindingsThatDoNotFitSayWhatIsWanted) {
  WriteArray<int32_t>("narrow.npy", package::DType::kInt32, {1, 4});
  WriteArray<int64_t>("short.npy", package::DType::kInt64, {4});
  Write("text.npy", "no array");
  EXPECT_THAT(Error({"repeats=" + File("narrow.npy")}),
              HasSubstr("input 'repeats' is i64[2], the bound value is i32[2]"));
  EXPECT_THAT(Error({"repeats=" + File("short.npy")}), HasSubstr("the given shape 1 does not fit the model's 2"));
  EXPECT_THAT(Error({"repeats=" + File("text.npy")}), HasSubstr("text.npy: "));
  EXPECT_THAT(Error({"repeats=" + File("none.npy")}), HasSubstr("none.npy: No such file or directory"));
  EXPECT_THAT(Error({"count=1"}), HasSubstr("no input 'count'; its inputs are: x, repeats"));
  EXPECT_THAT(Error({"repeats=1"}), HasSubstr("it needs 2 numbers, but the bound value has 1"));
}

TEST_F(ModelOptionsTest, InvalidBindingsAreUsageErrors) {
  for (const std::vector<std::string>& bindings :
       {std::vector<std::string>{"1,2"}, {"=1,2"}, {"repeats=1,2", "repeats=2,1"}}) {
    EXPECT_TRUE(Job(bindings).status().GetPayload(kUsageMark).has_value()) << bindings[0];
  }
}

TEST_F(ModelOptionsTest, ALockFileMayNameATargetInTheWordsOfAnEarlierHone) {
  const std::string earlier = "x86_64 -mcpu=znver4 -threads=2";
  ASSERT_NE(target::Print(target::ParseTarget(earlier).value()), earlier);
  const LockFile lock = {.compiler = kCompilerVersion, .model = "m.onnx", .programs = {{earlier, {}}}};
  ModelOptions options;
  options.targets = {earlier};
  EXPECT_EQ(LockedTargets(lock, "hone.lock", options).status(), absl::OkStatus());
  options.targets = {"x86_64 -mcpu=znver4 -threads=3"};
  EXPECT_THAT(std::string(LockedTargets(lock, "hone.lock", options).status().message()),
              HasSubstr("leave --target out"));
  options.targets.clear();
  options.threads = 3;
  EXPECT_THAT(std::string(LockedTargets(lock, "hone.lock", options).status().message()),
              HasSubstr("leave --threads out"));
}

TEST_F(ModelOptionsTest, AJobHasANameOfOneLine) {
  const std::string odd = File("odd\n\x1b[1m.onnx");
  std::filesystem::copy_file(File("tile.onnx"), odd);
  ModelOptions options;
  options.models = {odd};
  options.bindings = {"repeats=1,4"};
  EXPECT_EQ(MakeJobSpecs(options, search_, *PartsOf(options, search_, {}))->front().name(), "odd??[1m.onnx");
}

TEST_F(ModelOptionsTest, FilesListsEveryInputFile) {
  ModelOptions options;
  options.models = {"m.onnx"};
  options.bindings = {"a=1,2", "b=in=b.npy", "c=c.npy"};
  EXPECT_THAT(options.Files(), testing::ElementsAre("m.onnx", "b.npy", "c.npy"));
}

TEST_F(ModelOptionsTest, InfiniteTimeIsNotABudget) {
  search_.time = "inf";
  EXPECT_TRUE(Job({"repeats=1,4"}).status().GetPayload(kUsageMark).has_value());
}

TEST_F(ModelOptionsTest, FractionOfASecondIsKept) {
  for (const auto& [time, seconds, nanos] :
       {std::tuple("500ms", 0, 500'000'000), {"1.9s", 1, 900'000'000}, {"10m", 600, 0}, {"1ns", 0, 1}}) {
    search_.time = time;
    const absl::StatusOr<v1::JobSpec> job = Job({"repeats=1,4"});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->time_budget().seconds(), seconds) << time;
    EXPECT_EQ(job->time_budget().nanos(), nanos) << time;
  }
  search_.time = "0.3ns";
  EXPECT_TRUE(Job({"repeats=1,4"}).status().GetPayload(kUsageMark).has_value()) << "shorter than a budget can say";
}

TEST_F(ModelOptionsTest, TheSpaceToSearchIsInTheJob) {
  EXPECT_TRUE(Job({"repeats=1,4"})->options().empty());
  search_.space = "sketch";
  EXPECT_EQ(Job({"repeats=1,4"})->options().at("space"), "sketch");
}

TEST_F(ModelOptionsTest, PartsOfTheSearchThatAreLeftOutAreInTheJob) {
  search_.without = "model,descent";
  EXPECT_EQ(Job({"repeats=1,4"})->options().at("without"), "model,descent");
}

TEST_F(ModelOptionsTest, HintsAreInTheJob) {
  graph::GraphBuilder b;
  b.Input("x", {8, 64}).Floats("w", {64, 48}, std::vector<float>(64 * 48, 0.5f));
  b.Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  Write("product.onnx", b.Model());
  Write(
      "tvm.log",
      R"({"input": ["llvm", "dense_pack.x86", [["TENSOR", [8, 64], "float32"], ["TENSOR", [48, 64], "float32"]], {}], )"
      R"("config": {"entity": [["tile_y", "sp", [-1, 4]], ["tile_x", "sp", [-1, 16]]]}, "result": [[1e-4], 0, 1, 1]})"
      "\nnothing\n");
  ModelOptions options;
  options.models = {File("product.onnx")};
  search_.hints = {File("tvm.log")};
  const auto specs = MakeJobSpecs(options, search_, *PartsOf(options, search_, {}));
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_THAT(specs->front().workloads(0).hints(), testing::ElementsAre("8x48:4x16"));
  search_.hints = {File("none.log")};
  EXPECT_THAT(std::string(MakeJobSpecs(options, search_, *PartsOf(options, search_, {})).status().message()),
              HasSubstr("none.log: No such file"));
}

// A device of a farm, as the tracker describes it.
v1::Device DeviceOf(const std::string& agent, const std::string& kind, const std::string& target) {
  v1::Device device;
  device.set_agent_id(agent);
  device.mutable_state()->set_device_id("cpu");
  device.mutable_state()->set_target(target);
  device.mutable_state()->mutable_fingerprint()->set_digest(kind);
  (*device.mutable_state()->mutable_labels())["room"] = "lab";
  return device;
}

TEST_F(ModelOptionsTest, AnInputThatOnlyOneModelHasIsOfThatModel) {
  graph::GraphBuilder b;
  b.Input("z", graph::Dims({graph::Dim("n"), 4})).Node("Exp", {"z"}, {"y"}).Output("y");
  Write("other.onnx", b.Model());
  ModelOptions options;
  options.models = {File("tile.onnx"), File("other.onnx")};
  options.bindings = {"repeats=1,4"};
  options.shapes = {"z=2,4"};
  const auto specs = MakeJobSpecs(options, search_, *PartsOf(options, search_, {}));
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ(specs->size(), 2u);
  options.shapes.push_back("w=3");
  EXPECT_THAT(std::string(MakeJobSpecs(options, search_, *PartsOf(options, search_, {})).status().message()),
              HasSubstr("no input 'w'"));
}

TEST_F(ModelOptionsTest, OneJobForEachKindOfDevice) {
  const std::string small = "arm64 -mcpu=cortex-a72 -threads=4", large = "x86_64 -mcpu=znver4 -threads=2";
  const std::vector<v1::Device> known = {DeviceOf("pi1", "pi", small), DeviceOf("pi2", "pi", small),
                                         DeviceOf("pi3", "pi", small), DeviceOf("server", "amd", large)};
  ModelOptions options;
  options.models = {File("tile.onnx"), File("tile.onnx")};
  options.bindings = {"repeats=1,4"};
  search_.devices = {"pi1", "server/cpu", "pi2", "room=lab"};
  const auto parts = PartsOf(options, search_, known);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  const auto specs = MakeJobSpecs(options, search_, *parts);
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->size(), 4u) << "two models for two kinds";
  std::set<std::string> titles, ids;
  for (const v1::JobSpec& spec : *specs) {
    titles.insert(TitleOf(spec));
    ids.insert(spec.request_id());
    EXPECT_EQ(spec.group(), specs->front().group());
    EXPECT_EQ(spec.device_kind(), spec.target().starts_with("arm64") ? "pi" : "amd");
    EXPECT_EQ(spec.trials(), 1) << "each has all that was asked for";
  }
  EXPECT_FALSE(specs->front().group().empty());
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_THAT(titles, testing::ElementsAre("tile.onnx for arm64 -mcpu=cortex-a72 on pi1, pi2, room=lab",
                                           "tile.onnx for x86_64 -mcpu=znver4 on server/cpu, room=lab"));
}

TEST(SelectDevicePlaces, AreOneForEachTarget) {
  std::vector<v1::Device> known = {DeviceOf("pi1", "pi", "arm64 -mcpu=cortex-a72 -threads=4"),
                                   DeviceOf("pi2", "pi", "arm64 -mcpu=cortex-a72 -threads=4"),
                                   DeviceOf("server", "amd", "x86_64 -mcpu=znver4 -threads=2")};
  for (v1::Device& device : known) {
    device.mutable_state()->mutable_fingerprint()->set_text(device.state().fingerprint().digest() + " cores=4");
  }
  const auto places = SelectDevicePlaces(known, {"room=lab", "pi1"}, 0);
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_EQ(places->size(), 2u);
  EXPECT_EQ((*places)[0].fingerprint, "pi cores=4");
  EXPECT_EQ((*places)[1].target.threads, 2);
  EXPECT_EQ(SelectDevicePlaces(known, {"pi2"}, 3)->front().target.threads, 3);
  known[1].mutable_state()->mutable_fingerprint()->set_text("other pi cores=4");
  const absl::Status two = SelectDevicePlaces(known, {"room"}, 0).status();
  EXPECT_TRUE(two.GetPayload(kUsageMark).has_value());
  EXPECT_THAT(std::string(two.message()),
              HasSubstr("pi1/cpu and pi2/cpu are different kinds of device with the same target"));
  EXPECT_THAT(std::string(SelectDevicePlaces(known, {"pi3"}, 0).status().message()), HasSubstr("--device pi3"));
}

TEST_F(ModelOptionsTest, ATargetSaysWhatIsTunedWhateverTheDevices) {
  ModelOptions options;
  options.targets = {"x86_64 -mcpu=znver4", "arm64"};
  search_.devices = {"to come"};
  const auto parts = PartsOf(options, search_, {});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_THAT((*parts)[1].devices, testing::ElementsAre("to come"));
  EXPECT_EQ((*parts)[1].device_kind, "");
  search_.devices.clear();
  options.targets.clear();
  EXPECT_EQ(PartsOf(options, search_, {})->size(), 1u);
}

TEST_F(ModelOptionsTest, UnknownDeviceIsAnError) {
  ModelOptions options;
  search_.devices = {"pi"};
  EXPECT_THAT(std::string(PartsOf(options, search_, {}).status().message()),
              HasSubstr("--device pi: the farm has no device with that name or label; it has no devices yet"));
  search_.devices = {"room=hall"};
  EXPECT_THAT(std::string(PartsOf(options, search_, {DeviceOf("pi", "pi", "arm64")}).status().message()),
              HasSubstr("it has pi/cpu (room=lab). For a device that will join later, give its --target"));
  search_.devices = {"pi"};
  EXPECT_THAT(std::string(PartsOf(options, search_, {DeviceOf("pi", "pi", "")}).status().message()),
              HasSubstr("pi/cpu does not report its target; give --target"));
}

// Complete texts, which ask no device of this machine.
constexpr char kOpenCl[] =
    "opencl -units=1 -lanes=64 -width=8 -shared=32768 -gain=4 -registers=1024 -l1=32768 -l2=524288 -vector=128";
constexpr char kHaswell[] = "x86_64 -mcpu=haswell -threads=2 -l1=32768 -l2=262144 -l3=8388608";

TEST(TargetList, JoinsTargetsByAPlusThatIsNoPartOfOne) {
  const std::string text = std::string(kOpenCl) + " + " + kHaswell;
  const auto two = ParseTargetList(text);
  ASSERT_TRUE(two.ok()) << two.status();
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ(PrintTargetList(*two), text);
  EXPECT_EQ(ParseTargetList(std::string(kHaswell) + "+" + kOpenCl)->at(1).kind, target::Kind::kOpenCl);
  const auto features = ParseTargetList("x86_64 -mcpu=haswell -mattr=+gfni,+avxvnni+ arm64 -mcpu=cortex-a72");
  ASSERT_TRUE(features.ok()) << features.status();
  EXPECT_EQ(features->size(), 2u);
  EXPECT_EQ(ParseTargetList("x86_64 -mcpu=haswell -mattr=+gfni")->size(), 1u);
  EXPECT_THAT(std::string(ParseTargetList(text + " + " + kHaswell).status().message()),
              HasSubstr(std::string("'") + kHaswell + "' is joined with itself"));
  EXPECT_FALSE(ParseTargetList("cpu + nothing").ok());
  for (const char* const empty : {"", " ", "+ cpu"}) {
    EXPECT_THAT(std::string(ParseTargetList(empty).status().message()), HasSubstr("name a target")) << empty;
  }
}

TEST_F(ModelOptionsTest, AJoinedTargetIsForCommandsThatShareAModel) {
  ModelOptions options;
  options.targets = {std::string(kOpenCl) + " + " + kHaswell, kHaswell};
  options.threads = 3;
  const auto lists = options.TargetLists();
  ASSERT_TRUE(lists.ok()) << lists.status();
  ASSERT_EQ(lists->size(), 2u);
  EXPECT_EQ((*lists)[0][1].threads, 3);
  const absl::Status one = options.Targets().status();
  EXPECT_TRUE(one.GetPayload(kUsageMark).has_value());
  EXPECT_THAT(std::string(one.message()), HasSubstr("joins several targets"));
  options.places = {"softmax=cpu", "matmul=opencl"};
  EXPECT_THAT(options.PlacementOn((*lists)[0])->by_operator,
              testing::ElementsAre(testing::Pair("matmul", 0), testing::Pair("softmax", 1)));
  for (const char* wrong : {"softmax", "=cpu", "softmax=cuda", "softmax="}) {
    options.places = {wrong};
    EXPECT_TRUE(options.PlacementOn((*lists)[0]).status().GetPayload(kUsageMark).has_value()) << wrong;
  }
  options.places = {"softmax=cpu", "softmax=opencl"};
  EXPECT_THAT(std::string(options.PlacementOn((*lists)[0]).status().message()), HasSubstr("names 'softmax' twice"));
}

TEST_F(ModelOptionsTest, EachJoinedTargetThatComputesHasAJob) {
  graph::GraphBuilder b;
  b.Input("x", {8, 64}).Floats("w", {64, 48}, std::vector<float>(64 * 48, 0.5f));
  b.Node("MatMul", {"x", "w"}, {"p"}).Node("Softmax", {"p"}, {"y"}).Output("y");
  Write("two.onnx", b.Model());
  ModelOptions options;
  options.models = {File("two.onnx")};
  options.targets = {std::string(kOpenCl) + " + " + kHaswell};
  const auto alone = MakeJobSpecs(options, search_, *PartsOf(options, search_, {}));
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_EQ(alone->size(), 1u) << "OpenCL can compute all";
  EXPECT_EQ(alone->front().target(), kOpenCl);
  options.places = {"softmax=cpu"};
  const auto specs = MakeJobSpecs(options, search_, *PartsOf(options, search_, {}));
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->size(), 2u);
  EXPECT_EQ((*specs)[0].target(), kOpenCl);
  EXPECT_EQ((*specs)[0].workloads(0).op(), "matmul");
  EXPECT_EQ((*specs)[1].target(), kHaswell);
  ASSERT_EQ((*specs)[1].workloads_size(), 1);
  EXPECT_EQ((*specs)[1].workloads(0).op(), "softmax");
  EXPECT_EQ((*specs)[0].group(), (*specs)[1].group());
}

TEST_F(ModelOptionsTest, ALockFileSaysWhichTargetComputesWhat) {
  const std::string both = std::string(kOpenCl) + " + " + kHaswell;
  LockFile lock = {.compiler = kCompilerVersion, .model = "m.onnx", .programs = {{both, {}}}};
  lock.programs[0].workloads = {{.digest = "d1", .target = kOpenCl}, {.digest = "d2", .target = kHaswell}};
  const auto options = LockedTargets(lock, "hone.lock", {});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->size(), 1u);
  EXPECT_EQ(package::TargetText(options->front()), both);
  EXPECT_TRUE(options->front().pinned);
  EXPECT_THAT(options->front().placement.by_digest,
              testing::ElementsAre(testing::Pair("d1", 0), testing::Pair("d2", 1)));
  lock.programs[0].workloads[1].target = "x86_64";
  EXPECT_THAT(std::string(LockedTargets(lock, "hone.lock", {}).status().message()),
              HasSubstr("hone.lock: workload d2 is for x86_64, which is no target of its program"));
}

}  // namespace
}  // namespace hone::cli
