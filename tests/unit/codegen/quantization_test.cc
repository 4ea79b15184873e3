// SPDX-License-Identifier: Apache-2.0
// Quantizations as code of CPUs: the integers of the interpreter, and few instructions.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/codegen/kernel.h"
#include "compiler/ir/text.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"
#include "tests/unit/codegen/assembly.h"
#include "tests/unit/space/compiled.h"

namespace hone::codegen {
namespace {

using target::ParseTarget;
using ::testing::HasSubstr;

// min(max(round(x) + offset, low), high) as an integer type.
struct Form {
  const char *type, *offset, *low, *high;
};

ir::Workload Quantizing(const Form& form, const char* number) {
  const std::string text = fmt::format(R"(workload "elementwise"
input x: i32[160,45] in [-2147483648, 2147483647]
t: {0}[160,45] over i:160, j:45 = {0}(min(max(round({1}){2}, {3}.0f32), {4}.0f32))
output t
)",
                                       form.type, number, form.offset, form.low, form.high);
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  return workload.value_or(ir::Workload{});
}

// Numbers of all magnitudes, infinities and NaNs; then halves. The last two forms are no quantizations.
TEST(Quantizations, AgreeWithTheInterpreter) {
  const Form forms[] = {{"u8", " + 3.0f32", "0", "255"},
                        {"u8", "", "0", "255"},
                        {"u8", " + f32(200u8)", "0", "255"},
                        {"i8", " + -7.0f32", "-128", "127"},
                        {"i8", "", "-128", "127"},
                        {"u16", " + 40000.0f32", "0", "65535"},
                        {"i16", " + 1.0f32", "-32768", "32767"},
                        {"i8", " + 0.5f32", "-128", "127"},
                        {"i8", " + 2.0f32", "-100", "127"}};
  const target::Target target = ParseTarget("cpu").value();
  for (const Form& form : forms) {
    for (const char* number : {"reinterpret<f32>(x[i, j])", "(f32(x[i, j] %% 1001i32) * 0.5f32)"}) {
      const ir::Workload workload = Quantizing(form, number);
      const auto candidate = space::Default(workload, target);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      for (const schedule::Schedule& schedule : {candidate->schedule, schedule::Schedule()}) {
        EXPECT_EQ(hone::tests::CheckCompiled(workload, schedule, target, {.apart = 0}), absl::OkStatus())
            << form.type << form.offset;
      }
    }
  }
}

TEST(Quantizations, RoundAndConvertInOneInstruction) {
  const std::string assembly = AssemblyOfFunc(
      "func f(A: f32[16], B: u8[16]) { B[ramp(0, 1, 16)] = u8x16(min(max(round(A[ramp(0, 1, 16)]) + "
      "broadcast(3.0f32, 16), broadcast(0.0f32, 16)), broadcast(255.0f32, 16))) }",
      "x86_64 -mcpu=znver4");
  EXPECT_THAT(assembly, HasSubstr("vcvtps2dq"));
  EXPECT_THAT(assembly, ::testing::Not(HasSubstr("vrndscaleps")));
}

// LLVM 19 cannot round vectors for every CPU.
TEST(Quantizations, CompileForAllCpus) {
  for (const char* cpu : {"arm", "arm64 -mcpu=cortex-a76", "x86_64 -mcpu=haswell", "x86_64"}) {
    const target::Target target = ParseTarget(cpu).value();
    const ir::Workload workload = Quantizing({"u8", " + 3.0f32", "0", "255"}, "(f32(x[i, j]) * 0.5f32)");
    const auto candidate = space::Default(workload, target);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    EXPECT_TRUE(CompileKernel(workload, candidate->schedule, target, "k").ok()) << cpu;
  }
}

}  // namespace
}  // namespace hone::codegen
