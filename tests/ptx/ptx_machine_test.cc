// SPDX-License-Identifier: Apache-2.0
// Tests the PTX machine itself on short texts: what instructions compute, how lanes run together, and which uses are
// errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/ptx/program.h"

namespace hone::ptx {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// A kernel with two buffers of 8 bytes per lane. %rd1 and %rd2 are the lane's addresses in them.
std::string KernelOf(const std::string& body, const std::string& variables = "") {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n" + variables + R"(
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
{
	.reg .pred 	%p<8>;
	.reg .b16 	%rs<32>;
	.reg .b32 	%r<32>;
	.reg .f32 	%f<32>;
	.reg .b64 	%rd<32>;
	ld.param.u64 	%rd1, [k_param_0];
	ld.param.u64 	%rd2, [k_param_1];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd3, %r1, 8;
	add.s64 	%rd1, %rd1, %rd3;
	add.s64 	%rd2, %rd2, %rd3;
)" + body +
         "\n\tret;\n}\n";
}

struct Result {
  absl::Status status;
  std::vector<uint64_t> out;
};

Result RunText(const std::string& text, uint32_t lanes, std::vector<uint64_t> in = {}, uint64_t shared = 0,
               uint32_t groups = 1) {
  Result result;
  const absl::StatusOr<Program> program = Parse(text);
  if (!program.ok()) return {program.status(), {}};
  in.resize(std::max<size_t>(in.size(), lanes));
  result.out.resize(lanes);
  Launch launch{.groups = groups, .lanes = lanes, .shared_bytes = shared, .memory_is_buffers = true};
  for (std::vector<uint64_t>* buffer : {&in, &result.out}) {
    launch.arguments.push_back(reinterpret_cast<uint64_t>(buffer->data()));
    launch.memory.push_back({launch.arguments.back(), buffer->size() * sizeof(uint64_t)});
  }
  for (const Memory& table : program->table_memory) launch.memory.push_back(table);
  std::ranges::sort(launch.memory, {}, &Memory::begin);
  result.status = Run(program->kernels.at(0), launch);
  return result;
}

absl::Status StatusOf(const std::string& body, uint32_t lanes, const std::string& variables = "", uint64_t shared = 0) {
  return RunText(KernelOf(body, variables), lanes, {}, shared).status;
}

// The result of the instruction for these operands.
uint64_t Value(const std::string& name, const std::string& operands) {
  const Result result = RunText(KernelOf(fmt::format("{} %rd4, {};\nst.global.u64 [%rd2], %rd4;", name, operands)), 1);
  EXPECT_EQ(result.status, absl::OkStatus()) << name;
  return result.out.empty() ? 0 : result.out[0];
}
std::string F(float x) { return fmt::format("0f{:08X}", std::bit_cast<uint32_t>(x)); }
std::string D(double x) { return fmt::format("0d{:016X}", std::bit_cast<uint64_t>(x)); }
float Float(const std::string& name, const std::string& operands) {
  return std::bit_cast<float>(static_cast<uint32_t>(Value(name, operands)));
}

TEST(Integers, AreAsWideAsTheInstructionSays) {
  EXPECT_EQ(Value("add.s32", "-1, 3"), 2U);
  EXPECT_EQ(Value("add.s16", "65535, 2"), 1U);
  EXPECT_EQ(Value("sub.s64", "1, 3"), ~uint64_t{1});
  EXPECT_EQ(Value("mul.lo.s32", "-3, 5"), 0xfffffff1U);
  EXPECT_EQ(Value("mul.hi.s32", "-3, 5"), 0xffffffffU);
  EXPECT_EQ(Value("mul.hi.u32", "-3, 5"), 4U);
  EXPECT_EQ(Value("mul.hi.u16", "40000, -1985"), 40000U * 63551 >> 16);
  EXPECT_EQ(Value("mul.hi.u64", "-1, -1"), ~uint64_t{1});
  EXPECT_EQ(Value("mul.wide.s32", "-3, 5"), static_cast<uint64_t>(-15));
  EXPECT_EQ(Value("mul.wide.u32", "-3, 5"), 0xfffffffdULL * 5);
  EXPECT_EQ(Value("mul.wide.u16", "-1, -1"), 65535ULL * 65535);
  EXPECT_EQ(Value("mad.lo.s32", "3, 5, -1"), 14U);
  EXPECT_EQ(Value("mad.wide.u32", "-1, 2, 1"), 0x1ffffffffULL);
  EXPECT_EQ(Value("div.s32", "-7, 2"), static_cast<uint32_t>(-3));
  EXPECT_EQ(Value("rem.s32", "-7, 2"), static_cast<uint32_t>(-1));
  EXPECT_EQ(Value("div.u16", "65535, 2"), 32767U);
  EXPECT_EQ(Value("rem.u64", "-1, 10"), 5U);
  EXPECT_EQ(Value("min.s32", "-1, 1"), 0xffffffffU);
  EXPECT_EQ(Value("min.u32", "-1, 1"), 1U);
  EXPECT_EQ(Value("max.s16", "0xFFFF, 1"), 1U);
  EXPECT_EQ(Value("add.s16x2", "0x0001FFFF, 0x00010001"), 0x00020000U);
  EXPECT_EQ(Value("max.s16x2", "0x0001FFFF, 0x00000001"), 0x00010001U);
  EXPECT_EQ(Value("max.u16x2", "0x0001FFFF, 0x00000001"), 0x0001ffffU);
  EXPECT_EQ(Value("abs.s32", "-5"), 5U);
  EXPECT_EQ(Value("neg.s32", "5"), 0xfffffffbU);
}

TEST(Integers, BitsAreShiftedAndPicked) {
  EXPECT_EQ(Value("shl.b32", "1, 32"), 0U);
  EXPECT_EQ(Value("shl.b16", "0x8001, 1"), 2U);
  EXPECT_EQ(Value("shr.s32", "-8, 100"), 0xffffffffU);
  EXPECT_EQ(Value("shr.u32", "-8, 1"), 0x7ffffffcU);
  EXPECT_EQ(Value("shr.s16", "0x8000, 15"), 0xffffU);
  EXPECT_EQ(Value("bfe.u32", "0x12345678, 8, 8"), 0x56U);
  EXPECT_EQ(Value("bfe.s32", "0x0000F000, 12, 4"), 0xffffffffU);
  EXPECT_EQ(Value("bfe.s32", "0x80000000, 28, 8"), 0xfffffff8U);
  EXPECT_EQ(Value("bfe.u64", "-1, 60, 64"), 15U);
  EXPECT_EQ(Value("bfi.b32", "0xAB, 0x11111111, 8, 8"), 0x1111ab11U);
  EXPECT_EQ(Value("prmt.b32", "0x33221100, 0x77665544, 0x7531"), 0x77553311U);
  EXPECT_EQ(Value("prmt.b32", "0x80, 0, 0x0008"), 0x808080ffU);
  EXPECT_EQ(Value("shf.l.wrap.b32", "0x80000000, 1, 1"), 3U);
  EXPECT_EQ(Value("shf.r.clamp.b32", "1, 3, 32"), 3U);
  EXPECT_EQ(Value("popc.b32", "0xF0F"), 8U);
  EXPECT_EQ(Value("clz.b32", "1"), 31U);
  EXPECT_EQ(Value("clz.b64", "0"), 64U);
  EXPECT_EQ(Value("brev.b32", "1"), 0x80000000U);
  EXPECT_EQ(Value("not.b16", "0"), 0xffffU);
  EXPECT_EQ(Value("xor.b64", "-1, 1"), ~uint64_t{1});
}

TEST(Floats, AreRoundedAsTheInstructionSays) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Float("add.f32", F(1) + ", " + F(0x1p-24F)), 1.0F);
  EXPECT_EQ(Float("fma.rn.f32", F(1 + 0x1p-12F) + ", " + F(1 + 0x1p-12F) + ", " + F(-1)), 0x1p-11F + 0x1p-24F);
  EXPECT_EQ(Float("mul.f32", F(tiny) + ", " + F(1)), tiny);
  EXPECT_EQ(Float("mul.ftz.f32", F(tiny) + ", " + F(1)), 0.0F);
  EXPECT_EQ(Float("div.rn.f32", F(1) + ", " + F(3)), 1.0F / 3);
  EXPECT_EQ(Float("rcp.rn.f32", F(3)), 1.0F / 3);
  EXPECT_EQ(Float("sqrt.rn.f32", F(2)), std::sqrt(2.0F));
  EXPECT_EQ(Float("rsqrt.approx.f32", F(4)), 0.5F);
  EXPECT_EQ(Float("ex2.approx.f32", F(3)), 8.0F);
  EXPECT_EQ(Float("lg2.approx.ftz.f32", F(8)), 3.0F);
  EXPECT_EQ(Float("tanh.approx.f32", F(100)), 1.0F);
  EXPECT_EQ(Value("neg.f32", F(0)), 0x80000000U);
  EXPECT_EQ(Float("copysign.f32", F(-1) + ", " + F(2)), -2.0F);
  EXPECT_EQ(Value("fma.rn.f64", D(3) + ", " + D(5) + ", " + D(-1)), std::bit_cast<uint64_t>(14.0));
  EXPECT_EQ(Value("add.f16", "0x3C00, 0x1000"), 0x3c00U);  // 1 + 2^-11: a tie, to even
  EXPECT_EQ(Value("add.f16", "0x3C01, 0x1000"), 0x3c02U);
  EXPECT_EQ(Value("fma.rn.f16", "0x3C00, 0x3C00, 0x0001"), 0x3c00U);
  EXPECT_EQ(Value("add.bf16", "0x3F80, 0x3B80"), 0x3f80U);             // 1 + 2^-8
  EXPECT_EQ(Value("fma.rn.bf16", "0x3B80, 0x3F81, 0x3F80"), 0x3f81U);  // a little more than the tie
  EXPECT_EQ(Value("mul.f16x2", "0x40003C00, 0x44004200"), 0x48004200U);
}

