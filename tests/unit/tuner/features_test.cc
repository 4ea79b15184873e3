// SPDX-License-Identifier: Apache-2.0
#include "tuner/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "compiler/schedule/apply.h"
#include "compiler/space/space.h"
#include "tests/unit/space/pipelines.h"
#include "tests/unit/space/workloads.h"
#include "tuner/analytic_model.h"
#include "tuner/index_code.h"
#include "tuner/nest_facts.h"

namespace hone::tuner {
namespace {

target::Target SomeTarget() {
  return target::ParseTarget("x86_64 -mcpu=znver4 -threads=2 -l1=32768 -l2=1048576 -l3=33554432").value();
}

class EveryWorkload : public ::testing::TestWithParam<tests::NamedWorkload> {
 protected:
  static ir::Workload Parsed() { return ir::ParseWorkload(GetParam().text).value(); }
};

TEST_P(EveryWorkload, RandomCandidatesHaveFiniteFeatures) {
  const ir::Workload workload = Parsed();
  const target::Target target = SomeTarget();
  Random random(3);
  int built = 0;
  for (int i = 0; i < 40; ++i) {
    space::Chooser chooser(nullptr, &random);
    const auto candidate = space::Build(workload, target, space::ApplicableEntries(workload, target), chooser);
    if (!candidate.ok()) continue;
    ++built;
    const Features features = ExtractFeatures(candidate->state, target);
    ASSERT_EQ(features.size(), kFeatureCount);
    for (size_t f = 0; f < features.size(); ++f) ASSERT_TRUE(std::isfinite(features[f])) << "feature " << f;
  }
  EXPECT_GT(built, 0);
}

TEST_P(EveryWorkload, FeaturesDependOnTheStateAlone) {
  const ir::Workload workload = Parsed();
  const auto a = space::Default(workload, SomeTarget()), b = space::Default(workload, SomeTarget());
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(ExtractFeatures(a->state, SomeTarget()), ExtractFeatures(b->state, SomeTarget()));
}

TEST_P(EveryWorkload, AnalyticModelPrefersTheDefaultToNaiveLoops) {
  const ir::Workload workload = Parsed();
  if (ir::CountFlops(workload) < 1e5) GTEST_SKIP() << "too small to matter";
  const target::Target target = SomeTarget();
  const auto default_candidate = space::Default(workload, target);
  const auto plain = schedule::Replay(workload, {});
  ASSERT_TRUE(default_candidate.ok() && plain.ok());
  EXPECT_LT(ExtractFeatures(default_candidate->state, target)[kAnalyticLogSeconds],
            ExtractFeatures(*plain, target)[kAnalyticLogSeconds]);
}

TEST_P(EveryWorkload, RandomCandidatesForLanesHaveFiniteFeatures) {
  const ir::Workload workload = Parsed();
  const target::Target target = target::ParseTarget("opencl").value();
  Random random(3);
  for (int i = 0; i < 40; ++i) {
    space::Chooser chooser(nullptr, &random);
    const auto candidate = space::Build(workload, target, space::ApplicableEntries(workload, target), chooser);
    if (!candidate.ok()) continue;
    const Features features = ExtractFeatures(candidate->state, target);
    ASSERT_EQ(features.size(), kFeatureCount + kLaneFeatures);
    for (size_t f = 0; f < features.size(); ++f) ASSERT_TRUE(std::isfinite(features[f])) << "feature " << f;
  }
}

// Candidates that differ only in overlap of copies must have different features, so that a model can learn the
// difference.
TEST(Features, TellWhatOverlaps) {
  const auto workload = ir::ParseWorkload(R"(workload "matmul"
input x: f16[1024,1024] in [-1, 1]
const w: f16[1024,1024] in [-1, 1]
t: f32[1024,1024] over i:1024, j:1024 = sum k:1024 of f32(x[i, k]) * f32(w[k, j])
output t
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const target::Target target = target::ParseTarget("cuda:sm_90a").value();
  const auto features_of = [&](const space::Decisions& decisions) {
    space::Chooser chooser(&decisions);
    const auto candidate = space::Build(*workload, target, space::ApplicableEntries(*workload, target), chooser);
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    return candidate.ok() ? ExtractFeatures(candidate->state, target) : Features();
  };
  for (const std::string_view name : {"running", "buffers", "sharing", "together"}) {
    const auto with = [&](int64_t value) { return features_of({{std::string(name), value}}); };
    EXPECT_NE(with(0), with(2)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, EveryWorkload, ::testing::ValuesIn(tests::SmallWorkloads()),
                         [](const auto& info) { return info.param.name; });

constexpr char kMatMul[] = R"(workload "matmul"
input x: f32[96,256] in [-1, 1]
const w: f32[256,128] in [-1, 1]
t: f32[96,128] over i:96, j:128 = sum k:256 of x[i, k] * w[k, j]
output t
)";

NestFacts FactsOf(const std::string& schedule, size_t nest) {
  const ir::Workload workload = ir::ParseWorkload(kMatMul).value();
  const auto state = schedule::Replay(workload, schedule::ParseSchedule(schedule).value());
  EXPECT_TRUE(state.ok()) << state.status();
  // The facts point into the state, which is destroyed here. Tests read only their numbers.
  return AnalyzeNests(*state, SomeTarget()).at(nest);
}

// Features with open sizes are those of the kernel that is fixed to the point.
TEST(Features, AreThoseOfThePoints) {
  const ir::Workload open = ir::ParseWorkload(R"(workload "matmul"
size n in [1, 500]
size m in [1, 40]
input x: f32[n,m,256] in [-1, 1]
const w: f32[256,128] in [-1, 1]
t: f32[n,m,128] over i:n, h:m, j:128 = sum k:256 of x[i, h, k] * w[k, j]
u: f32[n,m,128] over a:n, c:m, b:128 = max(t[a, c, b], 0f32)
output u
)")
                                .value();
  const auto features = [&](const std::string& schedule, const std::vector<SizePoint>& points, const SizePoint& fixed) {
    const ir::Workload workload = fixed.empty() ? open : ir::WithSizes(open, ValuesOf(fixed));
    const auto state = schedule::Replay(workload, schedule::ParseSchedule(schedule).value());
    EXPECT_TRUE(state.ok()) << state.status();
    Features found = ExtractFeatures(*state, SomeTarget(), points);
    found[kLogLocalBytes] = 0;  // local memory is that of the largest sizes
    return found;
  };
  const SizePoint small = {{"n", 7}, {"m", 3}}, large = {{"n", 400}, {"m", 40}}, largest = {{"n", 500}, {"m", 40}};
  for (const char* schedule : {"", "split b 16 mask\nvectorize bi\nparallel a\ncompute_at t a\n",
                               "split j 16 mask\nreorder i h jo k ji\nvectorize ji\nparallel i\n"}) {
    EXPECT_EQ(features(schedule, {small}, {}), features(schedule, {}, small)) << schedule;
    EXPECT_EQ(features(schedule, {large}, {}), features(schedule, {}, large)) << schedule;
    EXPECT_EQ(features(schedule, {}, {}), features(schedule, {}, largest)) << schedule;
    const Features a = features(schedule, {small}, {}), b = features(schedule, {large}, {});
    const Features both = features(schedule, {small, large}, {});
    ASSERT_EQ(both.size(), a.size());
    EXPECT_NEAR(both[kAnalyticLogSeconds],
                std::log(std::exp(a[kAnalyticLogSeconds]) + std::exp(b[kAnalyticLogSeconds])), 1e-5);
    for (size_t i = 1; i < both.size(); ++i) EXPECT_NEAR(both[i], (a[i] + b[i]) / 2, 1e-5) << "feature " << i;
  }
}

// Groups of 4 x 16 lanes, each lane with a tile of 4 x 2. Both operands go through shared memory, 8 steps of the
// reduction at a time.
constexpr char kLaneSchedule[] = R"(cache_write t
cache_read x tc
store_in xrtc shared 1
cache_read w tc
store_in wrtc shared
split i 16 mask
split ii 4 mask
split j 32 mask
split ji 2 mask
reorder io jo iio jio iii jii
bind io group
bind jo group
bind iio lane
bind jio lane
compute_at tc jio
split kc 8 mask
reorder kco kci ic jc
compute_at xrtc kco
compute_at wrtc kco
)";

TEST(NestFactsTest, LanesShareAndAreNeighbours) {
  const ir::Workload workload = ir::ParseWorkload(kMatMul).value();
  const auto state = schedule::Replay(workload, schedule::ParseSchedule(kLaneSchedule).value());
  ASSERT_TRUE(state.ok()) << state.status();
  const std::vector<NestFacts> nests = AnalyzeNests(*state, target::ParseTarget("opencl").value());
  const auto of = [&](const char* stage) {
    return *std::ranges::find_if(nests, [&](const NestFacts& f) { return f.nest->stage.buffer->name == stage; });
  };
  for (const char* stage : {"tc", "xrtc", "wrtc", "t"}) {
    EXPECT_EQ(of(stage).launch.groups, 6 * 4) << stage;
    EXPECT_EQ(of(stage).launch.lanes, 4 * 16) << stage;
    EXPECT_EQ(of(stage).launch.shared_bytes, (16 * (8 + 1) + 8 * 32) * 4) << stage;
  }
  // The group loads them together, once per step, instead of once per lane.
  EXPECT_EQ(of("xrtc").executed, 24 * (256 / 8) * (16 * 8));
  EXPECT_EQ(of("wrtc").executed, 24 * (256 / 8) * (8 * 32));
  const NestFacts sum = of("tc");
  const auto access = [&](const char* buffer) {
    return *std::ranges::find_if(sum.accesses, [&](const Access& a) { return a.buffer->name == buffer; });
  };
  EXPECT_TRUE(access("xrtc").shared && access("xrtc").local);
  EXPECT_EQ(access("xrtc").lane_stride, 0) << "neighbours have the same row";
  EXPECT_EQ(access("wrtc").lane_stride, 2) << "and tiles of two columns";
  EXPECT_FALSE(of("t").accesses.back().shared);
  EXPECT_EQ(of("t").accesses.back().lane_stride, 2);
  // Rows of the padded tile are 9 elements apart.
  const auto ic =
      static_cast<size_t>(std::ranges::find(sum.nest->loops, "ic", &schedule::Loop::name) - sum.nest->loops.begin());
  EXPECT_EQ(access("xrtc").stride[sum.depth() - sum.nest->loops.size() + ic], 9);
}

TEST(NestFactsTest, RegisterTileIsSeenAsAccumulatorsAndLoads) {
  // Tiles of 6 rows by 4 vectors of 16, with the reduction inside.
  const NestFacts facts = FactsOf(
      "cache_write t\nsplit i 6 shift\nsplit j 64 mask\nreorder io jo ii ji\ncompute_at tc jo\n"
      "split jc 16 mask\nreorder kc ic jco jci\nunroll ic\nunroll jco\nvectorize jci\n",
      0);
  EXPECT_EQ(facts.tile.outputs, 24);
  EXPECT_EQ(facts.tile.vectors, 24);
  EXPECT_EQ(facts.tile.loads, 6 + 4);  // six broadcasts, four vectors
  EXPECT_EQ(facts.tile.gathers, 0);
  EXPECT_EQ(facts.tile.vector_used, 1);
  EXPECT_TRUE(facts.tile.vectorized);
  EXPECT_EQ(facts.executed, 96.0 * 128 * 256);
}

TEST(NestFactsTest, InstructionIsOneOperationOfItsTile) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "matmul"
input x: u8[96,128] in [0, 255]
const w: i8[128,256] in [-128, 127]
t: i32[96,256] over i:96, j:256 = sum k:128 of i32(x[i, k]) * i32(w[k, j])
output t
)")
                                    .value();
  // Tiles of 6 rows by 2 instructions of 16 columns and 4 steps.
  const auto state = schedule::Replay(
      workload, schedule::ParseSchedule("pack w t 1/32 0/4 1%32 0%4\ncache_write t\nsplit i 6 shift\nsplit j 32 mask\n"
                                        "reorder io jo ii ji\ncompute_at tc jo\nsplit jc 16 mask\nsplit kc 4 mask\n"
                                        "reorder kco ic jco jci kci\nunroll ic\nunroll jco\n"
                                        "tensorize tc vpdpbusd_512\n")
                    .value());
  ASSERT_TRUE(state.ok()) << state.status();
  const std::vector<NestFacts> nests = AnalyzeNests(*state, SomeTarget());
  const NestFacts facts =
      *std::ranges::find_if(nests, [](const NestFacts& f) { return f.nest->instruction.has_value(); });
  EXPECT_EQ(facts.tile.outputs, 12);
  EXPECT_EQ(facts.tile.vectors, 12);
  EXPECT_EQ(facts.tile.reduce_steps, 1);
  EXPECT_EQ(facts.tile.loads, 6 + 2);
  EXPECT_EQ(facts.tile.gathers, 0);
  EXPECT_EQ(facts.operations, 1);
  EXPECT_TRUE(facts.tile.vectorized);
  EXPECT_EQ(facts.executed, 96.0 * 128 * 256);
}

schedule::State CopiedState(const std::string& steps) {
  const auto state = schedule::Replay(ir::ParseWorkload(tests::kEven).value(), schedule::ParseSchedule(steps).value());
  EXPECT_TRUE(state.ok()) << state.status();
  return *state;
}

TEST(NestFactsTest, CopyOfSeveralElementsIsOneOperationOfItsTile) {
  const schedule::State state = CopiedState(tests::kByFour);
  const std::vector<NestFacts> nests = AnalyzeNests(state, target::ParseTarget("opencl").value());
  const NestFacts facts =
      *std::ranges::find_if(nests, [](const NestFacts& f) { return f.nest->stage.buffer->name == "xrt"; });
  EXPECT_TRUE(facts.loops.back().statement);
  EXPECT_EQ(facts.tile.begin, facts.depth() - 1) << "the four elements of a copy are no loop";
  EXPECT_EQ(facts.tile.vectors, 1);
  EXPECT_EQ(facts.tile.loads, 1);
  EXPECT_TRUE(facts.tile.vectorized);
}

TEST(NestFactsTest, CopiesOfOneElementStayALoop) {
  const schedule::State state = CopiedState(tests::kByOne);
  const std::vector<NestFacts> nests = AnalyzeNests(state, target::ParseTarget("opencl").value());
  const NestFacts facts =
      *std::ranges::find_if(nests, [](const NestFacts& f) { return f.nest->stage.buffer->name == "wrt"; });
  EXPECT_FALSE(facts.loops.back().statement);
  EXPECT_EQ(facts.tile.begin, facts.depth());
}

TEST(FeaturesTest, LocalMemoryCountsPaddingAndEveryBufferOfAPipeline) {
  const target::Target target = target::ParseTarget("opencl").value();
  const auto bytes = [&](const std::string& steps) {
    return std::exp2(ExtractFeatures(CopiedState(steps), target)[kLogLocalBytes]) - 1;
  };
  // Tiles of 8 x 4, padded by 4, and of 4 x 8, and one accumulator.
  EXPECT_NEAR(bytes(tests::kByFour), (8 * (4 + 4) + 4 * 8 + 1) * 4, 0.1);
  EXPECT_NEAR(bytes(tests::kByFour + "pipeline ko 3\n"), (3 * (8 * (4 + 4) + 4 * 8) + 1) * 4, 0.1);
}

TEST(NestFactsTest, ColumnsAreGatheredAndRowsAreNot) {
  const NestFacts along = FactsOf("split j 32 mask\nreorder i k jo ji\nvectorize ji\n", 0);
  EXPECT_EQ(along.tile.gathers, 0);
  // Along i, x is read by columns, one element at a time.
  const NestFacts across = FactsOf("split i 32 mask\nreorder j k io ii\nvectorize ii\n", 0);
  EXPECT_EQ(across.tile.gathers, 32);
}

TEST(NestFactsTest, FootprintsGrowOutwards) {
  const NestFacts facts = FactsOf("", 0);
  const Access& x = facts.accesses[0];
  ASSERT_EQ(facts.depth(), 3u);
  EXPECT_EQ(x.elements[3], 1);
  EXPECT_EQ(x.elements[2], 256);       // k
  EXPECT_EQ(x.elements[1], 256);       // j does not change the address
  EXPECT_EQ(x.elements[0], 96 * 256);  // i
  EXPECT_EQ(x.lines[2], 16);
  const Access& w = facts.accesses[1];
  EXPECT_EQ(w.stride[2], 128);
  EXPECT_EQ(w.lines[2], 256);  // one cache line per row
}

TEST(NestFactsTest, TailsCountAsWaste) {
  const NestFacts masked = FactsOf("split j 48 mask\n", 0);
  EXPECT_GT(masked.executed, masked.useful * 1.1);
  const NestFacts peeled = FactsOf("split j 48 peel\n", 0);
  EXPECT_NEAR(peeled.executed, peeled.useful, 1e-6 * peeled.useful);
}

TEST(IndexCodeTest, EvaluatesWhatIndicesAreMadeOf) {
  const ir::Expr a = ir::MakeVar("a"), b = ir::MakeVar("b");
  const IndexCode code(ir::FloorDiv(a * ir::Expr(7) - b, ir::Expr(4)) + ir::FloorMod(b, ir::Expr(3)), {"a", "b"});
  EXPECT_FALSE(code.irregular());
  const int64_t values[] = {1, 9};
  EXPECT_EQ(code.Evaluate(values), -1 + 0);
  const int64_t others[] = {5, 2};
  EXPECT_EQ(code.Evaluate(others), 8 + 2);
}

TEST(IndexCodeTest, DataMakesAnIndexIrregular) {
  const ir::Buffer table = ir::MakeBuffer("p", ir::DType::kInt64, {8});
  const IndexCode code(ir::MakeLoad(table, {ir::MakeVar("a")}) + ir::Expr(1), {"a"});
  EXPECT_TRUE(code.irregular());
  const int64_t values[] = {5};
  EXPECT_EQ(code.Evaluate(values), 0);
}

TEST(AnalyticModelTest, TwoThreadsAreFasterThanOneForBigWork) {
  const ir::Workload workload = ir::ParseWorkload(kMatMul).value();
  const auto seconds = [&](const std::string& steps) {
    const auto state = schedule::Replay(workload, schedule::ParseSchedule(steps).value());
    return ExtractFeatures(state.value(), SomeTarget())[kAnalyticLogSeconds];
  };
  const std::string serial = "split j 32 mask\nreorder i k jo ji\nvectorize ji\n";
  EXPECT_LT(seconds(serial + "parallel i\n"), seconds(serial));
}

TEST(AnalyticModelTest, LowerBoundIsTheLargerOfComputeAndMemory) {
  const target::Target target = SomeTarget();
  EXPECT_GT(LowerBoundSeconds(1e9, 1e3, target), 10 * LowerBoundSeconds(1e6, 1e3, target));
  EXPECT_GT(LowerBoundSeconds(1, 1e9, target), 10 * LowerBoundSeconds(1, 1e6, target));
  EXPECT_LT(LowerBoundSeconds(1e9, 1e3, target, 1e15), LowerBoundSeconds(1e9, 1e3, target) / 100);
}

}  // namespace
}  // namespace hone::tuner
