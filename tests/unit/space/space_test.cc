#include "compiler/space/space.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "compiler/codegen/target.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/workloads.h"

namespace hone::space {
namespace {

class SpaceTest : public ::testing::TestWithParam<testing::NamedWorkload> {
 protected:
  static codegen::Target Host() { return codegen::ParseTarget("cpu -threads=2").value(); }
  static ir::Workload Parsed() {
    auto workload = ir::ParseWorkload(GetParam().text);
    EXPECT_TRUE(workload.ok()) << workload.status();
    return *workload;
  }
};

TEST_P(SpaceTest, DefaultIsCorrect) {
  const ir::Workload workload = Parsed();
  const auto candidate = Default(workload, Host());
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  SCOPED_TRACE(schedule::Print(candidate->schedule));
  EXPECT_EQ(testing::CheckLowered(workload, candidate->schedule), absl::OkStatus());
  EXPECT_EQ(testing::CheckCompiled(workload, candidate->schedule, Host()), absl::OkStatus());
}

TEST_P(SpaceTest, SketchAloneIsCorrect) {
  const ir::Workload workload = Parsed();
  const Decisions sketch = {{"space", 0, {}}};
  Chooser chooser(&sketch);
  const auto candidate = Build(workload, Host(), chooser);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  SCOPED_TRACE(schedule::Print(candidate->schedule));
  EXPECT_EQ(testing::CheckCompiled(workload, candidate->schedule, Host()), absl::OkStatus());
}

TEST_P(SpaceTest, RandomCandidatesAreCorrect) {
  const ir::Workload workload = Parsed();
  Random random(11);
  int built = 0;
  for (int i = 0; i < 12; ++i) {
    Chooser chooser(nullptr, &random);
    const auto candidate = Build(workload, Host(), chooser);
    if (!candidate.ok()) {
      EXPECT_EQ(candidate.status().code(), absl::StatusCode::kFailedPrecondition) << candidate.status();
      continue;
    }
    const absl::Status status = testing::CheckCompiled(workload, candidate->schedule, Host());
    if (status.code() == absl::StatusCode::kFailedPrecondition) continue;  // cannot be lowered: the search drops it
    ++built;
    EXPECT_EQ(status, absl::OkStatus()) << Print(candidate->decisions) << "\n" << schedule::Print(candidate->schedule);
  }
  EXPECT_GE(built, 6) << "most random decisions should lead somewhere";
}

TEST_P(SpaceTest, DecisionsAndScheduleTextReplay) {
  const ir::Workload workload = Parsed();
  Random random(5);
  Chooser chooser(nullptr, &random);
  const auto candidate = Build(workload, Host(), chooser);
  if (!candidate.ok()) GTEST_SKIP() << candidate.status();
  const auto decisions = ParseDecisions(Print(candidate->decisions));
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  Chooser again(&*decisions);
  const auto same = Build(workload, Host(), again);
  ASSERT_TRUE(same.ok()) << same.status();
  const std::string text = schedule::Print(candidate->schedule);
  EXPECT_EQ(schedule::Print(same->schedule), text);
  const auto parsed = schedule::ParseSchedule(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(schedule::Print(*parsed), text);
}

INSTANTIATE_TEST_SUITE_P(Workloads, SpaceTest, ::testing::ValuesIn(testing::SmallWorkloads()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::space
