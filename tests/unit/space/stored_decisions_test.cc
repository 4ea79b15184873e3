// SPDX-License-Identifier: Apache-2.0
// Decisions in records and lock files mean the same schedule forever. The numbers below are the stored ones. They are
// literals, so that a changed table or order of an enum fails the test.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/ir/tensor_instruction.h"
#include "compiler/ir/workload.h"
#include "compiler/schedule/step.h"
#include "compiler/space/space.h"
#include "compiler/target/target.h"

namespace hone::space {
namespace {

TEST(StoredDecisions, EveryTensorInstructionKeepsItsNumber) {
  const std::map<std::string, int64_t> stored = {
      {"vpdpbusd_512", 0}, {"vpdpbusd_256", 1}, {"udot", 2},        {"sdot", 3},
      {"usdot", 4},        {"mma_tf32", 6},     {"mma_f16", 7},     {"mma_bf16", 8},
      {"wgmma_tf32", 9},   {"wgmma_f16", 10},   {"wgmma_bf16", 11}, {"wgmma_tf32_registers", 12},
  };
  std::map<std::string, int64_t> numbers;
  for (const ir::TensorInstructionEntry& row : ir::kTensorInstructions) numbers.emplace(row.name, row.number);
  EXPECT_EQ(numbers, stored);
}

struct StoredInstruction {
  const char* target;
  const char* workload;
  Decisions decisions;
  const char* instruction;  // the instruction in the schedule's step "tensorize"
};

constexpr char kBytes[] = R"(workload "matmul"
input a: u8[32,64] in [0, 100]
const b: i8[64,64] in [-100, 100]
c: i32[32,64] over i:32, j:64 = sum k:64 of i32(a[i, k]) * i32(b[k, j])
output c
)";

constexpr char kHalves[] = R"(workload "matmul"
input a: f16[128,128] in [-1, 1]
const b: f16[128,128] in [-1, 1]
c: f32[128,128] over i:128, j:128 = sum k:128 of f32(a[i, k]) * f32(b[k, j])
output c
)";

TEST(StoredDecisions, InstructionsAreFoundByTheirNumbers) {
  const StoredInstruction cases[] = {
      {"x86_64 -mcpu=icelake-server", kBytes, {{"c.instruction", 0, {}}}, "vpdpbusd_512"},
      {"x86_64 -mcpu=icelake-server", kBytes, {{"c.instruction", 1, {}}}, "vpdpbusd_256"},
      {"arm64 -mcpu=neoverse-v1", kBytes, {{"c.instruction", 3, {}}}, "sdot"},
      {"arm64 -mcpu=neoverse-v1", kBytes, {{"c.instruction", 4, {}}}, "usdot"},
      {"cuda:sm_80", kHalves, {{"space", 3, {}}, {"instruction", 7, {}}}, "mma_f16"},
      {"cuda:sm_90a", kHalves, {{"space", 3, {}}, {"instruction", 10, {}}}, "wgmma_f16"},
  };
  for (const StoredInstruction& stored : cases) {
    SCOPED_TRACE(std::string(stored.target) + " " + stored.instruction);
    const ir::Workload workload = ir::ParseWorkload(stored.workload).value();
    const target::Target target = target::ParseTarget(stored.target).value();
    Chooser chooser(&stored.decisions);
    const auto candidate = Build(workload, target, ApplicableEntries(workload, target), chooser);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    const std::string text = schedule::Print(candidate->schedule);
    EXPECT_NE(text.find(std::string(" ") + stored.instruction + "\n"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace hone::space
