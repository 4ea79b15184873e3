// SPDX-License-Identifier: Apache-2.0
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

// In the order of the enumerators.
inline constexpr TensorInstructionEntry kTensorInstructions[] = {
    {"vpdpbusd_512", 1, 16, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {"vpdpbusd_256", 1, 8, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {"udot", 1, 4, 4, DType::kUInt8, DType::kUInt8, DType::kInt32, true},
    {"sdot", 1, 4, 4, DType::kInt8, DType::kInt8, DType::kInt32, true},
    {"usdot", 1, 4, 4, DType::kUInt8, DType::kInt8, DType::kInt32, true},
    {"mma_tf32", 2, 2, 8, DType::kFloat32, DType::kFloat32, DType::kFloat32, false, 32, 1, 10},
    {"mma_f16", 2, 2, 16, DType::kFloat16, DType::kFloat16, DType::kFloat32, false, 32},
    {"mma_bf16", 2, 2, 16, DType::kBFloat16, DType::kBFloat16, DType::kFloat32, false, 32},
    {"wgmma_tf32", 2, 2, 8, DType::kFloat32, DType::kFloat32, DType::kFloat32, false, 128, 4, 10, true, true},
    {"wgmma_f16", 2, 2, 16, DType::kFloat16, DType::kFloat16, DType::kFloat32, false, 128, 8, 0, false, true},
    {"wgmma_bf16", 2, 2, 16, DType::kBFloat16, DType::kBFloat16, DType::kFloat32, false, 128, 8, 0, false, true},
    {"wgmma_tf32_registers", 2, 2, 8, DType::kFloat32, DType::kFloat32, DType::kFloat32, false, 128, 4, 10, true, true,
     true},
};
static_assert(std::size(kTensorInstructions) == static_cast<size_t>(TensorInstruction::kWgmmaTf32Registers) + 1);

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
