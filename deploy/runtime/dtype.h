// SPDX-License-Identifier: Apache-2.0
// The table of a package's element types: name, size, and DLPack description.
//
// Not the compiler's types (compiler/ir/type.h): the numbers of package::DType are on disk and never change.
#ifndef HONE_DEPLOY_RUNTIME_DTYPE_H_
#define HONE_DEPLOY_RUNTIME_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "deploy/runtime/hone_dlpack.h"
#include "deploy/runtime/package_format.h"

namespace hone::package {

struct DTypeTraits {
  DType dtype;
  std::string_view name;  // the compiler's name: "f32"
  DLDataType dlpack;      // its lanes are 1
};

inline constexpr DTypeTraits kDTypes[] = {
    {DType::kBool, "bool", {kDLBool, 8, 1}},        {DType::kInt8, "i8", {kDLInt, 8, 1}},
    {DType::kInt16, "i16", {kDLInt, 16, 1}},        {DType::kInt32, "i32", {kDLInt, 32, 1}},
    {DType::kInt64, "i64", {kDLInt, 64, 1}},        {DType::kUInt8, "u8", {kDLUInt, 8, 1}},
    {DType::kUInt16, "u16", {kDLUInt, 16, 1}},      {DType::kUInt32, "u32", {kDLUInt, 32, 1}},
    {DType::kUInt64, "u64", {kDLUInt, 64, 1}},      {DType::kFloat16, "f16", {kDLFloat, 16, 1}},
    {DType::kBFloat16, "bf16", {kDLBfloat, 16, 1}}, {DType::kFloat32, "f32", {kDLFloat, 32, 1}},
    {DType::kFloat64, "f64", {kDLFloat, 64, 1}},
};

// The row of a type. nullptr if there is none, as for an unknown number that was read from a file.
constexpr const DTypeTraits* FindDType(DType dtype) {
  for (const DTypeTraits& traits : kDTypes) {
    if (traits.dtype == dtype) return &traits;
  }
  return nullptr;
}
constexpr const DTypeTraits* FindDType(DLDataType dlpack) {
  for (const DTypeTraits& traits : kDTypes) {
    if (traits.dlpack.code == dlpack.code && traits.dlpack.bits == dlpack.bits && dlpack.lanes == 1) return &traits;
  }
  return nullptr;
}

// Bytes of an element, and the type's name. `dtype` must be in the table.
constexpr uint64_t SizeOf(DType dtype) { return FindDType(dtype)->dlpack.bits / 8; }
constexpr std::string_view Name(DType dtype) { return FindDType(dtype)->name; }

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_DTYPE_H_
