// SPDX-License-Identifier: Apache-2.0
#include "tuner/pretrained.h"

#include <gtest/gtest.h>

#include "compiler/ir/workload.h"
#include "compiler/schedule/apply.h"
#include "compiler/schedule/step.h"

namespace hone::tuner {
namespace {

constexpr char kReluMatMul[] = R"(workload "matmul"
input x: f32[128,512] in [-1, 1]
const w: f32[512,256] in [-1, 1]
t: f32[128,256] over i:128, j:256 = sum k:512 of x[i, k] * w[k, j]
u: f32[128,256] over ui:128, uj:256 = max(t[ui, uj], 0f32)
output u
)";
// A register tile for threads, the same without vectors, and naive loops.
constexpr const char* kFastestFirst[] = {
    "pack w t 1/32 0 1%32\nsplit uj 32 mask\nsplit uji 16 mask\nsplit ui 8 shift\nreorder uio ujo uii ujio ujii\n"
    "unroll uii\nunroll ujio\nvectorize ujii\nparallel uio\ncompute_at t ujo\nsplit j 16 mask\n"
    "reorder k i jo ji\nunroll i\nunroll jo\nvectorize ji\n",
    "split uj 32 mask\nsplit ui 8 shift\nreorder uio ujo uii uji\nparallel uio\ncompute_at t ujo\n", ""};

target::Target SomeCpu() { return *target::ParseTarget("x86_64 -mcpu=znver4 -threads=2"); }

Features FeaturesOf(const char* schedule) {
  schedule::State state = schedule::InitialState(ir::ParseWorkload(kReluMatMul).value());
  const schedule::Schedule steps = schedule::ParseSchedule(schedule).value();
  for (const schedule::Step& step : steps) {
    EXPECT_EQ(schedule::Apply(step, state), absl::OkStatus());
  }
  return ExtractFeatures(state, SomeCpu());
}

TEST(PretrainedTest, KnowsACpusKernels) {
  const auto model = PretrainedModel(SomeCpu());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_NE(*model, nullptr);
  std::vector<Features> features;
  std::vector<const Features*> candidates;
  for (const char* schedule : kFastestFirst) features.push_back(FeaturesOf(schedule));
  for (const Features& f : features) candidates.push_back(&f);
  const std::vector<double> scores = (*model)->Score(candidates);
  EXPECT_GT(scores[0], scores[1]);
  EXPECT_GT(scores[1], scores[2]);
}

TEST(PretrainedTest, SaysNothingOfLanes) {
  const auto model = PretrainedModel(*target::ParseTarget("cuda:sm_90"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(*model, nullptr);
}

// The trees are only valid for features with the meaning that they were trained on.
TEST(PretrainedTest, FeaturesAreThoseThatItWasTrainedOn) {
  double sum = 0;
  for (const char* schedule : kFastestFirst) {
    const Features features = FeaturesOf(schedule);
    for (size_t i = 0; i < features.size(); ++i) sum += static_cast<double>(i + 1) * features[i];
  }
  EXPECT_NEAR(sum, 174327.1, 1)
      << "train the model anew (docs/TESTING.md, \"The pretrained model\"), then put this here";
}

}  // namespace
}  // namespace hone::tuner