// min and max ignore a NaN, or return it if the name says so. -0 is less than 0.
TEST(Floats, MinAndMaxHandleNan) {
  const std::string nan = "0f7FC00000";
  EXPECT_EQ(Float("max.f32", nan + ", " + F(1)), 1.0F);
  EXPECT_EQ(Float("min.f32", F(1) + ", " + nan), 1.0F);
  EXPECT_EQ(Value("max.f32", nan + ", " + nan), 0x7fffffffU);
  EXPECT_EQ(Value("max.NaN.f32", nan + ", " + F(1)), 0x7fffffffU);
  EXPECT_EQ(Value("min.f32", F(0) + ", " + F(-0.0F)), 0x80000000U);
  EXPECT_EQ(Value("max.f32", F(-0.0F) + ", " + F(0)), 0U);
  EXPECT_EQ(Value("max.NaN.f16", "0x7E00, 0x3C00"), 0x7fffU);
}

TEST(Conversions, RoundAndSaturate) {
  EXPECT_EQ(Value("cvt.rni.s32.f32", F(2.5F)), 2U);
  EXPECT_EQ(Value("cvt.rzi.s32.f32", F(-2.7F)), static_cast<uint64_t>(-2));
  EXPECT_EQ(Value("cvt.rmi.s32.f32", F(-2.1F)) & 0xffffffffU, static_cast<uint32_t>(-3));
  EXPECT_EQ(Value("cvt.rpi.u32.f32", F(2.1F)), 3U);
  EXPECT_EQ(Value("cvt.rzi.u32.f32", F(-5)), 0U);
  EXPECT_EQ(Value("cvt.rzi.s32.f32", F(1e20F)), 0x7fffffffU);
  EXPECT_EQ(Value("cvt.rzi.s32.f32", "0f7FC00000"), 0U);
  EXPECT_EQ(Value("cvt.rzi.s64.f64", D(std::nan(""))), uint64_t{1} << 63);
  EXPECT_EQ(Float("cvt.rni.f32.f32", F(3.5F)), 4.0F);
  EXPECT_EQ(Value("cvt.rmi.f32.f32", F(-0.0F)), 0x80000000U);
  EXPECT_EQ(Float("cvt.rn.f32.s32", "16777217"), 16777216.0F);
  EXPECT_EQ(Float("cvt.rp.f32.s32", "16777217"), 16777218.0F);
  EXPECT_EQ(Float("cvt.rz.f32.f64", D(1 - 0x1p-30)), 1 - 0x1p-24F);
  EXPECT_EQ(Float("cvt.rm.f32.f64", D(1e300)), std::numeric_limits<float>::max());
  EXPECT_EQ(Float("cvt.sat.f32.f32", F(3)), 1.0F);
  EXPECT_EQ(Float("cvt.sat.f32.f32", "0f7FC00000"), 0.0F);
  EXPECT_EQ(Value("cvt.rn.f16.f32", F(1 + 0x1p-11F)), 0x3c00U);
  EXPECT_EQ(Value("cvt.rz.f16.f32", F(1e6F)), 0x7bffU);
  EXPECT_EQ(Value("cvt.rn.f16.f32", F(1e6F)), 0x7c00U);
  EXPECT_EQ(Value("cvt.rn.f16.f32", F(0x1p-24F)), 1U);
  EXPECT_EQ(Value("cvt.rn.bf16.f32", F(1 + 0x1p-8F)), 0x3f80U);
  EXPECT_EQ(Value("cvt.rn.bf16x2.f32", F(1) + ", " + F(2)), 0x3f804000U);
  EXPECT_EQ(Float("cvt.f32.f16", "0x0001"), 0x1p-24F);
  EXPECT_EQ(Float("cvt.f32.bf16", "0x3F80"), 1.0F);
  EXPECT_EQ(Value("cvt.s32.s8", "0x80"), static_cast<uint64_t>(-128));
  EXPECT_EQ(Value("cvt.u16.u32", "0x12345"), 0x2345U);
  EXPECT_EQ(Value("cvt.sat.s8.s32", "1000"), 127U);
  EXPECT_EQ(Value("cvt.u64.u16", "-1"), 65535U);
}

