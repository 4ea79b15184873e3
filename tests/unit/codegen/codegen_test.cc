// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/codegen.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "base/temporary_folder.h"
#include "compiler/codegen/kernel.h"
#include "compiler/codegen/llvm/setup.h"
#include "compiler/execution/model.h"
#include "compiler/ir/text.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "compiler/target/cpu.h"
#include "compiler/target/microarchitectures.h"
#include "compiler/target/target.h"
#include "tests/unit/codegen/assembly.h"
#include "tests/unit/space/compiled.h"

namespace hone::codegen {
namespace {

using target::ParseTarget;
using target::Target;
using ::testing::HasSubstr;
using ::testing::StartsWith;

bool KnowsCpu(const Target& target) {
  return MakeTargetMachine(target)->getMCSubtargetInfo()->isCPUStringValid(target.cpu);
}

std::string HostCpuName() { return llvm::sys::getHostCPUName().str(); }

std::vector<std::string> HostFeatureNames() {
  std::vector<std::string> names;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    if (feature.getValue()) names.push_back(feature.getKey().str());
  }
  return names;
}

// One element-wise expression of x (and y), its types and the range of the inputs. Vector code must compute the same as
// the interpreter, which calls the C library.
struct Expression {
  const char* type;
  const char* text;
  double low, high;
  const char* result = nullptr;  // type; that of x if null
};

class ExpressionTest : public ::testing::TestWithParam<Expression> {};

ir::Workload Elementwise(const Expression& e, int rows = 3) {
  const std::string text = fmt::format(R"(workload "elementwise"
input x: {0}[{5},45] in [{2}, {3}]
input y: {0}[{5},45] in [{2}, {3}]
t: {4}[{5},45] over i:{5}, j:45 = {1}
output t
)",
                                       e.type, e.text, e.low, e.high, e.result != nullptr ? e.result : e.type, rows);
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  return workload.value_or(ir::Workload{});
}

// Functions of libgcc that code for 32-bit Arm may call: those that libgcc_s.so.1 exports.
constexpr const char* kLibgcc[] = {"__aeabi_ldivmod", "__aeabi_uldivmod", "__aeabi_f2lz", "__aeabi_f2ulz",
                                   "__aeabi_d2lz",    "__aeabi_d2ulz",    "__aeabi_l2f",  "__aeabi_ul2f",
                                   "__aeabi_l2d",     "__aeabi_ul2d",     "__aeabi_lmul", "__aeabi_llsl",
                                   "__aeabi_llsr",    "__aeabi_lasr"};

// Names that the assembly calls, without the C library's.
std::set<std::string> CalledHelpers(const std::string& assembly) {
  std::set<std::string> names;
  std::stringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("\tbl\t__")) names.insert(line.substr(4));
  }
  return names;
}

// LLVM ends the process if it cannot select an instruction.
void CompileFor32BitArm(const ir::Workload& workload) {
  for (const char* text : {"arm -mcpu=cortex-a7", "arm -mcpu=cortex-a53"}) {
    const Target target = ParseTarget(text).value();
    const auto candidate = space::Default(workload, target);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const auto module = execution::Lower(candidate->state, target, "kernel");
    ASSERT_TRUE(module.ok()) << module.status();
    for (const Effort effort : {Effort::kKernel, Effort::kReference}) {
      const auto assembly = Emit(module->main, target, effort, Output::kAssembly);
      ASSERT_TRUE(assembly.ok()) << assembly.status();
      EXPECT_THAT(CalledHelpers(*assembly), ::testing::IsSubsetOf(kLibgcc)) << text;
    }
  }
}

TEST_P(ExpressionTest, CompilesFor32BitArm) { CompileFor32BitArm(Elementwise(GetParam())); }

