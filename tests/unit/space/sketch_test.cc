// SPDX-License-Identifier: Apache-2.0
// The rules of the sketch, each on a workload that needs it: the schedule is as expected and computes the right values.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::space {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr tests::Tolerance kTolerance = {.relative = 1e-3, .least = 1};  // sums are added in another order

target::Target SomeCpu() { return target::ParseTarget("x86_64 -mcpu=x86-64-v4 -threads=2").value(); }

// Returns the sketch's schedule with these decisions and all others as preferred, after checking that it computes the
// right values.
std::string Scheduled(const std::string& text, Decisions decisions = {}, const target::Target& cpu = SomeCpu()) {
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  Chooser chooser(&decisions);
  const auto candidate = Build(*workload, cpu, ApplicableEntries(*workload, cpu), chooser, Family::kSketch);
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  std::string steps = schedule::Print(candidate->schedule);
  const auto read = schedule::ParseSchedule(steps);
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(tests::CheckLowered(*workload, candidate->schedule, cpu, kTolerance), absl::OkStatus()) << steps;
  return steps;
}

// The iterations of the longest loop that threads share by default; 1 if there is none.
int64_t TasksOf(const std::string& text, const char* cpu) {
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const auto candidate = Default(*workload, target::ParseTarget(cpu).value());
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  int64_t tasks = 1;
  for (const schedule::Nest& nest : candidate->state.nests) {
    for (const schedule::Loop& loop : nest.loops) {
      if (loop.kind == ir::LoopKind::kParallel) tasks = std::max(tasks, loop.max_extent);
    }
  }
  return tasks;
}

constexpr const char* kMatMul = R"(workload "matmul"
input x: f32[24,64] in [-1, 1]
const w: f32[64,96] in [-1, 1]
const b: f32[96] in [-1, 1]
t: f32[24,96] over i:24, j:96 = sum k:64 of x[i, k] * w[k, j]
u: f32[24,96] over ui:24, uj:96 = max(t[ui, uj] + b[uj], 0f32)
output u
)";

// A convolution with four groups of eight input and eight output channels, channels last.
constexpr const char* kGrouped = R"(workload "conv2d"
input x: f32[1,6,6,32] in [-1, 1]
const w: f32[64,8,3,3] in [-1, 1]
t: f32[1,4,4,64] over n:1, h:4, v:4, c:64 = sum ic:8, kh:3, kw:3 )"
                                 R"(of x[n, h + kh, v + kw, c // 16 * 8 + ic] * w[c, ic, kh, kw]
output t
)";

constexpr const char* kLongSum = R"(workload "reduce"
input x: f32[256,512] in [-1, 1]
t: f32[] = sum i:256, j:512 of x[i, j]
output t
)";

constexpr const char* kRowSums = R"(workload "reduce"
input x: f32[3,64,40] in [-1, 1]
t: f32[3] over i:3 = sum k:64, j:40 of x[i, k, j]
output t
)";

constexpr const char* kDots = R"(workload "matmul"
input x: f32[5,160] in [-1, 1]
input y: f32[3,160] in [-1, 1]
t: f32[5,3] over i:5, j:3 = sum k:160 of x[i, k] * y[j, k]
output t
)";

constexpr const char* kPool = R"(workload "pool"
input x: f32[1,4,20,40] in [-1, 1]
p: f32[1,4,22,42] over p0:1, p1:4, p2:22, p3:42 )"
                              R"(= select(p2 >= 1 && p2 < 21 && p3 >= 1 && p3 < 41, x[p0, p1, p2 - 1, p3 - 1], -inf_f32)
t: f32[1,4,20,40] over n:1, c:4, h:20, v:40 = max kh:3, kv:3 of p[n, c, h + kh, v + kv]
output t
)";

TEST(SketchTest, EveryLevelOfTheTileStringIsALoop) {
  const std::string steps = Scheduled(kMatMul, {{"s1.0", 2, {}}, {"s2.0", 2, {}}, {"s3.0", 3, {}}, {"vectors", 1, {}}});
  EXPECT_THAT(steps, HasSubstr("split ui 12 shift\nsplit uii 6 shift\nsplit uiii 3 shift\n")) << "S, S and S of rows";
  EXPECT_THAT(steps, HasSubstr("compute_at t uiiio\n")) << "inside the third S";
  EXPECT_THAT(steps, HasSubstr("reorder k i j\n")) << "R around the innermost S";
  EXPECT_THAT(steps, HasSubstr("unroll i\n"));
  EXPECT_THAT(steps, HasSubstr("vectorize j\n"));
}

