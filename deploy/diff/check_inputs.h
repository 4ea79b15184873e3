// SPDX-License-Identifier: Apache-2.0
// Compares the inputs that a run elsewhere says it had with those that it was sent. All of a comparison is computed
// from them, so a device that reads its inputs wrongly would pass without this check.
#ifndef HONE_DEPLOY_DIFF_CHECK_INPUTS_H_
#define HONE_DEPLOY_DIFF_CHECK_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deploy/diff/package_run.h"
#include "deploy/run/shape_text.h"

namespace hone::diff {

// The inputs of a run that was asked for.
struct SentInputs {
  std::string file;  // .npz; empty: none, and the device draws them (run::FillRandomInputs, run::kRandomInputsSeed)
  std::vector<run::NamedShape> shapes = {};  // without a file: of some inputs; the others have their largest shapes
};

// kDataLoss: the run had another input; the text names it. Other errors: the file or the package cannot be read.
absl::Status CheckInputs(const PackageRun& run, const SentInputs& sent);

}  // namespace hone::diff

#endif  // HONE_DEPLOY_DIFF_CHECK_INPUTS_H_
