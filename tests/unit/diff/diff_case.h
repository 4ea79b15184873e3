// SPDX-License-Identifier: Apache-2.0
// Sample models as files, packages made of them, and their comparison.
#ifndef HONE_TESTS_UNIT_DIFF_DIFF_CASE_H_
#define HONE_TESTS_UNIT_DIFF_DIFF_CASE_H_

#include <fstream>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "compiler/graph/onnx_proto.h"
#include "compiler/graph/plan.h"
#include "compiler/target/host.h"
#include "deploy/diff/diff_model.h"
#include "deploy/package/compile_model.h"
#include "gtest/gtest.h"

namespace hone::diff {

class DiffCase {
 public:
  explicit DiffCase(const onnx::ModelProto& model) {
    std::ofstream(onnx_path(), std::ios::binary) << model.SerializeAsString();
  }

  std::string onnx_path() const { return folder_ / "model.onnx"; }
  std::string package_path() const { return folder_ / "model.hone"; }

  graph::Plan MakePlan(const graph::ImportOptions& import) const {
    absl::StatusOr<graph::Plan> plan = graph::BuildPlan(onnx_path(), import, target::HostCpu());
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : graph::Plan();
  }
  ReferenceModel MakeReference(const ReferenceModel::Options& options) const {
    absl::StatusOr<ReferenceModel> reference = ReferenceModel::Make(onnx_path(), options);
    EXPECT_TRUE(reference.ok()) << reference.status();
    return *std::move(reference);
  }
  // Compiles the plan, runs the package on random inputs, and compares.
  ModelDifference Diff(const graph::Plan& plan, ReferenceModel& reference, bool naive = true) const {
    const auto compiled =
        package::CompilePlan(plan, "model", {.target = target::HostCpu(), .naive = naive}, package_path());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    auto package = run::LoadedPackage::Load(package_path(), {.threads = 1});
    EXPECT_TRUE(package.ok()) << package.status();
    EXPECT_TRUE(package->FillInputs(run::kRandomInputsSeed).ok());
    absl::StatusOr<run::KeptRun> kept = run::RunAndKeep(*package);
    EXPECT_TRUE(kept.ok()) << kept.status();
    absl::StatusOr<ProgramTables> tables = ProgramTables::Read(package_path(), kept->program);
    EXPECT_TRUE(tables.ok()) << tables.status();
    absl::StatusOr<ModelDifference> difference = DiffModel(reference, {*std::move(tables), *std::move(kept)});
    EXPECT_TRUE(difference.ok()) << difference.status();
    return difference.ok() ? *std::move(difference) : ModelDifference();
  }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

}  // namespace hone::diff

#endif  // HONE_TESTS_UNIT_DIFF_DIFF_CASE_H_
