// SPDX-License-Identifier: Apache-2.0
// Compares the schedules that the sketch prefers with tests/golden/space/*.golden. A golden file has a head "# target:
// TARGET", a workload, and the schedule, so that review shows every change of it. HONE_UPDATE_GOLDEN=1 writes the
// current schedules and fails all the same: review the difference, then run again without it. SpaceTest checks that
// such schedules compute the right values, on smaller workloads.
#include <gtest/gtest.h>

#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "tests/golden/golden_file.h"

namespace hone::space {
namespace {

constexpr std::string_view kHead = "# target: ";

absl::StatusOr<std::string> Preferred(const std::string& input) {
  const size_t end = input.find('\n');
  if (!input.starts_with(kHead)) return absl::InvalidArgumentError("the first line must be '# target: TARGET'");
  HONE_ASSIGN_OR_RETURN(const target::Target target,
                        target::ParseTarget(std::string_view(input).substr(kHead.size(), end - kHead.size())));
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(input.substr(end + 1)));
  Chooser chooser;
  HONE_ASSIGN_OR_RETURN(const Candidate candidate,
                        Build(workload, target, ApplicableEntries(workload, target), chooser, Family::kSketch));
  HONE_RETURN_IF_ERROR(execution::Lower(candidate.state, target, "kernel").status());
  return schedule::Print(candidate.schedule);
}

TEST(GoldenSchedules, FilesAreAsExpected) {
  const std::vector<tests::GoldenFile> files = tests::ReadGoldenFiles("space");
  ASSERT_FALSE(files.empty());
  for (const tests::GoldenFile& golden : files) {
    const absl::StatusOr<std::string> actual = Preferred(golden.input);
    ASSERT_TRUE(actual.ok()) << golden.path << ": " << actual.status();
    EXPECT_EQ(*actual, golden.expected) << golden.path;
    tests::UpdateGoldenFile(golden, *actual);
  }
}

}  // namespace
}  // namespace hone::space
