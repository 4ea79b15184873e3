// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/type.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace hone::ir {
namespace {

struct DTypeRow {
  std::string_view name;
  int bytes;
};

// Indexed by DType.
constexpr std::array<DTypeRow, 13> kRows = {{{"bool", 1},
                                             {"i8", 1},
                                             {"i16", 2},
                                             {"i32", 4},
                                             {"i64", 8},
                                             {"u8", 1},
                                             {"u16", 2},
                                             {"u32", 4},
                                             {"u64", 8},
                                             {"f16", 2},
                                             {"bf16", 2},
                                             {"f32", 4},
                                             {"f64", 8}}};

}  // namespace

int SizeOf(DType dtype) { return kRows[static_cast<size_t>(dtype)].bytes; }

bool IsFloat(DType dtype) { return dtype >= DType::kFloat16; }

bool IsSignedInt(DType dtype) { return dtype >= DType::kInt8 && dtype <= DType::kInt64; }

bool IsUnsignedInt(DType dtype) { return dtype >= DType::kUInt8 && dtype <= DType::kUInt64; }

bool IsInt(DType dtype) { return IsSignedInt(dtype) || IsUnsignedInt(dtype); }

std::string_view Name(DType dtype) { return kRows[static_cast<size_t>(dtype)].name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string ToString(Type type) {
  std::string text(Name(type.dtype));
  if (type.width != 1) text += "x" + std::to_string(type.width);
  return text;
}

std::optional<Type> ParseType(std::string_view text) {
  const size_t x = text.find('x');
  const auto dtype = ParseDType(text.substr(0, x));
  if (!dtype) return std::nullopt;
  if (x == std::string_view::npos) return Type{*dtype, 1};
  const std::string_view digits = text.substr(x + 1);
  int width = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  if (error != std::errc() || end != digits.data() + digits.size() || width < 2) return std::nullopt;
  return Type{*dtype, width};
}

}  // namespace hone::ir
