// SPDX-License-Identifier: Apache-2.0
// Runs tests/golden/passes/*.golden. HONE_UPDATE_GOLDEN=1 rewrites the files with the passes' current results, and the
// test fails all the same: review the difference, then run it again without the variable.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/passes/golden_case.h"

namespace hone::opt {
namespace {

TEST(GoldenPasses, FilesAreAsExpected) {
  const std::vector<tests::GoldenFile> cases = ReadGoldenCases();
  ASSERT_FALSE(cases.empty());
  for (const tests::GoldenFile& golden : cases) {
    EXPECT_NE(golden.input.find("# run: passes="), std::string::npos) << golden.path << " names no passes";
    const std::string actual = ActualOf(golden);
    EXPECT_EQ(actual, golden.expected) << golden.path;
    tests::UpdateGoldenFile(golden, actual);
  }
}

// The expected program of a golden file must compute the same as its input.
TEST(GoldenPasses, KeepTheMeaning) {
  for (const tests::GoldenFile& golden : ReadGoldenCases()) {
    if (golden.expected.starts_with("error: ")) continue;
    EXPECT_EQ(Opt(golden.input, {.interpret = true}).status(), absl::OkStatus()) << golden.path;
  }
}

// Returns the names of the passes that the golden files of this kind of program run.
std::set<std::string> PassesRun(bool graphs) {
  std::set<std::string> names;
  for (const tests::GoldenFile& golden : ReadGoldenCases()) {
    if (golden.path.filename().string().starts_with("graph_") != graphs) continue;
    std::string_view list = std::string_view(golden.input).substr(golden.input.find("# run: passes="));
    list = list.substr(0, list.find('\n'));
    for (const std::string_view name : SplitNames(list.substr(list.find('=') + 1))) {
      names.emplace(name);
    }
  }
  return names;
}

TEST(GoldenPasses, EveryPassHasOne) {
  const std::set<std::string> graph = PassesRun(true), func = PassesRun(false);
  for (const auto& pass : graph::GraphPasses()) EXPECT_TRUE(graph.contains(std::string(pass.name))) << pass.name;
  for (const auto& pass : passes::FuncPasses()) EXPECT_TRUE(func.contains(std::string(pass.name))) << pass.name;
  for (const auto& pass : passes::GridPasses()) EXPECT_TRUE(func.contains(std::string(pass.name))) << pass.name;
}

}  // namespace
}  // namespace hone::opt
