// SPDX-License-Identifier: Apache-2.0
// The text of the PTX that funcs with a grid become. Nothing runs here: tests/ptx runs PTX on a CPU, and
// conformance_onnx_ptxas shows that ptxas accepts it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/shared_memory.h"
#include "compiler/execution/model.h"
#include "compiler/ir/text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "tests/unit/codegen/fake_ptxas.h"

namespace hone::codegen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Ptx(const std::string& func, const std::string& target = "cuda:sm_87") {
  const auto parsed = ir::ParseFunc(func);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const auto ptx = Emit({&*parsed, 1}, *target::ParseTarget(target));
  EXPECT_TRUE(ptx.ok()) << ptx.status();
  return ptx.value_or("");
}

int Count(std::string_view text, std::string_view what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(Cuda, KernelsHaveLaneCountSharedMemoryAndBarriers) {
  const std::string ptx = Ptx(R"(
func reverse(x: i64[8], y: i64[8]) grid 2 lanes 4 {
  alloc row: i64[4] shared {
    row[lane.id] = x[group.id * 4 + lane.id]
    barrier
    y[group.id * 4 + lane.id] = row[3 - lane.id]
  }
})");
  EXPECT_THAT(ptx, AllOf(HasSubstr(".target sm_87"), HasSubstr(".visible .entry reverse("), HasSubstr(".reqntid 4")));
  EXPECT_THAT(ptx, AllOf(HasSubstr(".shared .align 64"), HasSubstr("bar.sync \t0;"), HasSubstr("st.shared.u64")));
  EXPECT_THAT(ptx, HasSubstr("ld.global.nc.u64"));  // no lane writes x, so it is read through the read-only cache
  EXPECT_THAT(ptx, Not(HasSubstr(".local")));
}

// If the shared buffers need more than every launch has, all of them lie in memory that the launch requests.
TEST(Cuda, LargeSharedMemoryIsRequested) {
  const std::string func = R"(
func two(x: i64[8], y: i64[8]) grid 2 lanes 4 {
  alloc first: i64[4100] shared {
    alloc second: i64[4100] shared {
      first[lane.id] = x[group.id * 4 + lane.id]
      second[lane.id] = x[group.id * 4 + lane.id]
      barrier
      y[group.id * 4 + lane.id] = first[3 - lane.id] + second[3 - lane.id]
    }
  }
})";
  const std::string ptx = Ptx(func);
  EXPECT_THAT(ptx, HasSubstr(".extern .shared .align 64 .b8 two_shared[]"));
  EXPECT_THAT(ptx, HasSubstr("32832"));  // the offset of the second: 4100 * 8, rounded up to a multiple of 64
  const target::Target target = *target::ParseTarget("cuda:sm_87");
  EXPECT_EQ(PlaceShared(*ir::ParseFunc(func), target.memory).requested_bytes, 2 * 32832);
  const std::string small =
      "func f(x: f32[4]) grid 1 lanes 4 {\n  alloc a: f32[12288] shared {\n    x[lane.id] = 0.0f32\n  }\n}";
  EXPECT_EQ(PlaceShared(*ir::ParseFunc(small), target.memory).requested_bytes, 0);
}

// All iterations of an unrolled loop use the same buffer.
TEST(Cuda, ASharedBufferIsPlacedOnce) {
  const std::string func = R"(
func f(x: f32[128], y: f32[128]) grid 1 lanes 32 {
  unrolled i in 4 {
    alloc s: f32[32] shared {
      s[lane.id] = x[i * 32 + lane.id]
      barrier
      y[i * 32 + lane.id] = s[31 - lane.id]
      barrier
    }
  }
})";
  const std::string ptx = Ptx(func);
  EXPECT_EQ(Count(ptx, ".shared .align"), 1) << ptx;
  EXPECT_EQ(Count(ptx, "ld.shared"), 4);
}

constexpr char kCopies[] = R"(
func rows(x: f32[32], y: f32[16]) grid 1 lanes 4 {
  alloc tile: f32[16] shared {
    copy 4 tile[lane.id * 4] = x[lane.id * 4 where lane.id < 3]
    commit
    wait 0
    barrier
    y[ramp(lane.id * 4, 1, 4)] = tile[ramp(12 - lane.id * 4, 1, 4)]
  }
})";

