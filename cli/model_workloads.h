// SPDX-License-Identifier: Apache-2.0
// The workloads of a model for a target: what is tuned, and what records are about.
#ifndef HONE_CLI_MODEL_WORKLOADS_H_
#define HONE_CLI_MODEL_WORKLOADS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/model_options.h"

namespace hone::cli {

struct ModelWorkload {
  std::string text, digest;  // canonical text, and the digest of it
  std::string op, title;     // of the anchor, for people; with its extents
  int64_t calls = 0;         // of its kernel in one run of the model
  double flops = 0;          // of one call
};

// Those that the model calls, each once, in the order of the plan. path: one of model.models. Errors as BuildPlan's.
absl::StatusOr<std::vector<ModelWorkload>> WorkloadsOf(const ModelOptions& model, const std::string& path,
                                                       const target::Target& target);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_WORKLOADS_H_
