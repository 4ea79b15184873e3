// SPDX-License-Identifier: Apache-2.0
// Names of the model's file in a package: the nodes of each call, and the values that tensors hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "deploy/package/constant_section.h"
#include "deploy/package/manifest_builder.h"
#include "deploy/runtime/hone.h"
#include "deploy/runtime/program_view.h"
#include "tests/unit/runtime/loaded_model.h"
#include "tests/unit/runtime/tiny_package.h"

namespace hone::tests {
namespace {

using ::testing::HasSubstr;

package::TensorId WrittenTensor(const package::PackageProgram& program) {
  const auto found =
      std::ranges::find(program.tensors, package::TensorKind::kIntermediate, &package::PackageTensor::kind);
  return static_cast<package::TensorId>(found - program.tensors.begin());
}

package::PackageProgram NamedProgram() {
  package::PackageProgram program = TinyProgram(CompileTinyKernels());
  program.calls[0].nodes = {{"add", "Add"}};
  program.calls[1].nodes = {{"add", "Add"}, {"Mul_1", "Mul"}};
  program.values = {{"sum", WrittenTensor(program), {1, 0}}};
  return program;
}

TEST(Names, ACallTellsItsNodes) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  package::PackageContents contents = TinyContents(CompileTinyKernels());
  contents.programs[0] = NamedProgram();
  const std::string path = folder / "named.hone";
  WriteTinyPackage(path, contents);
  EXPECT_EQ(ReadWholeFile(path)[8], package::kNodesFormatVersion);
  const LoadedModel model(path);
  ASSERT_EQ(hone_call_node_count(model, 0), 1u);
  ASSERT_EQ(hone_call_node_count(model, 1), 2u);
  EXPECT_STREQ(hone_call_node(model, 1, 0), "add");
  EXPECT_STREQ(hone_call_node(model, 1, 1), "Mul_1");
  EXPECT_STREQ(hone_call_node_operator(model, 1, 1), "Mul");
  EXPECT_EQ(hone_call_node(model, 1, 2), nullptr);
  EXPECT_EQ(hone_call_node_operator(model, 9, 0), nullptr);
  EXPECT_EQ(hone_call_node_count(model, 9), 0u);
}

TEST(Names, APackageWithoutNamesHasNone) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder / "plain.hone";
  WriteTinyPackage(path, TinyContents(CompileTinyKernels()));
  const LoadedModel model(path);
  EXPECT_EQ(hone_call_node_count(model, 0), 0u);
  EXPECT_EQ(hone_call_node(model, 0, 0), nullptr);
}

class WatchedRun : public ::testing::Test {
 protected:
  std::string Write(const std::function<void(package::PackageProgram&)>& change) {
    package::PackageContents contents = TinyContents(CompileTinyKernels());
    change(contents.programs[0]);
    const std::string path = folder_ / "watched.hone";
    WriteTinyPackage(path, contents);
    return path;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::vector<float> x_ = TinyInput();
  FloatTensor input_{x_.data(), {kRows, kColumns}};
};

TEST_F(WatchedRun, ShowsValuesAfterTheCallsThatWriteThem) {
  const LoadedModel model(Write(NameValues));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK) << hone_error();
  for (int i = 0; i < 2; ++i) ExpectNamedValues(ValuesOfRun(model));
  EXPECT_EQ(OutputOf(model, 0), TinyOutput());
  EXPECT_EQ(OutputOf(model, 1), x_);
  ASSERT_EQ(hone_run(model), HONE_OK);
  EXPECT_EQ(OutputOf(model, 0), TinyOutput());
}

TEST_F(WatchedRun, LaterCallsReadWhatTheWatchChanges) {
  const LoadedModel model(Write(NameValues));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK) << hone_error();
  const HoneWatch watch = [](void*, const HoneValue* value) {
    if (value->call == 0) static_cast<float*>(value->tensor.data)[3] = 100;
  };
  ASSERT_EQ(hone_run_watched(model, watch, nullptr), HONE_OK) << hone_error();
  std::vector<float> expected = TinyOutput();
  expected[3] = 200;
  EXPECT_EQ(OutputOf(model, 0), expected);
}

