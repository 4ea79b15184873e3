// SPDX-License-Identifier: Apache-2.0
// Tensor instructions: their text, the verifier, and the interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/match.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "tests/unit/ir/eval_text.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

constexpr char kLegal[] =
    "func f(x: u8[3,8], w: i8[2,8,4], out: i32[3,8]) {\n"
    "  for i in 3 {\n"
    "    contract vpdpbusd_256 out[i, 0] += x[i, 4] * w[1, 0, 0 stride 4]\n"
    "  }\n"
    "}\n";

std::string Verdict(const std::string& text) {
  const auto func = ParseFunc(text);
  if (!func.ok()) return std::string(func.status().message());
  return std::string(Verify(*func).message());
}

TEST(Mma, TextReadsBack) {
  const auto func = ParseFunc(kLegal);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kLegal);
  EXPECT_EQ(Verdict(kLegal), "");
}

TEST(Mma, ChildrenAreItsOperands) {
  const Func func = ParseFunc(kLegal).value();
  const Stmt contract = func.body.As<For>()->body;
  EXPECT_EQ(WrittenBuffer(contract), func.params[2]);
  const Mma& c = *contract.As<Mma>();
  EXPECT_TRUE(Equal(contract, MakeMma(c.instruction, c.sum, c.a, c.b)));
  EXPECT_FALSE(Equal(contract, MakeMma(c.instruction, c.sum, c.a, {c.b.first, 8})));
  const Stmt moved = Substitute(contract, {{"i", Expr(2)}});
  EXPECT_EQ(Print(moved), "contract vpdpbusd_256 out[2, 0] += x[2, 4] * w[1, 0, 0 stride 4]\n");
  EXPECT_TRUE(Substitute(contract, {{"j", Expr(2)}}).SameHandle(contract));
}

TEST(Mma, AddsProductsOfRows) {
  EXPECT_EQ(RunText("func f(x: u8[4], w: i8[4,4], out: i32[4]) {"
                    "  for k in 4 { x[k] = u8(k + 250) for j in 4 { w[j, k] = i8(j * 10 - k) } }"
                    "  for j in 4 { out[j] = i32(j) }"
                    "  contract usdot out[0] += x[0] * w[0 stride 4] }"),
            "-1514i32 8547i32 18608i32 28669i32");
}

TEST(Mma, SumsWrap) {
  EXPECT_EQ(RunText("func f(x: i8[4], w: i8[4,4], out: i32[4]) {"
                    "  x[0] = -128i8 w[0, 0] = -128i8 out[0] = 2147483647i32"
                    "  contract sdot out[0] += x[0] * w[0, 0 stride 4] }"),
            "-2147467265i32 0i32 0i32 0i32");
}

TEST(Mma, SignsAreThoseOfTheTypes) {
  EXPECT_EQ(RunText("func f(x: u8[4], w: u8[4,4], out: i32[4]) { x[0] = 255u8 w[1, 0] = 255u8"
                    "  contract udot out[0] += x[0] * w[0, 0 stride 4] }"),
            "0i32 65025i32 0i32 0i32");
}

TEST(Mma, EveryElementIsInsideItsBuffer) {
  EXPECT_THAT(RunText("func f(x: u8[4], w: u8[8,4], out: i32[4]) { for i in 3 {"
                      "  contract udot out[0] += x[0] * w[i * 4, 0 stride 4] } }"),
              HasSubstr("index 8 of dimension 0 is outside buffer 'w' (extent 8)"));
  EXPECT_THAT(RunText("func f(x: u8[4], w: u8[4,4], out: i32[6]) { for i in 2 {"
                      "  contract udot out[i + 2] += x[0] * w[0, 0 stride 4] } }"),
              HasSubstr("element 6 is outside buffer 'out' of 6"));
}

TEST(Mma, LanesThatAddToOneElementRace) {
  EXPECT_THAT(RunText("func f(x: u8[4], w: u8[4,4], out: i32[4]) grid 1 lanes 2 {"
                      "  contract udot out[0] += x[0] * w[0, 0 stride 4] }"),
              HasSubstr("race on element 0 of 'out'"));
}