TEST(Predicates, CompareAndCombine) {
  const auto holds = [](const std::string& name, const std::string& operands) {
    return RunText(KernelOf("setp.eq.s32 %p2, 0, 0;\n" + name + " %p1, " + operands +
                            ";\nselp.b64 %rd4, 1, 0, %p1;\nst.global.u64 [%rd2], %rd4;"),
                   1)
               .out.at(0) == 1;
  };
  EXPECT_TRUE(holds("setp.lt.s32", "-1, 0"));
  EXPECT_FALSE(holds("setp.lt.u32", "-1, 0"));
  EXPECT_TRUE(holds("setp.ne.s16", "1, 2"));
  const std::string nan = "0f7FC00000, 0f3F800000";
  for (const char* name : {"setp.eq.f32", "setp.ne.f32", "setp.lt.f32", "setp.ge.f32", "setp.num.f32"}) {
    EXPECT_FALSE(holds(name, nan)) << name;
  }
  for (const char* name : {"setp.equ.f32", "setp.neu.f32", "setp.ltu.f32", "setp.geu.f32", "setp.nan.f32"}) {
    EXPECT_TRUE(holds(name, nan)) << name;
  }
  EXPECT_FALSE(holds("setp.eq.and.s32", "1, 1, !%p2"));
  EXPECT_TRUE(holds("setp.ne.or.s32", "1, 1, %p2"));
  EXPECT_TRUE(holds("setp.gt.f16", "0x4000, 0x3C00"));
  const Result both =
      RunText(KernelOf("setp.lt.s32 %p1|%p2, 2, 1;\nselp.b64 %rd4, 1, 2, %p2;\nst.global.u64 [%rd2], %rd4;"), 1);
  EXPECT_EQ(both.out.at(0), 1U);
}