TEST_F(WatchedRun, ShowsTensorsAtTheirCurrentSizes) {
  const LoadedModel model(Write([](package::PackageProgram& program) {
    NameValues(program);
    OpenRows(program);
  }));
  const FloatTensor two(x_.data(), {2, kColumns});
  ASSERT_EQ(hone_set_input(model, 0, &two.tensor), HONE_OK);
  const std::vector<WatchedValue> values = ValuesOfRun(model);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[2].elements.size(), 2u * kColumns);
}

TEST_F(WatchedRun, NeedsAWatchAndInputs) {
  const LoadedModel model(Write(NameValues));
  EXPECT_EQ(hone_run_watched(model, nullptr, nullptr), HONE_INVALID_ARGUMENT);
  const HoneWatch watch = [](void*, const HoneValue*) {};
  EXPECT_EQ(hone_run_watched(model, watch, nullptr), HONE_INVALID_ARGUMENT);
  EXPECT_THAT(hone_error(), HasSubstr("has never been set"));
}

TEST_F(WatchedRun, ShowsNothingOfAPackageWithoutNames) {
  const LoadedModel model(Write([](package::PackageProgram&) {}));
  ASSERT_EQ(hone_set_input(model, 0, &input_.tensor), HONE_OK) << hone_error();
  EXPECT_TRUE(ValuesOfRun(model).empty());
  EXPECT_EQ(OutputOf(model, 0), TinyOutput());
}

// The text of what is wrong with the manifest of a changed program; "" if nothing is. `change` gets a copy of the
// tables of the manifest's view, which are in its bytes.
std::string ErrorOfTables(const std::function<void(runtime::ProgramView&)>& change) {
  const package::PackageProgram program = NamedProgram();
  package::ConstantSection constants;
  auto manifest = package::BuildManifest(program, "cpu", package::kFormatVersion, constants);
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  const std::string& code = program.units[0].code;
  const std::span<const uint8_t> codes(reinterpret_cast<const uint8_t*>(code.data()), code.size());
  runtime::ProgramView view;
  const runtime::ProgramSections sections = {package::kFormatVersion, *manifest, {codes}};
  EXPECT_EQ(runtime::ViewProgram(sections, 4096, "", &view).text, "");
  change(view);
  return runtime::ViewProgram(sections, 4096, "", &view).text;
}

// An entry of a table as one that can be changed.
template <typename T>
T& Writable(std::span<const T> table, size_t index) {
  return const_cast<T&>(table[index]);
}

TEST(Names, OutOfRangeAreRefused) {
  using View = runtime::ProgramView;
  const std::pair<std::function<void(View&)>, const char*> changes[] = {
      {[](View& v) { Writable(v.nodes, 0).name.offset += 1; }, "node 0 has a text"},
      {[](View& v) { Writable(v.nodes, 1).op.bytes = 999; }, "node 1 has a text"},
      {[](View& v) { Writable(v.call_nodes, 1).call = 7; }, "node of a call 1 is out of order"},
      {[](View& v) { Writable(v.call_nodes, 0).call = 1, Writable(v.call_nodes, 1).call = 0; }, "node of a call 1"},
      {[](View& v) { Writable(v.call_nodes, 2).node = 2; }, "node of a call 2"},
      {[](View& v) { Writable(v.values, 0).name.bytes = 1; }, "value 0 has a text"},
      {[](View& v) { Writable(v.values, 0).tensor = v.inputs[0]; }, "value 0 is out of order or of a tensor"},
      {[](View& v) { Writable(v.values, 0).tensor = 99; }, "value 0 is out of order or of a tensor"},
      {[](View& v) { Writable(v.values, 0).rank = 3; }, "value 0 has no valid order"},
      {[](View& v) { Writable(v.values, 0).axes = 1; }, "value 0 has no valid order"},
      {[](View& v) { Writable(v.value_axes, 0) = 0; }, "value 0 has no valid order"},
      {[](View& v) { Writable(v.value_axes, 1) = 40; }, "value 0 has no valid order"},
  };
  for (const auto& [change, text] : changes) EXPECT_THAT(ErrorOfTables(change), HasSubstr(text));
}

}  // namespace
}  // namespace hone::tests
