// SPDX-License-Identifier: Apache-2.0
// Tests mma and wgmma: which lane has which operands and sums, and when shared memory and registers may be used.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "tests/ptx/numbers.h"
#include "tests/ptx/program.h"

namespace hone::ptx {
namespace {

using ::testing::HasSubstr;

absl::Status RunOn(const std::string& text, uint32_t lanes, std::vector<std::vector<uint32_t>*> buffers) {
  const absl::StatusOr<Program> program = Parse(text);
  if (!program.ok()) return program.status();
  Launch launch{.lanes = lanes};
  for (std::vector<uint32_t>* buffer : buffers) {
    launch.arguments.push_back(reinterpret_cast<uint64_t>(buffer->data()));
    launch.memory.push_back({launch.arguments.back(), buffer->size() * sizeof(uint32_t)});
  }
  std::ranges::sort(launch.memory, {}, &Memory::begin);
  return Run(program->kernels.at(0), launch);
}

// Small whole numbers: every type represents them and their products exactly.
float Factor(uint32_t row, uint32_t step) { return static_cast<float>((row * 5 + step * 3) % 7) - 3; }
float Other(uint32_t column, uint32_t step) { return static_cast<float>((column * 3 + step * 2) % 5) - 2; }
float Product(uint32_t row, uint32_t column, uint32_t steps) {
  float sum = 0;
  for (uint32_t k = 0; k < steps; ++k) sum += Factor(row, k) * Other(column, k);
  return sum;
}

struct MmaCase {
  const char* name;
  uint32_t steps;
  uint16_t (*half)(long double, Rounding);  // conversion to 16 bits; null: the type has 32
};

class MmaTest : public ::testing::TestWithParam<MmaCase> {};

// Each lane loads its registers from memory, four of a and two of b, and stores four sums, which begin at 100.
TEST_P(MmaTest, OperandsAreInTheLanesOfPtxIsa) {
  const auto word = [&](auto factor, uint32_t row, uint32_t t, uint32_t half) {
    if (GetParam().half == nullptr) return std::bit_cast<uint32_t>(factor(row, t + 4 * half));
    const auto bits = [&](uint32_t step) -> uint32_t { return GetParam().half(factor(row, step), Rounding::kNearest); };
    return bits(2 * t + 8 * half) | bits(2 * t + 8 * half + 1) << 16;
  };
  std::vector<uint32_t> in, out(32 * 4);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    for (const uint32_t word_of_a : {0, 1, 2, 3}) in.push_back(word(Factor, g + word_of_a % 2 * 8, t, word_of_a / 2));
    for (const uint32_t half : {0, 1}) in.push_back(word(Other, g, t, half));
  }
  const std::string text = fmt::format(R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{{
  .reg .b32 %r<16>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd1, %r1, 24, %rd1;
  mad.wide.u32 %rd2, %r1, 16, %rd2;
  ld.global.v2.b32 {{%r2, %r3}}, [%rd1];
  ld.global.v2.b32 {{%r4, %r5}}, [%rd1+8];
  ld.global.v2.b32 {{%r6, %r7}}, [%rd1+16];
  mov.f32 %f1, 0f42C80000;
  mma.sync.aligned.{}
    {{%f1, %f2, %f3, %f4}},
    {{%r2, %r3, %r4, %r5}},
    {{%r6, %r7}},
    {{%f1, %f1, %f1, %f1}};
  st.global.v4.f32 [%rd2], {{%f1, %f2, %f3, %f4}};
  ret;
}}
)",
                                       GetParam().name);
  ASSERT_EQ(RunOn(text, 32, {&in, &out}), absl::OkStatus());
  for (uint32_t n = 0; n < out.size(); ++n) {
    const uint32_t lane = n / 4, row = lane / 4 + 8 * (n / 2 % 2), column = 2 * (lane % 4) + n % 2;
    EXPECT_EQ(std::bit_cast<float>(out[n]), 100 + Product(row, column, GetParam().steps)) << row << ", " << column;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MmaTest,
                         ::testing::Values(MmaCase{"m16n8k8.row.col.f32.tf32.tf32.f32", 8, nullptr},
                                           MmaCase{"m16n8k16.row.col.f32.f16.f16.f32", 16, ToF16},
                                           MmaCase{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, ToBf16}));

constexpr char kMma[] =
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f1, %f1, %f1}, {%f2, %f2, %f2, %f2}, {%f2, %f2}, "
    "{%f1, %f1, %f1, %f1};\n";

std::string Plain(const std::string& body) {
  return ".visible .entry k()\n{\n.reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .f32 %f<80>;\n.reg .b64 %rd<16>;\n"
         "mov.u32 %r1, %tid.x;\n" +
         body + "ret;\n}\n";
}

TEST(Mma, TruncatesOperandsToTenBits) {
  std::vector<uint32_t> out(32);
  const std::string text = R"(
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  mov.f32 %f1, 0f00000000;
  mov.f32 %f2, 0f3F801FFF;
)" + std::string(kMma) + "st.global.f32 [%rd1], %f1;\nret;\n}";
  ASSERT_EQ(RunOn(text, 32, {&out}), absl::OkStatus());
  EXPECT_THAT(out, ::testing::Each(std::bit_cast<uint32_t>(8.0F)));
}

