// SPDX-License-Identifier: Apache-2.0
// Runs small funcs with a grid as PTX: every type loaded, converted and stored, in vectors of every width and
// alignment, and every mathematical function.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ir/text.h"
#include "compiler/target/target.h"
#include "tests/ptx/on_machine.h"

namespace hone::codegen {
namespace {

constexpr const char* kTypes[] = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                  "u32",  "u64", "f16", "bf16", "f32", "f64"};

void Check(const std::string& text, const std::string& target, tests::Tolerance tolerance = {0, 0}) {
  const auto func = ir::ParseFunc(text);
  ASSERT_TRUE(func.ok()) << func.status() << text;
  std::string ptx;
  EXPECT_EQ(tests::CheckFuncOnPtxMachine(*func, *target::ParseTarget(target), tolerance, &ptx), absl::OkStatus())
      << text << "\n"
      << ptx;
}

// A func whose lanes convert vectors at a distance of `apart`, from global memory and through shared memory.
std::string Conversion(const std::string& from, const std::string& to, int width, int apart, bool shared) {
  const std::string wide = width == 1 ? "" : fmt::format("x{}", width), x = shared ? "s" : "x";
  const std::string read = width == 1 ? fmt::format("{}[lane.id * {}]", x, apart)
                                      : fmt::format("{}[ramp(lane.id * {}, 1, {})]", x, apart, width);
  const std::string write = width == 1 ? "y[lane.id]" : fmt::format("y[ramp(lane.id * {0}, 1, {0})]", width);
  const std::string value = from == to ? read : fmt::format("{}{}({})", to, wide, read);
  const int elements = 4 * apart + width;
  if (!shared) {
    return fmt::format("func f(x: {}[{}], y: {}[{}]) grid 1 lanes 4 {{\n  {} = {}\n}}", from, elements, to, 4 * width,
                       write, value);
  }
  return fmt::format(
      "func f(x: {0}[{1}], y: {2}[{3}]) grid 1 lanes 4 {{\n  alloc s: {0}[{1}] shared {{\n"
      "    if lane.id == 0 {{\n      for i in {1} {{\n        s[i] = x[i]\n      }}\n    }}\n    barrier\n"
      "    {4} = {5}\n  }}\n}}",
      from, elements, to, 4 * width, write, value);
}

class PtxConversions : public ::testing::TestWithParam<const char*> {};

TEST_P(PtxConversions, AreThoseOfTheInterpreter) {
  const std::string from = GetParam();
  for (const std::string to : kTypes) {
    for (const int width : {1, 2, 3, 4, 8, 16, 32}) {
      for (const int more : {0, 1}) Check(Conversion(from, to, width, width + more, width % 8 == 0), "cuda:sm_53");
    }
    for (const int width : {2, 4, 16}) Check(Conversion(from, to, width, width, false), "cuda:sm_90a");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PtxConversions, ::testing::ValuesIn(kTypes),
                         [](const auto& test) { return std::string(test.param); });

// The mask holds for all elements of some lanes, which is known only in unrolled loops, and for some elements of
// others.
TEST(PtxMasks, ReadsAreThoseOfTheInterpreter) {
  for (const std::string from : kTypes) {
    for (const std::string to : {"f32", "i32", "f64"}) {
      if (from == to) continue;
      for (const int width : {4, 8, 16, 32}) {
        const std::string ramp = fmt::format("ramp(j * {0}, 1, {0})", width);
        Check(fmt::format("func f(x: {0}[{4}], y: {1}[{3}]) grid 1 lanes 4 {{\n  unrolled j in 4 {{\n"
                          "    if lane.id == j {{\n      y[{5}] = {1}x{2}(x[{5} where {5} < broadcast({4}, {2})])\n"
                          "    }}\n  }}\n}}",
                          from, to, width, 4 * width, 3 * width + 1, ramp),
              "cuda:sm_75");
      }
    }
  }
}

// Elements at a constant distance.
TEST(PtxStrides, ReadsAndWritesAreThoseOfTheInterpreter) {
  for (const std::string from : kTypes) {
    for (const std::string to : {"f32", "i16", "f16", "bool"}) {
      if (from == to) continue;
      for (const int width : {2, 4, 16}) {
        Check(fmt::format("func f(x: {0}[{3}], y: {1}[{3}]) grid 1 lanes 4 {{\n"
                          "  y[ramp(lane.id, 4, {2})] = {1}x{2}(x[ramp(lane.id + 4, 3, {2})])\n}}",
                          from, to, width, 4 * width + 4),
              "cuda:sm_75");
      }
    }
  }
}

TEST(PtxMasks, WritesAreThoseOfTheInterpreter) {
  for (const std::string to : kTypes) {
    for (const std::string from : {"f32", "i32", "f16"}) {
      if (from == to) continue;
      for (const int width : {4, 8, 16, 32}) {
        const std::string ramp = fmt::format("ramp(j * {0}, 1, {0})", width);
        Check(fmt::format("func f(x: {0}[{3}], y: {1}[{4}]) grid 1 lanes 4 {{\n  unrolled j in 4 {{\n"
                          "    if lane.id == j {{\n      y[{5} where {5} < broadcast({4}, {2})] = {1}x{2}(x[{5}])\n"
                          "    }}\n  }}\n}}",
                          from, to, width, 4 * width, 3 * width + 1, ramp),
              "cuda:sm_75");
      }
    }
  }
}

// Quotients have up to 250 bits; an f64 holds 53 of them.
TEST(PtxRemainders, AreExactForLargeQuotients) {
  Check(
      "func f(x: f32[8], y: f32[16]) grid 1 lanes 4 {\n"
      "  y[lane.id] = 1e30f32 * (x[lane.id] + 1.0f32) % 0.3f32\n"
      "  y[lane.id + 4] = 1e36f32 * (x[lane.id] + 1.0f32) % (1e-37f32 * (x[lane.id + 4] + 1.0f32))\n"
      "  y[lane.id + 8] = -1e10f32 * (x[lane.id] + 1.0f32) % 7.0f32\n"
      "  y[lane.id + 12] = (x[lane.id] + 1.0f32) % (x[lane.id + 4] + 1.0f32)\n}",
      "cuda:sm_75");
}

// Rows of 36 bytes: a lane's own loads are aligned to 8 bytes, those of neighbouring rows to 4.
TEST(PtxMma, RowsNeedNoAlignment) {
  Check(
      "func f(a: f16[288], b: f16[144], y: f32[128]) grid 1 lanes 32 { alloc t: f32[4] local {\n"
      "  for i in 4 { t[i] = 0.0f32 }\n"
      "  contract mma_f16 t[0 stride 2] += a[lane.id // 4 * 36 stride 18] * b[lane.id %% 4 * 36 stride 18]\n"
      "  for i in 4 { y[lane.id * 4 + i] = t[i] }\n} }",
      "cuda:sm_80", {1e-5, 1e-6});
}

// Rows that one group copies or several share, in up to as many buffers as there are objects. All lanes of a group read
// what the others' copies wrote.
TEST(PtxBulkCopies, AreThoseOfTheInterpreter) {
  for (const int groups : {1, 2, 4, 8}) {
    for (const int buffers : {2, 3, 8}) {
      for (const int rows : {2, 5, 40}) {
        const std::string words = groups > 1 ? fmt::format("copy 128 group {}", groups) : "copy 128";
        const auto copy = [&](const std::string& row) {
          return fmt::format(
                     "if lane.id == 0 {{ if {0} < {1} {{ {2} s[({0}) %% {3} * 128] = x[{4} + ({0}) * 128] }} }} ", row,
                     rows, words, buffers, fmt::format("group.id // 8 * {}", rows * 128)) +
                 "commit ";
        };
        std::string text = fmt::format("func f(x: f32[{}], y: f32[{}]) grid 16 lanes 64 {{ alloc s: f32[{}] shared {{ ",
                                       2 * rows * 128, 16 * rows * 64, buffers * 128);
        for (int i = 0; i + 1 < buffers; ++i) text += copy(fmt::format("{}", i));
        text += fmt::format("for k in {} {{ wait {} barrier ", rows, buffers - 2) +
                copy(fmt::format("k + {}", buffers - 1));
        text += fmt::format(
            "y[(group.id * {0} + k) * 64 + lane.id] = s[k %% {1} * 128 + 127 - lane.id] - "
            "s[k %% {1} * 128 + lane.id] }} wait 0 }} }}",
            rows, buffers);
        Check(text, "cuda:sm_90a");
      }
    }
  }
}

// The iterations of an unrolled loop share one buffer, in memory that the launch requests or in the kernel's own.
TEST(PtxSharedBuffers, ServeEveryIteration) {
  for (const int elements : {64, 16'000}) {
    Check(fmt::format("func f(x: f32[256], y: f32[256]) grid 1 lanes 64 {{ unrolled i in 4 {{\n"
                      "  alloc s: f32[{}] shared {{\n    s[lane.id] = x[i * 64 + lane.id]\n    barrier\n"
                      "    y[i * 64 + lane.id] = s[63 - lane.id]\n    barrier\n  }}\n}} }}",
                      elements),
          "cuda:sm_87");
  }
}

TEST(PtxFunctions, AcoshIsPreciseNearOne) {
  Check(
      "func f(x: f64[4], y: f64[4]) grid 1 lanes 4 {\n"
      "  y[lane.id] = acosh(1.0f64 + (abs(x[lane.id]) + 1.0f64) * 1e-12f64)\n}",
      "cuda:sm_75", {1e-14, 1e-300});
}

}  // namespace
}  // namespace hone::codegen
