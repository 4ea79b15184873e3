// SPDX-License-Identifier: Apache-2.0
// One array as NumPy's .npy format has it: a short text header (type, order, shape), then the elements.
//
// Reads versions 1, 2 and 3, writes version 1. Elements are what packages have; bfloat16, which NumPy lacks, is the
// two-byte void type that its extensions write ("V2"). Archives of arrays are npz.h.
#ifndef HONE_CLI_NPY_H_
#define HONE_CLI_NPY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/runtime/package_format.h"

namespace hone::cli {

struct Array {
  package::DType dtype = package::DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;  // row-major, little-endian
};

struct NpyHeader {
  package::DType dtype = package::DType::kFloat32;
  std::vector<int64_t> shape;
  bool fortran_order = false;  // the elements are column-major
  uint64_t data_offset = 0;    // where they start in the file
  uint64_t data_bytes = 0;
};

// The header of the file that starts with `bytes`, which may be a part of it; empty if the part is too short to tell.
// DataLoss: not a .npy file, or a damaged one; Unimplemented, with the reason: a type that packages do not have.
absl::StatusOr<std::optional<NpyHeader>> ParseNpyHeader(std::span<const uint8_t> bytes);

// The whole file. Column-major elements are turned to row-major. Errors as above, and DataLoss for a wrong size.
absl::StatusOr<Array> ParseNpy(std::span<const uint8_t> file);

// What comes before the elements: magic, header and padding, a multiple of 64 bytes.
std::string NpyPrefix(package::DType dtype, std::span<const int64_t> shape);

// "[1, 3, 224, 224]"
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace hone::cli

#endif  // HONE_CLI_NPY_H_
