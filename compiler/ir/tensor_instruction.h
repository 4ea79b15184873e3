// The instructions that multiply small matrices and add to a third, as one table of data: shapes, element types, and
// how the operands lie in memory. What one means is said by the statement Contract (stmt.h).
//
// Not here: which targets have which (compiler/target/tensor_instructions.h), and how a back end spells them. A new one
// is an enumerator and a row.
#ifndef HONE_COMPILER_IR_TENSOR_INSTRUCTION_H_
#define HONE_COMPILER_IR_TENSOR_INSTRUCTION_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "compiler/ir/type.h"

namespace hone::ir {

enum class TensorInstruction : uint8_t {
  kVpdpbusd512,  // x86-64: four products per 32-bit lane of a vector
  kVpdpbusd256,
  kUdot,  // AArch64: the same for vectors of 128 bits
  kSdot,
  kUsdot,
};

// sum[m, n] += a[m, k] * b[n, k] over all k, exactly: integers wrap, as everywhere in the IR. Of each operand a row
// lies side by side in memory: n elements of the sum, k of a, k of b.
struct TensorInstructionEntry {
  std::string_view name;  // in text
  int64_t m, n, k;
  DType a, b, sum;
  bool b_rows_follow;  // the rows of b lie directly behind one another
};

// In the order of the enumerators.
inline constexpr TensorInstructionEntry kTensorInstructions[] = {
    {"vpdpbusd_512", 1, 16, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {"vpdpbusd_256", 1, 8, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {"udot", 1, 4, 4, DType::kUInt8, DType::kUInt8, DType::kInt32, true},
    {"sdot", 1, 4, 4, DType::kInt8, DType::kInt8, DType::kInt32, true},
    {"usdot", 1, 4, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
};
static_assert(std::size(kTensorInstructions) == static_cast<size_t>(TensorInstruction::kUsdot) + 1);

constexpr const TensorInstructionEntry& EntryOf(TensorInstruction instruction) {
  return kTensorInstructions[static_cast<size_t>(instruction)];
}

constexpr std::optional<TensorInstruction> ParseTensorInstruction(std::string_view name) {
  for (size_t i = 0; i < std::size(kTensorInstructions); ++i) {
    if (kTensorInstructions[i].name == name) return static_cast<TensorInstruction>(i);
  }
  return std::nullopt;
}

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_TENSOR_INSTRUCTION_H_
