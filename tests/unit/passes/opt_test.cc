// SPDX-License-Identifier: Apache-2.0
#include "compiler/opt/opt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/opt/random_run.h"

namespace hone::opt {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kFunc[] = R"(func f(A: f32[4]) {
  unrolled i in 2 {
    A[i] = 1.0f32
  }
}
)";
constexpr char kUnrolled[] = R"(func f(A: f32[4]) {
  A[0] = 1.0f32
  A[1] = 1.0f32
}
)";
constexpr char kWorkload[] = R"(workload "relu"
input p0: f32[6] in [-1, 1]
t0: f32[6] over i0:6 = max(p0[i0], 0.0f32)
output t0
)";

std::string Message(const absl::StatusOr<std::string>& result) {
  return result.ok() ? "no error" : std::string(result.status().message());
}

std::string Result(std::string_view text, const OptOptions& options) {
  const absl::StatusOr<std::string> result = Opt(text, options);
  return result.ok() ? *result : Message(result);
}

TEST(Opt, RunsTheListOnAFunc) { EXPECT_EQ(Result(kFunc, {.passes = "unroll"}), kUnrolled); }

TEST(Opt, WithoutAListItPrintsWhatItRead) {
  EXPECT_EQ(Result(kFunc, {}), kFunc);
  EXPECT_EQ(Result(std::string(kWorkload) + "schedule\nunroll i0", {}),
            std::string(kWorkload) + "schedule\nunroll i0\n");
}

TEST(Opt, TakesTheListFromTheHeadAndStopsAtTheLine) {
  const std::string text = std::string("# run: passes=unroll\n# why not\n") + kFunc + "----\nnot a func\n";
  EXPECT_EQ(Result(text, {}), kUnrolled);
  EXPECT_EQ(Result(text, {.passes = "simplify"}), kFunc) << "what the caller says counts";
}

TEST(Opt, RunsEachOfSeveralFuncs) {
  EXPECT_EQ(Result(std::string(kFunc) + kFunc, {.passes = "unroll"}), std::string(kUnrolled) + kUnrolled);
}

TEST(Opt, SplitsAFuncIntoItsLaunchesOnce) {
  constexpr char kTwoNests[] = R"(func f(A: f32[4], B: f32[4]) {
  group i in 4 {
    A[i] = 1.0f32
  }
  group i in 4 {
    B[i] = A[i]
  }
}
)";
  const std::string split = Result(kTwoNests, {.passes = "split_launches"});
  EXPECT_THAT(split, HasSubstr("func f_0(A: f32[4])"));
  EXPECT_THAT(split, HasSubstr("func f_1("));
  EXPECT_THAT(Result(kTwoNests, {.passes = "split_launches,bind,barriers", .interpret = true}),
              HasSubstr("grid 4 lanes 1"));
  EXPECT_THAT(Result(kTwoNests, {.passes = "split_launches,split_launches"}), HasSubstr("twice"));
  EXPECT_THAT(Result(kTwoNests, {.passes = "split"}), HasSubstr("split_launches"));
}

TEST(Opt, LowersAWorkloadWithItsSchedule) {
  const std::string text = std::string(kWorkload) + "schedule\nsplit i0 4 peel\nvectorize i0i\n";
  EXPECT_THAT(Result(text, {.passes = "all"}), HasSubstr("ramp(i0o * 4, 1, 4)"));
  EXPECT_THAT(Result(text, {.passes = "build_loops"}), HasSubstr("vectorized i0i in min("));
  EXPECT_EQ(Result(text, {.passes = "all"}),
            Result(text, {.passes = "build_loops,simplify,peel,simplify,flatten,simplify,vectorize,unroll,simplify"}));
  EXPECT_THAT(Result(text, {.passes = "peel"}), HasSubstr("must begin with build_loops"));
  EXPECT_THAT(Result(kWorkload, {.passes = "build_loops"}), HasSubstr("for i0 in 6"));
}

