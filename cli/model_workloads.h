// SPDX-License-Identifier: Apache-2.0
// The workloads of a model for a target. They are the units that are tuned and recorded.
#ifndef HONE_CLI_MODEL_WORKLOADS_H_
#define HONE_CLI_MODEL_WORKLOADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/size_points.h"
#include "cli/model_options.h"

namespace hone::cli {

struct ModelWorkload {
  std::string text, digest;             // canonical text and its digest
  std::string op, title;                // name of the anchor operator; title for users: the name with the extents
  int64_t calls = 0;                    // calls of its kernel in one run of the model
  std::vector<SizePoint> points = {};   // where candidates are measured; empty: it has no open sizes
  std::vector<std::string> nodes = {};  // of the model's file that it computes, by name; the first 16
  double flops = 0;                     // floating-point operations of one call, at all points together
};

// The distinct workloads that the model calls, in the order of the plan. path: one of model.models. Dimensions that the
// model and the options leave open get ranges (AddDefaultRanges). at: the texts of --at (size_points.h). Errors: those
// of ModelOptions::Import, graph::BuildPlan and PointsOf, and a usage error if a point is in the ranges of no program.
absl::StatusOr<std::vector<ModelWorkload>> WorkloadsOf(const ModelOptions& model, const std::string& path,
                                                       const target::Target& target,
                                                       const std::vector<std::string>& at = {});

// The workloads of a model that several targets share (ModelOptions::TargetLists): for each of `units` those that it
// computes, as a compilation without records places them. Compiles every kernel. Errors as of WorkloadsOf, and those of
// package::CompileKernels.
absl::StatusOr<std::vector<std::vector<ModelWorkload>>> WorkloadsByUnit(const ModelOptions& model,
                                                                        const std::string& path,
                                                                        const std::vector<target::Target>& units,
                                                                        const std::vector<std::string>& at = {});

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_WORKLOADS_H_
