// SPDX-License-Identifier: Apache-2.0
// .npz files: a zip of .npy arrays, read and written by the tests' own tools.
//
// Independent of the command's own code for them on purpose: the tests' inputs and verdicts must not share its faults.
#ifndef HONE_TESTS_MODELS_NPZ_FILE_H_
#define HONE_TESTS_MODELS_NPZ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::models {

struct NpyArray {
  std::string descr;           // "<f4"; little-endian numbers only
  std::vector<int64_t> shape;  // row-major
  std::vector<std::byte> bytes;
};

using NpzArrays = std::map<std::string, NpyArray>;

absl::StatusOr<NpzArrays> ReadNpz(const std::string& path);
absl::Status WriteNpz(const std::string& path, const NpzArrays& arrays);

}  // namespace hone::models

#endif  // HONE_TESTS_MODELS_NPZ_FILE_H_