constexpr char kApart[] =
    "func f(a: f32[2,8], b: f32[8,24], out: f32[2,2]) {\n"
    "  contract mma_tf32 out[0, 0 stride 2] += a[0, 0 stride 8] * b[0, 0 stride 1 apart 24]\n"
    "}\n";

TEST(Mma, ElementsOfARowMayHaveAStride) {
  const auto func = ParseFunc(kApart);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kApart);
  EXPECT_EQ(Verdict(kApart), "");
  const Mma& c = *func->body.As<Mma>();
  EXPECT_EQ(c.b.column_stride, 24);
  EXPECT_FALSE(Equal(func->body, MakeMma(c.instruction, c.sum, c.a, {c.b.first, 1, 12})));
}

TEST(Mma, SumsOfFloats) {
  EXPECT_EQ(RunText("func f(a: f32[2,8], b: f32[8,3], out: f32[2,2]) {"
                    "  for k in 8 { a[0, k] = f32(k) a[1, k] = 1.0f32 for j in 3 { b[k, j] = f32(k * 10 + j) } }"
                    "  out[1, 1] = 0.5f32"
                    "  contract mma_tf32 out[0, 0 stride 2] += a[0, 0 stride 8] * b[0, 0 stride 1 apart 3] }"),
            "1400.0f32 1428.0f32 280.0f32 288.5f32");
}

// 1 + 2^-11 is halfway to the next number with ten bits, and 1 + 2^-12 is nearer to 1. NaN stays NaN.
TEST(Mma, FactorsAreRounded) {
  const auto times_one = [](const std::string& factor) {
    return RunText(
        "func f(a: f32[2,8], b: f32[2,8], out: f32[2,2]) { for i in 2 { for k in 8 {"
        "  a[i, k] = 0.0f32 b[i, k] = 0.0f32 } for j in 2 { out[i, j] = 0.0f32 } }"
        "  a[0, 0] = " +
        factor + " b[0, 0] = 1.0f32 contract mma_tf32 out[0, 0 stride 2] += a[0, 0 stride 8] * b[0, 0 stride 8] }");
  };
  EXPECT_EQ(times_one("1.00048828125f32"), "1.0009766f32 0.0f32 0.0f32 0.0f32");
  EXPECT_EQ(times_one("-1.00048828125f32"), "-1.0009766f32 0.0f32 0.0f32 0.0f32");
  EXPECT_EQ(times_one("1.000244140625f32"), "1.0f32 0.0f32 0.0f32 0.0f32");
  EXPECT_THAT(times_one("nan_f32"), HasSubstr("nan_f32"));
  EXPECT_THAT(times_one("inf_f32"), HasSubstr("inf_f32"));
}

// wgmma truncates its factors.
TEST(Mma, FactorsAreTruncated) {
  const auto product = [](const std::string& instruction, const std::string& a, const std::string& b) {
    return RunText(
        "func f(a: f32[2,8], b: f32[2,8], out: f32[2,2]) { for i in 2 { for k in 8 {"
        "  a[i, k] = 0.0f32 b[i, k] = 0.0f32 } for j in 2 { out[i, j] = 0.0f32 } }"
        "  a[0, 7] = " +
        a + " b[0, 7] = " + b + " contract " + instruction +
        " out[0, 0 stride 2] += a[0, 0 stride 8 apart 4] * b[0, 0 stride 8 apart "
        "4] settle 0 }");
  };
  const std::string one = "1.0f32", cut = "1.0009766f32 0.0f32 0.0f32 0.0f32";
  EXPECT_EQ(product("wgmma_tf32", "1.0014648f32", one), cut);
  EXPECT_EQ(product("wgmma_tf32", "-1.0014648f32", one), "-" + cut);
  EXPECT_EQ(product("wgmma_tf32", one, "1.0014648f32"), cut);
  EXPECT_EQ(product("wgmma_tf32_registers", one, "1.0014648f32"), cut);
  EXPECT_EQ(product("wgmma_tf32_registers", "1.0014648f32", one), "1.0019531f32 0.0f32 0.0f32 0.0f32")
      << "what lanes load they round";
}

