// SPDX-License-Identifier: Apache-2.0
#include "compiler/space/space.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

#include "base/random.h"
#include "compiler/execution/model.h"
#include "compiler/target/target.h"
#include "tests/unit/space/compiled.h"
#include "tests/unit/space/lowered.h"
#include "tests/unit/space/workloads.h"

namespace hone::space {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SpaceTest : public ::testing::TestWithParam<tests::NamedWorkload> {
 protected:
  static target::Target Host() { return target::ParseTarget("cpu -threads=2").value(); }
  static ir::Workload Parsed() {
    auto workload = ir::ParseWorkload(GetParam().text);
    EXPECT_TRUE(workload.ok()) << workload.status();
    return *workload;
  }
};

TEST_P(SpaceTest, DefaultIsCorrect) {
  const ir::Workload workload = Parsed();
  const auto candidate = Default(workload, Host());
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  SCOPED_TRACE(schedule::Print(candidate->schedule));
  EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, Host()), absl::OkStatus());
  EXPECT_EQ(tests::CheckCompiled(workload, candidate->schedule, Host()), absl::OkStatus());
}

// If the preferred decisions cannot be built, Default falls back to naive loops, which are a hundred times slower.
TEST_P(SpaceTest, PreferredDecisionsLeadSomewhere) {
  const target::Target target = Host();
  Chooser chooser;
  const auto candidate = Build(Parsed(), target, ApplicableEntries(Parsed(), target), chooser);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  EXPECT_EQ(execution::Lower(candidate->state, target, "k").status(), absl::OkStatus())
      << schedule::Print(candidate->schedule);
}

// CPUs with other vectors, registers and numbers of threads.
TEST_P(SpaceTest, PreferredDecisionsForOtherCpusAreCorrect) {
  const ir::Workload workload = Parsed();
  for (const char* text :
       {"x86_64 -mcpu=haswell", "arm64 -mcpu=cortex-a53 -threads=4", "x86_64 -mcpu=znver5 -threads=64"}) {
    const target::Target target = target::ParseTarget(text).value();
    const std::vector<const Entry*> fitting = ApplicableEntries(workload, target);
    for (const Entry* entry : fitting) {
      const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
      Chooser chooser(&given);
      const auto candidate = Build(workload, target, fitting, chooser);
      ASSERT_TRUE(candidate.ok()) << text << " " << entry->name << ": " << candidate.status();
      SCOPED_TRACE(fmt::format("{} {}\n{}", text, entry->name, schedule::Print(candidate->schedule)));
      // Winograd's algorithm rounds more.
      EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, target, {.relative = 1e-4}), absl::OkStatus());
    }
  }
}

TEST_P(SpaceTest, SketchAloneIsCorrect) {
  const ir::Workload workload = Parsed();
  const Decisions sketch = {{"space", 0, {}}};
  Chooser chooser(&sketch);
  const auto candidate = Build(workload, Host(), ApplicableEntries(workload, Host()), chooser);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  SCOPED_TRACE(schedule::Print(candidate->schedule));
  EXPECT_EQ(tests::CheckCompiled(workload, candidate->schedule, Host()), absl::OkStatus());
}

TEST_P(SpaceTest, RandomCandidatesAreCorrect) {
  const ir::Workload workload = Parsed();
  Random random(11);
  int built = 0;
  for (int i = 0; i < 12; ++i) {
    Chooser chooser(nullptr, &random);
    const auto candidate = Build(workload, Host(), ApplicableEntries(workload, Host()), chooser);
    if (!candidate.ok()) {
      EXPECT_EQ(candidate.status().code(), absl::StatusCode::kFailedPrecondition) << candidate.status();
      continue;
    }
    const absl::Status status = tests::CheckCompiled(workload, candidate->schedule, Host());
    if (status.code() == absl::StatusCode::kFailedPrecondition) continue;  // cannot be lowered: the search drops it
    ++built;
    EXPECT_EQ(status, absl::OkStatus()) << Print(candidate->decisions) << "\n" << schedule::Print(candidate->schedule);
  }
  EXPECT_GE(built, 6) << "most random decisions should lead somewhere";
}

TEST_P(SpaceTest, DecisionsAndScheduleTextReplay) {
  const ir::Workload workload = Parsed();
  Random random(5);
  Chooser chooser(nullptr, &random);
  const auto candidate = Build(workload, Host(), ApplicableEntries(workload, Host()), chooser);
  if (!candidate.ok()) GTEST_SKIP() << candidate.status();
  const auto decisions = ParseDecisions(Print(candidate->decisions));
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  Chooser again(&*decisions);
  const auto same = Build(workload, Host(), ApplicableEntries(workload, Host()), again);
  ASSERT_TRUE(same.ok()) << same.status();
  const std::string text = schedule::Print(candidate->schedule);
  EXPECT_EQ(schedule::Print(same->schedule), text);
  const auto parsed = schedule::ParseSchedule(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(schedule::Print(*parsed), text);
}

// A default that is simpler than a space prefers is far slower, so it must be logged.
TEST(Default, LogsWhyTheDefaultIsNaive) {
  constexpr char kMatmul[] = R"(workload "matmul"
input a: f32[64,64] in [-1, 1]
const b: f32[64,64] in [-1, 1]
c: f32[64,64] over i:64, j:64 = sum k:64 of a[i, k] * b[k, j]
output c
)";
  const ir::Workload workload = ir::ParseWorkload(kMatmul).value();
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  target::Target target = target::ParseTarget("x86_64 -mcpu=haswell").value();
  EXPECT_TRUE(Default(workload, target).ok());
  EXPECT_EQ(log.str(), "");
  target.memory.local_bytes = 16;
  EXPECT_TRUE(Default(workload, target).ok());
  spdlog::set_default_logger(before);
  EXPECT_THAT(log.str(), ::testing::HasSubstr("space register_tile: its default schedule for matmul " +
                                              ir::WorkloadDigest(workload).substr(0, 12)));
  EXPECT_THAT(log.str(), ::testing::HasSubstr("stages computed inside loops need"));
}