TEST_P(ExpressionTest, VectorCodeAgreesWithTheInterpreter) {
  const ir::Workload workload = Elementwise(GetParam());
  const Target target = ParseTarget("cpu").value();
  const auto candidate = space::Default(workload, target);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  EXPECT_EQ(hone::tests::CheckCompiled(workload, candidate->schedule, target, {1e-6}), absl::OkStatus())
      << GetParam().text;
  // Unscheduled loops give scalar code.
  EXPECT_EQ(hone::tests::CheckCompiled(workload, {}, target, {1e-6}), absl::OkStatus()) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    F32, ExpressionTest,
    ::testing::Values(
        Expression{"f32", "exp(x[i, j])", -80, 80}, Expression{"f32", "exp(x[i, j])", -1, 1},
        Expression{"f32", "exp(x[i, j])", -120, -70}, Expression{"f32", "exp(x[i, j] * 1e37f32)", -90, 90},
        Expression{"f32", "exp(log(x[i, j]))", -2, 2}, Expression{"f32", "exp(x[i, j] / 0f32)", -1, 1},
        Expression{"f32", "log(x[i, j])", 0.0001, 3}, Expression{"f32", "log(x[i, j])", 1, 1e30},
        Expression{"f32", "log(x[i, j] * 1e-38f32)", 0.001, 1}, Expression{"f32", "log(0f32 * x[i, j])", 1, 2},
        Expression{"f32", "log(x[i, j])", -2, -1}, Expression{"f32", "tanh(x[i, j])", -12, 12},
        Expression{"f32", "tanh(x[i, j])", -0.01, 0.01}, Expression{"f32", "erf(x[i, j])", -4, 4},
        Expression{"f32", "erf(x[i, j])", -0.01, 0.01}, Expression{"f32", "sigmoid(x[i, j])", -90, 90},
        Expression{"f32", "pow(x[i, j], y[i, j])", 0.1, 4}, Expression{"f32", "sin(x[i, j]) + cos(y[i, j])", -9, 9},
        Expression{"f32", "sin(x[i, j]) + cos(y[i, j])", -1e6, 1e6}, Expression{"f32", "sin(x[i, j])", -1e15, 1e20},
        Expression{"f32", "cos(x[i, j] / 0f32)", -1, 1}, Expression{"f32", "1f32 / sin(x[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / tanh(x[i, j] * 0f32)", -1, 1}, Expression{"f32", "1f32 / tan(x[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / atan(x[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / asin(x[i, j] * 0f32)", -1, 1}, Expression{"f32", "1f32 / erf(x[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / sinh(x[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / asinh(x[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / atanh(x[i, j] * 0f32)", -1, 1}, Expression{"f32", "tan(x[i, j])", -9, 9},
        Expression{"f32", "tan(x[i, j])", -1e18, 1e18}, Expression{"f32", "asin(x[i, j])", -1.1, 1.1},
        Expression{"f32", "acos(x[i, j])", -1.1, 1.1}, Expression{"f32", "asin(x[i, j])", -0.001, 0.001},
        Expression{"f32", "acos(x[i, j])", 0.999, 1}, Expression{"f32", "atan(x[i, j] / 0f32)", -1, 1},
        Expression{"f32", "atan(x[i, j])", -0.001, 0.001}, Expression{"f32", "sinh(x[i, j]) + cosh(y[i, j])", -9, 9},
        Expression{"f32", "asinh(x[i, j])", -9, 9}, Expression{"f32", "acosh(x[i, j]) + atanh(y[i, j])", 0.5, 1.5},
        Expression{"f32", "cosh(x[i, j])", -99, 99}, Expression{"f32", "pow(x[i, j], floor(y[i, j]))", -4, 4},
        Expression{"f32", "pow(x[i, j], 200f32)", -4, 4},
        Expression{"f32", "f32(pow(f64(x[i, j]), f64(y[i, j])))", 0.1, 4},
        Expression{"f32", "f32(pow(f64(x[i, j]), f64(i64(y[i, j] * 3f32))))", -4, 4},
        Expression{"f32", "f32(pow(f64(x[i, j]) * 1e200f64, f64(i64(y[i, j])) + 0.125f64))", -1, 1},
        Expression{"f32", "atan(x[i, j])", -9, 9}, Expression{"f32", "sqrt(x[i, j])", 0, 9},
        Expression{"f32", "max(x[i, j], y[i, j])", -1, 1},
        Expression{"f32", "min(x[i, j] / (x[i, j] - x[i, j]), 3f32)", -1, 1},
        Expression{"f32", "max(log(x[i, j]), 0f32)", -1, 1}, Expression{"f32", "min(1f32, log(x[i, j]))", -1, 1},
        Expression{"f32", "max(log(x[i, j]), y[i, j])", -1, 1}, Expression{"f32", "x[i, j] % y[i, j]", -9, 9},
        Expression{"f32", "round(x[i, j] * 2f32)", -5, 5}, Expression{"f32", "floor(x[i, j]) + ceil(y[i, j])", -5, 5},
        Expression{"f32", "fma(x[i, j], y[i, j], 1f32)", -5, 5}, Expression{"f32", "i32(x[i, j])", -3e9, 3e9, "i32"},
        Expression{"f32", "u8(x[i, j])", -500, 500, "u8"}, Expression{"f32", "i8(x[i, j])", -300, 300, "i8"},
        Expression{"f32", "u16(x[i, j])", -1e5, 1e5, "u16"}, Expression{"f32", "i16(x[i, j])", -5e4, 5e4, "i16"},
        Expression{"f32", "u8(x[i, j])", -1e12, 1e12, "u8"}, Expression{"f32", "i8(x[i, j])", -1e12, 1e12, "i8"},
        Expression{"f32", "i8(log(x[i, j]) + 100f32)", -1, 1, "i8"},
        Expression{"f32", "u8(1f32 / (x[i, j] - x[i, j]))", -1, 1, "u8"},
        Expression{"f32", "x[i, j] < y[i, j]", -1, 1, "bool"},
        Expression{"f32", "select(x[i, j] < 0f32, x[i, j] * 0.1f32, y[i, j])", -1, 1},
        // 1 / x tells +0 from -0.
        Expression{"f32", "1f32 / max(x[i, j] * 0f32, 0f32)", -2, -1},
        Expression{"f32", "1f32 / max(x[i, j] * 0f32, -0f32)", 1, 2},
        Expression{"f32", "1f32 / min(-0f32, x[i, j] * 0f32)", 1, 2},
        Expression{"f32", "1f32 / min(x[i, j] * 0f32, 0f32)", -2, -1},
        Expression{"f32", "1f32 / max(x[i, j] * 0f32, y[i, j] * 0f32)", -1, 1},
        Expression{"f32", "1f32 / min(x[i, j] * 0f32, y[i, j] * 0f32)", -1, 1},
        Expression{"f32", "max(x[i, j], log(y[i, j]))", -1, 1},
        Expression{"f32", "max(log(x[i, j]), log(y[i, j]))", -1, 1}));

INSTANTIATE_TEST_SUITE_P(F64, ExpressionTest,
                         ::testing::Values(Expression{"f64", "exp(x[i, j])", -5, 5},
                                           Expression{"f64", "tanh(x[i, j]) + sigmoid(y[i, j])", -5, 5},
                                           Expression{"f64", "1f64 / max(x[i, j] * 0f64, y[i, j] * 0f64)", -1, 1},
                                           Expression{"f64", "max(log(x[i, j]), y[i, j])", -1, 1},
                                           Expression{"f64", "min(log(x[i, j]), y[i, j])", -1, 1},
                                           Expression{"f64", "round(x[i, j] * 2f64)", -5, 5},
                                           Expression{"f64", "erf(x[i, j])", -5, 5}));

