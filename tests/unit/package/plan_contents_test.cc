// SPDX-License-Identifier: Apache-2.0
// Tests of BuildContents: the tensors and calls that it makes from a plan and its kernels.
#include "deploy/package/plan_contents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/graph/plan.h"
#include "compiler/graph/text.h"
#include "compiler/target/target.h"

namespace hone::package {
namespace {

TEST(PlanContentsTest, LayersThatShareWeightsSharePackedOnes) {
  constexpr int kLayers = 50;
  std::string text = "graph\ninput a0: f32[4,16]\nconst w: f32[16,16] = omitted \"w\"\n";
  for (int i = 0; i < kLayers; ++i) text += fmt::format("a{}: f32[4,16] = MatMul(a{}, w)\n", i + 1, i);
  text += fmt::format("output a{} as \"y\"\n", kLayers);
  const graph::Plan plan = graph::BuildPlan(graph::ParseGraph(text).value()).value();
  ASSERT_EQ(plan.workloads.size(), 1u);
  const KernelOptions options{
      .target = target::ParseTarget("cpu").value(),
      .lookup = [](const std::string&) -> absl::StatusOr<std::vector<RecordedSchedule>> {
        return std::vector<RecordedSchedule>{{.schedule = "pack p1 t0 1/4 0 1%4\n", .provenance = "this test"}};
      },
      .threads = 1,
      .pinned = true};
  const auto kernels = CompileKernels(plan.workloads, options);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const absl::StatusOr<PlanContents> contents = BuildContents(plan, *kernels, 1);
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->packed.size(), 1u);
  ASSERT_EQ(contents->program.calls.size(), static_cast<size_t>(kLayers));
  for (const PackageCall& call : contents->program.calls) {
    EXPECT_TRUE(std::any_of(call.arguments.begin(), call.arguments.end(), [&](TensorId id) {
      return id != kNoTensor && contents->program.tensors[id].data.data() == contents->packed[0].bytes().data();
    }));
  }
}

}  // namespace
}  // namespace hone::package