TEST(Cuda, CopiesAreAsynchronousIfTheDeviceCan) {
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_80"), AllOf(HasSubstr("cp.async.cg.shared.global"),
                                                HasSubstr("cp.async.commit_group"), HasSubstr("cp.async.wait_group")));
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_75"), Not(HasSubstr("cp.async")));
}

// A func whose two groups share a copy to b, and then run `use`.
std::string FuncWithSharedCopy(const std::string& use) {
  return fmt::format(R"(
func f(x: f16[1024], y: f32[4096]) grid 2 lanes 128 {{
  alloc b: f16[1024] shared {{
    alloc a: f16[2048] shared {{
      alloc t: f32[8] local {{
        for i in 16 {{ a[i * 128 + lane.id] = x[lane.id] }}
        for i in 8 {{ t[i] = 0.0f32 }}
        if lane.id == 0 {{ copy 1024 group 2 b[0] = x[0] }}
        commit
        wait 0
        barrier
        {}
        for i in 8 {{ y[(group.id * 128 + lane.id) * 8 + i] = t[i] }}
        barrier
      }}
    }}
  }}
}})",
                     use);
}

// Other kernels keep the oldest PTX version of the architecture, because drivers of CUDA 11 know no newer one.
TEST(Cuda, OnlyCopiesOfGroupsNeedPtx8) {
  const std::string copies = FuncWithSharedCopy("t[0] = f32(b[lane.id])");
  for (const char* target : {"cuda:sm_90", "cuda:sm_90a"}) {
    EXPECT_THAT(Ptx(copies, target), AllOf(HasSubstr(".version 8.0"), HasSubstr("mbarrier.expect_tx"))) << target;
  }
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_90"), HasSubstr(".version 7.8"));
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_87"), HasSubstr(".version 7.4"));
}

// Only a release orders another group's copy after the reads of lanes. An asynchronous instruction needs none, because
// it has read its operands when it was waited for.
TEST(Cuda, GroupsArriveAfterLanesHaveRead) {
  const std::string by_lanes = Ptx(FuncWithSharedCopy("t[0] = f32(b[lane.id])"), "cuda:sm_90a");
  EXPECT_GE(Count(by_lanes, "barrier.cluster.arrive.release.aligned;"), 2);
  EXPECT_THAT(by_lanes, Not(HasSubstr("arrive.relaxed")));
  const std::string by_itself = Ptx(
      FuncWithSharedCopy(
          "contract wgmma_f16 t[0 stride 4] += a[lane.id // 32 * 128 + lane.id // 4 %% 8 * 8 stride 64 apart 512] * "
          "b[lane.id %% 4 * 16 stride 8 apart 256] settle 0"),
      "cuda:sm_90a");
  EXPECT_THAT(by_itself, HasSubstr("wgmma.mma_async"));
  EXPECT_GE(Count(by_itself, "barrier.cluster.arrive.relaxed.aligned;"), 2);
  EXPECT_THAT(by_itself, Not(HasSubstr("arrive.release.aligned")));
}

TEST(Cuda, AlignedVectorsAreOneAccess) {
  EXPECT_THAT(Ptx(kCopies), AllOf(HasSubstr("ld.shared.v4.f32"), HasSubstr("st.global.v4.f32")));
}

// Sixteen bytes at an unaligned address are loaded one by one.
TEST(Cuda, AlignedBytesAreOneAccess) {
  const auto bytes = [](int apart) {
    return Ptx(
        fmt::format("func f(x: i8[128], y: i32[64]) grid 1 lanes 4 {{\n"
                    "  y[ramp(lane.id * 16, 1, 16)] = i32x16(x[ramp(lane.id * {}, 1, 16)])\n}}",
                    apart));
  };
  EXPECT_THAT(bytes(16), HasSubstr("ld.global.nc.v4.u32"));
  EXPECT_THAT(bytes(17), AllOf(HasSubstr("ld.global.nc.u8"), Not(HasSubstr("ld.global.nc.v"))));
  EXPECT_THAT(bytes(24), Not(HasSubstr("ld.global.nc.v4")));
}