// The spaces of a target with lanes. The interpreter checks values and finds races.
class LaneSpaceTest : public SpaceTest {
 protected:
  static target::Target Lanes() { return target::TypicalTarget(target::Kind::kOpenCl); }
};

TEST_P(LaneSpaceTest, DefaultOfEverySpaceIsCorrect) {
  const ir::Workload workload = Parsed();
  for (const Decisions& given : {Decisions{}, Decisions{{"space", 2, {}}}, Decisions{{"rows.levels", 2, {}}}}) {
    Chooser chooser(&given);
    const auto candidate = Build(workload, Lanes(), ApplicableEntries(workload, Lanes()), chooser);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    SCOPED_TRACE(Print(candidate->decisions) + "\n" + schedule::Print(candidate->schedule));
    EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, Lanes()), absl::OkStatus());
  }
}

TEST_P(LaneSpaceTest, RandomCandidatesAreCorrect) {
  const ir::Workload workload = Parsed();
  Random random(13);
  int built = 0;
  for (int i = 0; i < 12; ++i) {
    Chooser chooser(nullptr, &random);
    const auto candidate = Build(workload, Lanes(), ApplicableEntries(workload, Lanes()), chooser);
    if (!candidate.ok()) {
      EXPECT_EQ(candidate.status().code(), absl::StatusCode::kFailedPrecondition) << candidate.status();
      continue;
    }
    const absl::Status status = tests::CheckLowered(workload, candidate->schedule, Lanes());
    if (status.code() == absl::StatusCode::kFailedPrecondition) continue;  // cannot be lowered: the search drops it
    ++built;
    EXPECT_EQ(status, absl::OkStatus()) << Print(candidate->decisions) << "\n" << schedule::Print(candidate->schedule);
  }
  EXPECT_GE(built, 6) << "most random decisions should lead somewhere";
}

// Asynchronous copies: the interpreter lets them arrive as late as possible.
TEST_P(LaneSpaceTest, CopiesAheadOfTimeAreCorrect) {
  const ir::Workload workload = Parsed();
  target::Target target = Lanes();
  target.memory.async_copy_bytes = 16;
  Random random(19);
  int copying = 0;
  for (int i = 0; i < 12; ++i) {
    Chooser chooser(nullptr, i == 0 ? nullptr : &random);
    const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
    if (!candidate.ok()) continue;
    const std::string schedule = schedule::Print(candidate->schedule);
    const absl::Status status = tests::CheckLowered(workload, candidate->schedule, target);
    if (status.code() == absl::StatusCode::kFailedPrecondition) continue;
    EXPECT_EQ(status, absl::OkStatus()) << Print(candidate->decisions) << "\n" << schedule;
    copying += schedule.find("copy_async") != std::string::npos;
  }
  if (GetParam().name == "matmul_round") {
    EXPECT_GT(copying, 0) << "tiles of products are copied ahead by default";
  }
}

// Sums of products whose lanes run instructions together, on a target that has the instruction.
struct InstructionCase {
  const char* name;
  const char* instruction;
  const char* workload;
  const char* target = "cuda -arch=sm_80 -tf32";  // a target that has the instruction
};

class LaneInstructionTest : public ::testing::TestWithParam<InstructionCase> {
 protected:
  // A product of rounded factors has a relative error of up to 2^-10.
  static constexpr tests::Tolerance kRounded{1e-3, 1e-3};
  static target::Target Tensor() { return target::ParseTarget(GetParam().target).value(); }
};

TEST_P(LaneInstructionTest, IsCorrect) {
  const ir::Workload workload = ir::ParseWorkload(GetParam().workload).value();
  const auto built = [&](const std::string& target) {
    const target::Target parsed = target::ParseTarget(target).value();
    const auto instruction = static_cast<int64_t>(*ir::ParseTensorInstruction(GetParam().instruction));
    const Decisions given = {{"space", 3, {}}, {"instruction", instruction + 1, {}}};
    Chooser chooser(&given);
    const auto candidate = Build(workload, parsed, ApplicableEntries(workload, parsed), chooser);
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    if (!candidate.ok()) return std::string();
    EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, parsed, kRounded), absl::OkStatus())
        << schedule::Print(candidate->schedule);
    return schedule::Print(candidate->schedule);
  };
  const std::string tensorize = std::string(" ") + GetParam().instruction + "\n";
  EXPECT_THAT(built(GetParam().target), HasSubstr(tensorize));
  // mma of 16-bit floats is legal on cuda:sm_80. TF32 also needs an option, and wgmma another architecture.
  const bool halves = std::string(GetParam().instruction).starts_with("mma_") && !tensorize.ends_with("tf32\n");
  EXPECT_EQ(built("cuda:sm_80").find(tensorize) != std::string::npos, halves);
  EXPECT_THAT(built("cuda:sm_75"), Not(HasSubstr("tensorize")));
}

