// SPDX-License-Identifier: Apache-2.0
#include "deploy/diff/diff_model.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/sample_models.h"
#include "tests/unit/diff/diff_case.h"

namespace hone::diff {
namespace {

// Packages with default schedules: vectorized, fused, in other layouts.
TEST(DiffModel, FindsNoDifferenceInPackagesThatAreRight) {
  for (const models::SampleModel& sample : models::SampleModels()) {
    SCOPED_TRACE(sample.name);
    const DiffCase test(sample.model);
    const graph::ImportOptions import = {.ranges = {{"batch", 2}}};
    ReferenceModel reference = test.MakeReference({.import = import});
    const graph::Plan plan = test.MakePlan(import);
    const ModelDifference difference = test.Diff(plan, reference, /*naive=*/false);
    EXPECT_EQ(difference.First(), nullptr) << difference.First()->name;
    EXPECT_EQ(difference.calls, plan.calls.size());
    EXPECT_EQ(difference.checked_calls, difference.calls);
    ASSERT_FALSE(difference.values.empty());
    const ValueDifference& last = difference.values.back();
    EXPECT_GT(last.error.elements, 0);
    EXPECT_LT(last.total_error, 1e-4);
    EXPECT_FALSE(last.nodes.empty());
    EXPECT_FALSE(last.kernels.empty());
  }
}

}  // namespace
}  // namespace hone::diff
