// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "compiler/ir/workload.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

constexpr Type kF32{DType::kFloat32, 1};

// t[i] = sum over k of a[i, k]; the tests damage it.
class VerifyWorkload : public ::testing::Test {
 protected:
  VerifyWorkload() {
    a_ = MakeBuffer("a", DType::kFloat32, {4, 8});
    t_ = MakeBuffer("t", DType::kFloat32, {4});
    Stage stage{t_, {{"i", 4}}, {{"k", 8}}, Reduction::kSum, MakeLoad(a_, {MakeVar("i"), MakeVar("k")})};
    workload_ = Workload{"w", {}, {Param{a_}}, {stage}, {t_}};
  }

  std::string Verdict() const {
    const absl::Status status = Verify(workload_);
    return status.ok() ? "legal" : std::string(status.message());
  }
  Stage& stage() { return workload_.stages[0]; }

  Buffer a_, t_;
  Workload workload_;
};

TEST_F(VerifyWorkload, AcceptsALegalOne) { EXPECT_EQ(Verdict(), "legal"); }

TEST_F(VerifyWorkload, RejectsDuplicateNames) {
  workload_.params.push_back({MakeBuffer("t", DType::kFloat32, {1})});
  EXPECT_EQ(Verdict(), "workload \"w\": the name 't' is used twice");
}

TEST_F(VerifyWorkload, RejectsDuplicateAxes) {
  stage().reduce_axes[0].name = "i";
  EXPECT_EQ(Verdict(), "workload \"w\": stage 't': axis 'i' is defined twice");
}

TEST_F(VerifyWorkload, RejectsAxesOfOtherStages) {
  const Buffer u = MakeBuffer("u", DType::kFloat32, {4});
  workload_.stages.push_back({u, {{"j", 4}}, {}, Reduction::kNone, MakeLoad(t_, {MakeVar("i")})});
  EXPECT_THAT(Verdict(), HasSubstr("stage 'u': in 'i': variable 'i' is not bound here"));
}

TEST_F(VerifyWorkload, RejectsOrdersThatNoSortHas) {
  const Buffer a = MakeBuffer("a", DType::kInt64, {4, 8});
  const auto verdict = [&](DType dtype, Size places, std::vector<Axis> reduced, const Expr& value) {
    const Buffer t = MakeBuffer("t", dtype, {4, places});
    Stage stage{t, {{"i", 4}, {"p", places}}, std::move(reduced), Reduction::kOrder, value};
    workload_ = Workload{"w", {}, {Param{a}}, {std::move(stage)}, {t}};
    return Verdict();
  };
  const Expr i = MakeVar("i"), r = MakeVar("r"), pair = MakeLoad(a, {i, r});
  EXPECT_EQ(verdict(DType::kInt64, 8, {{"r", 8}}, pair), "legal");
  EXPECT_EQ(verdict(DType::kInt64, 3, {{"r", 8}}, pair), "legal");
  EXPECT_THAT(verdict(DType::kInt64, 9, {{"r", 8}}, pair), HasSubstr("order has 9 places for 8 values"));
  EXPECT_THAT(verdict(DType::kInt64, 8, {{"r", int64_t{1} << 31}}, i), HasSubstr("it takes up to 2^31 - 1 values"));
  EXPECT_THAT(verdict(DType::kInt64, 8, {{"r", 8}}, MakeLoad(a, {i, MakeVar("p")})),
              HasSubstr("must not depend on the place, axis 'p'"));
  EXPECT_THAT(verdict(DType::kInt64, 8, {{"r", 8}, {"s", 2}}, pair), HasSubstr("order needs one reduce axis"));
  EXPECT_THAT(verdict(DType::kInt32, 8, {{"r", 8}}, MakeCast({DType::kInt32, 1}, pair)),
              HasSubstr("order is possible for i64 only, not for i32"));
}

TEST_F(VerifyWorkload, RejectsShapesThatAreNotTheAxes) {
  stage().axes[0].extent = 5;
  EXPECT_THAT(Verdict(), HasSubstr("the extents of its axes must be the shape of its buffer"));
}

