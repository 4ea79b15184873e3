// SPDX-License-Identifier: Apache-2.0
// The element types of tensors: number, name and size. The IR, kernel interfaces, packages and the agent share them.
//
// The numbers are stored in packages and equal those of hone.v1.DType (proto/convert.h asserts it), so they never
// change. This header needs only the C++ library, because the runtime that ships with a model includes it.
#ifndef HONE_BASE_ELEMENT_TYPE_H_
#define HONE_BASE_ELEMENT_TYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

enum class DType : uint8_t {
  kBool = 1,  // one byte, 0 or 1
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kFloat16 = 10,   // IEEE 754 binary16
  kBFloat16 = 11,  // the upper half of a binary32
  kFloat32 = 12,
  kFloat64 = 13,
};

struct DTypeRow {
  DType dtype;
  std::string_view name;  // in the IR, in kernel interfaces and in JSON
  int bytes;              // of one element in memory
};

// In the order of the numbers, which start at 1.
inline constexpr std::array kDTypeRows = {
    DTypeRow{DType::kBool, "bool", 1},   DTypeRow{DType::kInt8, "i8", 1},       DTypeRow{DType::kInt16, "i16", 2},
    DTypeRow{DType::kInt32, "i32", 4},   DTypeRow{DType::kInt64, "i64", 8},     DTypeRow{DType::kUInt8, "u8", 1},
    DTypeRow{DType::kUInt16, "u16", 2},  DTypeRow{DType::kUInt32, "u32", 4},    DTypeRow{DType::kUInt64, "u64", 8},
    DTypeRow{DType::kFloat16, "f16", 2}, DTypeRow{DType::kBFloat16, "bf16", 2}, DTypeRow{DType::kFloat32, "f32", 4},
    DTypeRow{DType::kFloat64, "f64", 8},
};

// The type's index in kDTypeRows. `dtype` must be one of the enumerators.
constexpr size_t IndexOf(DType dtype) { return static_cast<size_t>(dtype) - 1; }

static_assert([] {
  for (size_t i = 0; i < kDTypeRows.size(); ++i) {
    if (IndexOf(kDTypeRows[i].dtype) != i) return false;
  }
  return IndexOf(DType::kFloat64) + 1 == kDTypeRows.size();
}());

constexpr std::string_view Name(DType dtype) { return kDTypeRows[IndexOf(dtype)].name; }
constexpr int SizeOf(DType dtype) { return kDTypeRows[IndexOf(dtype)].bytes; }

constexpr bool IsFloat(DType dtype) { return dtype >= DType::kFloat16; }
constexpr bool IsSignedInt(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kInt64; }
constexpr bool IsUnsignedInt(DType dtype) { return dtype >= DType::kUInt8 && dtype <= DType::kUInt64; }  // not bool
constexpr bool IsInt(DType dtype) { return IsSignedInt(dtype) || IsUnsignedInt(dtype); }                 // not bool

// nullopt: no type has that name.
constexpr std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kDTypeRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

// The number that ONNX gives the type (TensorProto.DataType of onnx.proto), which ONNX Runtime uses, too.
constexpr int OnnxNumber(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kUInt8:
      return 2;
    case DType::kInt8:
      return 3;
    case DType::kUInt16:
      return 4;
    case DType::kInt16:
      return 5;
    case DType::kInt32:
      return 6;
    case DType::kInt64:
      return 7;
    case DType::kBool:
      return 9;
    case DType::kFloat16:
      return 10;
    case DType::kFloat64:
      return 11;
    case DType::kUInt32:
      return 12;
    case DType::kUInt64:
      return 13;
    case DType::kBFloat16:
      return 16;
  }
  return 0;
}

}  // namespace hone

#endif  // HONE_BASE_ELEMENT_TYPE_H_
