// SPDX-License-Identifier: Apache-2.0
// The instructions that multiply small matrices and add to a third, as one table of data: shapes, element types, and
// how the operands lie in memory. What one means is said by the statement Contract (stmt.h).
//
// Not here: which targets have which (compiler/target/tensor_instructions.h), and how a back end spells them. A new one
// is an enumerator and a row; the order of both is free, because nothing stored depends on it.
#ifndef HONE_COMPILER_IR_TENSOR_INSTRUCTION_H_
#define HONE_COMPILER_IR_TENSOR_INSTRUCTION_H_

#include <algorithm>
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
  kMmaTf32,  // NVIDIA, from sm_80 on: mma.m16n8k8, of which this is the part of one lane
  kMmaF16,   // mma.m16n8k16
  kMmaBf16,
  kWgmmaTf32,  // sm_90a alone: wgmma.m64n8k8, of which several that stand beside each other are one of more columns
  kWgmmaF16,   // wgmma.m64n8k16
  kWgmmaBf16,
  kWgmmaTf32Registers,  // as kWgmmaTf32, with a from registers
};

// sum[m, n] += a[m, k] * b[n, k] over all k. Integers are exact and wrap, as everywhere in the IR. Products of floats
// are exact; in which order they are added, in f32, is not said. Of each operand a row lies side by side in memory: n
// elements of the sum, k of a, k of b; or of a and b in chunks.
struct TensorInstructionEntry {
  TensorInstruction instruction;
  // The value that stands for it in decisions, which records keep. It never changes and no other row ever takes it. A
  // new row takes the next free one. In a decision that may also choose no instruction, 0 means none; the instruction
  // whose number is 0 is on offer only where one is always used.
  int64_t number;
  std::string_view name;  // in text
  int64_t m, n, k;
  DType a, b, sum;
  bool b_rows_follow = false;  // the rows of b lie directly behind one another
  // How many lanes run it together, each for its own m x n sums: lane 4 g + t of 32 has the rows of a of all lanes with
  // its g, and the columns 2 t and 2 t + 1 of eight that are stride after stride.
  int64_t lanes = 1;
  int64_t chunk = 0;      // elements of a row of a or b that lie side by side, the next so many apart; 0: all of them
  int fraction_bits = 0;  // a and b are rounded to so many first, to nearest, ties away from zero; 0: they are not
  bool cuts = false;      // they are rounded towards zero
  // The instruction itself reads a and b, in shared memory, as blocks of eight rows of a chunk, 16 bytes, that follow
  // one another: lane 4 g + t of warp w has row g of blocks 2 w and 2 w + 1 of a.
  bool blocks = false;
  bool loads_a = false;  // of blocks: but a, which lanes load from wherever it lies, and round to nearest

  int64_t Chunk() const { return chunk == 0 ? k : chunk; }
};

inline constexpr int64_t kLanesOfRow = 4;  // of those that run one together: t is below it
inline constexpr int64_t kBlockRows = 8;   // g is below it

inline constexpr TensorInstructionEntry kTensorInstructions[] = {
    {TensorInstruction::kVpdpbusd512, 0, "vpdpbusd_512", 1, 16, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {TensorInstruction::kVpdpbusd256, 1, "vpdpbusd_256", 1, 8, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {TensorInstruction::kUdot, 2, "udot", 1, 4, 4, DType::kUInt8, DType::kUInt8, DType::kInt32, true},
    {TensorInstruction::kSdot, 3, "sdot", 1, 4, 4, DType::kInt8, DType::kInt8, DType::kInt32, true},
    {TensorInstruction::kUsdot, 4, "usdot", 1, 4, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {TensorInstruction::kMmaTf32, 6, "mma_tf32", 2, 2, 8, DType::kFloat32, DType::kFloat32, DType::kFloat32, false, 32,
     1, 10},
    {TensorInstruction::kMmaF16, 7, "mma_f16", 2, 2, 16, DType::kFloat16, DType::kFloat16, DType::kFloat32, false, 32},
    {TensorInstruction::kMmaBf16, 8, "mma_bf16", 2, 2, 16, DType::kBFloat16, DType::kBFloat16, DType::kFloat32, false,
     32},
    {TensorInstruction::kWgmmaTf32, 9, "wgmma_tf32", 2, 2, 8, DType::kFloat32, DType::kFloat32, DType::kFloat32, false,
     128, 4, 10, true, true},
    {TensorInstruction::kWgmmaF16, 10, "wgmma_f16", 2, 2, 16, DType::kFloat16, DType::kFloat16, DType::kFloat32, false,
     128, 8, 0, false, true},
    {TensorInstruction::kWgmmaBf16, 11, "wgmma_bf16", 2, 2, 16, DType::kBFloat16, DType::kBFloat16, DType::kFloat32,
     false, 128, 8, 0, false, true},
    {TensorInstruction::kWgmmaTf32Registers, 12, "wgmma_tf32_registers", 2, 2, 8, DType::kFloat32, DType::kFloat32,
     DType::kFloat32, false, 128, 4, 10, true, true, true},
};

constexpr const TensorInstructionEntry& EntryOf(TensorInstruction instruction) {
  return *std::ranges::find(kTensorInstructions, instruction, &TensorInstructionEntry::instruction);
}

constexpr std::optional<TensorInstruction> ParseTensorInstruction(std::string_view name) {
  const auto row = std::ranges::find(kTensorInstructions, name, &TensorInstructionEntry::name);
  return row == std::end(kTensorInstructions) ? std::nullopt : std::optional(row->instruction);
}

// The instruction that a decision names. The number must be one of the table.
constexpr TensorInstruction InstructionOfNumber(int64_t number) {
  return std::ranges::find(kTensorInstructions, number, &TensorInstructionEntry::number)->instruction;
}

// Every enumerator has one row, and no two rows share a number.
static_assert([] {
  constexpr auto kLast = static_cast<size_t>(TensorInstruction::kWgmmaTf32Registers);
  for (size_t i = 0; i <= kLast; ++i) {
    if (EntryOf(static_cast<TensorInstruction>(i)).instruction != static_cast<TensorInstruction>(i)) return false;
  }
  for (const TensorInstructionEntry& row : kTensorInstructions) {
    if (InstructionOfNumber(row.number) != row.instruction) return false;
  }
  return std::size(kTensorInstructions) == kLast + 1;
}());

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_TENSOR_INSTRUCTION_H_