TEST(Mma, NeedsAllLanesOfAWarp) {
  const absl::Status apart =
      RunOn(Plain(std::string("setp.lt.s32 %p1, %r1, 5;\n@%p1 bra $L1;\n") + kMma + "ret;\n$L1:\n" + kMma), 32, {});
  EXPECT_EQ(apart.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(apart.message(), HasSubstr("lane 0 waits for others, but lane 5 is at"));
  EXPECT_THAT(RunOn(Plain(kMma), 48, {}).message(), HasSubstr("there are 48 lanes"));
}

// 64 rows of a and 16 columns of b, in chunks of 16 bytes. Blocks of a have 128 bytes, and its chunks are 1024 bytes
// apart. Swizzled, a has rows of 128 bytes, and the operand is their second and third chunk. Blocks of b have 256
// bytes, and its chunks are 128 bytes apart.
constexpr uint32_t kA = 64 * 128, kB = 16 * 32;

uint32_t PlaceOfA(uint32_t row, uint32_t chunk, bool swizzled) {
  return swizzled ? row * 128 + ((chunk + 1) ^ row % 8) * 16 : chunk * 1024 + row * 16;
}

std::vector<uint32_t> Blocks(bool tf32, bool swizzled) {
  std::vector<std::byte> bytes(kA + kB);
  const uint32_t size = tf32 ? 4 : 2, in_chunk = 16 / size;
  const auto put = [&](uint32_t place, float factor) {
    const uint32_t bits =
        tf32 ? std::bit_cast<uint32_t>(factor) | 0x1fff : ToF16(factor);  // the last bits do not count
    std::memcpy(&bytes[place], &bits, size);
  };
  for (uint32_t step = 0; step < 2 * in_chunk; ++step) {
    const uint32_t chunk = step / in_chunk, within = step % in_chunk * size;
    for (uint32_t row = 0; row < 64; ++row) {
      put(PlaceOfA(row, chunk, swizzled) + within, Factor(row, step));
    }
    for (uint32_t c = 0; c < 16; ++c) put(kA + c / 8 * 256 + chunk * 128 + c % 8 * 16 + within, Other(c, step));
  }
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

struct Order {
  std::string between = "fence.proxy.async;\nbar.sync 0;\n", fence = "wgmma.fence.sync.aligned;\n",
              after = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n", descriptor;
  bool tf32 = false, swizzled = false, registers = false;  // registers: in which lanes have a
};

// The part of a that a lane passes in registers: rows r and r + 8, steps s and s + 4.
constexpr char kLoadA[] = R"(
  shr.u32 %r3, %r1, 5;
  shl.b32 %r3, %r3, 8;
  and.b32 %r4, %r1, 31;
  shl.b32 %r4, %r4, 2;
  add.s32 %r3, %r3, %r4;
  cvt.u64.u32 %rd8, %r3;
  add.s64 %rd8, %rd8, %rd4;
  ld.shared.u32 %r8, [%rd8];
  ld.shared.u32 %r9, [%rd8+128];
  ld.shared.u32 %r10, [%rd8+1024];
  ld.shared.u32 %r11, [%rd8+1152];
)";

// Each lane copies 68 bytes, begins a product, and stores its eight sums.
absl::Status RunProduct(const Order& order, std::vector<uint32_t>* out) {
  std::vector<uint32_t> in = Blocks(order.tf32, order.swizzled);
  out->assign(128 * 8, 0);
  std::string text = R"(
.shared .align 1024 .b8 s[8704];
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %rd1, %r1, 4, %rd1;
  mad.wide.u32 %rd2, %r1, 32, %rd2;
  mov.u64 %rd4, s;
  mad.wide.u32 %rd3, %r1, 4, %rd4;
)";
  for (int n = 0; n < 17; ++n) {
    text += fmt::format("ld.global.u32 %r2, [%rd1+{0}];\nst.shared.u32 [%rd3+{0}], %r2;\n", 512 * n);
  }
  for (int n = 0; n < 8; ++n) text += fmt::format("mov.f32 %f{}, 0f3F800000;\n", n);
  text += order.between + (order.registers ? kLoadA : "");
  text += fmt::format(
      "shr.u64 %rd4, %rd4, 4;\nor.b64 %rd5, %rd4, {};\nadd.s64 %rd6, %rd4, {};\n"
      "or.b64 %rd6, %rd6, {};\n",
      order.swizzled ? 1ULL | 1ULL << 16 | 64ULL << 32 | 1ULL << 62 : 64ULL << 16 | 8ULL << 32, kA / 16,
      8ULL << 16 | 16ULL << 32);
  text += order.descriptor + "{ .reg .pred p; setp.eq.u32 p, 0, 0;\n" + order.fence +
          "wgmma.mma_async.sync.aligned.m64n16" + (order.tf32 ? "k8.f32.tf32.tf32" : "k16.f32.f16.f16") +
          " {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, " + (order.registers ? "{%r8, %r9, %r10, %r11}" : "%rd5") +
          ", %rd6, p, 1, 1" + (order.tf32 ? ";\n" : ", 0, 0;\n") + order.after + "}\n";
  text +=
      "st.global.v4.f32 [%rd2], {%f0, %f1, %f2, %f3};\nst.global.v4.f32 [%rd2+16], {%f4, %f5, %f6, %f7};\nret;\n}\n";
  return RunOn(text, 128, {&in, out});
}