TEST(Memory, VectorsSignsAndTables) {
  const Result result = RunText(KernelOf(R"(
	ld.global.v4.u16 	{%rs1, %rs2, %rs3, %rs4}, [%rd1];
	st.global.v4.b16 	[%rd2], {%rs4, %rs3, %rs2, %rs1};
	ld.global.s8 	%rs5, [%rd1+-8];
	mov.u64 	%rd5, table;
	ld.const.u32 	%r2, [table+4];
	mov.b32 	{%rs6, %rs7}, %r2;
	mov.b32 	%r3, {%rs7, %rs6};
	add.s64 	%rd1, %rd1, 0;
)",
                                         ".const .align 4 .b32 table[2] = {1, 0x00020003};\n"),
                                2, {0x0004000300020001, 5});
  EXPECT_THAT(result.status.message(), HasSubstr("reads 1 bytes"));  // of lane 0, before its buffer
  const Result good = RunText(KernelOf(R"(
	ld.const.u32 	%r2, [table+4];
	mov.b32 	{%rs6, %rs7}, %r2;
	mov.b32 	%r3, {%rs7, %rs6};
	cvt.u64.u32 	%rd4, %r3;
	st.global.u64 	[%rd2], %rd4;
)",
                                       ".const .align 4 .b32 table[2] = {1, 0x00020003};\n"),
                              1);
  EXPECT_EQ(good.status, absl::OkStatus());
  EXPECT_EQ(good.out[0], 0x00030002U);
  const Result swapped = RunText(KernelOf("ld.global.v4.u16 {%rs1, %rs2, %rs3, %rs4}, [%rd1];\n"
                                          "st.global.v4.b16 [%rd2], {%rs4, %rs3, %rs2, %rs1};"),
                                 1, {0x0004000300020001});
  EXPECT_EQ(swapped.out[0], 0x0001000200030004U);
}