TEST(Opt, ErrorsNameTheLineOfTheWholeText) {
  EXPECT_THAT(Result("# a comment\nfunc f(A: f32[4]) {\n  A[0] = 1\n}\n", {}), StartsWith("line 3, column 3: "));
  EXPECT_THAT(Result(std::string(kFunc) + "func g(A: f32[4]) {\n  B[0] = 1\n}\n", {}),
              StartsWith("line 7, column 3: "));
  EXPECT_THAT(Result(std::string(kWorkload) + "schedule\nsplit i0\n", {}), HasSubstr("schedule line 6: "));
  EXPECT_THAT(Result("graph\ninput x: f32[4]\ny: f32[4] = Relu(z)\n", {}), StartsWith("line 3, column 18: "));
}

TEST(Opt, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Result("hello\n", {}), "the text begins with 'hello'; it must begin with func, workload or graph");
  EXPECT_EQ(Result("", {}), "the text begins with ''; it must begin with func, workload or graph");
  EXPECT_THAT(Result(kFunc, {.passes = "unrol"}),
              HasSubstr("there are: simplify, peel, flatten, peel_ends, vectorize, unroll"));
  EXPECT_THAT(Result("graph\n", {.passes = "peel"}), HasSubstr("there are: lower_quantized_ops, fold_constants,"));
}

TEST(Opt, RefusesIllegalText) {
  EXPECT_THAT(Result("graph\ninput x: f32[4]\ny: f32[5] = Relu(x)\n", {}), HasSubstr("but the operator makes f32[4]"));
}

TEST(Opt, ShowsTheProgramBetweenPasses) {
  std::string said;
  const auto say = [&](std::string_view text) { said += text; };
  EXPECT_EQ(Result(kFunc, {.passes = "peel,unroll", .show = Show::kChanged, .say = say}), kUnrolled);
  EXPECT_EQ(said, std::string("# after peel (unchanged)\n# after unroll\n") + kUnrolled);
  said.clear();
  EXPECT_EQ(Result(kFunc, {.passes = "peel,unroll", .show = Show::kAll, .say = say}), kUnrolled);
  EXPECT_EQ(said, std::string("# after peel (unchanged)\n") + kFunc + "# after unroll\n" + kUnrolled);
}

TEST(Opt, SaysHowLongPassesTook) {
  std::string said;
  Result(kFunc, {.passes = "peel", .time_passes = true, .say = [&](std::string_view text) { said += text; }});
  EXPECT_THAT(said, testing::MatchesRegex("# peel: [0-9.]+ ms\n"));
}

TEST(Opt, InterpretsWithTheRangesOfTheWorkload) {
  // An index of 7 is within the table, and outside the values that are drawn for an input without a range.
  const std::string text = R"(workload "gather"
input table: f32[100] in [-1, 1]
input ids: i64[4] in [7, 99]
t: f32[4] over i:4 = table[ids[i] - 7]
output t
)";
  EXPECT_EQ(Message(Opt(text, {.passes = "all", .interpret = true})), "no error");
}

TEST(Opt, RefusesToInterpretTooLargeTensors) {
  EXPECT_THAT(Result("func f(A: f32[72057594037927936]) {\n}\n", {.interpret = true}),
              HasSubstr("a tensor of 72057594037927936 elements is too large to interpret"));
}

template <typename T>
Tensors OneElement(ir::DType dtype, T value) {
  Tensor tensor{.name = "x", .dtype = dtype, .bytes = ir::Bytes(sizeof value)};
  std::memcpy(tensor.bytes.data(), &value, sizeof value);
  return {tensor};
}

TEST(ExpectSame, IntegersAndToleranceZeroMeanEveryBit) {
  const int64_t large = int64_t{1} << 53;
  const auto integers = [&](int64_t value) { return OneElement(ir::DType::kInt64, value); };
  EXPECT_EQ(ExpectSame(integers(large), integers(large + 1), 1e-4).message(),
            "element 0 of x is 9007199254740993, should be 9007199254740992");
  const auto floats = [](float value) { return OneElement(ir::DType::kFloat32, value); };
  EXPECT_EQ(ExpectSame(floats(0.0F), floats(-0.0F), 0).message(), "element 0 of x is -0, should be 0");
  EXPECT_EQ(ExpectSame(floats(0.0F), floats(-0.0F), 1e-4), absl::OkStatus());
  EXPECT_EQ(ExpectSame(floats(1.0F), floats(1.00001F), 1e-4), absl::OkStatus());
  EXPECT_EQ(ExpectSame(floats(std::nanf("1")), floats(-std::nanf("2")), 0), absl::OkStatus());
}

}  // namespace
}  // namespace hone::opt
