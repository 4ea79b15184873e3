// SPDX-License-Identifier: Apache-2.0
// The metadata of a package, for people and for `hone profile` and `hone bench`: operator, workload and schedule of
// each kernel, and ranges for random inputs.
//
// It is stored as JSON in the metadata section. The runtime never reads it, so a package runs with any metadata.
#ifndef HONE_DEPLOY_PACKAGE_METADATA_H_
#define HONE_DEPLOY_PACKAGE_METADATA_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::package {

struct KernelMetadata {
  std::string symbol;           // the kernel's name
  std::string operator_name;    // the workload's main operator: "conv2d"
  std::string workload_digest;  // 64 hex characters
  std::string schedule;         // schedule text
  double flops = 0;             // floating-point operations of one call; 0 for a kernel with open sizes
  double bytes = 0;             // size of all params and outputs of one call; 0 for a kernel with open sizes
  std::string target;           // target text of its unit; empty: the program has one, whose target is the program's
};

// The range [low, high) from which random values for an input are drawn. For example, the indices of a Gather must be
// below the table's size.
struct InputRange {
  std::string name;  // of the input
  double low = 0;
  double high = 0;  // exclusive
};

struct ProgramMetadata {
  std::string target;                   // target text, of all units together
  std::vector<KernelMetadata> kernels;  // one per symbol
  bool varies = false;                  // which calls run, and how often, depends on the values of the run
};

struct PackageMetadata {
  std::string model_name;
  std::string compiler_version;
  std::vector<ProgramMetadata> programs;  // in the order of the package
  std::vector<InputRange> input_ranges;   // only for inputs that need another range than their type's default
};

std::string ToJson(const PackageMetadata& metadata);
// DataLoss if `json` is not JSON or a field has the wrong type. Missing fields keep their defaults, unknown fields are
// ignored.
absl::StatusOr<PackageMetadata> ParseMetadata(std::string_view json);

}  // namespace hone::package

#endif  // HONE_DEPLOY_PACKAGE_METADATA_H_