TEST_P(LaneInstructionTest, RandomCandidatesAreCorrect) {
  const ir::Workload workload = ir::ParseWorkload(GetParam().workload).value();
  Random random(29);
  const Decisions tiles = {{"space", 3, {}}};
  int with = 0;
  for (int i = 0; i < 30; ++i) {
    Chooser chooser(&tiles, &random);
    const auto candidate = Build(workload, Tensor(), ApplicableEntries(workload, Tensor()), chooser);
    if (!candidate.ok()) continue;
    const std::string schedule = schedule::Print(candidate->schedule);
    const absl::Status status = tests::CheckLowered(workload, candidate->schedule, Tensor(), kRounded);
    if (status.code() == absl::StatusCode::kFailedPrecondition) continue;
    EXPECT_EQ(status, absl::OkStatus()) << Print(candidate->decisions) << "\n" << schedule;
    with += schedule.find("tensorize") != std::string::npos;
  }
  EXPECT_GE(with, 3);
}

constexpr InstructionCase kInstructionCases[] = {
    {"product", "mma_tf32", R"(workload "matmul"
input a: f32[64,48] in [-1, 1]
input b: f32[48,32] in [-1, 1]
c: f32[64,32] over i:64, j:32 = sum k:48 of a[i, k] * b[k, j]
output c
)"},
    {"convolution", "mma_tf32", R"(workload "conv2d"
input x: f32[2,9,8,16] in [-1, 1]
const w: f32[16,16,3,3] in [-1, 1]
p: f32[2,11,10,16] over n:2, h:11, v:10, c:16 = select(h >= 1 && h < 10 && v >= 1 && v < 9,
  x[n, h - 1, v - 1, c], 0.0f32)
y: f32[2,9,8,16] over n1:2, h1:9, v1:8, o:16 = sum ci:16, r:3, s:3 of p[n1, h1 + r, v1 + s, ci] * w[o, ci, r, s]
z: f32[2,9,8,16] over n2:2, h2:9, v2:8, o2:16 = max(y[n2, h2, v2, o2], 0.0f32)
output z
)"},
    {"halves", "mma_f16", R"(workload "matmul"
input a: f16[32,64] in [-1, 1]
const b: f16[64,32] in [-1, 1]
c: f32[32,32] over i:32, j:32 = sum k:64 of f32(a[i, k]) * f32(b[k, j])
d: f16[32,32] over i1:32, j1:32 = f16(c[i1, j1])
output d
)"},
    {"scores", "mma_bf16", R"(workload "matmul"
input q: bf16[2,16,32] in [-1, 1]
input k: bf16[2,24,32] in [-1, 1]
c: f32[2,16,24] over h:2, i:16, j:24 = sum e:32 of f32(q[h, i, e]) * f32(k[h, j, e])
output c
)"},
    {"blocks", "wgmma_f16", R"(workload "matmul"
input a: f16[128,96] in [-1, 1]
const b: f16[96,32] in [-1, 1]
c: f32[128,32] over i:128, j:32 = sum k:96 of f32(a[i, k]) * f32(b[k, j])
d: f16[128,32] over i1:128, j1:32 = f16(max(c[i1, j1], 0.0f32))
output d
)",
     "cuda:sm_90a"},
    {"rounded_blocks", "wgmma_tf32", R"(workload "matmul"
input a: f32[128,96] in [-1, 1]
const b: f32[96,32] in [-1, 1]
c: f32[128,32] over i:128, j:32 = sum k:96 of a[i, k] * b[k, j]
output c
)",
     "cuda -arch=sm_90a -tf32"},
    {"rows", "wgmma_f16", R"(workload "matmul"
input a: f16[128,128] in [-1, 1]
const b: f16[128,32] in [-1, 1]
c: f32[128,32] over i:128, j:32 = sum k:128 of f32(a[i, k]) * f32(b[k, j])
output c
)",
     "cuda:sm_90a"},
    {"rounded_rows", "wgmma_tf32", R"(workload "matmul"
input q: f32[2,64,64] in [-1, 1]
input k: f32[2,24,64] in [-1, 1]
c: f32[2,64,24] over h:2, i:64, j:24 = sum e:64 of q[h, i, e] * k[h, j, e]
output c
)",
     "cuda -arch=sm_90a -tf32"},
    {"loaded_rows", "wgmma_tf32_registers", R"(workload "matmul"
input a: f32[128,128] in [-1, 1]
const b: f32[128,32] in [-1, 1]
c: f32[128,32] over i:128, j:32 = sum k:128 of a[i, k] * b[k, j]
output c
)",
     "cuda -arch=sm_90a -tf32"},
    {"loaded_and_rounded_rows", "wgmma_tf32_registers", R"(workload "matmul"
input q: f32[2,64,64] in [-1, 1]
input k: f32[2,24,64] in [-1, 1]
c: f32[2,64,24] over h:2, i:64, j:24 = sum e:64 of q[h, i, e] * k[h, j, e]
output c
)",
     "cuda -arch=sm_90a -tf32"},
    {"laid_out_before", "wgmma_f16", R"(workload "matmul"
input a: f16[64,2,64] in [-1, 1]
input b: f16[2,64,32] in [-1, 1]
c: f32[2,64,32] over h:2, i:64, j:32 = sum k:64 of f32(a[k, h, i]) * f32(b[h, k, j])
output c
)",
     "cuda:sm_90a"},
    {"rounded_before", "wgmma_tf32_registers", R"(workload "matmul"
input a: f32[128,64] in [-1, 1]
input b: f32[64,32] in [-1, 1]
c: f32[128,32] over i:128, j:32 = sum k:64 of a[i, k] * b[k, j]
output c
)",
     "cuda -arch=sm_90a -tf32"},
    {"blocks_of_several", "wgmma_bf16", R"(workload "matmul"
input q: bf16[2,64,32] in [-1, 1]
input k: bf16[2,24,32] in [-1, 1]
c: f32[2,64,24] over h:2, i:64, j:24 = sum e:32 of f32(q[h, i, e]) * f32(k[h, j, e])
output c
)",
     "cuda:sm_90a"},
};

