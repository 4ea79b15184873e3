// SPDX-License-Identifier: Apache-2.0
// `hone diff` and `hone run --check` as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "cli/npz_file.h"
#include "tests/unit/graph/model_builder.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::CommandResult;

class DiffCommandTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_ / name; }
  // In `arguments`, {x} stands for the path of the file x in the test's folder.
  CommandResult Hone(std::string arguments) const {
    for (size_t at; (at = arguments.find('{')) != std::string::npos;) {
      const size_t end = arguments.find('}', at);
      arguments.replace(at, end - at + 1, File(arguments.substr(at + 1, end - at - 1)));
    }
    return tests::RunCommand("(" HONE_PROGRAM " " + arguments + ")");
  }
  // The model y = -softmax(op(x)).
  void WriteModel(const std::string& name, const std::string& op) const {
    graph::GraphBuilder b;
    b.Input("x", {2, 3}).Node(op, {"x"}, {"a"}).Node("Softmax", {"a"}, {"s"}).Node("Neg", {"s"}, {"y"}).Output("y");
    tests::WriteWholeFile(File(name), b.Model());
  }
  void SetUp() override {
    WriteModel("neg.onnx", "Neg");
    WriteModel("abs.onnx", "Abs");
    ASSERT_EQ(Hone("compile {neg.onnx} -o {neg.hone}").exit_code, 0);
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(DiffCommandTest, AgreesWithTheModel) {
  const CommandResult same = Hone("diff {neg.onnx} {neg.hone}");
  EXPECT_EQ(same.exit_code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("1 of 1 kernel calls checked\nno difference; the largest error is"));
  const CommandResult interpreted = Hone("diff {neg.onnx} {neg.hone} --interpret");
  EXPECT_EQ(interpreted.exit_code, 0) << interpreted.output;
  EXPECT_THAT(interpreted.output, HasSubstr("unoptimized and interpreted"));
}

TEST_F(DiffCommandTest, NamesTheFirstDifference) {
  const CommandResult other = Hone("diff {abs.onnx} {neg.hone}");
  EXPECT_EQ(other.exit_code, 5) << other.output;
  EXPECT_THAT(other.output, HasSubstr("first difference: 'y', computed by node_of_y (Neg)\n  kernel hone_k0_"));
  EXPECT_THAT(other.output, HasSubstr("node_of_a (Neg), node_of_s (Softmax), node_of_y (Neg)"));
  EXPECT_THAT(other.output, HasSubstr("hone: neg.hone differs from abs.onnx: first in 'y'"));
  const json document = json::parse(Hone("diff {abs.onnx} {neg.hone} --json 2>/dev/null").output);
  EXPECT_EQ(document.at("equal"), false);
  EXPECT_EQ(document.at("first"), "y");
  const json& y = document.at("values").back();
  EXPECT_EQ(y.at("worst").at("index").size(), 2u);
  EXPECT_EQ(y.at("elements"), 6);
  EXPECT_GT(y.at("relative_error"), 0.01);
}

TEST_F(DiffCommandTest, AnOutputOfAnotherTypeIsToldByTypes) {
  graph::GraphBuilder b;
  b.Input("x", {2, 3}).Node("Neg", {"x"}, {"a"}).Node("Cast", {"a"}, {"y"}, {graph::Attr("to", graph::kInt32)});
  tests::WriteWholeFile(File("cast.onnx"), b.TypedOutput("y", graph::kInt32).Model());
  const CommandResult other = Hone("diff {cast.onnx} {neg.hone}");
  EXPECT_EQ(other.exit_code, 5) << other.output;
  EXPECT_THAT(other.output, HasSubstr("first difference: 'y', computed by node_of_y (Cast)"));
  EXPECT_THAT(other.output, HasSubstr("the package has 6 elements of type f32, the model has 6 of type i32"));
  EXPECT_THAT(other.output, Not(HasSubstr("inf of its largest")));
}

TEST_F(DiffCommandTest, ARunCanBeCheckedOnItsInputs) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> shape = {2, 3};
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(x.data()), x.size() * sizeof(float));
  const std::vector<run::ArrayView> arrays = {{"x", package::DType::kFloat32, shape, bytes}};
  ASSERT_TRUE(WriteNpz(File("x.npz"), arrays).ok());
  EXPECT_EQ(Hone("diff {neg.onnx} {neg.hone} --input {x.npz}").exit_code, 0);
  const std::string run = "run {neg.hone} --input {x.npz} --output {out.npz} --check ";
  const CommandResult checked = Hone(run + "{neg.onnx}");
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  EXPECT_THAT(checked.output, HasSubstr("no difference"));
  std::filesystem::remove(File("out.npz"));
  EXPECT_EQ(Hone(run + "{abs.onnx}").exit_code, 5);
  EXPECT_TRUE(std::filesystem::exists(File("out.npz")));
  EXPECT_EQ(Hone("run {neg.hone} --input {x.npz} --output {neg.onnx} --check {neg.onnx}").exit_code, 2);
}

TEST_F(DiffCommandTest, SaysWhatDoesNotFit) {
  graph::GraphBuilder b;
  b.Input("z", {2, 3}).Node("Neg", {"z"}, {"y"}).Output("y");
  tests::WriteWholeFile(File("z.onnx"), b.Model());
  EXPECT_EQ(Hone("diff {neg.onnx}").exit_code, 2);
  EXPECT_EQ(Hone("diff {z.onnx} {neg.hone}").exit_code, 1);
  EXPECT_EQ(Hone("diff {nothing.onnx} {neg.hone}").exit_code, 1);
  EXPECT_EQ(Hone("diff {neg.onnx} {nothing.hone}").exit_code, 1);
  EXPECT_EQ(Hone("diff {neg.onnx} {neg.hone} --shape x=2,4").exit_code, 1);
}

}  // namespace
}  // namespace hone::cli
