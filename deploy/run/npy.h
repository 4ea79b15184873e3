// SPDX-License-Identifier: Apache-2.0
// Reads and writes one array in NumPy's .npy format: a short text header (type, order, shape), then the elements.
//
// Reads versions 1, 2 and 3, writes version 1. The element types are those of packages. NumPy has no bfloat16, so it is
// stored as the two-byte void type "V2", as NumPy's extensions do. Archives of arrays are in npz.h.
#ifndef HONE_DEPLOY_RUN_NPY_H_
#define HONE_DEPLOY_RUN_NPY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/runtime/package_format.h"

namespace hone::run {

struct Array {
  package::DType dtype = package::DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;  // row-major, little-endian
};

struct NpyHeader {
  package::DType dtype = package::DType::kFloat32;
  std::vector<int64_t> shape;
  bool fortran_order = false;  // the elements are column-major
  uint64_t data_offset = 0;    // bytes from the start of the file to the elements
  uint64_t data_bytes = 0;     // size of all elements
};

// Parses the header of a file from its first bytes. Nullopt if `bytes` ends before the header does. kDataLoss: not a
// .npy file, or a damaged one. kUnimplemented: an element type that packages do not have.
absl::StatusOr<std::optional<NpyHeader>> ParseNpyHeader(std::span<const uint8_t> bytes);

// Parses a whole file. Column-major elements are converted to row-major. Errors: those of ParseNpyHeader, and kDataLoss
// if the file's size does not match its header.
absl::StatusOr<Array> ParseNpy(std::span<const uint8_t> file);

// The bytes of a file before its elements: magic, header and padding. Their number is a multiple of 64.
std::string NpyPrefix(package::DType dtype, std::span<const int64_t> shape);

// "[1, 3, 224, 224]"
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace hone::run

#endif  // HONE_DEPLOY_RUN_NPY_H_