TEST(SketchTest, BlocksOfTheReductionAddUpInABlockOfResults) {
  const std::string steps = Scheduled(kMatMul, {{"r1", 16, {}}, {"s2.0", 2, {}}, {"s3.0", 6, {}}, {"vectors", 2, {}}});
  EXPECT_THAT(steps, HasSubstr("rfactor t k 16 outer\n"));
  EXPECT_THAT(steps, HasSubstr("reorder kx io ii jo ji\n")) << "R S around the tile that is added";
  EXPECT_THAT(steps, HasSubstr("compute_at tf io\n"));
  EXPECT_THAT(steps, HasSubstr("reorder ky if kxf jfo jfi\n")) << "R S inside";
}

TEST(SketchTest, TheReaderIsFusedAtATileOrAtABlock) {
  const Decisions sizes = {{"s1.0", 1, {}}, {"s2.0", 4, {}}, {"s3.0", 3, {}}, {"s1.1", 6, {}}, {"vectors", 1, {}}};
  EXPECT_THAT(Scheduled(kMatMul, sizes), HasSubstr("compute_at t uiio\n"));
  Decisions outer = sizes;
  outer.push_back({"r1", 64, {}});
  EXPECT_THAT(Scheduled(kMatMul, outer), Not(HasSubstr("compute_at t uiio\n")));
}

TEST(SketchTest, ConstantsArePackedIfThatIsChosen) {
  EXPECT_THAT(Scheduled(kMatMul), HasSubstr("pack w t 1/"));
  EXPECT_THAT(Scheduled(kMatMul, {{"pack", 0, {}}}), Not(HasSubstr("pack")));
}

TEST(SketchTest, AVectorStaysInItsGroup) {
  const std::string steps = Scheduled(kGrouped);
  EXPECT_THAT(steps, HasSubstr("pack w tc 0/16 1 2 3 0%16\n")) << "16 channels read the same inputs";
  EXPECT_THAT(steps, HasSubstr("vectorize cc\n"));
}

TEST(SketchTest, ALongReductionToOneNumberIsSharedByThreadsAndVectors) {
  const std::string steps = Scheduled(kLongSum);
  EXPECT_THAT(steps, HasSubstr("rfactor t i 64 outer\n"));
  EXPECT_THAT(steps, HasSubstr("parallel ixf\n"));
  EXPECT_THAT(steps, HasSubstr(" 64 inner\n")) << "four vectors of partial results";
  EXPECT_THAT(Scheduled(kLongSum, {{"t.parts", 1, {}}}), Not(HasSubstr("outer")));
}

// The channels are last, and one tile of vectors holds all of them.
TEST(SketchTest, AReductionToOneTileOfResultsIsTakenApartForThreads) {
  const auto mean = [](int size) {
    return fmt::format(R"(workload "reduce"
input x: f32[1,{0},{0},32] in [-1, 1]
t: f32[1,1,1,32] over n:1, i:1, j:1, c:32 = sum h:{0}, w:{0} of x[n, h, w, c]
output t
)",
                       size);
  };
  EXPECT_THAT(Scheduled(mean(64)), HasSubstr("rfactor t h 16 outer\n"));
  EXPECT_THAT(Scheduled(mean(64), {{"t.parts", 1, {}}}), Not(HasSubstr("outer")));
  EXPECT_GE(TasksOf(mean(112), "x86_64 -mcpu=haswell -threads=2"), 2);
  EXPECT_GE(TasksOf(mean(112), "x86_64 -mcpu=x86-64-v4 -threads=8"), 8);
}

TEST(SketchTest, OneAxisAloneHasNothingToReorder) {
  EXPECT_THAT(Scheduled(R"(workload "reduce"
input x: f32[131072] in [-1, 1]
t: f32[] = sum i:131072 of x[i]
output t
)"),
              HasSubstr("parallel ixf\n"));
}