TEST(Memory, LocalArraysBelongToOneLane) {
  const Result result = RunText(KernelOf(R"(
	.local .align 8 .b8 	__local_depot0[16];
	.reg .b64 	%SP;
	.reg .b64 	%SPL;
	mov.u64 	%SPL, __local_depot0;
	cvta.local.u64 	%SP, %SPL;
	st.u64 	[%SP+8], %rd3;
	bar.sync 	0;
	ld.local.u64 	%rd4, [%SPL+8];
	st.global.u64 	[%rd2], %rd4;
)"),
                                3);
  EXPECT_EQ(result.status, absl::OkStatus());
  EXPECT_THAT(result.out, ::testing::ElementsAre(0, 8, 16));
  EXPECT_THAT(StatusOf(".local .align 8 .b8 a[16];\nmov.u64 %rd4, a;\nst.local.u64 [%rd4+16], %rd3;", 1).message(),
              HasSubstr("writes 8 bytes at 16 of 16 bytes of local memory"));
}

TEST(Memory, ForeignAndUnalignedAccessesAreErrors) {
  const absl::Status outside = StatusOf("ld.global.f32 %f1, [%rd2+8];", 2);
  EXPECT_EQ(outside.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(outside.message(), AllOf(HasSubstr("line 21: ld.global.f32 %f1, [%rd2+8]"), HasSubstr("lane 1")));
  const absl::Status odd = StatusOf("ld.global.v2.u32 {%r2, %r3}, [%rd1+4];", 1);
  EXPECT_EQ(odd.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(odd.message(), HasSubstr("not aligned"));
  const std::string shared = ".shared .align 16 .b8 s[64];\n";
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4+60], %r1;", 1, shared), absl::OkStatus());
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4+64], %r1;", 1, shared).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4+2], %r1;", 1, shared).code(), absl::StatusCode::kDataLoss);
  const std::string asked = ".extern .shared .align 64 .b8 s[];\n";
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4+64], %r1;", 1, asked, 64).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4+64], %r1;", 1, asked, 68), absl::OkStatus());
  // An aligned read may reach beyond the last byte of a buffer.
  const Result behind =
      RunText(KernelOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4], 7;\nld.shared.u64 %rd5, [%rd4];\nst.global.u64 [%rd2], "
                       "%rd5;",
                       ".shared .align 8 .b8 s[5];\n"),
              1);
  EXPECT_EQ(behind.status, absl::OkStatus());
  EXPECT_EQ(behind.out[0], 0xffffffff00000007U);
  EXPECT_THAT(StatusOf("ld.global.nc.u64 %rd4, [%rd1];\nst.global.u64 [%rd1], %rd4;", 1).message(),
              HasSubstr("reads what is written by"));
}

TEST(Text, UnknownInstructionsAreNamedByTheError) {
  const absl::Status unknown = StatusOf("frob.s32 %r2, %r1;", 1);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(unknown.message(), HasSubstr("line 21: frob.s32 %r2, %r1"));
  for (const char* other : {"add.rz.f32 %f1, %f1, %f1;", "ld.global.v8.f32 %f1, [%rd1];", "bar.sync 1;",
                            "atom.global.add.u32 %r2, [%rd1], 1;", "cvt.f32.s32 %f1, %r1;",
                            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd1}, {%rd1}, {%rd1}, {%rd1};"}) {
    EXPECT_EQ(StatusOf(other, 1).code(), absl::StatusCode::kUnimplemented) << other;
  }
  EXPECT_THAT(StatusOf("add.s32 %r2, %r99, 1;", 1).message(), HasSubstr("nothing is named '%r99'"));
  EXPECT_THAT(StatusOf("bra nowhere;", 1).message(), HasSubstr("no label nowhere"));
  EXPECT_THAT(StatusOf("{ .reg .pred p; setp.eq.u32 p, 0, 0; }\n@p bra.uni nowhere;", 1).message(),
              HasSubstr("nothing is named 'p'"));
  EXPECT_FALSE(Parse(".version 8.0\n.func f() { ret; }").ok());
}

