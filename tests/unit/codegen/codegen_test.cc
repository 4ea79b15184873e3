#include "compiler/codegen/codegen.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "compiler/codegen/kernel.h"
#include "compiler/passes/pipeline.h"
#include "compiler/space/space.h"
#include "tests/unit/space/compiled.h"

namespace hone::codegen {
namespace {

using ::testing::HasSubstr;

// One element-wise expression of x (and y), its types and the range of the inputs. What the vector code computes must
// be what the interpreter computes, which uses the C library.
struct Expression {
  const char* type;
  const char* text;
  double low, high;
  const char* result = nullptr;  // type; that of x if null
};

class ExpressionTest : public ::testing::TestWithParam<Expression> {};

ir::Workload Elementwise(const Expression& e) {
  const std::string text = fmt::format(R"(workload "elementwise"
input x: {0}[3,45] in [{2}, {3}]
input y: {0}[3,45] in [{2}, {3}]
t: {4}[3,45] over i:3, j:45 = {1}
output t
)",
                                       e.type, e.text, e.low, e.high, e.result != nullptr ? e.result : e.type);
  const auto workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status() << "\n" << text;
  return workload.value_or(ir::Workload{});
}

TEST_P(ExpressionTest, VectorCodeAgreesWithTheInterpreter) {
  const ir::Workload workload = Elementwise(GetParam());
  const Target target = ParseTarget("cpu").value();
  const auto candidate = space::Default(workload, target);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  EXPECT_EQ(hone::testing::CheckCompiled(workload, candidate->schedule, target, 1e-6), absl::OkStatus())
      << GetParam().text;
  // And scalar code, from unscheduled loops.
  EXPECT_EQ(hone::testing::CheckCompiled(workload, {}, target, 1e-6), absl::OkStatus()) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    F32, ExpressionTest,
    ::testing::Values(
        Expression{"f32", "exp(x[i, j])", -80, 80}, Expression{"f32", "exp(x[i, j])", -1, 1},
        Expression{"f32", "exp(x[i, j])", -120, -70}, Expression{"f32", "log(x[i, j])", 0.0001, 3},
        Expression{"f32", "log(x[i, j])", 1, 1e30}, Expression{"f32", "log(x[i, j] * 1e-38f32)", 0.001, 1},
        Expression{"f32", "log(0f32 * x[i, j])", 1, 2}, Expression{"f32", "log(x[i, j])", -2, -1},
        Expression{"f32", "tanh(x[i, j])", -12, 12}, Expression{"f32", "tanh(x[i, j])", -0.01, 0.01},
        Expression{"f32", "erf(x[i, j])", -4, 4}, Expression{"f32", "erf(x[i, j])", -0.01, 0.01},
        Expression{"f32", "sigmoid(x[i, j])", -90, 90}, Expression{"f32", "pow(x[i, j], y[i, j])", 0.1, 4},
        Expression{"f32", "sin(x[i, j]) + cos(y[i, j])", -9, 9}, Expression{"f32", "atan(x[i, j])", -9, 9},
        Expression{"f32", "sqrt(x[i, j])", 0, 9}, Expression{"f32", "max(x[i, j], y[i, j])", -1, 1},
        Expression{"f32", "min(x[i, j] / (x[i, j] - x[i, j]), 3f32)", -1, 1},
        Expression{"f32", "max(log(x[i, j]), 0f32)", -1, 1}, Expression{"f32", "min(1f32, log(x[i, j]))", -1, 1},
        Expression{"f32", "max(log(x[i, j]), y[i, j])", -1, 1}, Expression{"f32", "x[i, j] % y[i, j]", -9, 9},
        Expression{"f32", "round(x[i, j] * 2f32)", -5, 5}, Expression{"f32", "floor(x[i, j]) + ceil(y[i, j])", -5, 5},
        Expression{"f32", "fma(x[i, j], y[i, j], 1f32)", -5, 5}, Expression{"f32", "i32(x[i, j])", -3e9, 3e9, "i32"},
        Expression{"f32", "u8(x[i, j])", -500, 500, "u8"}, Expression{"f32", "x[i, j] < y[i, j]", -1, 1, "bool"},
        Expression{"f32", "select(x[i, j] < 0f32, x[i, j] * 0.1f32, y[i, j])", -1, 1}));

INSTANTIATE_TEST_SUITE_P(F64, ExpressionTest,
                         ::testing::Values(Expression{"f64", "exp(x[i, j])", -5, 5},
                                           Expression{"f64", "tanh(x[i, j]) + sigmoid(y[i, j])", -5, 5},
                                           Expression{"f64", "erf(x[i, j])", -5, 5}));

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

TEST(Targets, PrintsAndParsesBack) {
  for (const char* text : {"cpu", "cpu -threads=3", "x86_64 -mcpu=znver4 -threads=2",
                           "arm64 -mcpu=cortex-a76 -threads=4 -l2=524288", "arm64"}) {
    const auto target = ParseTarget(text);
    ASSERT_TRUE(target.ok()) << text << ": " << target.status();
    const auto again = ParseTarget(Print(*target));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(Print(*again), Print(*target));
  }
}

TEST(Targets, CapabilitiesFollowTheCpu) {
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=znver4")->vector_bits, 512);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=haswell")->vector_bits, 256);
  EXPECT_EQ(ParseTarget("x86_64 -mcpu=haswell")->vector_registers, 16);
  EXPECT_EQ(ParseTarget("arm64 -mcpu=cortex-a76")->vector_bits, 128);
  EXPECT_EQ(ParseTarget("arm64 -mcpu=cortex-a76")->vector_registers, 32);
}