INSTANTIATE_TEST_SUITE_P(LaneTile, LaneInstructionTest, ::testing::ValuesIn(kInstructionCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(LaneTile, LargeProductsTakeInstructionsWhereTheyMay) {
  const auto schedule = [](const std::string& type, const std::string& target) {
    const std::string read = type == "f32" ? "x[i, k] * w[k, j]" : "f32(x[i, k]) * f32(w[k, j])";
    const auto workload = ir::ParseWorkload(
        "workload \"matmul\"\ninput x: " + type + "[1024,1024] in [-1, 1]\nconst w: " + type +
        "[1024,1024] in [-1, 1]\n" + "t: f32[1024,1024] over i:1024, j:1024 = sum k:1024 of " + read + "\noutput t\n");
    EXPECT_TRUE(workload.ok()) << workload.status();
    return schedule::Print(Default(*workload, target::ParseTarget(target).value())->schedule);
  };
  EXPECT_THAT(schedule("f32", "cuda -arch=sm_90 -tf32"), HasSubstr("mma_tf32"));
  EXPECT_THAT(schedule("f32", "cuda -arch=sm_90"), Not(HasSubstr("mma")));
  EXPECT_THAT(schedule("f16", "cuda -arch=sm_90"), HasSubstr("mma_f16"));
  EXPECT_THAT(schedule("bf16", "cuda -arch=sm_87"), HasSubstr("mma_bf16"));
  EXPECT_THAT(schedule("f16", "cuda -arch=sm_90a"), AllOf(HasSubstr("wgmma_f16"), HasSubstr(" swizzled\n")));
  EXPECT_THAT(schedule("f32", "cuda -arch=sm_90a -tf32"), HasSubstr("wgmma_tf32"));
}

TEST(LaneElementwise, ALaneMovesSixteenBytesOfTheWidestType) {
  const auto width = [](const char* from, const char* to, const char* value) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "elementwise"
input x: {}[64,64] in [-1, 1]
t: {}[64,64] over i:64, j:64 = {}
output t
)",
                                                        from, to, value));
    EXPECT_TRUE(workload.ok()) << workload.status();
    const auto candidate = Default(*workload, target::ParseTarget("cuda:sm_80").value());
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    return Print(candidate->decisions);
  };
  EXPECT_THAT(width("f16", "f16", "f16(f32(x[i, j]) * 2f32)"), HasSubstr("t.width=8"));
  EXPECT_THAT(width("f32", "f16", "f16(x[i, j] * 2f32)"), HasSubstr("t.width=4"));
  EXPECT_THAT(width("f32", "f32", "x[i, j] * 2f32"), HasSubstr("t.width=4"));
  EXPECT_THAT(width("f64", "f64", "x[i, j] * 2f64"), HasSubstr("t.width=2"));
}

// A stage with padded windows, channels first. value: the value of the padding. stage: the stages that read it.
ir::Workload PaddedWindows(const char* value, const char* stage) {
  const auto workload = ir::ParseWorkload(fmt::format(R"(workload "pool"
input x: f32[2,3,11,9] in [-1, 1]
const w: f32[3,3,3] in [-1, 1]
p: f32[2,3,13,11] over p0:2, p1:3, p2:13, p3:11 )"
                                                      R"(= select(p2 >= 1 && p2 < 12 && p3 >= 1 && p3 < 10, )"
                                                      R"(x[p0, p1, p2 - 1, p3 - 1], {})
{}
output t
)",
                                                      value, stage));
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

TEST(LanePadding, OfSmallWindowsIsInlined) {
  const target::Target target = target::ParseTarget("cuda:sm_80").value();
  for (const ir::Workload& workload :
       {PaddedWindows("-inf_f32",
                      "t: f32[2,3,6,5] over n:2, c:3, h:6, v:5 = max kh:3, kw:3 of "
                      "p[n, c, h * 2 + kh, v * 2 + kw]"),
        PaddedWindows("0f32", "t: f32[2,3,11,9] over n:2, c:3, h:11, v:9 = sum kh:3, kw:3 of p[n, c, h + kh, v + kw]"),
        PaddedWindows("0f32",
                      "t: f32[2,3,11,9] over n:2, c:3, h:11, v:9 = sum kh:3, kw:3 of "
                      "p[n, c, h + kh, v + kw] * w[c, kh, kw]")}) {
    const auto candidate = Default(workload, target);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    SCOPED_TRACE(schedule::Print(candidate->schedule));
    const auto module = execution::Lower(candidate->state, target, "k");
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(module->main.size(), 1);
    EXPECT_EQ(tests::CheckLowered(workload, candidate->schedule, target), absl::OkStatus());
  }
}