TEST_F(VerifyWorkload, RejectsReductionWithoutAxesAndTheReverse) {
  stage().reduction = Reduction::kNone;
  EXPECT_THAT(Verdict(), HasSubstr("a reduction needs reduce axes"));
  stage().reduction = Reduction::kSum;
  stage().reduce_axes.clear();
  stage().value = MakeFloat(kF32, 0);
  EXPECT_THAT(Verdict(), HasSubstr("a reduction needs reduce axes"));
}

TEST_F(VerifyWorkload, RejectsReductionsTheTypeCannotDo) {
  for (DType dtype : {DType::kBool, DType::kFloat16}) {
    t_ = MakeBuffer("t", dtype, {4});
    stage().buffer = t_;
    stage().value = MakeZero({dtype, 1});
    workload_.outputs = {t_};
    EXPECT_THAT(Verdict(), HasSubstr("reduction sum is not possible for"));
  }
  stage().reduction = Reduction::kMax;
  EXPECT_THAT(Verdict(), HasSubstr("reduction max is not possible for f16"));
}

TEST_F(VerifyWorkload, RejectsValuesOfAnotherType) {
  stage().value = MakeVar("i");
  EXPECT_THAT(Verdict(), HasSubstr("its value is i64, but its buffer holds f32"));
  stage().value = Expr();
  EXPECT_THAT(Verdict(), HasSubstr("an expression is missing"));
}

TEST_F(VerifyWorkload, RejectsLoadsOutOfOrder) {
  stage().value = MakeLoad(t_, {MakeVar("i")});
  EXPECT_THAT(Verdict(), HasSubstr("load of 't', which is neither"));
}

TEST_F(VerifyWorkload, RejectsFlatLoadsMasksAndVectors) {
  stage().value = MakeLoad(a_, {MakeVar("i")});
  EXPECT_THAT(Verdict(), HasSubstr("with 1 indices for 2 dimensions"));
  stage().value = MakeLoad(a_, {0, 0}, MakeBool(true));
  EXPECT_THAT(Verdict(), HasSubstr("loads in a workload must not have masks"));
  stage().value = MakeBroadcast(MakeFloat(kF32, 1), 4);
  EXPECT_THAT(Verdict(), HasSubstr("expressions in a workload must be scalars"));
}

TEST_F(VerifyWorkload, RejectsArithmeticInStorageTypes) {
  const Buffer h = MakeBuffer("h", DType::kFloat16, {4});
  workload_.params.push_back({h});
  stage().value = MakeCast(kF32, MakeLoad(h, {0}) + MakeLoad(h, {1}));
  EXPECT_THAT(Verdict(), HasSubstr("computes in a type that is only for storage"));
}

TEST_F(VerifyWorkload, RejectsBadOutputs) {
  workload_.outputs = {a_};
  EXPECT_THAT(Verdict(), HasSubstr("output 'a' is not a stage"));
  workload_.outputs = {t_, t_};
  EXPECT_THAT(Verdict(), HasSubstr("output 't' is listed twice"));
  workload_.outputs = {nullptr};
  EXPECT_THAT(Verdict(), HasSubstr("an output is missing"));
  workload_.outputs = {};
  EXPECT_THAT(Verdict(), HasSubstr("it has no output"));
}

TEST_F(VerifyWorkload, RejectsBadRanges) {
  workload_.params[0].low = 2;
  EXPECT_THAT(Verdict(), HasSubstr("the range of 'a' is [2, 1]; its ends must be finite, the low end first"));
  workload_.params[0].low = -std::numeric_limits<double>::infinity();
  EXPECT_THAT(Verdict(), HasSubstr("the range of 'a' is [-inf, 1]"));
}

TEST_F(VerifyWorkload, RejectsBadBuffers) {
  workload_.params.push_back({MakeBuffer("huge", DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40})});
  EXPECT_THAT(Verdict(), HasSubstr("'huge' has more than 2^56 elements"));
  workload_.params[1].buffer = nullptr;
  EXPECT_THAT(Verdict(), HasSubstr("a parameter has no buffer"));
  workload_.params.pop_back();
  stage().buffer = nullptr;
  EXPECT_THAT(Verdict(), HasSubstr("a stage has no buffer"));
}

}  // namespace
}  // namespace hone::ir
