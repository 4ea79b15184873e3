// SPDX-License-Identifier: Apache-2.0
// The steps total_order, recode, widen, round, distribute and tensorize: unchanged results, refusals, and the code that
// they produce.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "compiler/execution/model.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/passes/build_loops.h"
#include "compiler/passes/pipeline.h"
#include "compiler/schedule/apply.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"

namespace hone::schedule {
namespace {

using ::testing::HasSubstr;

ir::Workload Product(std::string_view a, std::string_view b, int steps, std::string_view value) {
  const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: {0}[6,{2}] in [0, 100]
const w: {1}[{2},12] in [0, 100]
input p: {0}[] in [0, 9]
const q: {1}[12] in [0, 9]
t: i32[6,12] over i:6, j:12 = sum k:{2} of {3}
output t
)",
                                                      a, b, steps, value));
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}
constexpr char kPlain[] = "i32(x[i, k]) * i32(w[k, j])";
constexpr char kOffsets[] = "(i32(x[i, k]) - i32(p[])) * (i32(w[k, j]) - i32(q[j]))";

// A target with every instruction. The interpreter runs all of them.
target::Target Everything() {
  target::Target target;
  for (size_t i = 0; i < std::size(ir::kTensorInstructions); ++i) {
    target.tensor_instructions.push_back(static_cast<ir::TensorInstruction>(i));
  }
  return target;
}

absl::Status Check(const ir::Workload& workload, std::string_view text) {
  const auto schedule = ParseSchedule(text);
  if (!schedule.ok()) return schedule.status();
  return hone::tests::CheckLowered(workload, *schedule, Everything());
}

constexpr char kTile[] =
    "pack w t 1/4 0/4 1%4 0%4\nsplit j 4 mask\nsplit k 4 mask\nreorder jo ko i ji ki\nunroll i\ntensorize t ";

TEST(Tensorize, KeepsTheMeaning) {
  EXPECT_EQ(Check(Product("u8", "i8", 8, kPlain), std::string(kTile) + "usdot"), absl::OkStatus());
  EXPECT_EQ(Check(Product("i8", "i8", 8, kPlain), std::string(kTile) + "sdot"), absl::OkStatus());
  EXPECT_EQ(Check(Product("u8", "u8", 8, kPlain), std::string(kTile) + "udot"), absl::OkStatus());
  EXPECT_EQ(Check(Product("u8", "i8", 4, kPlain), std::string(kTile) + "usdot"), absl::OkStatus());
  const std::string eight = "pack w t 1/8 0/4 1%8 0%4\nsplit j 8 mask\nsplit k 4 mask\ncache_write t\n";
  EXPECT_FALSE(Check(Product("u8", "i8", 8, kPlain), eight + "tensorize t vpdpbusd_256").ok());
}

TEST(Tensorize, TailsOfTheReductionAreZeros) {
  for (const int steps : {3, 5, 10}) {
    SCOPED_TRACE(steps);
    const std::string packed = "pack x t 0 1/4 1%4\n" + std::string(steps > 4 ? kTile : "");
    const std::string tile = steps > 4 ? packed + "usdot"
                                       : packed +
                                             "pack w t 1/4 0/4 1%4 0%4\nsplit j 4 mask\nreorder jo i ji k\n"
                                             "tensorize t usdot";
    EXPECT_EQ(Check(Product("u8", "i8", steps, kPlain), tile), absl::OkStatus());
  }
}

// The copy itself checks for the zeros beyond the last step. Computing its source elsewhere later must not remove that
// check.
TEST(Tensorize, ZerosStayWhereTheirSourceIsPlacedAfterwards) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(R"(workload "matmul"
input x: i8[4,6] in [-1, 1]
const w: i8[1,4,8] in [-1, 1]
y: i8[4,6] over yi:4, yk:6 = x[yi, yk] + 3i8
t: i32[4,4] over i:4, j:4 = sum k:6 of i32(y[i, k]) * i32(w[0, j, k])
output t
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(Check(*workload,
                  "cache_read y t\npack w t 2/4 0 1 2%4\nsplit k 4 mask\nreorder i ko j ki\ncompute_at yrt ko\n"
                  "tensorize t sdot\ncompute_at y yrt_0"),
            absl::OkStatus());
}

