// SPDX-License-Identifier: Apache-2.0
// The DLPack description of each element type (base/element_type.h), and back.
#ifndef HONE_DEPLOY_RUNTIME_DTYPE_H_
#define HONE_DEPLOY_RUNTIME_DTYPE_H_

#include <iterator>

#include "deploy/runtime/hone_dlpack.h"
#include "deploy/runtime/package_format.h"

namespace hone::package {

struct DTypeTraits {
  DType dtype;
  DLDataType dlpack;  // its lanes are 1
};

inline constexpr DTypeTraits kDTypes[] = {
    {DType::kBool, {kDLBool, 8, 1}},      {DType::kInt8, {kDLInt, 8, 1}},         {DType::kInt16, {kDLInt, 16, 1}},
    {DType::kInt32, {kDLInt, 32, 1}},     {DType::kInt64, {kDLInt, 64, 1}},       {DType::kUInt8, {kDLUInt, 8, 1}},
    {DType::kUInt16, {kDLUInt, 16, 1}},   {DType::kUInt32, {kDLUInt, 32, 1}},     {DType::kUInt64, {kDLUInt, 64, 1}},
    {DType::kFloat16, {kDLFloat, 16, 1}}, {DType::kBFloat16, {kDLBfloat, 16, 1}}, {DType::kFloat32, {kDLFloat, 32, 1}},
    {DType::kFloat64, {kDLFloat, 64, 1}},
};
static_assert(std::size(kDTypes) == kDTypeRows.size());

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

using hone::Name;
using hone::SizeOf;

}  // namespace hone::package

#endif  // HONE_DEPLOY_RUNTIME_DTYPE_H_