// Four lanes of a row share the elements of `a` that they read; their columns are adjacent.
TEST(Mma, LanesOfOneInstructionAreConsecutive) {
  const auto verdict = [](const std::string& a, const std::string& b, int lanes = 64) {
    const std::string text = "func f(x: f32[32,8], w: f32[16,8], out: f32[512]) grid 1 lanes " + std::to_string(lanes) +
                             " { alloc t: f32[2,2] local { contract mma_tf32 t[0, 0 stride 2] += x[" + a +
                             " stride 64] * w[" + b + " stride 8] out[lane.id] = t[0, 0] } }";
    const auto func = ParseFunc(text);
    EXPECT_TRUE(func.ok()) << func.status();
    return std::string(Verify(*func, {256, 1024}).message());
  };
  const std::string row = "lane.id // 32 * 8 + lane.id // 4 %% 8, 0", column = "lane.id %% 4 * 2, 0";
  EXPECT_EQ(verdict(row, column), "");
  EXPECT_THAT(verdict("lane.id %% 8, 0", column),
              HasSubstr("mma_tf32: lane 1 must start at the same row of a as lane 0"));
  EXPECT_THAT(verdict(row, "lane.id %% 4, 0"), HasSubstr("lane 1 must start at column 2 of b, counted from lane 0"));
  EXPECT_THAT(verdict(row, "lane.id // 4 %% 2 * 8 + lane.id %% 4 * 2, 0"),
              HasSubstr("lane 4 must start at column 0 of b, counted from lane 0"));
  EXPECT_THAT(verdict(row, column, 48), HasSubstr("needs 32 lanes, which does not divide the 48 lanes"));
  // Memory of a lane's own cannot be loaded by its neighbours.
  EXPECT_THAT(std::string(Verify(*ParseFunc("func f(x: f32[2,8], out: f32[2,2]) grid 1 lanes 32 {"
                                            "  alloc w: f32[2,8] local { contract mma_tf32 out[0, 0 stride 2] += "
                                            "x[0, 0 stride 8] * w[0, 0 stride 8] } }"),
                                 {256, 1024})
                              .message()),
              HasSubstr("mma_tf32: operand 'w' is local to a lane"));
  EXPECT_THAT(std::string(Verify(*ParseFunc("func f(x: f32[2,8], w: f32[2,8], out: f32[2,2]) grid 1 lanes 32 {"
                                            "  if lane.id < 4 { contract mma_tf32 out[0, 0 stride 2] += "
                                            "x[0, 0 stride 8] * w[0, 0 stride 8] } }"),
                                 {256, 1024})
                              .message()),
              HasSubstr("a tensor instruction of several lanes where lanes of a group may diverge"));
}

TEST(Mma, LanesMayLoadRowsFromAnyMemory) {
  const auto verdict = [](const std::string& scope) {
    const auto func = ParseFunc(
        "func f(w: f16[8,64], out: f32[32]) grid 1 lanes 32 { alloc a: f16[16,64] " + scope +
        " { alloc t: f32[2,2] local { contract mma_f16 t[0, 0 stride 2] += a[lane.id // 4 %% 8, 0 stride 512] * "
        "w[lane.id %% 4 * 2, 0 stride 64] out[lane.id] = t[0, 0] } } }");
    EXPECT_TRUE(func.ok()) << func.status();
    return std::string(Verify(*func, {256, 2048}).message());
  };
  EXPECT_EQ(verdict("shared"), "");
  EXPECT_THAT(verdict("swizzled"), HasSubstr("mma_f16 cannot read swizzled memory, but operand 'a' is swizzled"));
}

