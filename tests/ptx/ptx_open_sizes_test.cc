// SPDX-License-Identifier: Apache-2.0
// Runs CUDA kernels of workloads with open sizes, compiled once, at several sizes, and compares the outputs with the
// interpreter's. The memory of every buffer ends with the current sizes, so that an access behind them is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "tests/ptx/on_machine.h"

namespace hone::space {
namespace {

constexpr const char* kOpenTargets[] = {"cuda:sm_53", "cuda -arch=sm_80 -tf32", "cuda:sm_90a"};
// Operands that an instruction rounds are off by up to 2^-10, values that are stored in 16 bits by up to 2^-8.
constexpr tests::Tolerance kOpenTolerance = {1e-2, 1e-3};
constexpr int kCandidates = 6;  // of each space

struct OpenCase {
  const char* name;
  const char* workload;
};

void PrintTo(const OpenCase& open, std::ostream* out) { *out << open.name; }

// The ends of the ranges, and sizes between them.
std::vector<tests::SizeMap> SizesToTry(const ir::Workload& workload, Random& random) {
  std::vector<tests::SizeMap> sizes(5);
  for (const ir::OpenSize& size : workload.sizes) {
    sizes[0][size.name] = size.max;
    sizes[1][size.name] = size.min;
    for (size_t i = 2; i < sizes.size(); ++i) sizes[i][size.name] = size.min + random.Below(size.max - size.min + 1);
  }
  return sizes;
}

class PtxOpenSizes : public ::testing::TestWithParam<OpenCase> {};

TEST_P(PtxOpenSizes, AreRightAtEachSize) {
  const ir::Workload workload = ir::ParseWorkload(GetParam().workload).value();
  Random random(23);
  const std::vector<tests::SizeMap> sizes = SizesToTry(workload, random);
  for (const char* text : kOpenTargets) {
    const target::Target target = target::ParseTarget(text).value();
    const std::vector<const Entry*> fitting = ApplicableEntries(workload, target);
    for (const Entry* entry : fitting) {
      int run = 0;
      for (int i = 0; i < kCandidates; ++i) {
        const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
        Chooser chooser(&given, i == 0 ? nullptr : &random);
        const auto candidate = Build(workload, target, fitting, chooser);
        absl::Status status = candidate.status();
        if (candidate.ok()) {
          status = tests::CheckOnPtxMachine(workload, candidate->schedule, target, kOpenTolerance, nullptr, sizes);
        }
        if (absl::IsFailedPrecondition(status) && i > 0) continue;
        EXPECT_EQ(status, absl::OkStatus()) << text << ", space " << entry->name << "\n"
                                            << (candidate.ok() ? schedule::Print(candidate->schedule) : "");
        ++run;
      }
      EXPECT_GE(run, 2) << text << ", space " << entry->name;
    }
  }
}

constexpr OpenCase kOpenCases[] = {
    {"rows", R"(workload "matmul"
size n in [1, 80]
input a: f32[n,40] in [-1, 1]
const b: f32[40,56] in [-1, 1]
c: f32[n,56] over i:n, j:56 = sum k:40 of a[i, k] * b[k, j]
d: f32[n,56] over i1:n, j1:56 = max(c[i1, j1], 0.0f32)
output d
)"},
    {"rows_of_halves", R"(workload "matmul"
size n in [1, 70]
input a: f16[n,96] in [-1, 1]
const b: f16[96,40] in [-1, 1]
c: f32[n,40] over i:n, j:40 = sum k:96 of f32(a[i, k]) * f32(b[k, j])
d: f16[n,40] over i1:n, j1:40 = f16(c[i1, j1])
output d
)"},
    {"columns", R"(workload "matmul"
size m in [0, 56]
input a: f32[3,24,40] in [-1, 1]
input b: f32[3,40,m] in [-1, 1]
c: f32[3,24,m] over h:3, i:24, j:m = sum k:40 of a[h, i, k] * b[h, k, j]
output c
)"},
    {"steps", R"(workload "matmul"
size k in [1, 90]
input a: f32[24,k] in [-1, 1]
input b: f32[k,32] in [-1, 1]
c: f32[24,32] over i:24, j:32 = sum l:k of a[i, l] * b[l, j]
output c
)"},
    {"scores", R"(workload "matmul"
size n in [1, 3]
size m in [1, 33]
input q: f32[n,2,m,16] in [-1, 1]
input k: f32[n,2,m,16] in [-1, 1]
c: f32[n,2,m,m] over b:n, h:2, i:m, j:m = sum l:16 of q[b, h, i, l] * k[b, h, j, l]
output c
)"},
    {"convolution", R"(workload "conv2d"
size n in [1, 12]
size m in [2, 10]
input x: f32[1,n,m,16] in [-1, 1]
const w: f32[24,16,3,3] in [-1, 1]
p: f32[1,n + 2,m + 2,16] over b:1, h:n + 2, v:m + 2, c:16 = select(h >= 1 && h < n + 1 && v >= 1 && v < m + 1,
  x[b, h - 1, v - 1, c], 0.0f32)
y: f32[1,n,m,24] over b1:1, h1:n, v1:m, o:24 = sum ci:16, r:3, s:3 of p[b1, h1 + r, v1 + s, ci] * w[o, ci, r, s]
output y
)"},
    {"softmax", R"(workload "softmax"
size n in [0, 9]
size m in [1, 150]
input x: f32[n,m] in [-1, 1]
l: f32[n] over i:n = max j:m of x[i, j]
e: f32[n,m] over i1:n, j1:m = exp(x[i1, j1] - l[i1])
s: f32[n] over i2:n = sum j2:m of e[i2, j2]
y: f32[n,m] over i3:n, j3:m = e[i3, j3] / s[i3]
output y
)"},
    {"mean_over_rows", R"(workload "reduce"
size n in [1, 300]
input x: f32[n,40] in [-1, 1]
s: f32[40] over j:40 = sum i:n of x[i, j]
y: f32[40] over j1:40 = s[j1] / f32(n)
output y
)"},
    {"transposition", R"(workload "transpose"
size n in [1, 30]
size m in [1, 20]
input x: f32[n,m,8] in [-1, 1]
y: f32[8,n,m] over c:8, i:n, j:m = x[i, j, c]
output y
)"},
};

TEST(PtxOpenDefaults, UseTheInstructionsOfAWarpAlongOpenRows) {
  const auto rows = std::ranges::find(kOpenCases, std::string_view("rows_of_halves"), &OpenCase::name);
  const ir::Workload workload = ir::ParseWorkload(rows->workload).value();
  const target::Target target = target::ParseTarget("cuda:sm_80").value();
  const auto candidate = Default(workload, target);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  std::string ptx;
  EXPECT_EQ(tests::CheckOnPtxMachine(workload, candidate->schedule, target, kOpenTolerance, &ptx, {{{"n", 33}}}),
            absl::OkStatus());
  EXPECT_NE(ptx.find("mma.sync"), std::string::npos) << schedule::Print(candidate->schedule);
}

INSTANTIATE_TEST_SUITE_P(Workloads, PtxOpenSizes, ::testing::ValuesIn(kOpenCases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hone::space