TEST(Tensorize, BecomesOneStatement) {
  const State state =
      Replay(Product("u8", "i8", 8, kPlain), ParseSchedule(std::string(kTile) + "usdot").value()).value();
  const auto loops = passes::BuildLoops(state, Everything(), "k");
  ASSERT_TRUE(loops.ok()) << loops.status();
  EXPECT_THAT(ir::Print(loops->main), HasSubstr("vectorized jiz in 4"));
  const auto module = execution::Lower(state, Everything(), "k");
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(ir::Print(module->main[0]),
              HasSubstr("contract usdot t[jo * 4 + 12] += x[ko * 4 + 8] * wpt[ko * 16 + jo * 32 stride 4]"));
}

// Maxima of two special numbers: NaNs of either sign, infinities, zeros, normal and denormal numbers. The second output
// distinguishes the two zeros.
constexpr char kSpecial[] = R"(workload "pool"
input x: i32[400,2] in [0, 9]
v: f32[400,2] over vi:400, vk:2 = reinterpret<f32>(select(x[vi, vk] == 0i32, -8388607i32, )"
                            R"(select(x[vi, vk] == 1i32, -1i32, select(x[vi, vk] == 2i32, 2139095041i32, )"
                            R"(select(x[vi, vk] == 3i32, -8388608i32, select(x[vi, vk] == 4i32, 2139095040i32, )"
                            R"(select(x[vi, vk] == 5i32, -2147483648i32, select(x[vi, vk] == 6i32, 0i32, )"
                            R"(select(x[vi, vk] == 7i32, -2147483647i32, select(x[vi, vk] == 8i32, -1082130432i32, )"
                            R"(1069547520i32))))))))))
t: f32[400] over i:400 = max k:2 of v[i, k]
u: f32[400] over ui:400 = select(t[ui] == 0f32, 1f32 / t[ui], 0f32)
output t
output u
)";

TEST(TotalOrder, IsTheOrderOfFloatsWithNaNsOnTop) {
  const ir::Workload special = ir::ParseWorkload(kSpecial).value();
  EXPECT_EQ(Check(special, "total_order t"), absl::OkStatus());
  const Schedule vectors = ParseSchedule(
                               "inline v\ntotal_order t\nsplit ic 16 mask\nreorder ico kc ici\nunroll kc\n"
                               "vectorize ici\nsplit i 16 mask\nvectorize ii")
                               .value();
  for (const char* target : {"x86_64 -mcpu=x86-64-v3", "cpu"}) {
    EXPECT_EQ(hone::tests::CheckCompiled(special, vectors, target::ParseTarget(target).value()), absl::OkStatus());
  }
}

TEST(TotalOrder, IsForMaximaOfFloats) {
  EXPECT_THAT(std::string(Check(Product("u8", "i8", 7, kPlain), "total_order t").message()),
              HasSubstr("stage t is not a maximum of f32"));
  EXPECT_THAT(std::string(Check(ir::ParseWorkload(kSpecial).value(), "unroll i\ntotal_order t").message()),
              HasSubstr("scheduled already"));
}

TEST(Distribute, KeepsTheMeaning) {
  EXPECT_EQ(Check(Product("u8", "i8", 7, kOffsets), "distribute t"), absl::OkStatus());
  EXPECT_EQ(Check(Product("i8", "u8", 7, "(i32(x[i, k]) + 3i32) * i32(w[k, j])"), "distribute t"), absl::OkStatus());
  EXPECT_EQ(Check(Product("u8", "i8", 7, "(2i32 + i32(x[i, k]) - i32(p[])) * (5i32 - i32(w[k, j]) - i32(q[j]))"),
                  "distribute t"),
            absl::OkStatus());
}