// Each lane has two rows and two columns. 64 rows of 16 steps are stored as blocks of eight rows by eight steps, with
// padding.
constexpr char kBlocks[] =
    "func f(x: f16[64,16], w: f16[8,16], out: f32[64,8]) grid 1 lanes 128 {\n"
    "  alloc a: f16[2,65,8] shared {\n"
    "    alloc b: f16[2,8,8] shared {\n"
    "      for k in 16 {\n"
    "        if lane.id < 64 {\n"
    "          a[k // 8, lane.id, k %% 8] = x[lane.id, k]\n"
    "        }\n"
    "        if lane.id < 8 {\n"
    "          b[k // 8, lane.id, k %% 8] = w[lane.id, k]\n"
    "        }\n"
    "      }\n"
    "      barrier\n"
    "      alloc t: f32[2,2] local {\n"
    "        for i in 2 {\n"
    "          for j in 2 {\n"
    "            t[i, j] = 0.0f32\n"
    "          }\n"
    "        }\n"
    "        contract wgmma_f16 t[0, 0 stride 2] += "
    "a[0, lane.id // 32 * 16 + lane.id // 4 %% 8, 0 stride 64 apart 520] * "
    "b[0, lane.id %% 4 * 2, 0 stride 8 apart 64]\n"
    "        settle 0\n"
    "        for i in 2 {\n"
    "          for j in 2 {\n"
    "            out[lane.id // 32 * 16 + i * 8 + lane.id // 4 %% 8, lane.id %% 4 * 2 + j] = t[i, j]\n"
    "          }\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

TEST(Mma, InstructionsReadBlocksOfSharedMemory) {
  const auto func = ParseFunc(kBlocks);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kBlocks);
  EXPECT_EQ(Verify(*func, {256, 8192}), absl::OkStatus());
  std::vector<uint16_t> x(64 * 16), w(8 * 16);
  std::vector<float> wanted(64 * 8), out(64 * 8);
  // Half precision holds small integers exactly: the bits of 1024 + n are those of 1024 plus n.
  const auto half = [](int n) { return static_cast<uint16_t>(0x6400 + n); };
  for (int i = 0; i < 64; ++i) {
    for (int k = 0; k < 16; ++k) x[static_cast<size_t>(i * 16 + k)] = half(i * 3 + k);
  }
  for (int j = 0; j < 8; ++j) {
    for (int k = 0; k < 16; ++k) w[static_cast<size_t>(j * 16 + k)] = half(j * 16 - k + 16);
  }
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 8; ++j) {
      int64_t sum = 0;
      for (int k = 0; k < 16; ++k) sum += (1024 + i * 3 + k) * (1024 + j * 16 - k + 16);
      wanted[static_cast<size_t>(i * 8 + j)] = static_cast<float>(sum);
    }
  }
  const std::span<std::byte> args[] = {std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(w)),
                                       std::as_writable_bytes(std::span(out))};
  ASSERT_EQ(Interpret(*func, args), absl::OkStatus());
  EXPECT_EQ(out, wanted);
}

// Rows of 128 bytes; the second sixteen elements of each are multiplied.
constexpr char kRows[] =
    "func f(x: f16[64,64], w: f16[8,64], out: f32[64,8]) grid 1 lanes 128 {\n"
    "  alloc a: f16[64,64] swizzled {\n"
    "    alloc b: f16[8,64] swizzled {\n"
    "      for k in 64 {\n"
    "        if lane.id < 64 {\n"
    "          a[lane.id, k] = x[lane.id, k]\n"
    "        }\n"
    "        if lane.id < 8 {\n"
    "          b[lane.id, k] = w[lane.id, k]\n"
    "        }\n"
    "      }\n"
    "      barrier\n"
    "      alloc t: f32[2,2] local {\n"
    "        for i in 2 {\n"
    "          for j in 2 {\n"
    "            t[i, j] = 0.0f32\n"
    "          }\n"
    "        }\n"
    "        for k in 2 {\n"
    "          contract wgmma_f16 t[0, 0 stride 2] += "
    "a[lane.id // 32 * 16 + lane.id // 4 %% 8, k * 32 + 16 stride 512 apart 8] * "
    "b[lane.id %% 4 * 2, k * 32 + 16 stride 64 apart 8]\n"
    "        }\n"
    "        settle 0\n"
    "        for i in 2 {\n"
    "          for j in 2 {\n"
    "            out[lane.id // 32 * 16 + i * 8 + lane.id // 4 %% 8, lane.id %% 4 * 2 + j] = t[i, j]\n"
    "          }\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

