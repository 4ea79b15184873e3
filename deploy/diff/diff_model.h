// SPDX-License-Identifier: Apache-2.0
// Compares a package with the unoptimized model, value by value, and names the kernels that are wrong.
//
// Each value is computed by the unoptimized model from the values that the package had before it, not from its own. So
// errors do not add up from node to node, and a value is wrong exactly if a kernel between the two is (decision 0281).
// How errors add up is told, too. Start with DiffModel.
#ifndef HONE_DEPLOY_DIFF_DIFF_MODEL_H_
#define HONE_DEPLOY_DIFF_DIFF_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/diff/compare_elements.h"
#include "deploy/diff/package_run.h"
#include "deploy/diff/reference_model.h"

namespace hone::diff {

// A value of the file that the package has computed.
struct ValueDifference {
  std::string name;                   // in the file
  std::vector<run::ModelNode> nodes;  // of the file, that compute it
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // in the file
  // That the package has another type or number of elements than the file, in words; empty: it has the same. If not,
  // all elements are wrong.
  std::string mismatch;
  Comparison error;        // against the unoptimized nodes on the package's own values
  Tolerance tolerance;     // for this error
  double total_error = 0;  // against the unoptimized model on the inputs alone: Comparison::RelativeError
  // The call that wrote it, then those before it whose results hold no value of the file. If it is wrong, one of these
  // is.
  std::vector<KernelCall> kernels;

  bool IsWrong() const { return error.wrong > 0; }
};

struct ModelDifference {
  std::vector<ValueDifference> values;  // in the order of the file
  size_t not_compared = 0;              // values that the unoptimized model computes and no tensor of the package holds
  size_t calls = 0, checked_calls = 0;  // of the package's program; those among the kernels of values

  // The first value that is wrong; null if none is.
  const ValueDifference* First() const;
};

// Errors are those of ReferenceModel::Run. InvalidArgument: the package has other outputs than the model.
absl::StatusOr<ModelDifference> DiffModel(ReferenceModel& reference, const PackageRun& run);

}  // namespace hone::diff

#endif  // HONE_DEPLOY_DIFF_DIFF_MODEL_H_
