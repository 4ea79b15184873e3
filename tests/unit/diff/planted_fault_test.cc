// SPDX-License-Identifier: Apache-2.0
// A fault that is planted in any one kernel of a network is found, and the kernel is named.
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/ir/workload.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/sample_models.h"
#include "tests/unit/diff/diff_case.h"

namespace hone::diff {
namespace {

// Lets the kernel of one call alone compute every output element 1.25 times as large as it should be.
bool PlantFault(graph::Plan& plan, size_t call) {
  ir::Workload workload = plan.workloads[plan.calls[call].workload];
  bool planted = false;
  for (ir::Stage& stage : workload.stages) {
    const bool is_output = std::ranges::find(workload.outputs, stage.buffer) != workload.outputs.end();
    if (!is_output || !ir::IsFloat(stage.buffer->dtype)) continue;
    stage.value = stage.value * ir::MakeFloat(stage.value.type(), 1.25);
    planted = true;
  }
  plan.calls[call].workload = static_cast<int>(plan.workloads.size());
  plan.workloads.push_back(std::move(workload));
  return planted;
}

const onnx::ModelProto& Sample(const std::string& name) {
  static const std::vector<models::SampleModel>& samples =
      *new std::vector<models::SampleModel>(models::SampleModels());
  return std::ranges::find(samples, name, &models::SampleModel::name)->model;
}

class PlantedFault : public ::testing::TestWithParam<std::string> {};

TEST_P(PlantedFault, IsNamedInEveryKernel) {
  const DiffCase test(Sample(GetParam()));
  const graph::Plan plan = test.MakePlan({});
  ReferenceModel reference = test.MakeReference({});
  const ModelDifference right = test.Diff(plan, reference);
  ASSERT_EQ(right.First(), nullptr) << right.First()->name;
  EXPECT_EQ(right.checked_calls, plan.calls.size());
  size_t planted = 0, alone = 0;
  for (size_t call = 0; call < plan.calls.size(); ++call) {
    SCOPED_TRACE(fmt::format("call {} of {}", call, plan.workloads[plan.calls[call].workload].op));
    graph::Plan faulty = plan;
    if (!PlantFault(faulty, call)) continue;
    ++planted;
    const ModelDifference difference = test.Diff(faulty, reference);
    const ValueDifference* first = difference.First();
    ASSERT_NE(first, nullptr);
    const auto named = std::ranges::find(first->kernels, call, &KernelCall::call);
    ASSERT_NE(named, first->kernels.end()) << "in " << first->name;
    alone += first->kernels.size() == 1 ? 1 : 0;
    ASSERT_EQ(named->nodes.size(), plan.calls[call].origins.size());
    for (size_t i = 0; i < named->nodes.size(); ++i) {
      EXPECT_EQ(named->nodes[i].name, plan.calls[call].origins[i].name);
    }
    // Only values that this kernel computes are wrong, however far the fault reaches.
    for (const ValueDifference& value : difference.values) {
      const bool is_named = std::ranges::find(value.kernels, call, &KernelCall::call) != value.kernels.end();
      EXPECT_TRUE(!value.IsWrong() || is_named) << value.name;
    }
  }
  EXPECT_GT(planted, 5u);
  // Others come after a kernel that brings an input into another layout, which holds no value of the file.
  EXPECT_GE(2 * alone, planted) << "few kernels were named alone: " << alone << " of " << planted;
}

INSTANTIATE_TEST_SUITE_P(Networks, PlantedFault,
                         ::testing::Values("residual_blocks", "inverted_bottlenecks", "transformer_layer",
                                           "concatenated_branches"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace hone::diff