TEST(Mma, InstructionsReadSwizzledRows) {
  const auto func = ParseFunc(kRows);
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_EQ(Print(*func), kRows);
  EXPECT_EQ(Verify(*func, {256, 9216}), absl::OkStatus());
  std::vector<uint16_t> x(64 * 64, 0x3c00), w(8 * 64, 0x3c00);  // ones
  x[5 * 64 + 16] = x[5 * 64 + 15] = 0x4200;                     // a three inside the multiplied part and one outside
  std::vector<float> out(64 * 8);
  const std::span<std::byte> args[] = {std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(w)),
                                       std::as_writable_bytes(std::span(out))};
  ASSERT_EQ(Interpret(*func, args), absl::OkStatus());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i / 8 == 5 ? 34 : 32) << i;
}

// Replaces `from` by `to` in the text and returns the verifier's verdict.
std::string VerdictWith(std::string text, const std::string& from, const std::string& to, int64_t shared_bytes) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto func = ParseFunc(text);
  EXPECT_TRUE(func.ok()) << func.status();
  return std::string(Verify(*func, {256, shared_bytes}).message());
}

TEST(Mma, SwizzledRowsAreReadInGroupsOfEight) {
  const auto verdict = [](const std::string& from, const std::string& to) {
    return VerdictWith(kRows, from, to, 16384);
  };
  const std::string eights = "must be read in blocks of 8 whole rows";
  EXPECT_EQ(verdict("x", "x"), "");
  EXPECT_THAT(verdict("k * 32 + 16 stride 512 apart 8", "k * 32 + 16 stride 512 apart 16"), HasSubstr(eights));
  EXPECT_THAT(verdict("k * 32 + 16 stride 64 apart 8", "k * 32 + 24 stride 64 apart 8"), HasSubstr(eights));
  EXPECT_THAT(verdict("b[lane.id %% 4 * 2, k", "b[lane.id %% 4 * 2 + k, k"), HasSubstr(eights));
  EXPECT_THAT(verdict("lane.id // 4 %% 8, k * 32", "lane.id // 4 %% 8 + 4, k * 32"), HasSubstr(eights));
  EXPECT_THAT(verdict("alloc b: f16[8,64]", "alloc b: f16[9,64]"),
              HasSubstr("swizzled 'b' has 1152 bytes; it needs a multiple of 8 rows"));
  EXPECT_THAT(verdict("stride 64 apart 8", "stride 8 apart 8"),
              HasSubstr("the columns of a block of 'b' must be contiguous"));
}

// A longer access would leave its chunk, and the next chunk in memory is not the next one of the row.
TEST(Mma, SwizzledBuffersAreAccessedInChunks) {
  const auto verdict = [](const std::string& index) {
    return Verdict("func f(x: f32[256], y: f32[256]) grid 1 lanes 32 { alloc s: f32[256] swizzled { s[" + index +
                   "] = x[" + index + "] barrier y[" + index + "] = s[" + index + "] } }");
  };
  EXPECT_EQ(verdict("lane.id"), "");
  EXPECT_EQ(verdict("ramp(lane.id * 4, 1, 4)"), "");
  EXPECT_THAT(verdict("ramp(lane.id * 8, 1, 8)"), HasSubstr("8 elements of swizzled 's' are accessed at once"));
  EXPECT_THAT(verdict("ramp(lane.id * 2, 1, 4)"), HasSubstr("4 elements of swizzled 's' are accessed at once"));
  EXPECT_THAT(verdict("ramp(lane.id, 32, 4)"), HasSubstr("4 elements of swizzled 's' are accessed at once"));
}

