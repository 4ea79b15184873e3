// SPDX-License-Identifier: Apache-2.0
// What a package says about itself to people and to `hone profile` and `hone bench`: where each kernel came from.
//
// Stored as JSON in the metadata section; the runtime never reads it, so a package runs whatever it says.
#ifndef HONE_DEPLOY_PACKAGE_METADATA_H_
#define HONE_DEPLOY_PACKAGE_METADATA_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::package {

struct KernelMetadata {
  std::string symbol;           // the kernel's name
  std::string operator_name;    // the anchor: "Conv"
  std::string workload_digest;  // 64 hex characters
  std::string schedule;         // schedule text
  double flops = 0;             // of one call
  double bytes = 0;             // that one call must at least read and write
};

// The range of random values that makes sense for an input: a Gather's indices must stay below the table's size.
struct InputRange {
  std::string name;
  double low = 0;
  double high = 0;  // exclusive
};

struct ProgramMetadata {
  std::string target;                   // target text
  std::vector<KernelMetadata> kernels;  // one per symbol
};

struct PackageMetadata {
  std::string model_name;
  std::string compiler_version;
  std::vector<ProgramMetadata> programs;  // of different targets
  std::vector<InputRange> input_ranges;   // only of inputs where the default does not do
};

std::string ToJson(const PackageMetadata& metadata);
// DataLoss if `json` is not what ToJson writes; fields that are missing keep their defaults, unknown ones are ignored.
absl::StatusOr<PackageMetadata> ParseMetadata(std::string_view json);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_METADATA_H_
