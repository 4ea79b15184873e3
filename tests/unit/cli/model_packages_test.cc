// SPDX-License-Identifier: Apache-2.0
// Commands that take a model where a package could stand.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/temporary_folder.h"
#include "cli/npz_file.h"
#include "deploy/run/npz.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ModelPackages, AModelIsCompiledBeforeItRuns) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string model = folder / "open.onnx", temporary = folder / "temporary";
  std::filesystem::create_directory(temporary);
  const auto hone = [&](const std::string& command, const std::string& options) {
    return tests::RunCommand(fmt::format("(TMPDIR={} {} {} {} {})", temporary, HONE_PROGRAM, command, model, options));
  };
  graph::GraphBuilder b;
  b.Input("x", graph::Dims({graph::Dim("batch"), graph::Dim("length")})).Node("Neg", {"x"}, {"y"}).Output("y");
  tests::WriteWholeFile(model, b.Model());

  const std::vector<float> x = {1, -2, 3, 4, 5, -6};
  const std::vector<int64_t> shape = {2, 3};
  const std::string inputs = folder / "x.npz", outputs = folder / "y.npz";
  const std::vector<run::ArrayView> arrays = {
      {"x", package::DType::kFloat32, shape, {reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float)}}};
  ASSERT_TRUE(WriteNpz(inputs, arrays).ok());
  const tests::CommandResult run = hone("run", fmt::format("--input {} --output {}", inputs, outputs));
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto y = run::NpzReader::Open(outputs)->Read("y", [](const run::NpyHeader&) { return absl::OkStatus(); });
  ASSERT_TRUE(y.ok()) << y.status();
  ASSERT_EQ(y->data.size(), x.size() * sizeof(float));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(reinterpret_cast<const float*>(y->data.data())[i], -x[i]);

  const tests::CommandResult profile = hone("profile", "--shape x=3,5 --seconds 0 --json 2>/dev/null");
  ASSERT_EQ(profile.exit_code, 0) << profile.output;
  EXPECT_FALSE(json::parse(profile.output).at("kernels")[0].at("gflops").is_null()) << "it is for exactly this shape";
  EXPECT_EQ(hone("bench", "--shape x=3,5 --seconds 0 --threads 1").exit_code, 0);
  const tests::CommandResult gate = hone("gate", fmt::format("--baseline {} --seconds 0.1 --slower-than 1000%", model));
  EXPECT_EQ(gate.exit_code, 0) << gate.output;
  EXPECT_THAT(gate.output, HasSubstr("open.hone is"));
  EXPECT_TRUE(std::filesystem::is_empty(temporary)) << "packages that were made to be run are gone";
  const tests::CommandResult range = hone("bench", "--shape x=1..3,5 --seconds 0");
  EXPECT_EQ(range.exit_code, 2) << range.output;
  std::filesystem::remove(model);
  const tests::CommandResult missing = hone("bench", "--seconds 0");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.output, HasSubstr("open.onnx"));
}

}  // namespace
}  // namespace hone::cli