INSTANTIATE_TEST_SUITE_P(
    Halves, ExpressionTest,
    ::testing::Values(
        Expression{"f16", "f16(min(f32(f16(log(f32(x[i, j])))), f32(f16(f32(y[i, j]) * 0f32))))", -2, -1},
        Expression{"f16", "f16(max(f32(f16(log(f32(x[i, j])))), f32(f16(f32(y[i, j]) * 0f32))))", -2, -1},
        Expression{"bf16", "bf16(f32(x[i, j]) * f32(y[i, j]))", -3, 3},
        Expression{"bf16", "select(f32(x[i, j]) < 0f32, 1.5bf16, y[i, j])", -3, 3},
        Expression{"bf16", "isnan(x[i, j]) || isinf(y[i, j]) || bool(x[i, j])", -3, 3, "bool"},
        Expression{"bf16", "i32(x[i, j]) + i32(u8(y[i, j]))", -300, 300, "i32"},
        Expression{"bf16", "f16(x[i, j])", -3, 3, "f16"}, Expression{"f32", "bf16(x[i, j])", -1e38, 1e38, "bf16"},
        Expression{"f32", "bf16(log(x[i, j]))", -1, 1, "bf16"},
        Expression{"f32", "bf16(x[i, j] * 1e-38f32 * 0.01f32)", -1, 1, "bf16"},
        Expression{"f64", "bf16(x[i, j])", -3, 3, "bf16"},
        // Rounding to f32 first would give another bf16.
        Expression{"f64", "bf16(1.00390625f64 + x[i, j] * 1e-12f64)", -1, 1, "bf16"},
        Expression{"f64", "bf16(x[i, j] * 1e39f64)", -1, 1, "bf16"},
        Expression{"i32", "bf16(x[i, j])", -100000, 100000, "bf16"},
        Expression{"i64", "bf16(x[i, j] * 72057594037927936i64 + y[i, j])", -100, 100, "bf16"},
        Expression{"u8", "bf16(x[i, j])", 0, 255, "bf16"}, Expression{"f16", "f16(f32(x[i, j]) * f32(y[i, j]))", -3, 3},
        Expression{"f32", "f16(x[i, j])", -1e5, 1e5, "f16"}, Expression{"f64", "f16(x[i, j])", -3, 3, "f16"},
        Expression{"f16", "i64(x[i, j])", -1e4, 1e4, "i64"}, Expression{"f16", "u64(x[i, j])", -1e4, 1e4, "u64"}));

INSTANTIATE_TEST_SUITE_P(Integers, ExpressionTest,
                         ::testing::Values(Expression{"i32", "x[i, j] / y[i, j]", -4, 4},
                                           Expression{"i32", "x[i, j] % y[i, j]", -4, 4},
                                           Expression{"i32", "x[i, j] // y[i, j]", -4, 4},
                                           Expression{"i32", "x[i, j] %% y[i, j]", -4, 4},
                                           Expression{"i64", "x[i, j] // 7i64 + y[i, j] %% 5i64", -99, 99},
                                           Expression{"i64", "x[i, j] / y[i, j]", -3, 3},
                                           Expression{"i32", "max(x[i, j], y[i, j]) - min(x[i, j], 3i32)", -9, 9},
                                           Expression{"i32", "abs(x[i, j])", -9, 9},
                                           Expression{"i32", "f32(x[i, j]) * 0.5f32", -9, 9, "f32"},
                                           Expression{"u8", "u8(i32(x[i, j]) + i32(y[i, j]))", 0, 200},
                                           Expression{"i32", "u8(x[i, j])", -300, 300, "u8"}));

// One function or one cast, of many numbers. Each result must be as close to the interpreter's, which computes in f64,
// as math.h promises. The tolerance is per element, so large results do not hide errors of small ones.
class PrecisionTest : public ::testing::TestWithParam<Expression> {};

TEST_P(PrecisionTest, EachElementIsCloseToTheInterpreters) {
  constexpr int kRows = 160;
  const ir::Workload workload = Elementwise(GetParam(), kRows);
  const Target target = ParseTarget("cpu").value();
  const auto candidate = space::Default(workload, target);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  const bool is_cast = GetParam().result != nullptr && std::string(GetParam().result) != "f32";
  for (const schedule::Schedule& schedule : {candidate->schedule, schedule::Schedule()}) {
    EXPECT_EQ(hone::tests::CheckCompiled(workload, schedule, target, {.apart = is_cast ? 1 : 4}), absl::OkStatus())
        << GetParam().text;
  }
}

TEST_P(PrecisionTest, CompilesFor32BitArm) { CompileFor32BitArm(Elementwise(GetParam())); }

constexpr double kIntLowest = -2147483648.0, kIntHighest = 2147483647.0;

// x as an f32 of random bits: numbers of all magnitudes, denormals, infinities and NaNs.
Expression OfAnyFloat(const char* text, const char* result = "f32") {
  return {"i32", text, kIntLowest, kIntHighest, result};
}

