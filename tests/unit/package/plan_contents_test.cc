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

graph::Plan PlanOfProductsAndSoftmaxes() {
  return graph::BuildPlan(graph::ParseGraph(R"(graph
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
}

// Matrix products run on an OpenCL device, and softmaxes on a CPU.
PlanContents ContentsOnTwoTargets(const graph::Plan& plan) {
  KernelOptions options{.target = target::TypicalTarget(target::Kind::kOpenCl), .threads = 1};
  options.other_units = {{target::ParseTarget("x86_64 -mcpu=haswell").value(), nullptr}};
  options.placement.by_operator["softmax"] = 1;
  const auto kernels = CompileKernels(plan.workloads, options);
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  PackageProgram start;
  start.units = {{.kind = CodeKind::kOpenCl}, {.kind = CodeKind::kX86_64}};
  for (const CompiledKernel& kernel : *kernels) start.kernel_units.push_back(static_cast<uint32_t>(kernel.unit));
  AssignHomes(start);
  absl::StatusOr<PlanContents> contents = BuildContents(plan, *kernels, 1, std::move(start));
  EXPECT_TRUE(contents.ok()) << contents.status();
  EXPECT_TRUE(PlanArena(contents->program).ok());
  return *std::move(contents);
}

TEST(PlanContentsTest, ATensorThatAnotherHomeReadsCrossesOneBorder) {
  const PlanContents contents = ContentsOnTwoTargets(PlanOfProductsAndSoftmaxes());
  const PackageProgram& program = contents.program;
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
  EXPECT_EQ(program.arena_bytes.size(), 2u);
}

// c is that of the product or that of the softmax, as a run decides.
TEST(PlanContentsTest, BranchesOfSeveralTargetsWriteOneTensor) {
  graph::Plan plan = PlanOfProductsAndSoftmaxes();
  ASSERT_EQ(plan.calls.size(), 4u);
  using graph::ActionKind;
  plan.actions = {{.kind = ActionKind::kJumpIfZero, .call = 2, .value = ir::Size(0), .destination = 2},
                  {.kind = ActionKind::kJump, .call = 3, .destination = 3},
                  {.kind = ActionKind::kLabel, .call = 3},
                  {.kind = ActionKind::kLabel, .call = 4}};
  plan.calls[3].arguments.back() = plan.calls[2].arguments.back();
  plan.outputs.erase(plan.outputs.begin() + 2);
  const PlanContents contents = ContentsOnTwoTargets(plan);
  const PackageProgram& program = contents.program;
  ASSERT_EQ(program.borders.size(), 3u);
  EXPECT_EQ(program.borders[0].source, program.borders[2].source);
  EXPECT_NE(program.borders[0].target, program.borders[2].target) << "a copy is not used after a jump";
  EXPECT_EQ(program.borders[2].call, 3u);
  EXPECT_EQ(program.calls[3].arguments[0], program.borders[2].target);
  const TensorId c = program.outputs[1], written = program.calls[3].arguments.back();
  EXPECT_EQ(program.tensors[c].home, 0u);
  EXPECT_EQ(program.calls[2].arguments.back(), c);
  EXPECT_EQ(program.tensors[written].home, 1u);
  ASSERT_EQ(program.actions.size(), 5u);
  EXPECT_EQ(program.actions[0].destination, 2u);
  EXPECT_EQ(program.actions[1].destination, 4u) << "the copy is not done after the other branch";
  EXPECT_EQ(program.actions[3].op, ActionOp::kCopy);
  EXPECT_EQ(program.actions[3].call, 4u);
  EXPECT_EQ(program.actions[3].source, written);
  EXPECT_EQ(program.actions[3].target, c);
}

}  // namespace
}  // namespace hone::package
