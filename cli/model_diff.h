// SPDX-License-Identifier: Apache-2.0
// How `hone diff` and `hone run --check` compare a package with its model (deploy/diff/diff_model.h), and how they show
// the result.
#ifndef HONE_CLI_MODEL_DIFF_H_
#define HONE_CLI_MODEL_DIFF_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/model_options.h"
#include "deploy/diff/check_inputs.h"
#include "deploy/diff/diff_model.h"
#include "deploy/run/kept_run.h"
#include "nlohmann/json.hpp"

namespace hone::cli {

struct ModelDiff {
  std::string model, package;  // names of the files
  std::string target;          // of the program that ran
  std::string device;          // of a farm, where it ran; empty: here
  bool interpreted = false;    // whether the interpreter ran the model
  diff::ModelDifference difference;
};

// Where a run was made that is to be compared.
struct PlaceOfRun {
  std::string device = {};       // of a farm; empty: this machine
  diff::SentInputs inputs = {};  // of a device: what it was sent; a run here is not asked for its inputs
};

// Compares a run of the package in the file `package` with the model of the options, whose file is the only one there.
// interpret: as in diff::ReferenceModel::Options. kDataLoss: a device had other inputs than it was sent.
absl::StatusOr<ModelDiff> DiffRun(const ModelOptions& model, const std::string& package, run::KeptRun kept,
                                  const PlaceOfRun& place, bool interpret);

// The values that were compared, one a line, in the order of the file.
std::string ValuesToText(const ModelDiff& diff);
// What was compared, and the first difference.
std::string DiffToText(const ModelDiff& diff);
nlohmann::ordered_json DiffToJson(const ModelDiff& diff);
// DifferentError if a value is wrong.
absl::Status CheckEqual(const ModelDiff& diff);

}  // namespace hone::cli

#endif  // HONE_CLI_MODEL_DIFF_H_
