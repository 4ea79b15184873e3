// SPDX-License-Identifier: Apache-2.0
#include "compiler/graph/ops/philox.h"

#include <bit>
#include <cmath>

namespace hone::graph {
namespace {

using ir::BinaryOp;
using ir::Buffer;
using ir::DType;
using ir::Expr;
using ir::Intrinsic;

constexpr ir::Type kWord{DType::kUInt64, 1};
constexpr int64_t kLowWord = 0xFFFFFFFF;
// Multiplier and key increment of Philox 2x32.
constexpr int64_t kPhiloxMultiplier = 0xD256D193;
constexpr uint32_t kPhiloxKeyStep = 0x9E3779B9;
constexpr int kPhiloxRounds = 10;
constexpr int kRoundsPerStage = 2;  // a round reads its argument three times, so a stage reads its own 3^rounds times

Expr Word(int64_t bits) { return ir::MakeInt(kWord, bits); }
Expr HighWord(const Expr& x) { return MakeBinary(BinaryOp::kShr, x, Word(32)); }
Expr LowWord(const Expr& x) { return MakeBinary(BinaryOp::kAnd, x, Word(kLowWord)); }

// One round on a block of two words. The low word is multiplied by the multiplier. The low half of the product becomes
// the new high word. Its high half, mixed with the key and the old high word, becomes the new low word.
Expr PhiloxRound(const Expr& block, uint32_t key) {
  const Expr product = LowWord(block) * Word(kPhiloxMultiplier);
  const Expr left =
      MakeBinary(BinaryOp::kXor, MakeBinary(BinaryOp::kXor, HighWord(product), Word(key)), HighWord(block));
  return MakeBinary(BinaryOp::kOr, left, MakeBinary(BinaryOp::kShl, LowWord(product), Word(32)));
}

// The upper `bits` bits of a word as a float in [0, 1).
Expr Fraction(DType dtype, const Expr& word, int bits, int word_bits) {
  const DType integer = dtype == DType::kFloat64 ? DType::kInt64 : DType::kInt32;
  const Expr top = MakeBinary(BinaryOp::kShr, word, Word(word_bits - bits));
  return To(dtype, To(integer, top)) * Number(dtype, std::ldexp(1.0, -bits));
}

}  // namespace

uint32_t PhiloxKey(const OpArgs& args) {
  if (HasAttribute(args, "seed")) return std::bit_cast<uint32_t>(static_cast<float>(args.Float("seed", 0)));
  uint32_t hash = 2166136261;  // FNV-1a
  for (const char c : args.node.name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash;
}

Buffer EmitRandomBits(StageBuilder& builder, uint32_t key, const Shape& shape) {
  Buffer block;
  for (int round = 0; round < kPhiloxRounds; round += kRoundsPerStage) {
    block = builder.Compute("philox", DType::kUInt64, shape, [&](Indices i) {
      Expr value = block == nullptr ? To(DType::kUInt64, Flatten(i, shape)) : ReadHere(block, i);
      for (int k = round; k < round + kRoundsPerStage; ++k) {
        value = PhiloxRound(value, key + static_cast<uint32_t>(k) * kPhiloxKeyStep);
      }
      return value;
    });
  }
  return block;
}

Buffer EmitUniform(StageBuilder& builder, uint32_t key, DType dtype, const Shape& shape) {
  const Buffer block = EmitRandomBits(builder, key, shape);
  return builder.Compute("uniform", dtype, shape, [&](Indices i) {
    const Expr bits = ReadHere(block, i);
    return dtype == DType::kFloat64 ? Fraction(dtype, bits, 53, 64) : Fraction(dtype, LowWord(bits), 24, 32);
  });
}

// The method of Box and Muller: both words of a block give one number.
Buffer EmitNormal(StageBuilder& builder, uint32_t key, DType dtype, const Shape& shape) {
  const Buffer block = EmitRandomBits(builder, key, shape);
  const int bits = dtype == DType::kFloat64 ? 32 : 24;
  return builder.Compute("normal", dtype, shape, [&](Indices i) {
    const Expr words = ReadHere(block, i);
    // In (0, 1], because the logarithm of 0 is infinite.
    const Expr radius = Number(dtype, 1) - Fraction(dtype, LowWord(words), bits, 32);
    const Expr angle = Fraction(dtype, HighWord(words), bits, 32) * Number(dtype, 2 * M_PI);
    return Sqrt(Apply(Intrinsic::kLog, radius) * Number(dtype, -2)) * Apply(Intrinsic::kCos, angle);
  });
}

}  // namespace hone::graph