// Each lane loads a quarter of a row of both operands of mma, eight bytes at once.
TEST(Cuda, LanesShareATensorInstruction) {
  const auto product = [](const std::string& type, const std::string& instruction, int steps, const std::string& w) {
    return Ptx(fmt::format(R"(
func f(x: {0}[{5}], w: {0}[{5}], out: f32[256]) grid 1 lanes 32 {{
  alloc t: f32[4] local {{
    for i in 4 {{ t[i] = 0.0f32 }}
    contract {2} t[0 stride 2] += x[lane.id // 4 * {1} stride {3}] * w[{4}]
    for i in 4 {{ out[lane.id * 4 + i] = t[i] }}
  }}
}})",
                           type, steps, instruction, 8 * steps, w, 16 * steps),
               "cuda:sm_80");
  };
  const std::string tf32 = product("f32", "mma_tf32", 8, "lane.id %% 4 * 16 stride 8");
  EXPECT_THAT(tf32, HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"));
  EXPECT_THAT(tf32, AllOf(HasSubstr("ld.global.nc.v2.f32"), HasSubstr("fma.rn.f32"), Not(HasSubstr(".local"))));
  const std::string apart = product("f32", "mma_tf32", 8, "lane.id %% 4 * 2 stride 1 apart 8");
  EXPECT_THAT(apart, HasSubstr("ld.global.nc.f32"));
  const std::string half = product("f16", "mma_f16", 16, "lane.id %% 4 * 32 stride 16");
  EXPECT_THAT(half, HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"));
  EXPECT_THAT(half, AllOf(HasSubstr("ld.global.nc.v4.u16"), Not(HasSubstr("fma.rn"))));
  EXPECT_THAT(product("bf16", "mma_bf16", 16, "lane.id %% 4 * 32 stride 16"),
              HasSubstr("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
}

// Global memory is not read before the wait, and never through the read-only cache, which may hold old values.
TEST(Cuda, OverlappingLaunchesWaitFirst) {
  const std::string func =
      "func f(x: f32[8], y: f32[8]) grid 2 lanes 4 {\n  y[group.id * 4 + lane.id] = x[lane.id] + x[0]\n}";
  const std::string ptx = Ptx(func, "cuda:sm_90 -overlap");
  EXPECT_LT(ptx.find("griddepcontrol.wait;"), ptx.find("ld.global"));
  EXPECT_EQ(Count(ptx, "ld.global"), 2);
  EXPECT_THAT(ptx, AllOf(Not(HasSubstr("ld.global.nc")), HasSubstr("griddepcontrol.launch_dependents;")));
  EXPECT_THAT(Ptx(func, "cuda:sm_90"), AllOf(HasSubstr("ld.global.nc"), Not(HasSubstr("griddepcontrol"))));
}

// The code must not depend on where the buffers of a func lie in the compiler's memory.
TEST(Cuda, OverlappingLaunchesHaveEqualCodeInEveryCompilation) {
  const std::string body = " grid 1 lanes 4 {\n  d[lane.id] = a[lane.id] + b[lane.id] + c[lane.id]\n}";
  const auto forward = ir::ParseFunc("func f(a: f32[4], b: f32[4], c: f32[4], d: f32[4])" + body);
  const auto backward = ir::ParseFunc("func f(d: f32[4], c: f32[4], b: f32[4], a: f32[4])" + body);
  ASSERT_TRUE(forward.ok() && backward.ok()) << forward.status() << backward.status();
  ir::Func reversed = *backward;
  std::ranges::reverse(reversed.params);
  const target::Target target = *target::ParseTarget("cuda:sm_90 -overlap");
  const auto first = Emit({&*forward, 1}, target), second = Emit({&reversed, 1}, target);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(*first, *second);
}

// LLVM 19 has a fault: it turns a load of 16 f16 into f32 without converting them.
TEST(Cuda, F16VectorsOfAnyWidthAreConverted) {
  for (const int width : {8, 16, 32}) {
    const std::string ptx =
        Ptx(fmt::format("func f(x: f16[128], y: f32[128]) grid 1 lanes 4 {{\n"
                        "  y[ramp(lane.id * {0}, 1, {0})] = f32x{0}(x[ramp(lane.id * {0}, 1, {0})])\n}}",
                        width));
    EXPECT_EQ(Count(ptx, "cvt.f32.f16"), width);
    EXPECT_EQ(Count(ptx, "ld.global.nc.v4.u32") + Count(ptx, "ld.global.nc.v4.b32"), width / 8);
  }
}

// A kernel of 128 lanes with the operands a and b in shared memory, which runs `body` and then waits for it.
std::string Product(const std::string& type, const std::string& body) {
  return Ptx(fmt::format(R"(
func f(x: {0}[2048], w: {0}[1024], out: f32[1024]) grid 1 lanes 128 {{
  alloc a: {0}[2048] shared {{
    alloc b: {0}[1024] shared {{
      for i in 16 {{ a[i * 128 + lane.id] = x[i * 128 + lane.id] }}
      for i in 8 {{ b[i * 128 + lane.id] = w[i * 128 + lane.id] }}
      barrier
      alloc t: f32[8] local {{
        for i in 8 {{ t[i] = 0.0f32 }}
        {1}
        settle 0
        for i in 8 {{ out[lane.id * 8 + i] = t[i] }}
      }}
    }}
  }}
}})",
                         type, body),
             "cuda:sm_90a");
}

constexpr char kRow[] = "lane.id // 32 * 128 + lane.id // 4 %% 8 * 8", kColumn[] = "lane.id %% 4 * 16";

// Neighbouring instructions are issued and waited for together, and columns at equal distances are one instruction.
TEST(Cuda, WgmmaReadsSharedMemory) {
  // Two steps of 16 with two blocks of columns each. Chunks of b are 512 bytes apart, blocks 128 bytes.
  const std::string twice = Product(
      "f16", fmt::format("unrolled k in 2 {{ unrolled j in 2 {{ contract wgmma_f16 t[j * 2 stride 4] += "
                         "a[k * 1024 + {} stride 64 apart 512] * b[k * 512 + j * 64 + {} stride 8 apart 256] }} }}",
                         kRow, kColumn));
  EXPECT_EQ(Count(twice, "wgmma.fence.sync.aligned"), 1);
  EXPECT_EQ(Count(twice, "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"), 2);
  EXPECT_EQ(Count(twice, "wgmma.wait_group.sync.aligned 0"), 1);
  EXPECT_EQ(Count(twice, fmt::format(", {};", 8LL << 32)), 4);
  for (const int64_t low : {64 << 16, (64 << 16) + 128, 32 << 16, (32 << 16) + 64}) {
    EXPECT_EQ(Count(twice, fmt::format(", {};", low)), 1) << low;
  }
  EXPECT_LT(twice.find("fence.proxy.async.shared::cta"), twice.find("bar.sync"));
  EXPECT_THAT(twice, Not(HasSubstr(".local")));
  const std::string floats = Product(
      "f32", fmt::format("contract wgmma_tf32 t[0 stride 4] += a[{} stride 32 apart 256] * b[{} stride 4 apart 64]",
                         "lane.id // 32 * 64 + lane.id // 4 %% 8 * 4", "lane.id %% 4 * 8"));
  EXPECT_THAT(floats, HasSubstr("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {"));
  EXPECT_THAT(floats, AllOf(HasSubstr(", p, 1, 1;"), Not(HasSubstr("fma.rn"))));
  // A serial loop has one instruction per iteration.
  const std::string again = Product(
      "bf16", fmt::format("for k in 2 {{ contract wgmma_bf16 t[0 stride 4] += a[k * 1024 + {} stride 64 apart 512] * "
                          "b[k * 512 + {} stride 8 apart 256] }}",
                          kRow, kColumn));
  EXPECT_THAT(again, HasSubstr("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {"));
  EXPECT_THAT(Ptx(kCopies, "cuda:sm_90a"), Not(HasSubstr("fence.proxy")));
  // Copies that stand before the instruction are begun after it, and run beside it.
  const std::string copies = Product(
      "f16",
      fmt::format("alloc c: f16[1024] shared {{ if lane.id < 64 {{ copy 8 c[lane.id * 8] = x[lane.id * 8] }} commit "
                  "contract wgmma_f16 t[0 stride 4] += a[{} stride 64 apart 512] * b[{} stride 8 apart 256] "
                  "settle 0 wait 0 barrier t[0] = f32(c[lane.id]) }}",
                  kRow, kColumn));
  EXPECT_LT(copies.find("wgmma.mma_async"), copies.find("cp.async.cg"));
  EXPECT_LT(copies.find("wgmma.commit_group"), copies.find("cp.async.cg"))
      << "ptxas ends the commit group at the branch of the copy";
  EXPECT_LT(copies.find("cp.async.commit_group"), copies.find("wgmma.wait_group"));
  EXPECT_LT(copies.find("wgmma.wait_group"), copies.find("cp.async.wait_group"));
}

// A wait that leaves instructions running touches no accumulator: only the wait for all may.
TEST(Cuda, WgmmaKeepsRunningAcrossIterations) {
  const std::string later = Product(
      "f16",
      fmt::format("for k in 64 {{ contract wgmma_f16 t[0 stride 4] += a[k %% 2 * 1024 + {} stride 64 apart 512] * "
                  "b[k %% 2 * 512 + {} stride 8 apart 256] settle 1 }}",
                  kRow, kColumn));
  EXPECT_EQ(Count(later, "wgmma.mma_async"), 1);
  const size_t begun = later.find("wgmma.mma_async"), all = later.find("wgmma.wait_group.sync.aligned 0");
  EXPECT_EQ(Count(later.substr(begun, later.find("wgmma.wait_group.sync.aligned 1;") - begun), "wgmma.commit_group"),
            1);
  const std::string between = later.substr(begun, all - begun);
  EXPECT_THAT(between, AllOf(Not(HasSubstr("mov.f32")), Not(HasSubstr("mov.b32"))));
}

// Each lane loads its part of a, one number per row and chunk, and rounds it.
TEST(Cuda, WgmmaTakesOperandAFromRegisters) {
  const std::string loaded = Product(
      "f32", fmt::format("unrolled k in 2 {{ unrolled j in 2 {{ contract wgmma_tf32_registers t[j * 2 stride 4] += "
                         "x[k * 512 + {} stride 64 apart 4] * b[k * 512 + j * 32 + {} stride 4 apart 64] }} }}",
                         "lane.id // 4 %% 8 * 8", "lane.id %% 4 * 8"));
  EXPECT_EQ(Count(loaded, "wgmma.fence.sync.aligned"), 2) << "one per place that lanes load from";
  EXPECT_EQ(Count(loaded, "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {"), 2);
  EXPECT_EQ(Count(loaded, "}, {%r"), 2);
  EXPECT_EQ(Count(loaded, "fma.rn.f32"), 8);
  const size_t first = loaded.find("wgmma.mma_async"), second = loaded.find("wgmma.mma_async", first + 1);
  EXPECT_EQ(Count(loaded.substr(first, second - first), "fma.rn.f32"), 4) << "loaded while the first runs";
}

// The descriptor of a swizzled operand gives its unswizzled place. Lanes exchange the chunks in their own addresses.
TEST(Cuda, DescriptorsOfSwizzledRowsGiveUnswizzledAddresses) {
  const std::string swizzled = Product(
      "f16", fmt::format("alloc c: f16[4096] swizzled {{ copy 8 c[lane.id * 8] = x[lane.id * 8] commit wait 0 barrier "
                         "for k in 4 {{ contract wgmma_f16 t[0 stride 4] += c[lane.id // 32 * 1024 + "
                         "lane.id // 4 %% 8 * 64 + k * 16 stride 512 apart 8] * b[{} stride 8 apart 256] }} }}",
                         kColumn));
  EXPECT_THAT(swizzled, HasSubstr(std::to_string(1ULL << 62 | 64ULL << 32)));
  EXPECT_THAT(swizzled, HasSubstr(fmt::format(", {};", 1 << 16)));
  EXPECT_THAT(swizzled, AllOf(HasSubstr(".align 1024 .b8"), HasSubstr("xor.b")));
}

// 32 lanes take five shuffles of 32 bits. Only the first lane writes a result in shared memory.
TEST(Cuda, LanesReduceInRegisters) {
  const auto reduced = [](const std::string& type, const std::string& reduction, int parts) {
    return Ptx(fmt::format(R"(
func f(x: {0}[64], y: {0}[64]) grid 1 lanes 64 {{
  alloc t: {0}[1] local {{
    alloc s: {0}[64] shared {{
      t[0] = x[lane.id]
      merge s[lane.id // {2}] = {1} lane.id %% {2}:{2} of t[0]
      barrier
      y[lane.id] = s[lane.id // {2}]
    }}
  }}
}})",
                           type, reduction, parts));
  };
  const std::string sum = reduced("f32", "sum", 32);
  EXPECT_EQ(Count(sum, "shfl.sync.bfly.b32"), 5);
  EXPECT_EQ(Count(sum, "add.rn.f32"), 5) << "never fused, so that all lanes get the same bits";
  EXPECT_THAT(sum, AllOf(HasSubstr(", -1;"), HasSubstr("st.shared.f32"), Not(HasSubstr(".local"))));
  EXPECT_EQ(Count(sum, "bar.sync"), 1);
  const std::string eight = reduced("f32", "max", 8);
  EXPECT_EQ(Count(eight, "shfl.sync.bfly.b32"), 3);
  EXPECT_THAT(eight, Not(HasSubstr(", -1;"))) << "the other lanes of the warp need not take part";
  EXPECT_EQ(Count(reduced("i32", "prod", 32), "shfl.sync.bfly.b32"), 5);
  EXPECT_EQ(Count(reduced("u8", "min", 2), "shfl.sync.bfly.b32"), 1);
  EXPECT_EQ(Count(reduced("f64", "sum", 4), "shfl.sync.bfly.b32"), 4) << "each shuffle moves half of an f64";
  EXPECT_EQ(Count(reduced("i64", "max", 4), "shfl.sync.bfly.b32"), 4);
  EXPECT_EQ(Count(reduced("bool", "max", 4), "shfl.sync.bfly.b32"), 2);
}

// The PTX of a workload of rows by the sketch rules, with these decisions.
std::string RowsPtx(const std::string& workload, const std::string& target, const space::Decisions& decisions) {
  const auto parsed = ir::ParseWorkload(workload);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const target::Target of = *target::ParseTarget(target);
  space::Chooser chooser(&decisions);
  const auto candidate =
      space::Build(*parsed, of, space::ApplicableEntries(*parsed, of), chooser, space::Family::kSketch);
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  const auto module = execution::Lower(candidate->state, of, "kernel");
  EXPECT_TRUE(module.ok()) << module.status();
  const auto ptx = Emit(module->main, of);
  EXPECT_TRUE(ptx.ok()) << ptx.status();
  return ptx.value_or("");
}

constexpr char kSoftmax[] = R"(workload "softmax"
input x: f32[12,128,128] in [-4, 4]
m: f32[12,128,1] over a0:12, a1:128, a2:1 = max a3:128 of x[a0, a1, a3]
e: f32[12,128,128] over b0:12, b1:128, b2:128 = exp(x[b0, b1, b2] - m[b0, b1, 0])
s: f32[12,128,1] over c0:12, c1:128, c2:1 = sum c3:128 of e[c0, c1, c3]
o: f32[12,128,128] over d0:12, d1:128, d2:128 = e[d0, d1, d2] / s[d0, d1, 0]
output o
)";

constexpr char kLayerNorm[] = R"(workload "layer_norm"
input x: f32[128,768] in [-1, 1]
const g: f32[768] in [-1, 1]
s: f32[128,1] over a0:128, a1:1 = sum a2:768 of x[a0, a2]
m: f32[128,1] over b0:128, b1:1 = s[b0, b1] * 0.0013020834f32
d: f32[128,768] over c0:128, c1:768 = x[c0, c1] - m[c0, 0]
q: f32[128,1] over d0:128, d1:1 = sum d2:768 of d[d0, d2] * d[d0, d2]
o: f32[128,768] over e0:128, e1:768 = d[e0, e1] / sqrt(q[e0, 0] * 0.0013020834f32 + 0.00001f32) * g[e1]
output o
)";

// Two reductions per row. Without lane reductions, each has three barriers.
TEST(Cuda, LaneReductionsSaveBarriers) {
  for (const char* workload : {kSoftmax, kLayerNorm}) {
    for (const int64_t lanes : {32, 64, 256}) {
      const auto ptx = [&](int64_t merges) {
        return RowsPtx(workload, "cuda:sm_87", {{"rows.lanes", lanes, {}}, {"rows.merges", merges, {}}});
      };
      const std::string with = ptx(1), without = ptx(0);
      EXPECT_EQ(Count(with, "shfl.sync.bfly.b32"), 10) << with;
      EXPECT_EQ(Count(without, "shfl.sync"), 0);
      EXPECT_LE(Count(with, "bar.sync"), lanes == 32 ? 1 : 3) << with;
      EXPECT_GE(Count(without, "bar.sync"), 6) << without;
    }
  }
}

// Needs a CUDA toolkit on this machine.
TEST(Cuda, LaneReductionsAssembleWithoutSpills) {
  for (const char* target : {"cuda:sm_75", "cuda:sm_87", "cuda:sm_90"}) {
    for (const char* workload : {kSoftmax, kLayerNorm}) {
      const auto assembled =
          Assemble(RowsPtx(workload, target, {{"rows.lanes", 64, {}}}), *target::ParseTarget(target));
      if (!assembled.has_value()) GTEST_SKIP() << "no ptxas for " << target;
      EXPECT_EQ(assembled->resources.spill_bytes, 0) << target;
    }
  }
}

// A lane that fills shared memory from shared memory loads for all its iterations before it stores.
TEST(Cuda, ShortLoopsLoadBeforeTheyStore) {
  const std::string ptx = Ptx(R"(
func f(x: f32[128], y: f32[128]) grid 1 lanes 32 {
  alloc s: f32[128] shared {
    alloc r: f32[128] shared {
      for i in 4 { s[i * 32 + lane.id] = x[i * 32 + lane.id] }
      barrier
      for i in 4 { r[i * 32 + lane.id] = s[127 - i * 32 - lane.id] * 2.0f32 }
      barrier
      for i in 4 { y[i * 32 + lane.id] = r[127 - i * 32 - lane.id] }
    }
  }
})");
  const std::string_view between = std::string_view(ptx).substr(ptx.find("bar.sync"));
  const std::string_view loop = between.substr(0, between.find("bar.sync", 1));
  EXPECT_EQ(Count(loop, "ld.shared"), 4);
  EXPECT_LT(loop.rfind("ld.shared"), loop.find("st.shared"));
}

TEST(Cuda, FunctionsCallNoLibrary) {
  for (const char* function : {"exp", "log", "tanh", "erf", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan",
                               "sinh", "cosh", "asinh", "acosh", "atanh"}) {
    for (const std::string type : {"f32", "f64"}) {
      const std::string ptx = Ptx("func f(x: " + type + "[4], y: " + type +
                                  "[4]) grid 1 lanes 4 {\n  y[lane.id] = " + function + "(x[lane.id])\n}");
      EXPECT_THAT(ptx, AllOf(HasSubstr("st.global"), Not(HasSubstr(".extern")))) << function << " of " << type;
    }
  }
}

// The output of ptxas -v of CUDA 13.0 for a module with two functions.
constexpr char kTwoFunctions[] = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k2' for 'sm_75'
ptxas info    : Function properties for k2
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 50176 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 22.996 ms
ptxas info    : Compiling entry function 'k' for 'sm_75'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 104 registers, used 0 barriers, 1024 bytes smem, 360 bytes cmem[0]
)";

TEST(Cuda, ResourcesAreTheMaximumOverFunctions) {
  const FakePtxas ptxas(kTwoFunctions, "machine code");
  const std::optional<Assembled> assembled = Assemble("a module", *target::ParseTarget("cuda:sm_75"));
  ASSERT_TRUE(assembled.has_value());
  EXPECT_EQ(assembled->resources.registers, 104);
  EXPECT_EQ(assembled->resources.shared_bytes, 50176);
  EXPECT_EQ(assembled->resources.spill_bytes, 20);
  EXPECT_EQ(assembled->machine_code, "machine code");
}

TEST(Cuda, MachineCodeFollowsTheText) {
  using namespace std::string_literals;
  EXPECT_EQ(WithMachineCode("text", {}), "text");
  const std::string machine_codes[] = {"one", std::string(259, '\0')};
  const std::string both = WithMachineCode("text", machine_codes);
  EXPECT_EQ(both.substr(0, 16), "text\0\3\0\0\0\0\0\0\0one"s);
  EXPECT_EQ(both.substr(16, 8), "\3\1\0\0\0\0\0\0"s);
  EXPECT_EQ(both.size(), 16U + 8 + 259);
}

TEST(Cuda, AssembleIsEmptyWithoutAnAssembler) {
  const FakePtxas ptxas("ptxas fatal   : Value 'sm_53' is not defined for option 'gpu-name'\n", "", 255);
  EXPECT_FALSE(Assemble("a module", *target::ParseTarget("cuda:sm_53")).has_value());
  EXPECT_FALSE(Assemble("ELF", *target::ParseTarget("x86_64 -mcpu=x86-64-v3")).has_value());
}

TEST(Cuda, SpillsAndTooMuchSharedMemoryAreDrawbacks) {
  const target::Target target = *target::ParseTarget("cuda:sm_75 -shared=49152");
  EXPECT_EQ(Drawback({.registers = 255, .shared_bytes = 49152}, target), "");
  EXPECT_THAT(Drawback({.registers = 64, .shared_bytes = 49153}, target), HasSubstr("49153 bytes of shared memory"));
  EXPECT_THAT(Drawback({.registers = 64, .spill_bytes = 20}, target), HasSubstr("64 registers are too few: 20"));
}

}  // namespace
}  // namespace hone::codegen
