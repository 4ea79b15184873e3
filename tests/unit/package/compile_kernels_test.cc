// SPDX-License-Identifier: Apache-2.0
// Tests of CompileKernels when schedules cannot be compiled.
#include "deploy/package/compile_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/codegen/kernel.h"
#include "compiler/execution/model.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"

namespace hone::package {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ir::Workload MatMul() {
  return ir::ParseWorkload(R"(workload "matmul"
input x: f32[24,32] in [-1, 1]
const w: f32[32,64] in [-1, 1]
t: f32[24,64] over i:24, j:64 = sum k:32 of x[i, k] * w[k, j]
output t
)")
      .value();
}

// Compiles a kernel for the workload. The first `failures` attempts to compile it fail, each in its first pass.
absl::StatusOr<CompiledKernel> CompileAfterFailures(const ir::Workload& workload, int failures) {
  KernelOptions options{.target = target::ParseTarget("x86_64 -mcpu=haswell").value(), .threads = 1};
  options.after_pass = [&failures](const PassRun&, const ir::Func&) {
    return failures-- > 0 ? absl::InternalError("planted") : absl::OkStatus();
  };
  auto kernels = CompileKernels({&workload, 1}, options);
  if (!kernels.ok()) return kernels.status();
  return std::move(kernels->front());
}

// The code of a schedule that is compiled with LLVM's standard passes (Effort::kReference).
std::string ReferenceCode(const ir::Workload& workload, const schedule::Schedule& schedule, const std::string& name) {
  const codegen::CompileOptions options{.effort = codegen::Effort::kReference, .prepares = false};
  const target::Target target = target::ParseTarget("x86_64 -mcpu=haswell").value();
  return codegen::CompileKernel(workload, schedule, target, name, options).value().code;
}

TEST(CompileKernelsTest, LoopsInPlaceOfADefaultThatDoesNotWorkAreVectorizedByLlvm) {
  const ir::Workload workload = MatMul();
  const target::Target target = target::ParseTarget("x86_64 -mcpu=haswell").value();
  const schedule::Schedule schedules[] = {execution::ModelOf(target).reference_schedule(workload, target),
                                          execution::ModelOf(target).naive_schedule(workload, target)};
  ASSERT_NE(schedule::Print(schedules[0]), schedule::Print(schedules[1]));
  for (int failures : {1, 2}) {
    const auto kernel = CompileAfterFailures(workload, failures);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const schedule::Schedule& schedule = schedules[failures - 1];
    EXPECT_THAT(kernel->warnings, ElementsAre(HasSubstr("planted")));
    EXPECT_EQ(kernel->schedule, schedule::Print(schedule));
    EXPECT_EQ(kernel->kernel.code, ReferenceCode(workload, schedule, kernel->kernel.interface.name));
  }
}

TEST(CompileKernelsTest, ReportsWhyEveryScheduleFailed) {
  const auto kernel = CompileAfterFailures(MatMul(), 3);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(kernel.status().message()), HasSubstr("planted"));
}

// Options of a program that an OpenCL device and a CPU share.
KernelOptions OpenClAndCpu() {
  KernelOptions options{.target = target::TypicalTarget(target::Kind::kOpenCl), .threads = 1};
  options.other_units = {{target::ParseTarget("x86_64 -mcpu=haswell").value(), nullptr}};
  return options;
}

TEST(PlacementTest, TheFirstTargetThatCanTakesTheWorkload) {
  KernelOptions options = OpenClAndCpu();
  const ir::Workload workload = MatMul();
  const auto first = CompileKernels({&workload, 1}, options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->front().unit, 0);
  EXPECT_THAT(first->front().warnings, ElementsAre());
  EXPECT_GT(first->front().kernel.interface.main[0].lanes, 0);

  int failures = 2;  // the default schedule and plain loops for OpenCL
  options.after_pass = [&failures](const PassRun&, const ir::Func&) {
    return failures-- > 0 ? absl::InternalError("planted") : absl::OkStatus();
  };
  const auto second = CompileKernels({&workload, 1}, options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->front().unit, 1);
  EXPECT_THAT(second->front().warnings, ElementsAre(HasSubstr("runs on cpu: opencl cannot compile it: ")));
  EXPECT_EQ(second->front().kernel.interface.main[0].lanes, 0);
}

TEST(PlacementTest, IfNoTargetCanEachIsToldWhy) {
  KernelOptions options = OpenClAndCpu();
  options.after_pass = [](const PassRun&, const ir::Func&) { return absl::InternalError("planted"); };
  const ir::Workload workload = MatMul();
  const absl::Status status = CompileKernels({&workload, 1}, options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("no target can compile it: opencl cannot compile it: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; cpu cannot compile it: "));
}

TEST(PlacementTest, ADigestAndAnOperatorSayWhereAWorkloadRuns) {
  const ir::Workload workload = MatMul();
  KernelOptions options = OpenClAndCpu();
  options.placement.by_operator["matmul"] = 1;
  EXPECT_EQ(CompileKernels({&workload, 1}, options)->front().unit, 1);
  options.placement.by_digest[ir::WorkloadDigest(workload)] = 0;
  EXPECT_EQ(CompileKernels({&workload, 1}, options)->front().unit, 0);
  options.placement.by_operator["softmax"] = 1;
  EXPECT_THAT(std::string(CompileKernels({&workload, 1}, options).status().message()),
              HasSubstr("no kernel of the model has the operator 'softmax' to place; it has matmul"));
}

// A record that cannot be read says nothing about the target.
TEST(PlacementTest, AFailedLookupIsNoReasonForAnotherTarget) {
  KernelOptions options = OpenClAndCpu();
  options.lookup = [](const std::string&) -> absl::StatusOr<std::vector<RecordedSchedule>> {
    return absl::UnavailableError("the tracker is gone");
  };
  const ir::Workload workload = MatMul();
  EXPECT_TRUE(absl::IsUnavailable(CompileKernels({&workload, 1}, options).status()));
}

}  // namespace
}  // namespace hone::package
