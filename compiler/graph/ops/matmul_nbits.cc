// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of com.microsoft: a product with weights of 2, 4 or 8 bits, which stay packed in memory.
#include "compiler/graph/ops/families.h"
#include "compiler/graph/ops/vocabulary.h"
#include "fmt/format.h"

namespace hone::graph {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Expr;

// The layout of the weights: `outputs` rows of `inputs` numbers, in blocks that share a scale and a zero point. The
// first number of a byte is in its lowest bits.
struct PackedWeights {
  int64_t inputs = 0, outputs = 0, bits = 4, block = 0;

  int64_t blocks() const { return (inputs + block - 1) / block; }
  int64_t block_bytes() const { return block * bits / 8; }
  int64_t per_byte() const { return 8 / bits; }
  int64_t zero_bytes() const { return (blocks() + per_byte() - 1) / per_byte(); }  // of one row's zero points
};

// Returns true if the buffer has rows of so many elements, as [rows, columns] or flat.
bool HasRows(const Buffer& buffer, int64_t rows, int64_t columns) {
  return buffer->shape == Dims{rows, columns} || buffer->shape == Dims{rows * columns};
}

Expr ReadRow(const Buffer& buffer, const Expr& row, const Expr& column, int64_t columns) {
  return Rank(buffer) == 2 ? Read(buffer, {row, column}) : Read(buffer, {row * Expr(columns) + column});
}

absl::StatusOr<PackedWeights> ReadPackedWeights(const OpArgs& args) {
  PackedWeights weights{args.Int("K", 0), args.Int("N", 0), args.Int("bits", 4), args.Int("block_size", 0)};
  const auto limited = [](int64_t value) { return value >= 1 && value <= kDimensionMax; };
  if (!limited(weights.inputs) || !limited(weights.outputs) || !limited(weights.block)) {
    return Malformed("attributes K, N and block_size must be positive");
  }
  if (weights.bits != 2 && weights.bits != 4 && weights.bits != 8) {
    return Unsupported(fmt::format("attribute bits is {}; 2, 4 and 8 are supported", weights.bits));
  }
  if (args.Int("weight_prepacked", 0) != 0) return Unsupported("weights in the layout of a device are not supported");
  if (weights.block * weights.bits % 8 != 0) return Malformed("a block must be whole bytes");
  if (Rank(args.inputs[0]) == 0 || args.inputs[0]->shape.back() != weights.inputs) {
    return Malformed(fmt::format("the last dimension of input 0 must be {}, as attribute K says", weights.inputs));
  }
  const Dims packed = {weights.outputs, weights.blocks(), weights.block_bytes()};
  if (args.inputs[1]->shape != packed || args.inputs[1]->dtype != DType::kUInt8) {
    return Malformed(fmt::format("the weights (input 1) must be u8[{},{},{}]", packed[0], packed[1], packed[2]));
  }
  return weights;
}

absl::Status CheckScales(const OpArgs& args, const PackedWeights& weights) {
  const bool fits = HasRows(args.inputs[2], weights.outputs, weights.blocks());
  if (!fits || !ir::IsFloat(args.inputs[2]->dtype)) return Malformed("the scales (input 2) must be one per block");
  if (args.Has(3)) {
    const bool bytes = args.inputs[3]->dtype == DType::kUInt8;
    if (!bytes && !ir::IsFloat(args.inputs[3]->dtype))
      return Malformed("the zero points (input 3) must be u8 or floats");
    if (!HasRows(args.inputs[3], weights.outputs, bytes ? weights.zero_bytes() : weights.blocks())) {
      return Malformed("the zero points (input 3) must be one per block");
    }
  }
  if (args.Has(4) && (Rank(args.inputs[4]) != 1 || args.inputs[4]->shape[0].min() < weights.inputs ||
                      !ir::IsInt(args.inputs[4]->dtype))) {
    return Malformed("the blocks (input 4) must be one integer per row of the weights");
  }
  if (args.Has(5) && args.inputs[5]->shape != Shape{weights.outputs}) {
    return Malformed("the bias (input 5) must have one number per output");
  }
  return absl::OkStatus();
}

// Number `place` of the numbers packed in a byte, as i32.
Expr Unpack(const Expr& byte, const Expr& place, int64_t bits) {
  const DType i32 = DType::kInt32;
  if (bits == 8) return To(i32, byte);
  const Expr shift = To(i32, place) * ir::MakeInt({i32, 1}, bits);
  return MakeBinary(ir::BinaryOp::kAnd, MakeBinary(ir::BinaryOp::kShr, To(i32, byte), shift),
                    ir::MakeInt({i32, 1}, (int64_t{1} << bits) - 1));
}

// (number - zero point) * scale of the weight in a row and a column.
Expr UnpackedWeight(const OpArgs& args, const PackedWeights& weights, const Expr& row, const Expr& column, DType wide) {
  const Expr block(weights.block), per_byte(weights.per_byte());
  const Expr own = FloorDiv(column, block), inside = FloorMod(column, block);
  const Expr byte = Read(args.inputs[1], {row, own, FloorDiv(inside, per_byte)});
  const Expr number = To(wide, Unpack(byte, FloorMod(inside, per_byte), weights.bits));
  const Expr group = args.Has(4) ? ReadIndex(args.inputs[4], {column}, weights.blocks()) : own;
  Expr zero = Number(wide, static_cast<double>(int64_t{1} << (weights.bits - 1)));
  if (args.Has(3) && args.inputs[3]->dtype == DType::kUInt8) {
    const Expr zeros = ReadRow(args.inputs[3], row, FloorDiv(group, per_byte), weights.zero_bytes());
    zero = To(wide, Unpack(zeros, FloorMod(group, per_byte), weights.bits));
  } else if (args.Has(3)) {
    zero = To(wide, ReadRow(args.inputs[3], row, group, weights.blocks()));
  }
  return (number - zero) * To(wide, ReadRow(args.inputs[2], row, group, weights.blocks()));
}

// Inputs: x [..., K], weights u8[N, blocks, bytes of a block], scales [N, blocks], zero points (optional, u8 packed as
// the weights or floats per block), block of each row (optional), bias [N] (optional).
OpResult MatMulNBits(const OpArgs& args, StageBuilder& builder) {
  HONE_ASSIGN_OR_RETURN(const PackedWeights weights, ReadPackedWeights(args));
  HONE_RETURN_IF_ERROR(CheckScales(args, weights));
  const Buffer& x = args.inputs[0];
  const DType wide = ComputeType(x->dtype);
  Shape shape = x->shape;
  shape.back() = weights.outputs;
  const Buffer matrix = Map(builder, "weights", wide, {weights.outputs, weights.inputs},
                            [&](Indices i) { return UnpackedWeight(args, weights, i[0], i[1], wide); });
  const DType sum_type = args.Has(5) ? wide : x->dtype;
  Buffer sum =
      Reduce(builder, "matmul", sum_type, shape, {weights.inputs}, ir::Reduction::kSum, [&](Indices i, Indices r) {
        Exprs place(i.begin(), i.end());
        place.back() = r[0];
        return Read(x, std::move(place)) * Read(matrix, {i.back(), r[0]});
      });
  if (!args.Has(5)) return Buffers{sum};
  return Buffers{Map(builder, "bias", x->dtype, shape,
                     [&](Indices i) { return ReadHere(sum, i) + ReadAs(wide, args.inputs[5], {i.back()}); })};
}

// The range for random test data: all bytes as weights, small scales.
void PackedWeightRange(const OpArgs& args, size_t input, double* low, double* high) {
  const bool bytes =
      input < args.inputs.size() && args.inputs[input] != nullptr && args.inputs[input]->dtype == DType::kUInt8;
  if (input == 2) {
    *low = 0.01;
    *high = 0.1;
  } else if (bytes) {
    *low = 0;
    *high = 255;
  } else if (input == 4) {
    *low = 0;
    *high = 0;
  }
}

constexpr OpDef kMatMulNBitsOps[] = {
    {"MatMulNBits", Checked<MatMulNBits, 3, Elements::kFloat>, {.label = {"matmul_nbits"}}, PackedWeightRange},
};

}  // namespace

std::span<const OpDef> MatMulNBitsOps() { return kMatMulNBitsOps; }

}  // namespace hone::graph