TEST(SketchTest, AReductionAlongMemoryMayHaveVectorsOfItsOwn) {
  EXPECT_THAT(Scheduled(kDots, {{"along", 2, {}}}), HasSubstr("rfactor tc kc 64 inner\n"));
  EXPECT_THAT(Scheduled(kDots, {{"along", 1, {}}}), Not(HasSubstr("rfactor")));
  EXPECT_THAT(Scheduled(kRowSums), HasSubstr("inner\n"));
}

TEST(SketchTest, ARowIsAddedUpInVectorsFromTheLengthOfOneOn) {
  const auto steps = [](int64_t length) {
    return Scheduled(fmt::format(R"(workload "softmax"
input x: f32[600,{0}] in [-1, 1]
m: f32[600] over i:600 = max k:{0} of x[i, k]
e: f32[600,{0}] over ei:600, ek:{0} = exp(x[ei, ek] - m[ei])
output e
)",
                                 length));
  };
  EXPECT_THAT(steps(23), HasSubstr("rfactor m k 16 inner\n"));
  EXPECT_THAT(steps(16), Not(HasSubstr("rfactor")));
}

TEST(SketchTest, PaddingIsCopiedBeforeOrForATaskOrComputedInPlace) {
  const Decision rows = {"s3.2", 2, {}}, block = {"s1.2", 5, {}};
  EXPECT_THAT(Scheduled(kPool, {rows, block, {"pad", 0, {}}}), Not(HasSubstr("compute_at p ")));
  EXPECT_THAT(Scheduled(kPool, {rows, block, {"pad", 1, {}}}), HasSubstr("compute_at p "));
  EXPECT_THAT(Scheduled(kPool, {{"pad", 2, {}}}), HasSubstr("inline p\n"));
}

TEST(SketchTest, AShortRunAlongMemoryIsWrittenOut) {
  EXPECT_THAT(Scheduled(R"(workload "reduce"
input x: f32[300,8,40] in [-1, 1]
t: f32[300] over i:300 = sum k:8, j:40 of x[i, k, j]
output t
)"),
              HasSubstr("unroll jcx\n"))
      << "three vectors, of which the last one is not full";
}

TEST(SketchTest, WindowsThatShareRowsAreWrittenOut) {
  const std::string steps = Scheduled(kPool);
  EXPECT_THAT(steps, HasSubstr("split h 7 shift\n")) << "7 rows of 9 steps";
  EXPECT_THAT(steps, HasSubstr("unroll khc\n"));
  EXPECT_THAT(steps, HasSubstr("unroll kvc\n")) << "shared rows are loaded once";
  EXPECT_THAT(steps, HasSubstr("unroll p3o\n")) << "where the padding is, is known in a row that is written out";
}

TEST(SketchTest, MaximaOfWindowsAreIntegersWhereThatOfFloatsIsNoInstruction) {
  EXPECT_THAT(Scheduled(kPool), HasSubstr("total_order t\n"));
  EXPECT_THAT(Scheduled(kPool, {{"t.order", 0, {}}}), Not(HasSubstr("total_order")));
  const auto arm = target::ParseTarget("arm64 -mcpu=cortex-a76");
  ASSERT_TRUE(arm.ok()) << arm.status();
  EXPECT_THAT(Scheduled(kPool, {}, *arm), Not(HasSubstr("total_order")));
}

TEST(SketchTest, OperandsMayBeCopiedForEachTask) {
  EXPECT_THAT(Scheduled(kMatMul, {{"copy", 1, {}}}), HasSubstr("cache_read x t\n"));
  EXPECT_THAT(Scheduled(kMatMul), Not(HasSubstr("cache_read")));
}

TEST(SketchTest, TheImageOfATransposeFillsBlocksWithItsPixels) {
  const std::string steps = Scheduled(R"(workload "transpose"
input x: f32[1,7,7,40] in [-1, 1]
t: f32[1,40,7,7] over n:1, c:40, h:7, w:7 = x[n, h, w, c]
output t
)");
  EXPECT_THAT(steps, HasSubstr("fuse h w\n"));
  EXPECT_THAT(steps, HasSubstr("split h_w 16 shift\n"));
}

