// SPDX-License-Identifier: Apache-2.0
// What the package's element types are: size, name, and their DLPack description. One table, for runtime and tools.
//
// Not the compiler's types (compiler/ir/type.h): the numbers here are on disk and never change.
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
  std::string_view name;  // as the compiler writes it: "f32"
  DLDataType dlpack;
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

// nullptr if `dtype` is not one of ours (a number read from a file).
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

// `dtype` must be one of ours.
constexpr uint64_t SizeOf(DType dtype) { return FindDType(dtype)->dlpack.bits / 8; }
constexpr std::string_view Name(DType dtype) { return FindDType(dtype)->name; }

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_DTYPE_H_