// Winograd's algorithm takes three launches. It pays if the transforms cost less than the products that they save.
TEST(WinogradLanes, IsPreferredWhereItPays) {
  const auto schedule = [](int batch, int channels, int size, const std::string& target) {
    const auto workload = ir::ParseWorkload(fmt::format(
        R"(workload "conv2d"
input x: f32[{0},{2},{2},{1}] in [-1, 1]
const w: f32[{1},{1},3,3] in [-1, 1]
y: f32[{0},{3},{3},{1}] over n:{0}, h:{3}, v:{3}, o:{1} = sum c:{1}, r:3, s:3 of x[n, h + r, v + s, c] * w[o, c, r, s]
output y
)",
        batch, channels, size + 2, size));
    EXPECT_TRUE(workload.ok()) << workload.status();
    return schedule::Print(Default(*workload, target::ParseTarget(target).value())->schedule);
  };
  EXPECT_THAT(schedule(32, 128, 28, "cuda:sm_90"), HasSubstr("winograd y "));
  EXPECT_THAT(schedule(1, 128, 28, "cuda:sm_90"), Not(HasSubstr("winograd")));
  EXPECT_THAT(schedule(32, 128, 28, "cuda -arch=sm_90 -tf32"), Not(HasSubstr("winograd")));
}

TEST(WinogradLanes, IsCorrect) {
  const auto workload = ir::ParseWorkload(tests::kTilesRunOver);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const target::Target target = target::ParseTarget("cuda:sm_80").value();
  for (const int64_t size : {2, 4, 6}) {
    const Decisions given = {{"space", 7, {}}, {"winograd", size, {}}};
    Chooser chooser(&given);
    const auto candidate = Build(*workload, target, ApplicableEntries(*workload, target), chooser);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    EXPECT_THAT(schedule::Print(candidate->schedule), HasSubstr(fmt::format("winograd y {}\n", size)));
    EXPECT_EQ(tests::CheckLowered(*workload, candidate->schedule, target, {3e-5, 1e-6}), absl::OkStatus());
  }
}

TEST(LaneTile, CopiesAheadOfTimeWhereTheTargetCan) {
  const auto workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[64,64] in [-1, 1]
input w: f32[64,64] in [-1, 1]
t: f32[64,64] over i:64, j:64 = sum k:64 of x[i, k] * w[k, j]
output t
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  target::Target target = target::TypicalTarget(target::Kind::kOpenCl);
  const auto schedule = [&](Decisions given) {
    given.insert(given.begin(), {"space", 3, {}});
    Chooser chooser(&given);
    const auto candidate = Build(*workload, target, ApplicableEntries(*workload, target), chooser);
    if (!candidate.ok()) return candidate.status().ToString();
    EXPECT_EQ(tests::CheckLowered(*workload, candidate->schedule, target), absl::OkStatus());
    return schedule::Print(candidate->schedule);
  };
  EXPECT_THAT(schedule({}), Not(HasSubstr("copy_async")));
  EXPECT_THAT(schedule({{"buffers", 3, {}}}), Not(HasSubstr("pipeline")));
  target.memory.async_copy_bytes = 16;
  EXPECT_THAT(schedule({}),
              AllOf(HasSubstr("copy_async xrtc 4\n"), HasSubstr("copy_async wrtc 4\n"), HasSubstr("pipeline kco 3\n")));
  EXPECT_THAT(schedule({{"buffers", 2, {}}, {"xrtc.copy", 1, {}}}),
              AllOf(HasSubstr("copy_async xrtc 1\n"), HasSubstr("pipeline kco 2\n")));
  EXPECT_THAT(schedule({{"buffers", 0, {}}}), Not(HasSubstr("copy_async")));
  target.memory.async_copy_bytes = 8;
  EXPECT_THAT(schedule({}), HasSubstr("copy_async xrtc 2\n"));
}

TEST(RegisterTile, FetchesAheadWhatTheSecondCacheDoesNotHold) {
  const auto schedule = [](int64_t rows, int64_t columns, const Decisions& given) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: f32[{0},512] in [-1, 1]
const w: f32[512,{1}] in [-1, 1]
t: f32[{0},{1}] over i:{0}, j:{1} = sum k:512 of x[i, k] * w[k, j]
output t
)",
                                                        rows, columns));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=sapphirerapids -threads=2 -l2=2097152");
    Chooser chooser(&given);
    return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
  };
  EXPECT_THAT(schedule(49, 2048, {}), HasSubstr("prefetch wptc tc jo_ioo 1\n")) << "a thread takes panels in order";
  EXPECT_THAT(schedule(49, 2048, {{"prefetch", 0, {}}}), Not(HasSubstr("prefetch")));
  EXPECT_THAT(schedule(49, 256, {}), Not(HasSubstr("prefetch")));
  EXPECT_THAT(schedule(1, 2048, {}), Not(HasSubstr("prefetch"))) << "each weight is used once";
}

TEST(RegisterTile, FetchesAheadTheMatricesOfABatchThatTheSecondCacheDoesNotHold) {
  const auto schedule = [](int64_t matrices) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: f32[{0},64,128] in [-1, 1]
const w: f32[{0},128,128] in [-1, 1]
t: f32[{0},64,128] over b:{0}, i:64, j:128 = sum k:128 of x[b, i, k] * w[b, k, j]
output t
)",
                                                        matrices));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=znver5 -threads=2 -l2=1048576");
    return schedule::Print(Default(*workload, target).value().schedule);
  };
  EXPECT_THAT(schedule(36), HasSubstr("prefetch"));
  EXPECT_THAT(schedule(9), Not(HasSubstr("prefetch"))) << "the next block of rows finds them in the cache";
}