TEST(Wgmma, MultipliesBlocksOfSharedMemory) {
  for (const auto& [tf32, swizzled, registers] : {std::tuple(false, false, false),
                                                  {true, false, false},
                                                  {false, true, false},
                                                  {true, true, false},
                                                  {true, false, true}}) {
    std::vector<uint32_t> out;
    ASSERT_EQ(RunProduct({.tf32 = tf32, .swizzled = swizzled, .registers = registers}, &out), absl::OkStatus());
    for (uint32_t n = 0; n < out.size(); ++n) {
      const uint32_t lane = n / 8, place = n % 8;
      const uint32_t row = lane / 32 * 16 + lane % 32 / 4 + place / 2 % 2 * 8;
      const uint32_t column = place / 4 * 8 + lane % 4 * 2 + n % 2;
      EXPECT_EQ(std::bit_cast<float>(out[n]), 1 + Product(row, column, tf32 ? 8 : 16)) << row << ", " << column;
    }
  }
}

TEST(Wgmma, SeesWritesBehindFenceAndBarrier) {
  std::vector<uint32_t> out;
  EXPECT_THAT(RunProduct({.between = "bar.sync 0;\n"}, &out).message(), HasSubstr("no fence and barrier made visible"));
  EXPECT_THAT(RunProduct({.between = "fence.proxy.async;\n"}, &out).message(), HasSubstr("made visible"));
  EXPECT_THAT(RunProduct({.between = "bar.sync 0;\nfence.proxy.async;\n"}, &out).message(), HasSubstr("made visible"));
  const std::string again = "st.shared.u32 [%rd3], %r2;\nwgmma.wait_group.sync.aligned 0;\n";
  EXPECT_THAT(RunProduct({.after = "wgmma.commit_group.sync.aligned;\n" + again}, &out).message(),
              HasSubstr("which others read since the last barrier"));
  EXPECT_THAT(RunProduct({.after = "wgmma.commit_group.sync.aligned;\nbar.sync 0;\n" + again}, &out).message(),
              HasSubstr("was written before it was waited for"));
}

TEST(Wgmma, AccumulatorsAreReadyAfterTheWait) {
  std::vector<uint32_t> out;
  const std::string early = "uses a register of wgmma that was not waited for";
  EXPECT_THAT(RunProduct({.after = "wgmma.commit_group.sync.aligned;\n"}, &out).message(), HasSubstr(early));
  EXPECT_THAT(RunProduct({.after = "wgmma.wait_group.sync.aligned 0;\n"}, &out).message(), HasSubstr(early));
  EXPECT_THAT(
      RunProduct({.after = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\n"}, &out).message(),
      HasSubstr(early));
  EXPECT_THAT(RunProduct({.fence = ""}, &out).message(), HasSubstr("has no wgmma.fence before it"));
}

TEST(Wgmma, RegistersMustNotChangeBeforeTheWait) {
  std::vector<uint32_t> out;
  const std::string change = "mov.b32 %r8, %r9;\n";
  EXPECT_THAT(
      RunProduct({.fence = "wgmma.fence.sync.aligned;\n" + change, .tf32 = true, .registers = true}, &out).message(),
      HasSubstr("has factors written since the last wgmma.fence"));
  const std::string commit = "wgmma.commit_group.sync.aligned;\n", wait = "wgmma.wait_group.sync.aligned 0;\n";
  EXPECT_THAT(RunProduct({.after = commit + change + wait, .tf32 = true, .registers = true}, &out).message(),
              HasSubstr("uses a register of wgmma that was not waited for"));
  EXPECT_EQ(RunProduct({.after = commit + wait + change, .tf32 = true, .registers = true}, &out), absl::OkStatus());
}

TEST(Wgmma, DescriptorsAreEqualInAllLanes) {
  std::vector<uint32_t> out;
  EXPECT_THAT(RunProduct({.descriptor = "cvt.u64.u32 %rd7, %r1;\nadd.s64 %rd5, %rd5, %rd7;\n"}, &out).message(),
              HasSubstr("has the descriptor"));
  EXPECT_THAT(RunProduct({.descriptor = "add.s64 %rd5, %rd5, 1024;\n"}, &out).message(), HasSubstr("of shared memory"));
  EXPECT_THAT(RunProduct({.descriptor = "or.b64 %rd5, %rd5, 0x8000000000000000;\n"}, &out).message(),
              HasSubstr("does not know"));
  EXPECT_THAT(RunProduct({.descriptor = "add.s64 %rd5, %rd5, 8;\n", .swizzled = true}, &out).message(),
              HasSubstr("not where eight of them begin"));
}

}  // namespace
}  // namespace hone::ptx