TEST(Recode, KeepsTheMeaning) {
  EXPECT_EQ(Check(Product("i8", "u8", 7, kOffsets), "recode x t\nrecode w t"), absl::OkStatus());
  EXPECT_EQ(Check(Product("u8", "u8", 8, kOffsets),
                  "recode w t\npack wot t 1/4 0/4 1%4 0%4\ndistribute t\nsplit jm 4 mask\nsplit km 4 mask\n"
                  "reorder jmo kmo im jmi kmi\ntensorize tm usdot"),
            absl::OkStatus());
}

constexpr char kHalves[] = R"(workload "matmul"
input x: f16[6,7] in [-1, 1]
const w: bf16[7,12] in [-1, 1]
p: f16[8,7] over a:8, b:7 = f16(select(a < 6, f32(x[a, b]), 0f32))
t: f32[6,12] over i:6, j:12 = sum k:7 of f32(p[i + 2, k]) * f32(w[k, j])
u: f32[6,12] over c:6, d:12 = t[c, d] + f32(x[c, 0])
output u
)";

TEST(Widen, KeepsTheMeaning) {
  const ir::Workload workload = ir::ParseWorkload(kHalves).value();
  EXPECT_EQ(Check(workload, "widen p t\nwiden w t\nwiden x u"), absl::OkStatus());
  EXPECT_EQ(Check(workload, "widen p t\ninline p\nwiden w t\npack wwt t 1/4 0 1%4\nsplit i 4 mask\ncompute_at pwt io"),
            absl::OkStatus());
}

TEST(Widen, SaysWhatDoesNotFit) {
  std::string text = kHalves;
  text.replace(text.find("f32(x[c, 0])"), 12, "f32(f64(x[c, 1]))");
  const ir::Workload workload = ir::ParseWorkload(text).value();
  const auto error = [&](std::string_view schedule) { return std::string(Check(workload, schedule).message()); };
  EXPECT_THAT(error("widen p q"), HasSubstr("no stage q"));
  EXPECT_THAT(error("widen x t"), HasSubstr("does not read x"));
  EXPECT_THAT(error("widen t u"), HasSubstr("t is not f16 or bf16"));
  EXPECT_THAT(error("widen x u"), HasSubstr("stage u uses x for more than a cast to f32"));
  EXPECT_THAT(error("compute_at p i\nwiden p t"), HasSubstr("stage p is computed inside loop i"));
}

TEST(Tensorize, SaysWhatDoesNotFit) {
  const auto error = [](std::string_view value, std::string_view schedule) {
    return std::string(Check(Product("u8", "i8", 10, value), schedule).message());
  };
  const std::string tile = kTile;
  EXPECT_THAT(error(kPlain, tile + "usdot"), HasSubstr("would read x beyond its end: pack it"));
  EXPECT_THAT(error(kPlain, "split j 4 mask\nsplit k 4 mask\nreorder jo ko i ji ki\ntensorize t usdot"),
              HasSubstr("pad an operand with zeros, by packing it"));
  EXPECT_THAT(error(kPlain, "pack x t 0 1/4 1%4\n" + tile + "sdot"), HasSubstr("operand xpt is u8, but sdot takes i8"));
  EXPECT_THAT(error(kPlain, "split j 4 mask\nsplit k 5 mask\nreorder jo ko i ji ki\ntensorize t usdot"),
              HasSubstr("loop ki does not fit the instruction, which needs 4 iterations of a reduction"));
  EXPECT_THAT(error(kPlain, "split k 2 mask\nreorder ko j ki\ntensorize t usdot"),
              HasSubstr("loop j does not fit the instruction, which needs 4 iterations outside a reduction"));
  EXPECT_THAT(error(kPlain, "split j 4 mask\nsplit k 2 mask\nreorder ko jo ji ki\nunroll ki\ntensorize t usdot"),
              HasSubstr("loop ki is annotated already"));
  EXPECT_THAT(std::string(Check(Product("u8", "i8", 8, kPlain),
                                "split j 4 mask\nsplit k 4 mask\nreorder jo ko i ji ki\ntensorize t usdot")
                              .message()),
              HasSubstr("the rows of operand w are not contiguous: pack it"));
  EXPECT_THAT(error(kOffsets, tile + "usdot"), HasSubstr("usdot needs a product of two loads, each as i32"));
  EXPECT_THAT(error(kPlain, "tensorize q usdot"), HasSubstr("no stage q"));
  const std::string done = "pack x t 0 1/4 1%4\n" + tile + "usdot\n";
  EXPECT_THAT(error(kPlain, done + "tensorize t usdot"), HasSubstr("tensorized already"));
  EXPECT_THAT(error(kPlain, done + "split ji 2 mask"), HasSubstr("loop ji is a part of instruction usdot"));
  EXPECT_THAT(error(kPlain, done + "vectorize ji"), HasSubstr("loop ji is a part of instruction usdot"));
  EXPECT_THAT(error(kPlain, done + "reorder ki ji"), HasSubstr("is a part of instruction usdot"));
  EXPECT_THAT(error(kPlain, done + "fuse i ji"), HasSubstr("annotated already"));
  EXPECT_THAT(error(kPlain, done + "compute_at xpt ji"), HasSubstr("loop ji is a part of instruction usdot"));
}