// The instructions run asynchronously. Until the lane has waited for them, their operands must not be touched.
TEST(Mma, AsyncInstructionsNeedAWait) {
  const auto verdict = [](const std::string& from, const std::string& to) {
    return VerdictWith(kBlocks, from, to, 8192);
  };
  EXPECT_EQ(verdict("settle 0", "settle 0"), "");
  EXPECT_THAT(verdict("settle 0", ""),
              HasSubstr("'t' is read while a tensor instruction may still use it; wait for the instruction first"));
  EXPECT_THAT(verdict("settle 0", "settle 1"), HasSubstr("'t' is read while"));
  EXPECT_THAT(verdict("settle 0", "t[0, 0] = 0.0f32 settle 0"), HasSubstr("'t' is written while"));
  EXPECT_THAT(verdict("settle 0", "if f32(x[0, 0]) > 0.0f32 { settle 0 }"), HasSubstr("'t' is read while"));
  EXPECT_THAT(verdict("settle 0", "if lane.id < 4 { settle 0 } settle 0"),
              HasSubstr("a wait for tensor instructions ('settle') where lanes of a group may diverge"));
  // A conflict in the next iteration is found, even if the first iteration has none.
  EXPECT_THAT(verdict("settle 0",
                      "settle 0 for n in 2 { out[0, 0] = t[0, 0] contract wgmma_f16 t[0, 0 stride 2] += "
                      "a[0, lane.id // 32 * 16 + lane.id // 4 %% 8, 0 stride 64 apart 520] * "
                      "b[0, lane.id %% 4 * 2, 0 stride 8 apart 64] } settle 0"),
              HasSubstr("'t' is read while"));
  std::string loops, ends;
  for (int i = 0; i < 40; ++i) {
    loops += "for n" + std::to_string(i) + " in 2 { ";
    ends += " }";
  }
  const std::string deep = "settle 0 " + loops +
                           "contract wgmma_f16 t[0, 0 stride 2] += "
                           "a[0, lane.id // 32 * 16 + lane.id // 4 %% 8, 0 stride 64 apart 520] * "
                           "b[0, lane.id %% 4 * 2, 0 stride 8 apart 64]" +
                           ends + " settle 0";
  EXPECT_EQ(verdict("settle 0", deep), "") << "and it ends, however deep the loops are";
  const std::string text = kBlocks;
  const size_t settle = text.find("        settle 0\n");
  EXPECT_THAT(VerdictWith(text.substr(0, settle) + "      }\n    }\n  }\n}\n", "alloc t", "alloc t", 8192),
              HasSubstr("'t' is freed while a tensor instruction may still use it"));
}

TEST(Mma, BlocksMustHaveTheInstructionsLayout) {
  const auto verdict = [](const std::string& from, const std::string& to) {
    return VerdictWith(kBlocks, from, to, 8192);
  };
  EXPECT_THAT(verdict("a[0, lane.id // 32 * 16 +", "a[0, lane.id // 32 * 8 +"),
              HasSubstr("wgmma_f16: lane 32 does not start at its row of a"));
  EXPECT_THAT(verdict("stride 64 apart 520", "stride 60 apart 520"),
              HasSubstr("chunks of 'a' are not known to be aligned to 8 elements"));
  EXPECT_THAT(verdict("4 %% 8, 0 stride 64", "4 %% 8, 1 stride 64"),
              HasSubstr("chunks of 'a' are not known to be aligned to 8 elements"));
  EXPECT_THAT(verdict("stride 64 apart 520", "stride 64 apart 4"),
              HasSubstr("a 'a' has a column stride ('apart') of 4; it must be 8 or more"));
  EXPECT_THAT(verdict("stride 8 apart 64", "stride 16 apart 64"),
              HasSubstr("the columns of a block of 'b' must be contiguous: the stride must be 8, not 16"));
  EXPECT_THAT(verdict("* b[0, lane.id %% 4 * 2, 0 stride 8 apart 64]", "* w[lane.id %% 4 * 2, 0 stride 16 apart 8]"),
              HasSubstr("wgmma_f16 reads shared memory, but operand 'w' is param"));
  EXPECT_THAT(verdict("lanes 128", "lanes 64"),
              HasSubstr("wgmma_f16 needs 128 lanes, which does not divide the 64 lanes"));
}