TEST(SketchTest, PixelsThatAnOperandHasApartStayApart) {
  const std::string steps = Scheduled(R"(workload "transpose"
input x: f32[1,7,9,40] in [-1, 1]
t: f32[1,40,7,8] over n:1, c:40, h:7, w:8 = x[n, h, w, c]
output t
)");
  EXPECT_THAT(steps, HasSubstr("split w 8 shift\n"));
}

// The 16 channels are a single row of blocks, and the other axes but the last have one iteration.
TEST(SketchTest, ThreadsShareTheLastAxisWhereTheOthersAreShort) {
  const target::Target eight = target::ParseTarget("x86_64 -mcpu=x86-64-v4 -threads=8").value();
  const auto transpose = [](int size) {
    return fmt::format(R"(workload "transpose"
input x: f32[1,{0},{0},16] in [-1, 1]
t: f32[1,16,{0},{0}] over n:1, c:16, h:{0}, w:{0} = x[n, h, w, c]
output t
)",
                       size);
  };
  const auto signal = [](int length) {
    return fmt::format(R"(workload "elementwise"
input x: f32[1,{0}] in [-1, 1]
const b: f32[{0}] in [-1, 1]
t: f32[1,{0}] over n:1, i:{0} = x[n, i] + b[i]
output t
)",
                       length);
  };
  EXPECT_THAT(Scheduled(transpose(48), {}, eight), HasSubstr("fuse n_co h_wo\n"));
  EXPECT_THAT(Scheduled(signal(20000), {}, eight), HasSubstr("fuse n io\n"));
  EXPECT_THAT(Scheduled(signal(20000), {{"t.vectors", 2, {}}}, eight), HasSubstr("fuse n ioo\n"));
  EXPECT_THAT(Scheduled(signal(10000), {}, eight), Not(HasSubstr("fuse"))) << "too little for several threads";
  for (const std::string& text : {transpose(256), signal(480000)}) {
    EXPECT_GE(TasksOf(text, "x86_64 -mcpu=haswell -threads=8"), 8) << text;
  }
}

// The largest of 21 channels, per pixel, and its position.
std::string ArgMaxOf(std::string_view pixels, std::string_view size = "") {
  return fmt::format(R"(workload "arg_max"
{1}input x: f32[2,21,{0}] in [-1, 1]
t: f32[2,1,{0}] over a:2, b:1, c:{0} = max d:21 of x[a, d, c]
u: i32[2,1,{0}] over e:2, f:1, g:{0} = min h:21 of select(x[e, h, g] == t[e, 0, g], i32(h), 20i32)
v: i64[2,1,{0}] over k:2, l:1, m:{0} = i64(u[k, l, m])
output v
)",
                     pixels, size);
}

TEST(SketchTest, ASearchAlongChannelsTakesVectorsOfPixels) {
  const std::string many = Scheduled(ArgMaxOf("4096"));
  EXPECT_THAT(many, AllOf(HasSubstr("split m 64 shift\n"), HasSubstr("parallel"), HasSubstr("reorder d co ci\n"),
                          HasSubstr("unroll co\n"), HasSubstr("vectorize ci\n")));
  EXPECT_THAT(Scheduled(ArgMaxOf("49")), HasSubstr("split m 32 shift\n")) << "as few pixels twice as possible";
  EXPECT_THAT(Scheduled(ArgMaxOf("5")), AllOf(HasSubstr("split m 5 "), HasSubstr("vectorize ci\n")));
  for (const int64_t vectors : {1, 2, 4}) Scheduled(ArgMaxOf("200"), {{"columns.vectors", vectors, {}}});
}

TEST(SketchTest, ASearchAlongChannelsTakesVectorsOfAnOpenNumberOfPixels) {
  const auto workload = ir::ParseWorkload(ArgMaxOf("n", "size n in [1, 500]\n"));
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto candidate = Default(*workload, SomeCpu());
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  EXPECT_THAT(schedule::Print(candidate->schedule), AllOf(HasSubstr("split m 64 mask\n"), HasSubstr("vectorize ci\n")));
  for (const int64_t pixels : {1, 15, 64, 100, 500}) {
    EXPECT_EQ(tests::CheckLowered(*workload, candidate->schedule, SomeCpu(), kTolerance, {{{"n", pixels}}}),
              absl::OkStatus())
        << pixels;
  }
}