TEST(RegisterTile, PanelsOfFewColumnsAreNarrowerForThreads) {
  const auto schedule = [](int threads) {
    const auto workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[1,16384] in [-1, 1]
const w: f32[16384,128] in [-1, 1]
t: f32[1,128] over i:1, j:128 = sum k:16384 of x[i, k] * w[k, j]
output t
)");
    const target::Target target = *target::ParseTarget(fmt::format("x86_64 -mcpu=x86-64-v4 -threads={}", threads));
    return schedule::Print(Default(*workload, target).value().schedule);
  };
  EXPECT_THAT(schedule(2), HasSubstr("split j 64 mask\n"));
  EXPECT_THAT(schedule(8), AllOf(HasSubstr("split j 16 mask\n"), HasSubstr("parallel i_jo\n"))) << "8 tasks";
}

TEST(RegisterTile, TilesAreMoreNearlySquareWhereACoreLoadsLittle) {
  const auto schedule = [](const char* cpu) {
    const auto workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[784,64] in [-1, 1]
const w: f32[64,64] in [-1, 1]
t: f32[784,64] over i:784, j:64 = sum k:64 of x[i, k] * w[k, j]
output t
)");
    return schedule::Print(Default(*workload, *target::ParseTarget(cpu)).value().schedule);
  };
  EXPECT_THAT(schedule("arm64 -mcpu=cortex-a53 -threads=4"),
              AllOf(HasSubstr("split i 6 shift\n"), HasSubstr("split j 16 mask\n")));
  EXPECT_THAT(schedule("arm64 -mcpu=cortex-a76 -threads=4"),
              AllOf(HasSubstr("split i 14 shift\n"), HasSubstr("split j 8 mask\n")));
}

// Otherwise a tile of two pixels would read all weights.
TEST(RegisterTile, RowsTooShortForATileShareOne) {
  const auto schedule = [](int64_t height, int64_t width) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "conv2d"
input x: f32[{0},{1},64] in [-1, 1]
const w: f32[5,5,64,48] in [-1, 1]
t: f32[{2},{3},48] over i:{2}, j:{3}, c:48 = sum a:5, b:5, d:64 of x[i + a, j + b, d] * w[a, b, d, c]
output t
)",
                                                        height + 4, width + 4, height, width));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=sapphirerapids -threads=2");
    const Decisions none;
    Chooser chooser(&none);
    return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
  };
  EXPECT_THAT(schedule(95, 2), HasSubstr("split i 4 shift\n")) << "95 has no small divisor, and needs none";
  EXPECT_THAT(schedule(95, 56), HasSubstr("split i 1 shift\n"));
}

// Rows that are a page apart share the first cache's sets. More rows than the cache has pages evict each other.
TEST(RegisterTile, RowsAPageApartFitTheSetsOfTheFirstCache) {
  const auto schedule = [](int64_t steps) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: f32[504,{0}] in [-1, 1]
const w: f32[{0},512] in [-1, 1]
t: f32[504,512] over i:504, j:512 = sum k:{0} of x[i, k] * w[k, j]
output t
)",
                                                        steps));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=znver4 -threads=2 -l1=32768");
    const Decisions none;
    Chooser chooser(&none);
    return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
  };
  EXPECT_THAT(schedule(1000), HasSubstr("split i 14 shift\n"));
  EXPECT_THAT(schedule(1024), HasSubstr("split i 6 shift\n"));
}

TEST(RegisterTile, BlocksOfRowsAreSharedOutEvenly) {
  const auto schedule = [](int64_t rows) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: f32[{0},128] in [-1, 1]
const w: f32[128,128] in [-1, 1]
t: f32[{0},128] over i:{0}, j:128 = sum k:128 of x[i, k] * w[k, j]
output t
)",
                                                        rows));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=znver4 -threads=2");
    const Decisions none;
    Chooser chooser(&none);
    return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
  };
  EXPECT_THAT(schedule(128), AllOf(HasSubstr("split i 13 shift\n"), HasSubstr("split io 1 shift\n")))
      << "10 tiles, where 5 blocks of two would give one thread six";
  EXPECT_THAT(schedule(1024), HasSubstr("split io 10 shift\n")) << "8 blocks of 79 tiles are even";
}

TEST(RegisterTile, PanelsAreSharedOutWhereOneTileHasAllRows) {
  const auto schedule = [](int64_t channels) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "matmul"
input x: f32[{0},3136] in [-1, 1]
const w: f32[{0},{0}] in [-1, 1]
t: f32[{0},3136] over i:{0}, j:3136 = sum k:{0} of w[i, k] * x[k, j]
output t
)",
                                                        channels));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=znver4 -threads=2");
    const Decisions none;
    Chooser chooser(&none);
    return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
  };
  EXPECT_THAT(schedule(13), HasSubstr("parallel jo_ioo\n")) << "13 rows are one tile, and one task";
  EXPECT_THAT(schedule(16), HasSubstr("parallel ioo\n")) << "two tiles, for two threads";
}