TEST(Mma, VerifierRefuses) {
  const auto with = [](const std::string& stmt) {
    return Verdict("func f(x: u8[8], v: u8[4,4], w: i8[4,4], t: i8[2], out: i32[4], y: f32[4]) { " + stmt + " }");
  };
  EXPECT_EQ(with("contract udot out[0] += x[0] * v[0, 0 stride 4]"), "");
  EXPECT_THAT(with("contract udot out[0] += x[0] * w[0, 0 stride 4]"),
              HasSubstr("tensor instruction udot: operand b 'w' is i8, but the instruction takes u8"));
  EXPECT_THAT(with("contract udot y[0] += x[0] * v[0, 0 stride 4]"), HasSubstr("the sum 'y' is f32"));
  EXPECT_THAT(with("contract udot out[0] += x[0] * v[0, 0]"),
              HasSubstr("b 'v' has 4 rows, so its stride must be 1 or more"));
  EXPECT_THAT(with("contract udot out[0] += x[0 stride 4] * v[0, 0 stride 4]"),
              HasSubstr("a 'x' has one row, so its stride must be 0, not 4"));
  EXPECT_THAT(with("contract udot out[0] += x[0] * x[0 stride 1]"),
              HasSubstr("the rows of b must be contiguous: the stride must be 4, not 1"));
  EXPECT_THAT(with("contract udot out[0] += x[0 apart 2] * v[0, 0 stride 4]"),
              HasSubstr("a 'x' has a column stride ('apart') of 2; it must be 1"));
  EXPECT_THAT(with("contract udot out[0] += x[0] * v[0, 0 stride 4 apart 0]"),
              HasSubstr("has a column stride ('apart') of 0"));
  EXPECT_THAT(with("contract usdot out[0] += x[0] * t[0 stride 4]"),
              HasSubstr("the stride of operand b is larger than buffer 't'"));
  EXPECT_THAT(with("contract udot out[i] += x[0] * v[0, 0 stride 4]"), HasSubstr("there is no variable 'i' here"));
  EXPECT_THAT(with("contract mma out[0] += x[0] * v[0, 0 stride 4]"),
              HasSubstr("there is no tensor instruction 'mma'"));
  EXPECT_THAT(with("contract udot out[0] += x[0 where true] * v[0, 0 stride 4]"),
              HasSubstr("must be its first element, without a mask"));
}

TEST(Mma, VerifierFindsForgedOperands) {
  const Buffer x = MakeBuffer("x", DType::kUInt8, {4}), v = MakeBuffer("v", DType::kUInt8, {4, 4});
  const Buffer out = MakeBuffer("out", DType::kInt32, {4}), other = MakeBuffer("other", DType::kUInt8, {4});
  const auto first = [](const Buffer& b) { return MakeLoad(b, std::vector<Expr>(b->shape.size(), Expr(0))); };
  const auto verdict = [&](const MatrixOperand& sum, const MatrixOperand& a) {
    const Stmt stmt = MakeMma(TensorInstruction::kUdot, sum, a, {first(v), 4});
    return std::string(Verify(Func{"f", {x, v, out}, stmt}).message());
  };
  EXPECT_EQ(verdict({first(out), 0}, {first(x), 0}), "");
  EXPECT_THAT(verdict({first(out), 0}, {first(other), 0}), HasSubstr("neither a parameter nor allocated here"));
}

}  // namespace
}  // namespace hone::ir
