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
#include "deploy/package/memory_plan.h"

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

// Matrix products run on an OpenCL device, and softmaxes on a CPU.
TEST(PlanContentsTest, ATensorThatAnotherHomeReadsCrossesOneBorder) {
  const graph::Plan plan = graph::BuildPlan(graph::ParseGraph(R"(graph
input x: f32[4,16]
const w: f32[16,16] = omitted "w"
a: f32[4,16] = MatMul(x, w)
b: f32[4,16] = Softmax(a)
c: f32[4,16] = MatMul(b, w)
d: f32[4,16] = Softmax(a)
output b as "b"
output c as "c"
output d as "d"
output x as "e"
)")
                                                .value())
                               .value();
  KernelOptions options{.target = target::TypicalTarget(target::Kind::kOpenCl), .threads = 1};
  options.other_units = {{target::ParseTarget("x86_64 -mcpu=haswell").value(), nullptr}};
  options.placement.by_operator["softmax"] = 1;
  const auto kernels = CompileKernels(plan.workloads, options);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  PackageProgram start;
  start.units = {{.kind = CodeKind::kOpenCl}, {.kind = CodeKind::kX86_64}};
  for (const CompiledKernel& kernel : *kernels) start.kernel_units.push_back(static_cast<uint32_t>(kernel.unit));
  AssignHomes(start);
  absl::StatusOr<PlanContents> contents = BuildContents(plan, *kernels, 1, std::move(start));
  ASSERT_TRUE(contents.ok()) << contents.status();
  PackageProgram& program = contents->program;
  ASSERT_EQ(program.calls.size(), 4u);
  ASSERT_EQ(program.borders.size(), 2u);
  const PackageBorder &of_a = program.borders[0], &of_b = program.borders[1];
  EXPECT_EQ(of_a.call, 1u);
  EXPECT_EQ(program.tensors[of_a.source].home, 0u);
  EXPECT_EQ(program.tensors[of_a.target].home, 1u);
  EXPECT_EQ(program.calls[1].arguments[0], of_a.target);
  EXPECT_EQ(program.calls[3].arguments[0], of_a.target) << "the second reader finds it there";
  EXPECT_EQ(of_b.call, 2u);
  EXPECT_EQ(program.tensors[of_b.source].name, "b") << "an output crosses, too";
  EXPECT_EQ(program.tensors[of_b.source].kind, TensorKind::kOutput);
  EXPECT_EQ(program.tensors[of_b.target].kind, TensorKind::kIntermediate);
  EXPECT_EQ(program.tensors[program.outputs[1]].home, 0u);
  EXPECT_EQ(program.tensors[program.outputs[2]].home, 1u);
  ASSERT_EQ(program.copies.size(), 1u);
  EXPECT_EQ(program.tensors[program.copies[0].target].home, 1u) << "an input is copied in this process";
  ASSERT_TRUE(PlanArena(program).ok());
  EXPECT_EQ(program.arena_bytes.size(), 2u);
}

}  // namespace
}  // namespace hone::package
