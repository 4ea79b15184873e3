// SPDX-License-Identifier: Apache-2.0
// Rows whose lanes reduce partial results by shuffles. The interpreter checks values and finds races.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/execution/model.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Rows {
  const char* name;
  std::string text;
};

std::string Softmax(int columns) {
  return fmt::format(R"(workload "softmax"
input x: f32[2,3,{0}] in [-4, 4]
m: f32[2,3,1] over a0:2, a1:3, a2:1 = max a3:{0} of x[a0, a1, a3]
e: f32[2,3,{0}] over b0:2, b1:3, b2:{0} = exp(x[b0, b1, b2] - m[b0, b1, 0])
s: f32[2,3,1] over c0:2, c1:3, c2:1 = sum c3:{0} of e[c0, c1, c3]
o: f32[2,3,{0}] over d0:2, d1:3, d2:{0} = e[d0, d1, d2] / s[d0, d1, 0]
output o
)",
                     columns);
}

// keeps: the result keeps the reduced axis, with one element.
std::string Reduce(const char* type, const char* reduction, int columns, bool keeps = false) {
  return fmt::format(R"(workload "reduce"
input x: {0}[7,{2}] in [0, 2]
t: {0}[7{3}] over i:7{4} = {1} k:{2} of x[i, k]
output t
)",
                     type, reduction, columns, keeps ? ",1" : "", keeps ? ", j:1" : "");
}

std::string LayerNorm(int columns) {
  return fmt::format(R"(workload "layer_norm"
input x: f32[6,{0}] in [-1, 1]
const g: f32[{0}] in [-1, 1]
s: f32[6,1] over a0:6, a1:1 = sum a2:{0} of x[a0, a2]
m: f32[6,1] over b0:6, b1:1 = s[b0, b1] * {1}f32
d: f32[6,{0}] over c0:6, c1:{0} = x[c0, c1] - m[c0, 0]
q: f32[6,1] over d0:6, d1:1 = sum d2:{0} of d[d0, d2] * d[d0, d2]
o: f32[6,{0}] over e0:6, e1:{0} = d[e0, e1] / sqrt(q[e0, 0] * {1}f32 + 0.00001f32) * g[e1]
output o
)",
                     columns, 1.0 / columns);
}

// A long reduction, one with fewer steps than a group has lanes, and one with fewer steps than a warp has lanes.
constexpr char kLongAndShort[] = R"(workload "reduce"
input x: f32[5,200] in [-1, 1]
input w: f32[5,40] in [-1, 1]
input z: f32[5,7] in [-1, 1]
s: f32[5] over a0:5 = sum a1:200 of x[a0, a1]
q: f32[5] over d0:5 = sum d1:40 of w[d0, d1]
m: f32[5] over b0:5 = max b1:7 of z[b0, b1]
o: f32[5,200] over c0:5, c1:200 = x[c0, c1] * s[c0] + q[c0] * m[c0]
output o
)";

// A reduction over several axes; the longest is no multiple of the lanes.
constexpr char kPlanes[] = R"(workload "reduce"
input x: f32[2,5,7,45] in [-1, 1]
t: f32[2,5,1,1] over n:2, c:5, i:1, j:1 = sum h:7, w:45 of x[n, c, h, w]
u: f32[2,5,1,1] over un:2, uc:5, ui:1, uj:1 = t[un, uc, ui, uj] * 0.0285f32
output u
)";

class LaneRows : public ::testing::TestWithParam<Rows> {
 protected:
  static target::Target Shuffling() { return target::ParseTarget("cuda:sm_75").value(); }
  static ir::Workload Parsed() { return ir::ParseWorkload(GetParam().text).value(); }

  // Returns the schedule of these decisions, after checking that it computes the right values; "" if there is none.
  static std::string Scheduled(Chooser& chooser) {
    const ir::Workload workload = Parsed();
    const auto candidate =
        Build(workload, Shuffling(), ApplicableEntries(workload, Shuffling()), chooser, Family::kSketch);
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    if (!candidate.ok()) return "";
    const std::string steps = schedule::Print(candidate->schedule);
    EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, Shuffling()), absl::OkStatus())
        << Print(candidate->decisions) << "\n"
        << steps;
    return steps;
  }
};

TEST_P(LaneRows, AreCorrectWithAnyNumberOfLanes) {
  for (const int64_t lanes : {8, 32, 64, 128, 256}) {
    for (const int64_t merges : {0, 1}) {
      const Decisions decisions = {{"rows.lanes", lanes, {}}, {"rows.merges", merges, {}}};
      Chooser chooser(&decisions);
      Scheduled(chooser);
    }
  }
}

TEST_P(LaneRows, UseLaneReductionsIfTheTargetHasShuffles) {
  Chooser chooser;
  const std::string steps = Scheduled(chooser);
  const auto of = [&](const char* target) {
    Chooser again;
    const ir::Workload workload = Parsed();
    const target::Target other = *target::ParseTarget(target);
    const auto candidate = Build(workload, other, ApplicableEntries(workload, other), again, Family::kSketch);
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    const auto module = execution::Lower(candidate->state, other, "kernel");
    EXPECT_TRUE(module.ok()) << module.status();
    std::string text;
    for (const ir::Func& func : module->main) text += ir::Print(func);
    return text;
  };
  EXPECT_THAT(of("cuda:sm_75"), HasSubstr("merge ")) << steps;
  EXPECT_THAT(of("cuda:sm_62"), Not(HasSubstr("merge "))) << "older devices cannot";
}

TEST_P(LaneRows, RandomCandidatesAreCorrect) {
  Random random(23);
  for (int i = 0; i < 12; ++i) {
    Chooser chooser(nullptr, &random);
    Scheduled(chooser);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, LaneRows,
    ::testing::Values(Rows{"softmax", Softmax(128)}, Rows{"softmax_prime", Softmax(67)},
                      Rows{"softmax_long", Softmax(1000)}, Rows{"layer_norm", LayerNorm(100)},
                      Rows{"mean", Reduce("f32", "sum", 300)}, Rows{"mean_odd", Reduce("f32", "sum", 77)},
                      Rows{"mean_keeps", Reduce("f32", "sum", 300, true)}, Rows{"max", Reduce("f32", "max", 70)},
                      Rows{"min", Reduce("f64", "min", 129)}, Rows{"product", Reduce("i32", "prod", 65)},
                      Rows{"count", Reduce("i64", "sum", 64)}, Rows{"long_and_short", kLongAndShort},
                      Rows{"planes", kPlanes}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::space
