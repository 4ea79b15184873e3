// SPDX-License-Identifier: Apache-2.0
// Everything that one run of a package read and computed: its inputs, its outputs, and each tensor that holds values of
// the model's file, as it was right after the call that wrote it.
//
// Not a comparison (deploy/diff). As a .npz file it goes from a device to the command that compares it.
#ifndef HONE_DEPLOY_RUN_KEPT_RUN_H_
#define HONE_DEPLOY_RUN_KEPT_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/run/loaded_package.h"
#include "deploy/run/npy.h"
#include "deploy/run/npz.h"

namespace hone::run {

struct KeptPort {
  std::string name;  // in the model
  Array array;
};

// A tensor after the call that wrote it.
struct KeptTensor {
  size_t call = 0;    // of the program that ran
  size_t tensor = 0;  // its number in that program
  Array array;        // of the tensor's shape, which may combine dimensions of the values that it holds
};

struct KeptRun {
  int64_t program = 0;                    // the number of the program that ran, in the package
  std::vector<KeptPort> inputs, outputs;  // in the order of the package, or after ReadKept by name
  std::vector<KeptTensor> tensors;        // by ascending call, unless the program jumps
};

// Runs the package once, with the inputs that are set. Errors are those of the run.
absl::StatusOr<KeptRun> RunAndKeep(LoadedPackage& package);

// The run as arrays to write. They are named "program", "input/NAME", "output/NAME" and "value/CALL/TENSOR", and
// refer to it.
std::vector<ArrayView> ArraysOf(const KeptRun& run);
// Reads what was written so. kDataLoss: the file is damaged, or has other arrays.
absl::StatusOr<KeptRun> ReadKept(const NpzReader& reader);

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_KEPT_RUN_H_
