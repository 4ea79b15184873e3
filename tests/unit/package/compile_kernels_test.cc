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

}  // namespace
}  // namespace hone::package
