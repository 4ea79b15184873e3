// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/check_inputs.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "compiler/graph/plan.h"
#include "compiler/target/host.h"
#include "deploy/package/compile_model.h"
#include "deploy/run/given_inputs.h"
#include "deploy/run/kept_run.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npz.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/graph/model_builder.h"

namespace hone::diff {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kOther = "other elements in the input 'x'";

// z = x + w, with an open number of rows of x and a default for w.
class CheckInputsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    graph::GraphBuilder b;
    b.Input("x", graph::Dims(std::vector<graph::Dim>{"n", 3})).Input("w", {3}).Floats("w", {3}, {1, 2, 3});
    b.Node("Add", {"x", "w"}, {"z"}).Output("z");
    std::ofstream(folder_ / "add.onnx", std::ios::binary) << b.Model();
    graph::ImportOptions import;
    import.shapes["x"] = {graph::DimRange(1, 4), 3};
    const auto plan = graph::BuildPlan(folder_ / "add.onnx", import, target::HostCpu());
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto compiled = package::CompilePlan(*plan, "add", {.target = target::HostCpu()}, path_);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
  }
  // A run as a device makes it, of these shapes or with the arrays of a file.
  PackageRun Run(const SentInputs& sent) {
    auto package = run::LoadedPackage::Load(path_, {.threads = 1}).value();
    if (sent.file.empty()) {
      EXPECT_TRUE(package.Resize(sent.shapes).ok());
      EXPECT_TRUE(package.FillInputs(run::kRandomInputsSeed).ok());
    } else {
      EXPECT_TRUE(run::SetGivenInputs(package, sent.file).ok());
    }
    run::KeptRun kept = run::RunAndKeep(package).value();
    ProgramTables tables = ProgramTables::Read(path_, kept.program).value();
    return {std::move(tables), std::move(kept)};
  }
  static run::Array& InputOf(PackageRun& run, const std::string& name) {
    return std::ranges::find(run.kept.inputs, name, &run::KeptPort::name)->array;
  }
  void WriteX(const std::vector<float>& x) const {
    const std::vector<int64_t> shape = {static_cast<int64_t>(x.size()) / 3, 3};
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float));
    const std::vector<run::ArrayView> arrays = {{"x", DType::kFloat32, shape, bytes}};
    std::ofstream file(folder_ / "x.npz", std::ios::binary);
    const run::NpzWriter writer(arrays);
    for (const std::span<const uint8_t> piece : writer.pieces()) {
      file.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    }
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string path_ = folder_ / "add.hone";
};

TEST_F(CheckInputsTest, RandomInputsAreThoseOfTheSeed) {
  for (const SentInputs& sent : {SentInputs{}, SentInputs{.file = "", .shapes = {{"x", {2, 3}}}}}) {
    PackageRun run = Run(sent);
    EXPECT_EQ(CheckInputs(run, sent), absl::OkStatus());
    InputOf(run, "x").data[5] ^= 1;
    const absl::Status other = CheckInputs(run, sent);
    EXPECT_TRUE(absl::IsDataLoss(other)) << other;
    EXPECT_THAT(std::string(other.message()), HasSubstr(kOther));
  }
  EXPECT_THAT(std::string(CheckInputs(Run({}), {.file = "", .shapes = {{"x", {2, 3}}}}).message()),
              HasSubstr("had f32 [4, 3] as input 'x', and was to have f32 [2, 3]"));
}

TEST_F(CheckInputsTest, GivenInputsAreThoseOfTheFileAndDefaultsOfThePackage) {
  WriteX({1, 2, 3, 4, 5, 6});
  const SentInputs sent{.file = folder_ / "x.npz"};
  PackageRun run = Run(sent);
  EXPECT_EQ(CheckInputs(run, sent), absl::OkStatus());
  InputOf(run, "w").data[0] ^= 1;
  EXPECT_THAT(std::string(CheckInputs(run, sent).message()), HasSubstr("in the input 'w'"));
  run = Run(sent);
  WriteX({1, 2, 3, 4, 5, 7});
  EXPECT_THAT(std::string(CheckInputs(run, sent).message()), HasSubstr(kOther));
  std::erase_if(run.kept.inputs, [](const run::KeptPort& input) { return input.name == "x"; });
  EXPECT_THAT(std::string(CheckInputs(run, sent).message()), HasSubstr("does not say what the input 'x' was"));
}

}  // namespace
}  // namespace hone::diff
