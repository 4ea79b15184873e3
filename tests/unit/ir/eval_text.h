// SPDX-License-Identifier: Apache-2.0
// Evaluates expressions given as text, and returns text: the notation of the semantic tables.
#ifndef HONE_TESTS_UNIT_IR_EVAL_TEXT_H_
#define HONE_TESTS_UNIT_IR_EVAL_TEXT_H_

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/half_float.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/text.h"
#include "fmt/format.h"

namespace hone::ir {

template <typename T>
T FromBytes(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Formats the element as the printer writes a constant.
inline std::string ElementText(DType dtype, const std::byte* bytes) {
  const Type type{dtype, 1};
  switch (dtype) {
    case DType::kFloat16:
      return Print(MakeFloat(type, FromHalfBits(FromBytes<uint16_t>(bytes))));
    case DType::kBFloat16:
      return Print(MakeFloat(type, FromBFloatBits(FromBytes<uint16_t>(bytes))));
    case DType::kFloat32:
      return Print(MakeFloat(type, FromBytes<float>(bytes)));
    case DType::kFloat64:
      return Print(MakeFloat(type, FromBytes<double>(bytes)));
    default:
      break;
  }
  int64_t value = 0;
  std::memcpy(&value, bytes, static_cast<size_t>(SizeOf(dtype)));
  return Print(MakeInt(type, value));
}

// Runs the func with all parameters zeroed. Returns the elements of its last parameter, or the error.
inline std::string RunText(std::string_view func_text) {
  const auto func = ParseFunc(func_text);
  if (!func.ok()) return func.status().ToString();
  std::vector<Bytes> memory;
  for (const Buffer& param : func->params) memory.emplace_back(static_cast<size_t>(NumBytes(*param)));
  const std::vector<std::span<std::byte>> args(memory.begin(), memory.end());
  const absl::Status status = Interpret(*func, args);
  if (!status.ok()) return std::string(status.message());
  const BufferNode& out = *func->params.back();
  std::string text;
  for (int64_t i = 0; i < NumElements(out); ++i) {
    if (i != 0) text += " ";
    text += ElementText(out.dtype, memory.back().data() + i * SizeOf(out.dtype));
  }
  return text;
}

// Returns the value of a scalar expression of this type.
inline std::string Eval(std::string_view type, std::string_view expr) {
  return RunText(fmt::format("func f(out: {}[1]) {{ out[0] = {} }}", type, expr));
}

}  // namespace hone::ir

#endif  // HONE_TESTS_UNIT_IR_EVAL_TEXT_H_