TEST(Text, LaunchesMustFitTheKernel) {
  const auto program = Parse(".visible .entry k(.param .u64 a)\n.reqntid 32, 1, 1\n{\nret;\n}");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(ptx::Run(program->kernels[0], {.lanes = 32, .arguments = {0}}), absl::OkStatus());
  EXPECT_FALSE(ptx::Run(program->kernels[0], {.lanes = 64, .arguments = {0}}).ok());
  EXPECT_FALSE(ptx::Run(program->kernels[0], {.lanes = 32}).ok());
  const auto none = Parse(".visible .entry other()\n{\nfrob;\n}", [](std::string_view) { return false; });
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->Find("other"), nullptr);
}

// Each lane writes its own element and reads its neighbour's.
std::string Neighbours(const std::string& between) {
  return KernelOf("mov.u64 %rd4, s;\nadd.s64 %rd5, %rd4, %rd3;\nst.shared.u64 [%rd5], %rd3;\n" + between +
                      "\nxor.b64 %rd6, %rd3, 8;\nadd.s64 %rd6, %rd4, %rd6;\nld.shared.u64 %rd7, [%rd6];\n"
                      "st.global.u64 [%rd2], %rd7;",
                  ".shared .align 8 .b8 s[512];\n");
}

TEST(Lanes, WaitAtBarriers) {
  const Result result = RunText(Neighbours("bar.sync 0;"), 64);
  ASSERT_EQ(result.status, absl::OkStatus());
  for (uint64_t n = 0; n < 64; ++n) EXPECT_EQ(result.out[n], 8 * (n ^ 1));
}

// Between two barriers, no lane may use what another one writes, in whatever order the lanes run.
TEST(Lanes, RacesInSharedMemoryAreErrors) {
  EXPECT_THAT(RunText(Neighbours(""), 64).status.message(),
              AllOf(HasSubstr("byte 8 of shared memory, which"), HasSubstr("since the last barrier")));
  const std::string shared = ".shared .align 8 .b8 s[512];\n";
  EXPECT_THAT(StatusOf("mov.u64 %rd4, s;\nst.shared.u32 [%rd4], %r1;", 2, shared).message(),
              HasSubstr("lane 1 writes byte 0 of shared memory, which lane 0 wrote since the last barrier"));
  EXPECT_THAT(StatusOf("mov.u64 %rd4, s;\nld.shared.u32 %r2, [%rd4];\nsetp.eq.s32 %p1, %r1, 1;\n"
                       "@%p1 st.shared.u32 [%rd4], %r1;",
                       4, shared)
                  .message(),
              HasSubstr("lane 1 writes byte 0 of shared memory, which others read since the last barrier"));
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\nld.shared.u32 %r2, [%rd4];\nbar.sync 0;\nsetp.eq.s32 %p1, %r1, 1;\n"
                     "@%p1 st.shared.u32 [%rd4], %r1;",
                     4, shared),
            absl::OkStatus());
}

TEST(Lanes, BarriersThatSomeNeverReachAreErrors) {
  const absl::Status ended = StatusOf("setp.eq.s32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 0;", 8);
  EXPECT_EQ(ended.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ended.message(), AllOf(HasSubstr("bar.sync 0"), HasSubstr("lane 3 has ended")));
  const absl::Status elsewhere =
      StatusOf("setp.eq.s32 %p1, %r1, 3;\n@%p1 bra $L1;\nbar.sync 0;\nret;\n$L1:\nbar.sync 0;", 8);
  EXPECT_THAT(elsewhere.message(), HasSubstr("lane 3 is at line 26"));
  // Warps may wait at barriers on different lines.
  EXPECT_EQ(StatusOf("setp.gt.s32 %p1, %r1, 31;\n@%p1 bra $L1;\nbar.sync 0;\nret;\n$L1:\nbar.sync 0;", 64),
            absl::OkStatus());
}