// The sums up to each element of a block, along memory or not.
TEST(SketchTest, SumsUpToEachElementLieAlongVectors) {
  const auto sums = [](std::string_view type) {
    return Scheduled(fmt::format(R"(workload "cum_sum"
input x: {0}[64,16] in [-1, 1]
input y: {0}[64,1] in [-1, 1]
t: {0}[64,16] over i:64, j:16 = sum k:16 of select(k <= j, x[i, k], {1})
u: {0}[64,16] over m:64, n:16 = t[m, n] + y[m, 0]
output u
)",
                                 type, type == "f64" ? "0.0f64" : "0.0f32"));
  };
  EXPECT_THAT(sums("f32"), AllOf(HasSubstr("unroll k\n"), HasSubstr("vectorize j\n")));
  EXPECT_THAT(sums("f64"), AllOf(HasSubstr("vectorize ji\n"), Not(HasSubstr("rfactor"))));
}

// Rows that share no elements are walked along memory.
TEST(SketchTest, TilesOfRowsThatShareNothingFollowMemory) {
  EXPECT_THAT(Scheduled(R"(workload "cum_sum"
input x: f32[32,16,1024] in [-1, 1]
t: f32[32,16,1024] over i:32, j:16, l:1024 = sum k:16 of select(k <= j, x[i, k, l], 0.0f32)
output t
)"),
              HasSubstr("reorder io ii lo j li\n"));
}

TEST(SketchTest, ManyThreadsHaveATaskEach) {
  constexpr char kMany[] = "x86_64 -mcpu=znver5 -threads=96";
  EXPECT_GE(TasksOf(R"(workload "elementwise"
input x: f32[1024,1024] in [-1, 1]
t: f32[1024,1024] over i:1024, j:1024 = x[i, j] * 2f32
output t
)",
                    kMany),
            96);
  EXPECT_GE(TasksOf(R"(workload "softmax"
input x: f32[960,64] in [-1, 1]
m: f32[960,1] over i:960, j:1 = max k:64 of x[i, k]
e: f32[960,64] over ei:960, ek:64 = exp(x[ei, ek] - m[ei, 0])
output e
)",
                    kMany),
            96);
}

// Tasks of four would be four tasks for 13 rows of blocks: they would compute 16 rows, and two threads would write the
// same cache lines.
TEST(SketchTest, TasksOverlapLittle) {
  EXPECT_THAT(Scheduled(R"(workload "transpose"
input x: f32[1024,196] in [-1, 1]
t: f32[196,1024] over i:196, j:1024 = x[j, i]
output t
)"),
              HasSubstr("split io 7 shift\nparallel ioo"));
}

TEST(SketchTest, DecisionsThatAreNoMoreChangeNothing) {
  EXPECT_EQ(Scheduled(kMatMul, {{"rows", 3, {}}, {"block", 2, {}}, {"gone", 7, {}}}), Scheduled(kMatMul));
}

// Register tiles have nothing to pack for channels first.
TEST(FamilyTest, ADepthwiseConvolutionWithChannelsFirstPrefersTheSketch) {
  const auto space = [](std::string_view layout, int window) {
    const bool last = layout == "channels last";
    const auto workload = ir::ParseWorkload(fmt::format(
        R"(workload "depthwise_conv2d"
input x: f32[{0}] in [-1, 1]
const w: f32[{1}] in [-1, 1]
t: f32[{2} = sum a:{4}, b:{4} of {3}
output t
)",
        last ? "20,38,32" : "32,20,38", fmt::format(fmt::runtime(last ? "{0},{0},32" : "32,{0},{0}"), window),
        last ? "14,32,32] over i:14, j:32, c:32" : "32,14,32] over c:32, i:14, j:32",
        last ? "x[i + a, j + b, c] * w[a, b, c]" : "x[c, i + a, j + b] * w[c, a, b]", window));
    EXPECT_TRUE(workload.ok()) << workload.status();
    return std::string(ApplicableEntries(*workload, SomeCpu())[0]->name);
  };
  EXPECT_EQ(space("channels first", 3), "sketch");
  EXPECT_EQ(space("channels first", 5), "sketch");
  EXPECT_EQ(space("channels first", 7), "register_tile") << "too much to be written out";
  EXPECT_EQ(space("channels last", 3), "register_tile");
}

