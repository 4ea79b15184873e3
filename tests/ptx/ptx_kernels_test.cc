// SPDX-License-Identifier: Apache-2.0
// Runs the CUDA kernels of small workloads, with default and with random schedules, for old and new targets, and
// compares the outputs with the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "compiler/ir/type.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "tests/ptx/on_machine.h"
#include "tests/unit/space/workloads.h"

namespace hone::space {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTargets[] = {"cuda:sm_53", "cuda:sm_75", "cuda -arch=sm_80 -tf32", "cuda:sm_90a"};

target::Target Parsed(const std::string& text) { return target::ParseTarget(text).value(); }

// Sums have another order than the interpreter's. Operands that an instruction rounds are off by up to 2^-10, values
// that are stored in 16 bits by up to 2^-8, relatively.
tests::Tolerance ToleranceFor(const ir::Workload& workload, const schedule::Schedule& schedule) {
  bool halves = false;
  for (const ir::Param& param : workload.params)
    halves |= ir::IsFloat(param.buffer->dtype) && ir::SizeOf(param.buffer->dtype) == 2;
  for (const ir::Buffer& output : workload.outputs)
    halves |= ir::IsFloat(output->dtype) && ir::SizeOf(output->dtype) == 2;
  if (halves) return {1e-2, 1e-3};
  if (schedule::Print(schedule).find("mma_tf32") != std::string::npos) return {1e-3, 1e-3};
  return {3e-5, 1e-6};
}

// The sweep tries this many times as many candidates.
int CandidatesFactor() {
  const char* const times = std::getenv("HONE_PTX_TIMES");
  return times != nullptr ? std::atoi(times) : 1;
}

// Builds and runs a candidate, and expects equal outputs. False: the decisions lead to no kernel.
bool RunsCorrectly(const ir::Workload& workload, const target::Target& target, Chooser& chooser,
                   std::string* ptx = nullptr) {
  const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
  if (!candidate.ok()) {
    EXPECT_EQ(candidate.status().code(), absl::StatusCode::kFailedPrecondition) << candidate.status();
    return false;
  }
  const absl::Status status =
      tests::CheckOnPtxMachine(workload, candidate->schedule, target, ToleranceFor(workload, candidate->schedule), ptx);
  if (status.code() == absl::StatusCode::kFailedPrecondition) return false;
  EXPECT_EQ(status, absl::OkStatus()) << target::Print(target) << "\n"
                                      << Print(candidate->decisions) << "\n"
                                      << schedule::Print(candidate->schedule);
  return true;
}

class PtxKernels : public ::testing::TestWithParam<tests::NamedWorkload> {};

TEST_P(PtxKernels, AreRight) {
  const ir::Workload workload = ir::ParseWorkload(GetParam().text).value();
  Random random(17);
  for (const char* text : kTargets) {
    const target::Target target = Parsed(text);
    Chooser preferred;
    EXPECT_TRUE(RunsCorrectly(workload, target, preferred)) << text;
    int run = 0;
    for (int i = 0; i < 4 * CandidatesFactor(); ++i) {
      Chooser chooser(nullptr, &random);
      run += RunsCorrectly(workload, target, chooser) ? 1 : 0;
    }
    EXPECT_GE(run, 1) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, PtxKernels, ::testing::ValuesIn(tests::SmallWorkloads()),
                         [](const auto& test) { return test.param.name; });

// Workloads for tensor instructions that lanes run together, and one for a target without them.
struct TogetherCase {
  const char* name;
  const char* target;
  const char* spelling;  // that some of the PTX must contain
  const char* workload;
  std::optional<ir::TensorInstruction> instruction = {};  // if set, the schedules must use it
};

class PtxConvergence : public ::testing::TestWithParam<TogetherCase> {};

// Random tiles of many shapes, with and without copies ahead of time, complete and partial.
TEST_P(PtxConvergence, RandomTilesAreRight) {
  const ir::Workload workload = ir::ParseWorkload(GetParam().workload).value();
  const target::Target target = Parsed(GetParam().target);
  Random random(31);
  Decisions tiles = {{"space", 3, {}}};
  if (const auto instruction = GetParam().instruction) {
    tiles.push_back({"instruction", ir::EntryOf(*instruction).number, {}});
  }
  int with = 0;
  for (int i = 0; i < 40 * CandidatesFactor(); ++i) {
    Chooser chooser(&tiles, &random);
    std::string ptx;
    if (RunsCorrectly(workload, target, chooser, &ptx))
      with += ptx.find(GetParam().spelling) != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(with, 3);
}

constexpr TogetherCase kTogether[] = {
    {"tf32", "cuda -arch=sm_80 -tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32", R"(workload "matmul"
input a: f32[80,40] in [-1, 1]
input b: f32[40,56] in [-1, 1]
c: f32[80,56] over i:80, j:56 = sum k:40 of a[i, k] * b[k, j]
d: f32[80,56] over i1:80, j1:56 = max(c[i1, j1], 0.0f32)
output d
)"},
    {"tf32_convolution", "cuda -arch=sm_80 -tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32", R"(workload "conv2d"
input x: f32[1,8,10,16] in [-1, 1]
const w: f32[24,16,3,3] in [-1, 1]
const bias: f32[24] in [-1, 1]
p: f32[1,10,12,16] over n:1, h:10, v:12, c:16 = select(h >= 1 && h < 9 && v >= 1 && v < 11, x[n, h - 1, v - 1, c],
  0.0f32)
y: f32[1,8,10,24] over n1:1, h1:8, v1:10, o:24 = sum ci:16, r:3, s:3 of p[n1, h1 + r, v1 + s, ci] * w[o, ci, r, s]
z: f32[1,8,10,24] over n2:1, h2:8, v2:10, o2:24 = max(y[n2, h2, v2, o2] + bias[o2], 0.0f32)
output z
)"},
    {"f16", "cuda:sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16", R"(workload "matmul"
input a: f16[48,96] in [-1, 1]
const b: f16[96,40] in [-1, 1]
c: f32[48,40] over i:48, j:40 = sum k:96 of f32(a[i, k]) * f32(b[k, j])
d: f16[48,40] over i1:48, j1:40 = f16(c[i1, j1])
output d
)"},
    {"bf16", "cuda:sm_87", "mma.sync.aligned.m16n8k16.row.col.f32.bf16", R"(workload "matmul"
input q: bf16[3,32,48] in [-1, 1]
input k: bf16[3,24,48] in [-1, 1]
c: f32[3,32,24] over h:3, i:32, j:24 = sum e:48 of f32(q[h, i, e]) * f32(k[h, j, e])
output c
)"},
    {"tf32_runs_over", "cuda -arch=sm_80 -tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32", R"(workload "matmul"
input a: f32[77,40] in [-1, 1]
input b: f32[40,50] in [-1, 1]
c: f32[77,50] over i:77, j:50 = sum k:40 of a[i, k] * b[k, j]
d: f32[77,50] over i1:77, j1:50 = max(c[i1, j1], 0.0f32)
output d
)"},
    {"tf32_convolution_runs_over", "cuda:sm_90a -tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32",
     R"(workload "conv2d"
input x: f32[1,7,7,16] in [-1, 1]
const w: f32[20,16,3,3] in [-1, 1]
const bias: f32[20] in [-1, 1]
p: f32[1,9,9,16] over n:1, h:9, v:9, c:16 = select(h >= 1 && h < 8 && v >= 1 && v < 8, x[n, h - 1, v - 1, c], 0.0f32)
y: f32[1,7,7,20] over n1:1, h1:7, v1:7, o:20 = sum ci:16, r:3, s:3 of p[n1, h1 + r, v1 + s, ci] * w[o, ci, r, s]
z: f32[1,7,7,20] over n2:1, h2:7, v2:7, o2:20 = max(y[n2, h2, v2, o2] + bias[o2], 0.0f32)
output z
)"},
    {"f16_runs_over", "cuda:sm_90a", "mma.sync.aligned.m16n8k16.row.col.f32.f16", R"(workload "matmul"
input a: f16[37,96] in [-1, 1]
const b: f16[96,45] in [-1, 1]
c: f32[37,45] over i:37, j:45 = sum k:96 of f32(a[i, k]) * f32(b[k, j])
d: f16[37,45] over i1:37, j1:45 = f16(c[i1, j1])
output d
)"},
    {"bf16_runs_over", "cuda:sm_87", "mma.sync.aligned.m16n8k16.row.col.f32.bf16", R"(workload "matmul"
input q: bf16[3,29,48] in [-1, 1]
input k: bf16[3,21,48] in [-1, 1]
c: f32[3,29,21] over h:3, i:29, j:21 = sum e:48 of f32(q[h, i, e]) * f32(k[h, j, e])
output c
)"},
    {"f16_without", "cuda:sm_75", "cvt.f32.f16", R"(workload "matmul"
input a: f16[33,40] in [-1, 1]
const b: f16[40,48] in [-1, 1]
c: f32[33,48] over i:33, j:48 = sum k:40 of f32(a[i, k]) * f32(b[k, j])
d: f16[33,48] over i1:33, j1:48 = f16(c[i1, j1])
output d
)"},
    {"blocks_f16", "cuda:sm_90a", "wgmma.mma_async.sync.aligned.m64n", R"(workload "matmul"
input a: f16[192,80] in [-1, 1]
const b: f16[80,48] in [-1, 1]
c: f32[192,48] over i:192, j:48 = sum k:80 of f32(a[i, k]) * f32(b[k, j])
d: f16[192,48] over i1:192, j1:48 = f16(max(c[i1, j1], 0.0f32))
output d
)"},
    {"blocks_tf32", "cuda:sm_90a -tf32", "wgmma.mma_async.sync.aligned.m64n", R"(workload "matmul"
input a: f32[128,48] in [-1, 1]
const b: f32[48,40] in [-1, 1]
c: f32[128,40] over i:128, j:40 = sum k:48 of a[i, k] * b[k, j]
output c
)"},
    {"rows_tf32", "cuda:sm_90a -tf32", "wgmma.mma_async.sync.aligned.m64n", R"(workload "matmul"
input a: f32[128,64] in [-1, 1]
const b: f32[64,40] in [-1, 1]
c: f32[128,40] over i:128, j:40 = sum k:64 of a[i, k] * b[k, j]
output c
)"},
    {"registers_tf32", "cuda:sm_90a -tf32", "}, {%r", R"(workload "matmul"
input a: f32[128,128] in [-1, 1]
const b: f32[128,40] in [-1, 1]
c: f32[128,40] over i:128, j:40 = sum k:128 of a[i, k] * b[k, j]
output c
)"},
    {"laid_out_tf32", "cuda:sm_90a -tf32", "wgmma.mma_async.sync.aligned.m64n", R"(workload "matmul"
input a: f32[128,96] in [-1, 1]
input b: f32[96,40] in [-1, 1]
c: f32[128,40] over i:128, j:40 = sum k:96 of a[i, k] * b[k, j]
output c
)"},
    {"laid_out_f16", "cuda:sm_90a", "wgmma.mma_async.sync.aligned.m64n", R"(workload "matmul"
input a: f16[64,2,64] in [-1, 1]
input b: f16[2,64,32] in [-1, 1]
c: f32[2,64,32] over h:2, i:64, j:32 = sum k:64 of f32(a[k, h, i]) * f32(b[h, k, j])
output c
)"},
    {"shared_f16", "cuda:sm_90a", ".multicast::cluster", R"(workload "matmul"
input a: f16[256,96] in [-1, 1]
const b: f16[96,48] in [-1, 1]
c: f32[256,48] over i:256, j:48 = sum k:96 of f32(a[i, k]) * f32(b[k, j])
d: f16[256,48] over i1:256, j1:48 = f16(max(c[i1, j1], 0.0f32))
output d
)"},
    {"copied_by_groups_f16", "cuda:sm_90a", "complete_tx::bytes [", R"(workload "matmul"
input a: f16[128,2,96] in [-1, 1]
const b: f16[2,96,40] in [-1, 1]
c: f32[2,128,40] over h:2, i:128, j:40 = sum k:96 of f32(a[i, h, k]) * f32(b[h, k, j])
output c
)",
     ir::TensorInstruction::kWgmmaF16},
    {"shared_registers_tf32", "cuda:sm_90a -tf32", ".multicast::cluster", R"(workload "matmul"
input a: f32[256,96] in [-1, 1]
const b: f32[96,32] in [-1, 1]
c: f32[256,32] over i:256, j:32 = sum k:96 of a[i, k] * b[k, j]
output c
)"},
    {"shared_laid_out_tf32", "cuda:sm_90a -tf32", ".multicast::cluster", R"(workload "matmul"
input a: f32[2,256,64] in [-1, 1]
input b: f32[2,64,32] in [-1, 1]
c: f32[2,256,32] over h:2, i:256, j:32 = sum k:64 of a[h, i, k] * b[h, k, j]
output c
)"},
    {"blocks_bf16", "cuda:sm_90a", "wgmma.mma_async.sync.aligned.m64n", R"(workload "matmul"
input q: bf16[2,64,64] in [-1, 1]
input k: bf16[2,40,64] in [-1, 1]
c: f32[2,64,40] over h:2, i:64, j:40 = sum e:64 of f32(q[h, i, e]) * f32(k[h, j, e])
output c
)"},
};

INSTANTIATE_TEST_SUITE_P(Instructions, PtxConvergence, ::testing::ValuesIn(kTogether),
                         [](const auto& test) { return std::string(test.param.name); });

// Default schedules, with tiles as large as those of large products.
TEST(PtxDefaults, AreRight) {
  struct Case {
    const char* target;
    const char* type;
    const char* spelling;
    Decisions given = {};
  };
  constexpr auto kRegisters = static_cast<int64_t>(ir::TensorInstruction::kWgmmaTf32Registers) + 1;
  for (const Case& c :
       {Case{"cuda:sm_53", "f32", "fma.rn.f32"}, Case{"cuda:sm_80 -tf32", "f32", "mma.sync"},
        Case{"cuda:sm_87", "bf16", "mma.sync"}, Case{"cuda:sm_90a", "f16", "wgmma.wait_group.sync.aligned 1"},
        Case{"cuda:sm_90a", "f16", ".reqnctapercluster 2, 1, 1", {{"sharing", 2, {}}}},
        Case{"cuda:sm_90a", "f16", "complete_tx::bytes [", {{"together", 1, {}}}},
        Case{"cuda:sm_90 -overlap", "f32", "griddepcontrol.wait"},
        Case{"cuda:sm_90a -overlap", "f16", "griddepcontrol.launch_dependents", {{"sharing", 2, {}}}},
        Case{"cuda:sm_90a -tf32", "f32", "wgmma.wait_group.sync.aligned 3", {{"instruction", kRegisters, {}}}}}) {
    const std::string product = std::string(c.type) == "f32" ? "x[i, k] * w[k, j]" : "f32(x[i, k]) * f32(w[k, j])";
    const ir::Workload workload =
        ir::ParseWorkload(fmt::format("workload \"matmul\"\ninput x: {0}[128,192] in [-1, 1]\n"
                                      "const w: {0}[192,256] in [-1, 1]\n"
                                      "t: f32[128,256] over i:128, j:256 = sum k:192 of {1}\noutput t\n",
                                      c.type, product))
            .value();
    Chooser preferred(&c.given);
    std::string ptx;
    EXPECT_TRUE(RunsCorrectly(workload, Parsed(c.target), preferred, &ptx)) << c.target;
    EXPECT_THAT(ptx, HasSubstr(c.spelling)) << c.target;
  }
}

// Lanes reduce long rows by shuffles.
TEST(PtxDefaults, LaneReductionsAreRight) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "softmax"
input x: f32[5,1200] in [-4, 4]
m: f32[5] over i0:5 = max j0:1200 of x[i0, j0]
e: f32[5,1200] over i1:5, j1:1200 = exp(x[i1, j1] - m[i1])
s: f32[5] over i2:5 = sum j2:1200 of e[i2, j2]
y: f32[5,1200] over i3:5, j3:1200 = e[i3, j3] / s[i3]
output y
)")
                                    .value();
  for (const char* target : {"cuda:sm_53", "cuda:sm_75", "cuda:sm_90a"}) {
    Chooser preferred;
    std::string ptx;
    EXPECT_TRUE(RunsCorrectly(workload, Parsed(target), preferred, &ptx)) << target;
    EXPECT_EQ(ptx.find("shfl.sync.bfly") != std::string::npos, std::string(target) != "cuda:sm_53") << target;
  }
}