INSTANTIATE_TEST_SUITE_P(
    Functions, PrecisionTest,
    ::testing::Values(OfAnyFloat("exp(reinterpret<f32>(x[i, j]))"), OfAnyFloat("log(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("tanh(reinterpret<f32>(x[i, j]))"), OfAnyFloat("erf(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("sigmoid(reinterpret<f32>(x[i, j]))"), OfAnyFloat("sin(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("cos(reinterpret<f32>(x[i, j]))"), OfAnyFloat("tan(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("asin(reinterpret<f32>(x[i, j]))"), OfAnyFloat("acos(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("atan(reinterpret<f32>(x[i, j]))"), OfAnyFloat("sinh(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("cosh(reinterpret<f32>(x[i, j]))"), OfAnyFloat("asinh(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("acosh(reinterpret<f32>(x[i, j]))"), OfAnyFloat("atanh(reinterpret<f32>(x[i, j]))"),
                      OfAnyFloat("sqrt(reinterpret<f32>(x[i, j]))"), Expression{"f32", "exp(x[i, j])", -104, 89},
                      Expression{"f32", "sigmoid(x[i, j])", -104, -88}, Expression{"f32", "sigmoid(x[i, j])", -20, 20},
                      Expression{"f32", "tanh(x[i, j])", -9, 9}, Expression{"f32", "erf(x[i, j])", -4, 4},
                      Expression{"f32", "log(x[i, j])", 0.5, 2}));

INSTANTIATE_TEST_SUITE_P(
    Casts, PrecisionTest,
    ::testing::Values(
        OfAnyFloat("i32(reinterpret<f32>(x[i, j]))", "i32"), OfAnyFloat("u32(reinterpret<f32>(x[i, j]))", "u32"),
        OfAnyFloat("i64(reinterpret<f32>(x[i, j]))", "i64"), OfAnyFloat("u64(reinterpret<f32>(x[i, j]))", "u64"),
        OfAnyFloat("i16(reinterpret<f32>(x[i, j]))", "i16"), OfAnyFloat("u8(reinterpret<f32>(x[i, j]))", "u8"),
        OfAnyFloat("i32(f64(reinterpret<f32>(x[i, j])))", "i32"),
        OfAnyFloat("u32(f64(reinterpret<f32>(x[i, j])))", "u32"),
        OfAnyFloat("i64(f64(reinterpret<f32>(x[i, j])))", "i64"),
        OfAnyFloat("u64(f64(reinterpret<f32>(x[i, j])))", "u64"), OfAnyFloat("f16(reinterpret<f32>(x[i, j]))", "f16"),
        OfAnyFloat("bf16(reinterpret<f32>(x[i, j]))", "bf16"), OfAnyFloat("f16(f64(reinterpret<f32>(x[i, j])))", "f16"),
        Expression{"f32", "i32(x[i, j])", -3e9, 3e9, "i32"},
        Expression{"f64", "i32(x[i, j])", -2147483650, 2147483650, "i32"},
        Expression{"f64", "u32(x[i, j])", -5, 4294967300, "u32"}, Expression{"f32", "u32(x[i, j])", -1e9, 5e9, "u32"},
        Expression{"f32", "i64(x[i, j])", -1e19, 1e19, "i64"}, Expression{"f32", "u64(x[i, j])", -1e19, 2e19, "u64"},
        Expression{"f64", "i64(x[i, j])", -1e19, 1e19, "i64"}, Expression{"f64", "u64(x[i, j])", -1e19, 2e19, "u64"},
        Expression{"f64", "f16(x[i, j])", -1e-4, 1e-4, "f16"}, Expression{"f64", "f16(x[i, j])", -1e5, 1e5, "f16"}));

// An f64 close to the midpoint of two f16 values must be rounded once: after a rounding to f32 it would be a tie.
TEST(Casts, FromF64ToHalfRoundOnce) {
  for (const char* type : {"f16", "bf16"}) {
    const double middle = std::string(type) == "f16" ? 1 + 0x1p-11 : 1 + 0x1p-8;
    const std::string text = fmt::format("{}({}f64 + x[i, j] * 1e-12f64)", type, middle);
    const ir::Workload workload = Elementwise({"f64", text.c_str(), -1, 1, type});
    const Target target = ParseTarget("cpu").value();
    const auto candidate = space::Default(workload, target);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    for (const schedule::Schedule& schedule : {candidate->schedule, schedule::Schedule()}) {
      EXPECT_EQ(hone::tests::CheckCompiled(workload, schedule, target, {.apart = 0}), absl::OkStatus()) << type;
    }
  }
}

// The table of CPUs is written without LLVM. This test compares it with LLVM's own.
TEST(RequiredFeatures, EqualTheTableOfCpus) {
  for (const target::Microarchitecture& row : target::Microarchitectures()) {
    const std::string kind = std::string(target::EntryOf(row.family.arch).word);
    const Target target = ParseTarget(kind + " -mcpu=" + std::string(row.name)).value();
    ASSERT_TRUE(KnowsCpu(target)) << row.name;
    EXPECT_THAT(RequiredFeatures(target), ::testing::ElementsAreArray(target::FeaturesOf(row))) << row.name;
  }
}

TEST(RequiredFeatures, IncludeTheTargetsAttributes) {
  EXPECT_THAT(RequiredFeatures(*ParseTarget("x86_64 -mcpu=haswell -mattr=+avx512vnni,-movbe")),
              ::testing::AllOf(::testing::Contains("avx512vnni"), ::testing::Contains("avx512f"),
                               ::testing::Not(::testing::Contains("movbe"))));
  EXPECT_THAT(RequiredFeatures(*ParseTarget("x86_64 -mcpu=znver4 -mattr=-avx512f")),
              ::testing::Not(::testing::Contains(::testing::StartsWith("avx512"))));
  EXPECT_THAT(RequiredFeatures(*ParseTarget("arm64")), ::testing::ElementsAre("fp-armv8", "neon"));
}

TEST(HostCpu, IsTheOneThatLlvmDetects) {
  const Target host = ParseTarget("cpu").value();
  // LLVM 19 has the target emeraldrapids, but reports a host of that kind as sapphirerapids.
  const std::string llvm = host.cpu == "emeraldrapids" && HostCpuName() == "sapphirerapids" ? host.cpu : HostCpuName();
  const target::Microarchitecture* row = target::FindMicroarchitecture(host.arch, llvm);
  // LLVM goes by the model number alone. Hone also requires that the machine has all features of that model.
  const auto fits = [&] { return std::ranges::includes(target::FeaturesOf(*row), RequiredFeatures(host)); };
  if (row != nullptr && (host.arch != target::Arch::kX86_64 || fits())) {
    EXPECT_EQ(host.cpu, llvm);
  }
  EXPECT_THAT(RequiredFeatures(host), ::testing::IsSubsetOf(HostFeatureNames()));
}

TEST(Emit, RefusesOutputsThatATargetDoesNotHave) {
  EXPECT_EQ(Emit({}, target::TypicalTarget(target::Kind::kOpenCl), Effort::kKernel, Output::kAssembly).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The lines of the basic block with the most multiply-adds: the innermost loop.
std::vector<std::string> HottestBlock(const std::string& assembly) {
  std::vector<std::string> block, best;
  size_t best_count = 0, count = 0;
  std::stringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".LBB")) {
      block.clear();
      count = 0;
    }
    block.push_back(line);
    count += line.find("fmadd") != std::string::npos || line.find("fmla") != std::string::npos ? 1 : 0;
    if (count > best_count) best_count = count;
    if (count == best_count && count > 0) best = block;
    if (line.starts_with("\tj") || line.starts_with("\tb.")) {
      block.clear();
      count = 0;
    }
  }
  return best;
}

// The CPU lacks the instruction, which only a fault of the compiler would ask for.
TEST(EmitDeathTest, AFatalErrorOfLlvmNamesTheSubject) {
  const auto func = ir::ParseFunc(
      "func f(x: u8[4], w: i8[32], out: i32[8]) { contract vpdpbusd_256 out[0] += x[0] * w[0 stride 4] }");
  ASSERT_TRUE(func.ok()) << func.status();
  const Target target = ParseTarget("x86_64 -mcpu=haswell").value();
  const auto emit = [&] {
    const CompilationSubject subject("workload 0123 (matmul)");
    return Emit(std::span(&*func, 1), target).ok();
  };
  EXPECT_DEATH(emit(), "LLVM failed while compiling workload 0123 \\(matmul\\): Cannot select");
}

// With the default schedule.
std::string AssemblyOf(const std::string& workload_text, std::string_view target_text) {
  const auto workload = ir::ParseWorkload(workload_text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const Target target = ParseTarget(target_text).value();
  const auto candidate = space::Default(*workload, target);
  EXPECT_TRUE(candidate.ok()) << candidate.status();
  const auto module = execution::Lower(candidate->state, target, "kernel");
  EXPECT_TRUE(module.ok()) << module.status();
  return Emit(module->main, target, Effort::kKernel, Output::kAssembly).value_or("");
}

constexpr const char* kMatMul = R"(workload "matmul"
input x: f32[120,96] in [-1, 1]
const w: f32[96,128] in [-1, 1]
t: f32[120,128] over i:120, j:128 = sum k:96 of x[i, k] * w[k, j]
u: f32[120,128] over ui:120, uj:128 = max(t[ui, uj], 0f32)
output u
)";

// The loop over k must neither spill nor reload accumulators.
TEST(MatMul, AccumulatorsStayInRegisters) {
  for (const char* text : {"x86_64 -mcpu=znver4", "x86_64 -mcpu=haswell", "arm64 -mcpu=cortex-a76"}) {
    const std::vector<std::string> block = HottestBlock(AssemblyOf(kMatMul, text));
    EXPECT_GE(block.size(), 12u) << text;
    for (const std::string& line : block) {
      EXPECT_EQ(line.find("(%rsp)"), std::string::npos) << text << ": " << line;
      EXPECT_EQ(line.find("[sp"), std::string::npos) << text << ": " << line;
    }
  }
}

// Virtual machines hide features of their CPUs, so LLVM must accept any set of features.
TEST(Emit, AcceptsAvx512OnCpusWithoutIt) {
  for (const char* text :
       {"x86_64 -mcpu=haswell -mattr=+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512cd", "x86_64 -mattr=+avx512f",
        "x86_64 -mattr=+avx512vnni", "x86_64 -mattr=+avx512bw,+avx512dq"}) {
    EXPECT_NE(AssemblyOf(kMatMul, text), "") << text;
  }
}

// Sums of products of bytes.
std::string AssemblyOfProduct(std::string_view a, std::string_view b, std::string_view target_text) {
  return AssemblyOf(fmt::format(R"(workload "matmul"
input x: {}[24,64] in [0, 100]
const w: {}[64,48] in [0, 100]
t: i32[24,48] over i:24, j:48 = sum k:64 of i32(x[i, k]) * i32(w[k, j])
output t
)",
                                a, b),
                    target_text);
}

TEST(TensorInstructions, AreThoseOfTheTarget) {
  const struct {
    const char *a, *b, *target, *instruction;
  } cases[] = {
      {"u8", "i8", "x86_64 -mcpu=znver4", "vpdpbusd\t%zmm"},
      {"u8", "i8", "x86_64 -mcpu=alderlake", "{vex}\tvpdpbusd"},
      {"i8", "u8", "x86_64 -mcpu=sapphirerapids", "vpdpbusd"},
      {"u8", "i8", "arm64 -mcpu=cortex-a76", "udot"},
      {"i8", "i8", "arm64 -mcpu=cortex-a76", "sdot"},
      {"u8", "i8", "arm64 -mcpu=cortex-a710", "usdot"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(AssemblyOfProduct(c.a, c.b, c.target), HasSubstr(c.instruction)) << c.target;
  }
  EXPECT_THAT(AssemblyOfProduct("u8", "i8", "x86_64 -mcpu=haswell"), ::testing::Not(HasSubstr("vpdp")));
  EXPECT_THAT(AssemblyOfProduct("u8", "u8", "arm64 -mcpu=cortex-a72"), ::testing::Not(HasSubstr("udot")));
}

// A gather is many times as slow as loads and shuffles of the same elements.
TEST(VectorLoads, ElementsInOrderAreNotGathered) {
  for (const char* index : {"ramp(i * 40, 2, 16)", "ramp(i * 40 + 1, 3, 16)", "broadcast(i * 40, 16)",
                            "broadcast(i * 40, 16) where ramp(0, 1, 16) < broadcast(i * 5, 16)"}) {
    const auto func = ir::ParseFunc(
        fmt::format("func f(A: f32[200], B: f32[64]) {{ for i in 4 {{ B[ramp(i * 16, 1, 16)] = A[{}] }} }}", index));
    ASSERT_TRUE(func.ok()) << func.status();
    const auto assembly =
        Emit(std::span(&*func, 1), ParseTarget("x86_64 -mcpu=znver4").value(), Effort::kKernel, Output::kAssembly);
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    EXPECT_EQ(assembly->find("gather"), std::string::npos) << index << "\n" << *assembly;
  }
}

// The maximum keeps its accumulator in a register, and each step is a short chain of instructions.
TEST(Maxima, StayInARegister) {
  const auto func = ir::ParseFunc(
      "func f(A: f32[1024], B: f32[16]) { for i in 64 { B[ramp(0, 1, 16)] = max(B[ramp(0, 1, 16)], A[ramp(i * 16, 1, "
      "16)]) } }");
  ASSERT_TRUE(func.ok()) << func.status();
  const Target target = ParseTarget("x86_64 -mcpu=sapphirerapids").value();
  const auto assembly = Emit(std::span(&*func, 1), target, Effort::kKernel, Output::kAssembly);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  const size_t loop = assembly->find(".LBB"), last = assembly->find("\tj", loop);
  ASSERT_NE(last, std::string::npos) << *assembly;
  const std::string steps = assembly->substr(loop, last - loop);
  EXPECT_THAT(steps, HasSubstr("vmaxps"));
  EXPECT_THAT(steps, ::testing::Not(HasSubstr("vcmp")));
  EXPECT_THAT(steps, ::testing::Not(::testing::ContainsRegex("%zmm[0-9]+, [^%]*\\(%r"))) << steps;
}

TEST(Prefetches, AreOneInstructionPerCacheLine) {
  const struct {
    const char *target, *instruction;
  } cases[] = {{"x86_64 -mcpu=sapphirerapids", "prefetcht1"}, {"arm64 -mcpu=cortex-a76", "pldl2keep"}};
  const auto func = ir::ParseFunc("func f(A: f32[64], B: f32[1]) { prefetch 32 A from 1000 B[0] = A[0] }");
  ASSERT_TRUE(func.ok()) << func.status();
  for (const auto& c : cases) {
    const auto assembly = Emit(std::span(&*func, 1), ParseTarget(c.target).value(), Effort::kKernel, Output::kAssembly);
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    int lines = 0;
    for (size_t at = 0; (at = assembly->find(c.instruction, at)) != std::string::npos; ++at) ++lines;
    EXPECT_EQ(lines, 2) << *assembly;
  }
}

// A CPU runs the parts of a lane reduction one after the other.
TEST(LaneReductions, AreLoopsOnACpu) {
  const auto func = ir::ParseFunc(
      "func f(A: f32[5,8], B: f32[5]) { for i in 5 { for k in 8 { merge B[i where i < 4] = sum k:8 of A[i, k] } } }");
  ASSERT_TRUE(func.ok()) << func.status();
  ir::Func flat = *func;
  flat.body = passes::Flatten(flat.body);
  const auto assembly =
      Emit(std::span(&flat, 1), ParseTarget("x86_64 -mcpu=x86-64-v3").value(), Effort::kKernel, Output::kAssembly);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_THAT(*assembly, HasSubstr("vaddss"));
}

// The stores of a transposition together read contiguous rows. It also holds for blocks of fewer rows than columns, and
// for two operands.
TEST(VectorLoads, TranspositionsAreNotGathered) {
  const struct {
    const char *target, *body;
  } cases[] = {
      {"x86_64 -mcpu=znver4",
       "for i in 4 { unrolled r in 16 { B[ramp((i * 16 + r) * 16, 1, 16)] = A[ramp(i * 16 + r, 64, 16)] } }"},
      {"x86_64 -mcpu=haswell",
       "for i in 8 { unrolled r in 8 { B[ramp((i * 8 + r) * 16, 1, 8)] = A[ramp(i * 8 + r, 64, 8)] } }"},
      {"x86_64 -mcpu=znver4",
       "unrolled r in 6 { B[ramp(r * 16, 1, 16)] = A[ramp(r, 6, 16)] + A[ramp(r + 512, 7, 16)] }"},
  };
  for (const auto& c : cases) {
    const Target target = ParseTarget(c.target).value();
    const auto func = ir::ParseFunc(fmt::format("func f(A: f32[1024], B: f32[1024]) {{ {} }}", c.body));
    ASSERT_TRUE(func.ok()) << func.status();
    const auto body = passes::Unroll(func->body);
    ASSERT_TRUE(body.ok()) << body.status();
    ir::Func unrolled = *func;
    unrolled.body = *body;
    const auto assembly = Emit(std::span(&unrolled, 1), target, Effort::kKernel, Output::kAssembly);
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    EXPECT_THAT(*assembly, ::testing::Not(HasSubstr("gather"))) << c.body;
    EXPECT_THAT(*assembly, ::testing::Not(HasSubstr("vinsertps"))) << c.body;
  }
}

// LLVM alone would convert element by element: 83 instructions for 16 elements instead of 10.
TEST(VectorCasts, FloatsToIntegersAreVectorCode) {
  const struct {
    const char *type, *target, *instruction;
  } cases[] = {
      {"u8", "x86_64 -mcpu=znver4", "cvttps2dq"},  {"u8", "x86_64 -mcpu=haswell", "cvttps2dq"},
      {"i8", "x86_64 -mcpu=znver4", "cvttps2dq"},  {"i8", "x86_64 -mcpu=haswell", "cvttps2dq"},
      {"u16", "x86_64 -mcpu=znver4", "cvttps2dq"}, {"u16", "x86_64 -mcpu=haswell", "cvttps2dq"},
      {"i16", "x86_64 -mcpu=znver4", "cvttps2dq"}, {"i16", "x86_64 -mcpu=haswell", "cvttps2dq"},
      {"i32", "x86_64 -mcpu=znver4", "cvttps2dq"}, {"i32", "x86_64 -mcpu=haswell", "cvttps2dq"},
      {"i64", "x86_64 -mcpu=znver4", "cvttps2qq"}, {"i32", "arm64 -mcpu=cortex-a76", "fcvtzs\tv"},
  };
  for (const auto& c : cases) {
    const std::string assembly =
        AssemblyOfFunc(fmt::format("func f(A: f32[64], B: {0}[64]) {{ for i in 4 {{ B[ramp(i * 16, 1, 16)] = "
                                   "{0}x16(A[ramp(i * 16, 1, 16)]) }} }}",
                                   c.type),
                       c.target);
    EXPECT_THAT(assembly, HasSubstr(c.instruction)) << c.type << " " << c.target;
    EXPECT_THAT(assembly, ::testing::Not(HasSubstr("cvttss2si"))) << c.type << " " << c.target << "\n" << assembly;
  }
}

// LLVM would call a function of the compiler's runtime library, which is missing on machines with an older one.
TEST(VectorCasts, F64ToF16CallsNoLibrary) {
  EXPECT_THAT(AssemblyOfFunc("func f(A: f64[8], B: f16[8]) { B[ramp(0, 1, 8)] = f16x8(A[ramp(0, 1, 8)]) }",
                             "x86_64 -mcpu=haswell"),
              ::testing::AllOf(HasSubstr("vcvtps2ph"), ::testing::Not(HasSubstr("call"))));
}

// If the mask is the same for all elements, a target without masked moves branches once.
TEST(MaskedAccesses, WithOneMaskForAllElementsAreABranch) {
  const struct {
    const char *target, *type, *apart;
  } cases[] = {{"arm64 -mcpu=cortex-a76", "f32", "\\}\\[[1-9]"},
               {"arm64 -mcpu=cortex-a76", "u8", "\\}\\[[1-9]"},
               {"x86_64 -mcpu=haswell", "u8", "vpinsrb|vpextrb"}};
  for (const auto& c : cases) {
    const std::string assembly = AssemblyOfFunc(
        fmt::format("func f(A: {0}[64], B: {0}[64]) {{ for i in 4 {{ B[ramp(i * 16, 1, 16) where broadcast(i < 3, 16)] "
                    "= A[ramp(i * 16, 1, 16) where broadcast(i < 3, 16)] }} }}",
                    c.type),
        c.target);
    EXPECT_THAT(assembly, ::testing::Not(::testing::ContainsRegex(c.apart))) << c.target << " " << c.type << assembly;
  }
}

TEST(MaskedAccesses, MoveWholeVectorsIfAllElementsAreWanted) {
  const std::string assembly = AssemblyOfFunc(
      "func f(A: f32[64], B: f32[64]) { for i in 3 { B[ramp(i * 16, 1, 16) where ramp(i * 16, 1, 16) < "
      "broadcast(45, 16)] = A[ramp(i * 16, 1, 16) where ramp(i * 16, 1, 16) < broadcast(45, 16)] } }",
      "arm64 -mcpu=cortex-a76");
  EXPECT_THAT(assembly, ::testing::ContainsRegex("st[pr]\tq[0-9]"));
  EXPECT_THAT(assembly, HasSubstr("st1")) << "the last iteration wants some of the elements";
}

// A target with masked moves needs no branch.
TEST(MaskedAccesses, AreOneInstructionIfTheTargetHasIt) {
  const std::string assembly = AssemblyOfFunc(
      "func f(A: f32[64], B: f32[64]) { B[ramp(0, 1, 16)] = A[ramp(0, 1, 16) where ramp(0, 1, 16) < "
      "broadcast(13, 16)] }",
      "x86_64 -mcpu=haswell");
  EXPECT_THAT(assembly, ::testing::AllOf(HasSubstr("vmaskmovps"), ::testing::Not(HasSubstr("\tj"))));
}

// The address of a masked access is not `inbounds`, because its first element may not exist.
TEST(MaskedAccesses, MayBeginOutsideTheBuffer) {
  const std::string code = AssemblyOfFunc(
      "func f(A: f32[64], B: f32[64]) { for i in 3 { B[ramp(i * 16, 1, 16) where ramp(i * 16, 1, 16) < "
      "broadcast(45, 16)] = A[ramp(i * 16, 1, 16) where ramp(i * 16, 1, 16) < broadcast(45, 16)] } }",
      "x86_64 -mcpu=haswell", Effort::kKernel, Output::kLlvmIr);
  EXPECT_THAT(code, HasSubstr("llvm.masked.load"));
  EXPECT_THAT(code, ::testing::Not(HasSubstr("getelementptr inbounds float"))) << code;
}

// Reference outputs must not depend on how tuned kernels fuse.
TEST(ReferenceKernel, FusesNoMultiplyAdds) {
  for (const char* target : {"x86_64 -mcpu=haswell", "arm64 -mcpu=cortex-a76"}) {
    for (const Effort effort : {Effort::kKernel, Effort::kReference}) {
      const std::string assembly = AssemblyOfFunc(
          "func f(A: f32[64], B: f32[64], C: f32[64]) { for i in 64 { C[i] = A[i] * B[i] + C[i] } }", target, effort);
      const bool fuses = assembly.find("fmadd") != std::string::npos || assembly.find("fmla") != std::string::npos;
      EXPECT_EQ(fuses, effort == Effort::kKernel) << target << assembly;
    }
  }
}

TEST(ReferenceKernel, AgreesWithTheInterpreter) {
  const auto workload = ir::ParseWorkload(kMatMul);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const Target target = ParseTarget("cpu").value();
  EXPECT_EQ(hone::tests::CheckCompiled(*workload, execution::ModelOf(target).reference_schedule(*workload, target),
                                       target, {}, 2, Effort::kReference),
            absl::OkStatus());
}

// A stack overflow must hit the guard page, and not the memory behind it.
TEST(Stack, LargeFramesAreTouchedPageByPage) {
  for (const auto& [target, step] : {std::pair{"x86_64 -mcpu=haswell", "subq\t$4096, %rsp"},
                                     std::pair{"arm64 -mcpu=cortex-a76", "sub\tsp, sp, #1, lsl #12"}}) {
    for (const int count : {100, 16384}) {
      const std::string assembly = AssemblyOfFunc(
          fmt::format("func f(A: f32[16384], B: f32[1]) {{ alloc t: f32[{0}] local {{ for i in {0} {{ t[i] = A[i] }} "
                      "for i in {0} {{ B[0] = B[0] + t[{0} - 1 - i] }} }} }}",
                      count),
          target);
      EXPECT_EQ(assembly.find(step) != std::string::npos, count == 16384) << target << count << assembly;
    }
  }
}

// Loads can then be hoisted over calls of the C library.
TEST(CallsOfTheCLibrary, TouchNoMemory) {
  const std::string code = AssemblyOfFunc("func f(A: f64[4], B: f64[4]) { for i in 4 { B[i] = sin(A[i]) } }",
                                          "x86_64 -mcpu=haswell", Effort::kKernel, Output::kLlvmIr);
  EXPECT_THAT(code, ::testing::AllOf(HasSubstr("memory(none)"), HasSubstr("willreturn")));
}

TEST(CompileKernel, DescribesWhatItNeeds) {
  const auto workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[12,96] in [-1, 1]
const w: f32[96,40] in [-1, 1]
t: f32[12,40] over i:12, j:40 = sum k:96 of x[i, k] * w[k, j]
output t
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto schedule = schedule::ParseSchedule("pack w t 1/16 0 1%16").value();
  const auto kernel = CompileKernel(*workload, schedule, ParseTarget("cpu").value(), "k");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(Print(kernel->interface),
            "kernel k\n"
            "input f32[12,96]\n"
            "constant f32[96,40] unused\n"
            "packed f32[3,96,16]\n"
            "output f32[12,40]\n"
            "scratch 0 0\n"
            "prepare " +
                kernel->prepare.name +
                " 0 0\n"
                "launch k 0 0\n");
  const auto other = CompileKernel(*workload, schedule::ParseSchedule("pack w t 1/16 0 1%16\nunroll k").value(),
                                   ParseTarget("cpu").value(), "other");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->prepare.name, kernel->prepare.name) << "the name of prepare depends only on what it computes";
  const auto plain = CompileKernel(*workload, {}, ParseTarget("cpu").value(), "k");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->interface.prepare.empty());
  EXPECT_TRUE(plain->interface.buffers[1].used);
}

TEST(CompileKernel, WritesAReproducerIfAPassFails) {
  const auto workload = ir::ParseWorkload(R"(workload "elementwise"
input x: f32[64] in [-1, 1]
t: f32[64] over i:64 = x[i] + 1f32
output t
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder.ok());
  CompileOptions options{.passes = ReproducerPassOptions<ir::Func>((*folder / "repro").string())};
  options.passes.after = [](const PassRun& run, const ir::Func&) {
    return run.pass == "vectorize" ? absl::InternalError("planted") : absl::OkStatus();
  };
  const auto kernel = CompileKernel(*workload, {}, ParseTarget("cpu").value(), "k", options);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(kernel.status().message()), HasSubstr("planted; to see it again: hone-opt "));
  const std::filesystem::directory_iterator written(*folder / "repro");
  ASSERT_NE(written, std::filesystem::directory_iterator());
  EXPECT_THAT(written->path().filename().string(), StartsWith("vectorize-"));
}

TEST(CompileKernel, ReportsTheSharedMemoryOfAGroup) {
  const auto workload = ir::ParseWorkload(R"(workload "rows"
input x: f32[6,40] in [-1, 1]
m: f32[6] over i:6 = max j:40 of x[i, j]
y: f32[6,40] over a:6, b:40 = x[a, b] - m[a]
output y
)");
  const auto schedule = schedule::ParseSchedule(
      "cache_read x y\nstore_in xry shared 1\nstore_in m shared\nbind a group\nsplit b 8 mask\nreorder a bi bo\n"
      "bind bi lane\ncompute_at xry a\ncompute_at m a\n");
  ASSERT_TRUE(workload.ok() && schedule.ok());
  const Target target = ParseTarget("opencl").value();
  const auto kernel = CompileKernel(*workload, *schedule, target, "k");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->shared_bytes, (40 + 1) * 4 + 4);
  const auto plain =
      CompileKernel(*workload, execution::ModelOf(target).naive_schedule(*workload, target), target, "k");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->shared_bytes, 0);
}

// All iterations of an unrolled loop use the same place.
TEST(CompileKernel, ASharedBufferTakesItsMemoryOnce) {
  const auto workload = ir::ParseWorkload(R"(workload "rows"
input x: f32[6,40] in [-1, 1]
y: f32[6,40] over a:6, b:40 = x[a, b] * 2f32
output y
)");
  const auto schedule = schedule::ParseSchedule(
      "cache_read x y\nstore_in xry shared\nbind a group\nsplit b 8 mask\nreorder a bi bo\nbind bi lane\n"
      "compute_at xry bo\nunroll bo\n");
  ASSERT_TRUE(workload.ok() && schedule.ok());
  for (const auto& [text, declared] : {std::pair("opencl", "__local float"), {"cuda:sm_87", ".shared .align"}}) {
    const auto kernel = CompileKernel(*workload, *schedule, ParseTarget(text).value(), "k");
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(kernel->shared_bytes, 8 * 4) << text;
    EXPECT_EQ(kernel->code.find(declared), kernel->code.rfind(declared)) << kernel->code;
  }
}

TEST(Link, JoinsObjectsOfBothArchitectures) {
  const ir::Workload workload = Elementwise({"f32", "x[i, j] + y[i, j]", -1, 1});
  for (const char* text : {"cpu", "arm64"}) {
    const Target target = ParseTarget(text).value();
    const auto a = CompileKernel(workload, {}, target, "first"), b = CompileKernel(workload, {}, target, "second");
    ASSERT_TRUE(a.ok() && b.ok());
    const auto linked = Link(std::vector<std::string>{a->code, b->code}, target);
    ASSERT_TRUE(linked.ok()) << linked.status();
    EXPECT_THAT(linked->code, HasSubstr("first"));
    EXPECT_THAT(linked->code, HasSubstr("second"));
    EXPECT_EQ(linked->ranges.size(), 2);
    EXPECT_EQ(linked->ranges[1].bytes, 0);
  }
  EXPECT_FALSE(Link(std::vector<std::string>{"not an object"}, ParseTarget("cpu").value()).ok());
}

TEST(Link, ReturnsTheRangeOfEachSource) {
  const ir::Workload workload = Elementwise({"f32", "min(x[i, j], y[i, j])", -1, 1});
  const Target target = target::TypicalTarget(target::Kind::kOpenCl);
  const auto a = CompileKernel(workload, execution::ModelOf(target).naive_schedule(workload, target), target, "first"),
             b = CompileKernel(workload, execution::ModelOf(target).naive_schedule(workload, target), target, "second");
  ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
  EXPECT_EQ(a->interface.main[0].lanes, 64);
  const auto linked = Link(std::vector<std::string>{a->code, b->code}, target);
  ASSERT_TRUE(linked.ok()) << linked.status();
  ASSERT_EQ(linked->ranges.size(), 2);
  const auto& second = linked->ranges[1];
  EXPECT_EQ(linked->code.substr(static_cast<size_t>(second.offset), static_cast<size_t>(second.bytes)), b->code);
  EXPECT_THAT(b->code, HasSubstr("__kernel"));
}

}  // namespace
}  // namespace hone::codegen