TEST(Chooser, ATileThatADefaultAsksForIsOnOfferIfItWastesLittle) {
  const Decisions none;
  Chooser chooser(&none);
  EXPECT_EQ(chooser.Tile("block", 33, 33, 17), 17) << "16 would make three blocks, which overlap by 15";
  EXPECT_EQ(chooser.Tile("block", 33, 8, 17), 8) << "but for the limit";
  EXPECT_EQ(chooser.Tile("block", 33, 33, 20), 16) << "two blocks of 20 would overlap by 7";
}

TEST(RegisterTile, PadsSmallWindowsOfWholeVectorsWhereTheyAreRead) {
  const auto schedule = [](int64_t channels, int64_t window, const Decisions& given) {
    const auto workload = ir::ParseWorkload(fmt::format(R"(workload "depthwise_conv2d"
input x: f32[14,14,{0}] in [-1, 1]
const w: f32[{1},{1},{0}] in [-1, 1]
p: f32[20,20,{0}] over v:20, h:20, d:{0} = select(v >= 1 && v < 15 && h >= 1 && h < 15, x[v - 1, h - 1, d], 0f32)
t: f32[14,14,{0}] over i:14, j:14, c:{0} = sum a:{1}, b:{1} of p[i + a, j + b, c] * w[a, b, c]
output t
)",
                                                        channels, window));
    const target::Target target = *target::ParseTarget("x86_64 -mcpu=sapphirerapids -threads=2");
    Chooser chooser(&given);
    return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
  };
  EXPECT_THAT(schedule(32, 3, {}), HasSubstr("inline p\n"));
  EXPECT_THAT(schedule(32, 3, {{"pad", 1, {}}}), HasSubstr("compute_at p "));
  EXPECT_THAT(schedule(32, 3, {{"pad", 0, {}}}), Not(AnyOf(HasSubstr("compute_at p "), HasSubstr("inline p\n"))));
  EXPECT_THAT(schedule(31, 3, {}), HasSubstr("compute_at p ")) << "every load has a mask of its own already";
  EXPECT_THAT(schedule(32, 5, {}), HasSubstr("compute_at p ")) << "too few rows for one tile's code";
  EXPECT_THAT(schedule(32, 5, {{"pad", 2, {}}}), HasSubstr("inline p\n"));
  EXPECT_THAT(schedule(32, 5, {}), HasSubstr("skip_padding tc\n")) << "rows of padding are not multiplied";
  EXPECT_THAT(schedule(32, 5, {{"skip", 0, {}}}), Not(HasSubstr("skip_padding")));
  EXPECT_THAT(schedule(32, 3, {}), Not(HasSubstr("skip_padding"))) << "written out, nothing is left to skip";
}

// A 3x3 depthwise convolution with channels last, and a product that sums over its channels. read: the element of the
// convolution that the product reads.
std::string Separable(const std::string& read, const std::string& outputs) {
  return fmt::format(R"(workload "separable_conv"
input x: f32[58,58,144] in [-1, 1]
const w: f32[3,3,144] in [-1, 1]
const v: f32[144,24] in [-1, 1]
t: f32[56,56,144] over i:56, j:56, c:144 = sum a:3, b:3 of x[i + a, j + b, c] * w[a, b, c]
u: f32[56,56,144] over ui:56, uj:56, uc:144 = max(t[ui, uj, uc], 0f32)
y: f32[56,56,24] over yi:56, yj:56, yo:24 = sum k:144 of {} * v[k, yo]
{})",
                     read, outputs);
}

std::string ScheduleOf(const std::string& text, const Decisions& given) {
  const auto workload = ir::ParseWorkload(text);
  const target::Target target = *target::ParseTarget("x86_64 -mcpu=znver4 -threads=2");
  Chooser chooser(&given);
  return schedule::Print(Build(*workload, target, ApplicableEntries(*workload, target), chooser).value().schedule);
}

TEST(RegisterTile, ADepthwiseConvolutionIsComputedBlockByBlockOfTheProductAfterIt) {
  const std::string text = Separable("u[yi, yj, k]", "output y\n");
  const std::string fused = ScheduleOf(text, {});
  EXPECT_THAT(fused, HasSubstr("parallel yioo\n"));
  EXPECT_THAT(fused, HasSubstr("compute_at u yioo\n")) << "what the product reads of one block, made there";
  EXPECT_THAT(fused, HasSubstr("compute_at t ujo\n")) << "in tiles of its own";
  EXPECT_EQ(fused.find("parallel"), fused.rfind("parallel")) << fused;
  for (const Decision& apart : {Decision{"y.pad", 0, {}}, Decision{"y.order", 0, {}}}) {
    const std::string schedule = ScheduleOf(text, {apart});
    EXPECT_THAT(schedule, Not(HasSubstr("compute_at u "))) << apart.name;
    EXPECT_NE(schedule.find("parallel"), schedule.rfind("parallel")) << "two loops for threads, as of two kernels";
  }
}

TEST(RegisterTile, NumbersThatAreZeroAreNoPaddingToSkip) {
  std::string text = Separable("u[yi, yj, k]", "output y\n");
  const std::string_view relu = "max(t[ui, uj, uc], 0f32)";
  text.replace(text.find(relu), relu.size(), "select(t[ui, uj, uc] > 0.5f32, t[ui, uj, uc], 0f32)");
  EXPECT_THAT(ScheduleOf(text, {{"y.rows", 1, {}}, {"y.skip", 1, {}}}), Not(HasSubstr("skip_padding")));
}

