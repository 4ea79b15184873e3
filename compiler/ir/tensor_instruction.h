// SPDX-License-Identifier: Apache-2.0
// The tensor instructions (matrix multiply-accumulate) as one table: shapes, element types and operand layouts. The
// statement Mma (stmt.h) gives their meaning.
//
// Not here: which targets have which instruction (compiler/target/tensor_instructions.h), and how a back end spells it.
// A new instruction is an enumerator and a row. The order of both is free, because nothing stored depends on it.
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
  kVpdpbusd512,  // x86-64: four products per 32-bit element of a vector
  kVpdpbusd256,
  kUdot,  // AArch64: the same in vectors of 128 bits
  kSdot,
  kUsdot,
  kMmaTf32,  // NVIDIA, from sm_80 on: one lane's share of mma.m16n8k8
  kMmaF16,   // mma.m16n8k16
  kMmaBf16,
  kWgmmaTf32,  // sm_90a only: wgmma.m64n8k8; the back end joins adjacent ones to one instruction with more columns
  kWgmmaF16,   // wgmma.m64n8k16
  kWgmmaBf16,
  kWgmmaTf32Registers,  // as kWgmmaTf32, but with a in registers
};

// sum[m, n] += a[m, k] * b[n, k] over all k. Integers are exact and wrap. Products of floats are exact; the order of
// their f32 additions is unspecified. Rows are contiguous in memory (n elements of the sum, k of a and b), except that
// rows of a and b may consist of chunks.
struct TensorInstructionEntry {
  TensorInstruction instruction;
  // The value that stands for it in decisions, which records keep. It never changes and no other row ever takes it. A
  // new row takes the next free one. In a decision that may also choose no instruction, 0 means none; the instruction
  // whose number is 0 is on offer only where one is always used.
  int64_t number;
  std::string_view name;  // in the IR's and schedules' text; stored, so it must not change
  int64_t m, n, k;
  DType a, b, sum;
  bool b_rows_adjacent = false;  // the rows of b are adjacent in memory
  // The number of lanes that execute it together, each with its own m x n accumulators. Of each 32 lanes, lane 4 g + t
  // holds the rows of a that all lanes with the same g share, and columns 2 t and 2 t + 1 of the eight columns.
  int64_t lanes = 1;
  int64_t chunk =
      0;  // contiguous elements in a row of a or b; chunks lie `column_stride` elements apart. 0: the whole row.
  int fraction_bits = 0;  // f32 operands are rounded to this many bits, to nearest, ties away from zero; 0: no rounding
  bool truncates = false;  // operands are truncated instead (rounded towards zero)
  // The instruction itself reads a and b from shared memory and runs asynchronously. There a matrix is a sequence of
  // blocks: eight rows of one chunk, 16 bytes, each. Lane 4 g + t of warp w has row g of blocks 2 w and 2 w + 1 of a.
  bool is_async = false;
  bool loads_a = false;  // with is_async: lanes load a, from any memory, into registers and round it to nearest

  int64_t Chunk() const { return chunk == 0 ? k : chunk; }
};

inline constexpr int64_t kLanesOfRow = 4;  // lanes with the same g: t is below this
inline constexpr int64_t kBlockRows = 8;   // rows of a block: g is below this

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