std::string ProductText(int rows, int columns, int steps) {
  return fmt::format(R"(workload "matmul"
input x: f32[{0},{2}] in [-1, 1]
const w: f32[{2},{1}] in [-1, 1]
t: f32[{0},{1}] over i:{0}, j:{1} = sum k:{2} of x[i, k] * w[k, j]
output t
)",
                     rows, columns, steps);
}

// Vectors of so few results would be mostly empty; vectors of partial results are full.
TEST(FamilyTest, AProductOfFewColumnsIsBestSummedUpInVectors) {
  const auto schedule = [](const std::string& text) {
    return schedule::Print(Default(ir::ParseWorkload(text).value(), SomeCpu()).value().schedule);
  };
  const std::string one = ProductText(1, 1, 8192), two = ProductText(64, 2, 768);
  EXPECT_THAT(schedule(one), AllOf(HasSubstr("rfactor tc kc 64 inner\n"), HasSubstr("vectorize ")));
  EXPECT_THAT(schedule(two), HasSubstr("pack w tc 1 0\nrfactor tc kc 64 inner\n")) << "columns lie side by side then";
  EXPECT_EQ(schedule(one), Scheduled(one));
  EXPECT_EQ(schedule(two), Scheduled(two));
  EXPECT_THAT(schedule(ProductText(64, 2, 8)), Not(HasSubstr("rfactor"))) << "too short for partial results";
  EXPECT_THAT(schedule(ProductText(64, 8, 768)), Not(HasSubstr("rfactor"))) << "half a vector";
}

TEST(FamilyTest, NamesOfFamilies) {
  EXPECT_EQ(ParseFamilies("all").value(), Families());
  EXPECT_EQ(ParseFamilies("template").value(), Family::kTemplate);
  EXPECT_EQ(ParseFamilies("sketch").value(), Family::kSketch);
  EXPECT_EQ(ParseFamilies("outer").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FamilyTest, OnlySpacesOfTheFamilyAreOnOffer) {
  const auto matmul = ir::ParseWorkload(kMatMul).value(), pool = ir::ParseWorkload(kPool).value();
  EXPECT_EQ(ApplicableEntries(matmul, SomeCpu()).size(), 2u);
  ASSERT_EQ(ApplicableEntries(matmul, SomeCpu(), Family::kSketch).size(), 1u);
  EXPECT_EQ(ApplicableEntries(matmul, SomeCpu(), Family::kSketch)[0]->name, "sketch");
  EXPECT_TRUE(ApplicableEntries(pool, SomeCpu(), Family::kTemplate).empty());
  Chooser chooser;
  EXPECT_EQ(Build(pool, SomeCpu(), ApplicableEntries(pool, SomeCpu()), chooser, Family::kTemplate).status().code(),
            absl::StatusCode::kFailedPrecondition);
  for (const Family family : {Family::kTemplate, Family::kSketch}) {
    Chooser preferred;
    const auto candidate = Build(matmul, SomeCpu(), ApplicableEntries(matmul, SomeCpu()), preferred, family);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    EXPECT_EQ(EntryOf(candidate->decisions, ApplicableEntries(matmul, SomeCpu()))->family, family);
  }
}

// Packing would take longer than the product.
TEST(Default, PacksNothingThatIsReadOnce) {
  const auto schedule = [](const char* kind, int64_t columns) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
{0} a: f32[64,500,128] in [-1, 1]
input b: f32[64,128,{1}] in [-1, 1]
t: f32[64,500,{1}] over h:64, i:500, j:{1} = sum k:128 of a[h, i, k] * b[h, k, j]
output t
)",
                                                        kind, columns));
    return schedule::Print(Default(*workload, SomeCpu()).value().schedule);
  };
  EXPECT_THAT(schedule("input", 1), Not(HasSubstr("pack")));
  EXPECT_THAT(schedule("const", 1), HasSubstr("pack")) << "once for all runs";
}

}  // namespace
}  // namespace hone::space