TEST(RegisterTile, ADepthwiseConvolutionWithOtherReadersIsNotComputedInTheProduct) {
  const std::string also = "z: f32[56,56,144] over zi:56, zj:56, zc:144 = u[zi, zj, zc] * 2f32\noutput y\noutput z\n";
  const std::string schedule = ScheduleOf(Separable("u[yi, yj, k]", also), {});
  EXPECT_NE(schedule.find("parallel"), schedule.rfind("parallel")) << schedule;
  const std::string shifted = ScheduleOf(Separable("u[55 - yi, yj, k]", "output y\n"), {});
  EXPECT_THAT(shifted, HasSubstr("compute_at u yioo\n")) << "rows in any order are rows";
}

// A candidate that turns out too large only after it was built is a lost trial of the search.
TEST_P(LaneSpaceTest, BuiltSchedulesFitTheTarget) {
  const ir::Workload workload = Parsed();
  target::Target target = Lanes();
  target.memory.shared_bytes = target.memory.default_shared_bytes = 4096;
  target.memory.shared_gain = 8;
  target.hierarchy.max_lanes = 64;
  Random random(17);
  for (int i = 0; i < 60; ++i) {
    Chooser chooser(nullptr, &random);
    const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
    if (!candidate.ok()) continue;
    const absl::Status lowered = execution::Lower(candidate->state, target, "k", {.verify = true}).status();
    EXPECT_THAT(std::string(lowered.message()), Not(AnyOf(HasSubstr("lanes; the target"), HasSubstr("shared memory"))))
        << Print(candidate->decisions);
  }
}

// Otherwise the default would be simpler than the space's preferred schedule.
TEST_P(LaneSpaceTest, PreferredDecisionsFitGroupsOfFewLanes) {
  const ir::Workload workload = Parsed();
  for (const char* text : {"cuda:sm_87 -lanes=32", "cuda:sm_87 -lanes=64"}) {
    const target::Target target = target::ParseTarget(text).value();
    const std::vector<const Entry*> fitting = ApplicableEntries(workload, target);
    for (const Entry* entry : fitting) {
      SCOPED_TRACE(fmt::format("{} {}", text, entry->name));
      const Decisions given = {{std::string(kSpaceDecision), entry->id, {}}};
      Chooser chooser(&given);
      const auto candidate = Build(workload, target, fitting, chooser);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      EXPECT_EQ(execution::Lower(candidate->state, target, "k").status(), absl::OkStatus())
          << schedule::Print(candidate->schedule);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workloads, LaneSpaceTest, ::testing::ValuesIn(tests::SmallWorkloads()),
                         [](const auto& info) { return info.param.name; });

// Convolutions that are too large for the interpreter, and therefore for SmallWorkloads.
struct LargeConv {
  int height, width, channels;
  bool channels_last;
};

class LargeConvTest : public ::testing::TestWithParam<LargeConv> {};

TEST_P(LargeConvTest, PreferredDecisionsLeadSomewhere) {
  const auto [h, w, c, last] = GetParam();
  const std::string x = last ? fmt::format("1,{},{},{}", h, w, c) : fmt::format("1,{},{},{}", c, h, w);
  const std::string p = last ? fmt::format("1,{},{},{}", h + 2, w + 2, c) : fmt::format("1,{},{},{}", c, h + 2, w + 2);
  const std::string text = fmt::format(
      R"(workload "conv2d"
input x: f32[{0}] in [-1, 1]
const w: f32[{2},{2},3,3] in [-1, 1]
p: f32[{1}] over p0:1, {3} = select(ph >= 1 && ph < {6} && pw >= 1 && pw < {7}, x[p0, {4}], 0f32)
t: f32[{0}] over n:1, {5} = sum ic:{2}, kh:3, kw:3 of p[n, {8}] * w[oc, ic, kh, kw]
output t
)",
      x, p, c,
      last ? fmt::format("ph:{}, pw:{}, pc:{}", h + 2, w + 2, c) : fmt::format("pc:{}, ph:{}, pw:{}", c, h + 2, w + 2),
      last ? "ph - 1, pw - 1, pc" : "pc, ph - 1, pw - 1",
      last ? fmt::format("h:{}, v:{}, oc:{}", h, w, c) : fmt::format("oc:{}, h:{}, v:{}", c, h, w), h + 1, w + 1,
      last ? "h + kh, v + kw, ic" : "ic, h + kh, v + kw");
  const auto workload = ir::ParseWorkload(text);
  ASSERT_TRUE(workload.ok()) << workload.status() << text;
  const target::Target target = target::ParseTarget("cpu -threads=2").value();
  Chooser chooser;
  const auto candidate = Build(*workload, target, ApplicableEntries(*workload, target), chooser);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  EXPECT_EQ(execution::Lower(candidate->state, target, "k").status(), absl::OkStatus())
      << schedule::Print(candidate->schedule);
}

INSTANTIATE_TEST_SUITE_P(OddAndEven, LargeConvTest,
                         ::testing::Values(LargeConv{257, 513, 16, true}, LargeConv{257, 513, 64, true},
                                           LargeConv{257, 513, 16, false}, LargeConv{257, 513, 64, false},
                                           LargeConv{256, 512, 64, true}, LargeConv{256, 512, 64, false},
                                           LargeConv{1080, 1920, 32, true}, LargeConv{1080, 1920, 32, false}));

INSTANTIATE_TEST_SUITE_P(Workloads, SpaceTest, ::testing::ValuesIn(tests::SmallWorkloads()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::space