// Lanes copy x in a loop that runs several times, and the group has copied w before: every run counts all commit
// groups.
TEST(PtxPipelines, LeaveNoCommitGroups) {
  const ir::Workload workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[16,40] in [-1, 1]
input w: f32[40,8] in [-1, 1]
t: f32[16,8] over i:16, j:8 = sum k:40 of x[i, k] * w[k, j]
u: f32[16,8] over a:16, b:8 = max(t[a, b], 0f32)
output u
)")
                                    .value();
  const auto schedule = schedule::ParseSchedule(
      "cache_read x t\nstore_in xrt shared\ncache_read w t\nstore_in wrt shared\nsplit a 8 mask\nsplit ai 2 mask\n"
      "bind ao group\nbind aio lane\ncompute_at t aii\nsplit k 8 mask\nreorder ko ki i j\ncompute_at xrt ko\n"
      "compute_at wrt ao\nfuse wrt_0 wrt_1\ncopy_async wrt 320\nfuse xrt_0 xrt_1\nbind xrt_0_xrt_1 lane\n"
      "copy_async xrt 1\npipeline ko 8\n");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  for (const char* target : {"cuda:sm_90", "cuda:sm_90a"}) {
    EXPECT_EQ(tests::CheckOnPtxMachine(workload, *schedule, Parsed(target), {3e-5, 1e-6}), absl::OkStatus()) << target;
  }
}

TEST(PtxWinograd, IsRight) {
  const ir::Workload workload = ir::ParseWorkload(tests::kTilesRunOver).value();
  Random random(5);
  for (const char* text : {"cuda:sm_53", "cuda:sm_80"}) {
    for (const int64_t size : {2, 4, 6}) {
      for (const bool preferred : {true, false, false}) {
        const Decisions given = {{"space", 7, {}}, {"winograd", size, {}}};
        Chooser chooser(&given, preferred ? nullptr : &random);
        EXPECT_TRUE(RunsCorrectly(workload, Parsed(text), chooser) || !preferred) << text;
      }
    }
  }
}

}  // namespace
}  // namespace hone::space