// Rows of both factors in chunks of eight halves or four floats. Floats are rounded first, because the instruction
// truncates them.
TEST(Tensorize, RowsMayBeChunks) {
  const auto check = [](std::string_view type, std::string_view value, std::string_view steps) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: {0}[4,32] in [-1, 1]
const w: {0}[32,6] in [-1, 1]
t: f32[4,6] over i:4, j:6 = sum k:32 of {1}
output t
)",
                                                        type, value));
    EXPECT_TRUE(workload.ok()) << workload.status();
    const auto schedule = ParseSchedule(steps);
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return hone::tests::CheckLowered(*workload, *schedule, Everything(), {1e-3, 1e-3});
  };
  constexpr std::string_view kHalves = "f32(x[i, k]) * f32(w[k, j])", kFloats = "x[i, k] * w[k, j]";
  const std::string halves =
      "split i 2 mask\nsplit j 2 mask\nsplit k 16 mask\nsplit ki 8 mask\n"
      "reorder io jo ko ii ji kio kii\ntensorize t wgmma_f16";
  EXPECT_EQ(check("f16", kHalves, "pack x t 1/8 0 1%8\npack w t 0/8 1 0%8\n" + halves), absl::OkStatus());
  EXPECT_EQ(check("f16", kHalves, "pack w t 0/8 1 0%8\n" + halves), absl::OkStatus())
      << "chunks may follow one another";
  EXPECT_THAT(std::string(check("f16", kHalves, "pack x t 1/8 0 1%8\n" + halves).message()),
              HasSubstr("the rows of operand w are not contiguous in chunks of 8: pack it"));
  EXPECT_THAT(std::string(check("f16", kHalves,
                                "split i 2 mask\nsplit j 2 mask\nsplit k 16 mask\nreorder io jo ko ii ji ki\n"
                                "tensorize t wgmma_f16")
                              .message()),
              HasSubstr("loop ki does not fit the instruction, which needs 8 iterations of a reduction"));
  const std::string floats =
      "split i 2 mask\nsplit j 2 mask\nsplit k 8 mask\nsplit ki 4 mask\n"
      "reorder io jo ko ii ji kio kii\ntensorize t wgmma_tf32";
  EXPECT_EQ(check("f32", kFloats, "round x t 10\npack xnt t 1/4 0 1%4\nround w t 10\npack wnt t 0/4 1 0%4\n" + floats),
            absl::OkStatus());
}