TEST(Targets, ErrorsSayWhatToDo) {
  const std::pair<const char*, const char*> cases[] = {{"gpu", "no kind 'gpu'"},
                                                       {"cpu -mcpu=pentium9", "knows no CPU 'pentium9'"},
                                                       {"cpu -threads=0", "wants a positive number"},
                                                       {"cpu -fast", "no option '-fast'"},
                                                       {"x86_64 -mcpu=nehalem", "lacks AVX2 and FMA"}};
  for (const auto& [text, message] : cases) {
    const auto target = ParseTarget(text);
    ASSERT_FALSE(target.ok()) << text;
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(target.status().message()), HasSubstr(message));
  }
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

// The register tile must really be in registers: the loop over k neither spills nor reloads.
TEST(MatMul, AccumulatorsStayInRegisters) {
  const auto workload = ir::ParseWorkload(R"(workload "matmul"
input x: f32[120,96] in [-1, 1]
const w: f32[96,128] in [-1, 1]
t: f32[120,128] over i:120, j:128 = sum k:96 of x[i, k] * w[k, j]
u: f32[120,128] over ui:120, uj:128 = max(t[ui, uj], 0f32)
output u
)");
  ASSERT_TRUE(workload.ok()) << workload.status();
  for (const char* text : {"x86_64 -mcpu=znver4", "x86_64 -mcpu=haswell", "arm64 -mcpu=cortex-a76"}) {
    const Target target = ParseTarget(text).value();
    const auto candidate = space::Default(*workload, target);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const auto loops = passes::Lower(candidate->state, "kernel");
    ASSERT_TRUE(loops.ok()) << loops.status();
    const auto assembly = Emit(std::span(&loops->main, 1), target, Effort::kKernel, Output::kAssembly);
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    const std::vector<std::string> block = HottestBlock(*assembly);
    EXPECT_GE(block.size(), 12u) << text;
    for (const std::string& line : block) {
      EXPECT_EQ(line.find("(%rsp)"), std::string::npos) << text << ": " << line;
      EXPECT_EQ(line.find("[sp"), std::string::npos) << text << ": " << line;
    }
  }
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
  EXPECT_EQ(kernel->packed_bytes, std::vector<int64_t>{3 * 96 * 16 * 4});
  EXPECT_EQ(kernel->param_used, (std::vector<bool>{true, false}));
  EXPECT_EQ(kernel->prepare_symbol, "k_prepare");
  const auto plain = CompileKernel(*workload, {}, ParseTarget("cpu").value(), "k");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->prepare_symbol.empty());
  EXPECT_EQ(plain->param_used, (std::vector<bool>{true, true}));
}

TEST(Link, JoinsObjectsOfBothArchitectures) {
  const ir::Workload workload = Elementwise({"f32", "x[i, j] + y[i, j]", -1, 1});
  for (const char* text : {"cpu", "arm64"}) {
    const Target target = ParseTarget(text).value();
    const auto a = CompileKernel(workload, {}, target, "first"), b = CompileKernel(workload, {}, target, "second");
    ASSERT_TRUE(a.ok() && b.ok());
    const auto shared = LinkShared(std::vector<std::string>{a->object, b->object});
    ASSERT_TRUE(shared.ok()) << shared.status();
    EXPECT_THAT(*shared, HasSubstr("first"));
    EXPECT_THAT(*shared, HasSubstr("second"));
  }
  EXPECT_FALSE(LinkShared(std::vector<std::string>{"not an object"}).ok());
}

}  // namespace
}  // namespace hone::codegen