TEST(Lanes, EndlessLoopsEnd) {
  EXPECT_EQ(StatusOf("$L1:\nbra.uni $L1;", 1).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Lanes, ShuffleWithinTheirWarp) {
  const auto shuffled = [](const std::string& text, uint32_t lanes = 32) {
    return RunText(KernelOf(text + "\ncvt.u64.u32 %rd4, %r2;\nst.global.u64 [%rd2], %rd4;"), lanes);
  };
  const Result butterfly = shuffled("shfl.sync.bfly.b32 %r2, %r1, 3, 31, -1;", 64);
  ASSERT_EQ(butterfly.status, absl::OkStatus());
  for (uint64_t n = 0; n < 64; ++n) EXPECT_EQ(butterfly.out[n], n ^ 3);
  const Result down = shuffled("shfl.sync.down.b32 %r2|%p1, %r1, 4, 31, -1;\n@!%p1 mov.u32 %r2, 100;");
  EXPECT_EQ(down.out[3], 7U);
  EXPECT_EQ(down.out[28], 100U);
  const Result up = shuffled("shfl.sync.up.b32 %r2, %r1, 1, 0, -1;");
  EXPECT_EQ(up.out[0], 0U);
  EXPECT_EQ(up.out[9], 8U);
  // Every lane gets the value of the third of its eight lanes.
  const Result third = shuffled("shfl.sync.idx.b32 %r2, %r1, 2, 0x181f, -1;");
  EXPECT_EQ(third.out[13], 10U);
  const absl::Status missing =
      StatusOf("setp.eq.s32 %p1, %r1, 3;\n@%p1 ret;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", 32);
  EXPECT_THAT(missing.message(), HasSubstr("lane 3 has ended"));
  EXPECT_THAT(StatusOf("shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;", 16).message(), HasSubstr("does not take part"));
}

// A kernel that waits for earlier launches must not access global memory before.
TEST(Grids, AreWaitedForFirst) {
  const auto message = [](const std::string& body) {
    return std::string(RunText(KernelOf(body), 1, {7}).status.message());
  };
  const std::string wait = "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n",
                    load = "ld.global.u64 %rd4, [%rd1];\n";
  EXPECT_EQ(message(wait + load), "");
  EXPECT_EQ(message(load), "");
  EXPECT_THAT(message(load + wait), HasSubstr("which a grid before may still use"));
}

TEST(Copies, ArriveAtTheWait) {
  const auto copied = [](const std::string& wait) {
    return RunText(KernelOf("mov.u64 %rd4, s;\nmul.wide.u32 %rd5, %r1, 16;\nadd.s64 %rd5, %rd4, %rd5;\n"
                            "cp.async.ca.shared.global [%rd5], [%rd1], 8;\ncp.async.commit_group;\n"
                            "cp.async.ca.shared.global [%rd5+8], [%rd1], 8, 4;\ncp.async.commit_group;\n" +
                                wait +
                                "\nld.shared.v2.u64 {%rd6, %rd7}, [%rd5];\nshl.b64 %rd7, %rd7, 32;\n"
                                "xor.b64 %rd6, %rd6, %rd7;\nst.global.u64 [%rd2], %rd6;",
                            ".shared .align 16 .b8 s[512];\n"),
                   1, {0x0000000500000007});
  };
  EXPECT_EQ(copied("cp.async.wait_group 0;").out.at(0), 0x0000000500000007 ^ uint64_t{7} << 32);
  EXPECT_EQ(copied("cp.async.wait_all;").out.at(0), 0x0000000500000007 ^ uint64_t{7} << 32);
  for (const char* too_little : {"", "cp.async.wait_group 1;", "cp.async.wait_group 2;"}) {
    EXPECT_THAT(copied(too_little).status.message(), HasSubstr("of shared memory, which lane 0 is copying to"));
  }
  const std::string shared = ".shared .align 16 .b8 s[64];\n";
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\ncp.async.cg.shared.global [%rd4], [%rd1], 16;", 1, shared).code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\ncp.async.cg.shared.global [%rd4], [%rd1+8], 16;", 4, shared).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(StatusOf("mov.u64 %rd4, s;\ncp.async.cg.shared.global [%rd4], [%rd1+64], 16, 0;", 1, shared),
            absl::OkStatus())
      << "nothing is read";
}

}  // namespace
}  // namespace hone::ptx