TEST(Round, IsToNearest) {
  const auto rounded = [](float x) {
    const auto workload = ir::ParseWorkload(
        "workload \"copy\"\ninput x: f32[1] in [-1, 1]\n"
        "y: f32[1] over i:1 = x[i]\noutput y\n");
    const auto state = Replay(*workload, *ParseSchedule("round x y 10"));
    EXPECT_TRUE(state.ok()) << state.status();
    const auto module = execution::Lower(*state, target::Target(), "k");
    EXPECT_TRUE(module.ok()) << module.status();
    float y = 0;
    const std::span<std::byte> args[] = {std::as_writable_bytes(std::span(&x, 1)),
                                         std::as_writable_bytes(std::span(&y, 1))};
    EXPECT_EQ(ir::Interpret(module->main[0], args), absl::OkStatus());
    return y;
  };
  EXPECT_EQ(rounded(1.00048828125F), 1.0009765625F) << "a tie goes away from zero";
  EXPECT_EQ(rounded(-1.00048828125F), -1.0009765625F);
  EXPECT_EQ(rounded(1.000244140625F), 1.0F);
  EXPECT_EQ(rounded(0.0F), 0.0F);
  EXPECT_EQ(rounded(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(rounded(NAN)));
}

TEST(Round, SaysWhatDoesNotFit) {
  const auto error = [](std::string_view schedule) {
    return std::string(Check(Product("u8", "i8", 10, kPlain), schedule).message());
  };
  EXPECT_THAT(error("round x q 10"), HasSubstr("no stage q"));
  EXPECT_THAT(error("round z t 10"), HasSubstr("does not read z"));
  EXPECT_THAT(error("round x t 10"), HasSubstr("x is not f32"));
  const auto floats = ir::ParseWorkload(
      "workload \"copy\"\ninput x: f32[1] in [-1, 1]\n"
      "y: f32[1] over i:1 = x[i]\noutput y\n");
  EXPECT_THAT(std::string(Replay(*floats, *ParseSchedule("round x y 23")).status().message()),
              HasSubstr("23 fraction bits; the number must be from 1 to 22, fewer than f32 has"));
}

TEST(Distribute, SaysWhatDoesNotFit) {
  const auto error = [](std::string_view value, std::string_view schedule) {
    return std::string(Check(Product("u8", "i8", 10, value), schedule).message());
  };
  EXPECT_THAT(error(kPlain, "distribute t"), HasSubstr("no factor of the form number - offset"));
  EXPECT_THAT(error("i32(x[i, k]) - i32(p[])", "distribute t"), HasSubstr("stage t is not a sum of products"));
  EXPECT_THAT(error(kOffsets, "split i 2 mask\ndistribute t"), HasSubstr("scheduled already"));
  EXPECT_THAT(error(kOffsets, "cache_read x t\ncompute_at xrt i\ndistribute t"),
              HasSubstr("stage xrt is computed inside stage t already"));
  EXPECT_THAT(error(kOffsets, "cache_read x t\ncompute_at xrt i\nrecode xrt t"),
              HasSubstr("stage xrt is computed inside loop i"));
  EXPECT_THAT(error(kOffsets, "recode q x"), HasSubstr("no stage x"));
  EXPECT_THAT(error(kOffsets, "recode z t"), HasSubstr("does not read z"));
  EXPECT_THAT(error("i32(x[i, k] + 1u8) * i32(w[k, j])", "recode x t"),
              HasSubstr("stage t uses x for more than a cast to a wider integer"));
}

TEST(Tensorize, OnlyForTargetsThatHaveTheInstruction) {
  const auto state =
      Replay(Product("u8", "i8", 8, kPlain), ParseSchedule(std::string(kTile) + "usdot").value()).value();
  EXPECT_THAT(std::string(execution::Lower(state, target::Target(), "k").status().message()),
              HasSubstr("stage t uses instruction usdot, which the target does not have"));
}

TEST(ScheduleText, InstructionsReadBack) {
  const std::string text = "recode x t\nwiden y u\nround y t 10\ndistribute t\ntensorize tm vpdpbusd_512\n";
  const auto schedule = ParseSchedule(text);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(Print(*schedule), text);
  EXPECT_FALSE(ParseSchedule("tensorize t vpdpbusd").ok());
  EXPECT_FALSE(ParseSchedule("recode x").ok());
  EXPECT_FALSE(ParseSchedule("widen x").ok());
  EXPECT_FALSE(ParseSchedule("round x t").ok());
}

}  // namespace
}  // namespace hone::schedule
