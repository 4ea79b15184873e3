// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp do together: reductions over lanes by shuffles, and tensor instructions (mma).
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <bit>

#include "base/status.h"
#include "compiler/codegen/llvm/ptx_emitter.h"
#include "compiler/codegen/llvm/tensor_intrinsics.h"
#include "compiler/ir/serial_lanes.h"

namespace hone::codegen {

// The value that the lane at that distance has, of any type. members: the lanes that take part, one bit each.
llvm::Value* PtxEmitter::EmitShuffle(llvm::Value* value, int64_t distance, llvm::Value* members) {
  constexpr uint32_t kWholeWarp = 31;
  llvm::Type* const type = value->getType();
  llvm::Type* const word = builder_.getInt32Ty();
  const unsigned bits = type->getPrimitiveSizeInBits();
  const auto shuffle = [&](llvm::Value* own) {
    return builder_.CreateIntrinsic(
        llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
        {members, own, builder_.getInt32(static_cast<uint32_t>(distance)), builder_.getInt32(kWholeWarp)});
  };
  if (bits == 64) {
    llvm::Type* const words = llvm::FixedVectorType::get(word, 2);
    llvm::Value* const halves = builder_.CreateBitCast(value, words);
    llvm::Value* other = llvm::UndefValue::get(words);
    for (unsigned i = 0; i < 2; ++i) {
      other = builder_.CreateInsertElement(other, shuffle(builder_.CreateExtractElement(halves, i)), i);
    }
    return builder_.CreateBitCast(other, type);
  }
  llvm::Type* const integer = builder_.getIntNTy(bits);
  llvm::Value* const other = shuffle(builder_.CreateZExt(builder_.CreateBitCast(value, integer), word));
  return builder_.CreateBitCast(builder_.CreateTrunc(other, integer), type);
}

// The lanes whose parts this lane's result is made of, one bit each. The other lanes of the warp need not take part.
llvm::Value* PtxEmitter::EmitReduceLaneMask(int64_t parts) {
  if (parts == ir::kLaneReducePartsMax) return builder_.getInt32(UINT32_MAX);
  const ir::Expr lane = ir::MakeVar(ir::kLaneVar);
  const ir::Expr first = ir::FloorMod(lane, ir::Expr(ir::kLaneReducePartsMax)) - ir::FloorMod(lane, ir::Expr(parts));
  llvm::Value* const place = builder_.CreateTrunc(EmitExpr(first), builder_.getInt32Ty());
  return builder_.CreateShl(builder_.getInt32((uint32_t{1} << parts) - 1), place);
}

void PtxEmitter::EmitLaneReduce(const ir::LaneReduce& reduce) {
  const ir::Type type = reduce.value.type();
  const std::string own_name = "merge\nown", other_name = "merge\nother";  // no Var of a func has a line break
  const ir::Expr own = ir::MakeVar(own_name, type), other = ir::MakeVar(other_name, type);
  const ir::Expr both = ir::Combine(reduce.reduction, own, other);
  const ir::Expr part = reduce.mask.defined()
                            ? ir::MakeSelect(reduce.mask, reduce.value, ir::Identity(reduce.reduction, type))
                            : reduce.value;
  llvm::Value* value = EmitExpr(part);
  ForgetValues();
  llvm::Value* const members = EmitReduceLaneMask(reduce.parts);
  // The sum must not be fused with a product before it: lanes would get different results.
  const bool adds = reduce.reduction == ir::Reduction::kSum && ir::IsFloat(type.dtype);
  const auto add = type.dtype == ir::DType::kFloat64 ? llvm::Intrinsic::nvvm_add_rn_d : llvm::Intrinsic::nvvm_add_rn_f;
  for (int64_t distance = reduce.parts / 2; distance > 0; distance /= 2) {
    variables_[own_name] = value;
    variables_[other_name] = EmitShuffle(value, distance, members);
    value = adds ? builder_.CreateIntrinsic(add, {}, {value, variables_[other_name]}) : EmitExpr(both);
    ForgetValues();
  }
  variables_[own_name] = value;
  const ir::Load& place = *reduce.place.As<ir::Load>();
  ir::Expr writes = reduce.mask;
  if (place.buffer->scope != ir::Scope::kLocal) {
    const ir::Expr first = ir::Equals(reduce.part, ir::Expr(0));
    writes = writes.defined() ? first && writes : first;
  }
  const ir::Stmt store = ir::MakeStore(place.buffer, place.indices, own);
  EmitStmt(writes.defined() ? ir::MakeIf(writes, store) : store);
  variables_.erase(own_name);
  variables_.erase(other_name);
}

// A quarter of a row of a or b, eight bytes, as the two registers of it that mma takes. The order of the steps of the
// reduction is not the one of mma's own numbers, but it is the same for a and b.
std::array<llvm::Value*, 2> PtxEmitter::EmitQuarterRow(const ir::MatrixOperand& operand, llvm::Value* offset,
                                                       const ir::TensorInstructionEntry& entry) {
  const ir::Load& first = *operand.first.As<ir::Load>();
  llvm::Type* const element = MemoryTypeOf(first.buffer->dtype);
  llvm::Type* const word = entry.fraction_bits > 0 ? builder_.getFloatTy() : builder_.getInt32Ty();
  llvm::Value* const address = builder_.CreateGEP(element, Address(first.buffer, first.indices[0], element), offset);
  std::array<llvm::Value*, 2> words;
  if (operand.column_stride == 1) {
    // The offset leads to another row than the lane's own: a number of strides further, or back.
    const auto stride = static_cast<uint64_t>(operand.stride * ir::SizeOf(first.buffer->dtype));
    const llvm::Align own = llvm::commonAlignment(AlignOf(*first.buffer, first.indices[0]), stride);
    const llvm::Align align = std::min(own, llvm::Align(8));
    auto* const load = builder_.CreateAlignedLoad(llvm::FixedVectorType::get(word, 2), address, align);
    Annotate(load, first.buffer.get());
    for (unsigned i = 0; i < 2; ++i) words[i] = builder_.CreateExtractElement(load, i);
  } else {
    for (unsigned i = 0; i < 2; ++i) {
      llvm::Value* const place =
          builder_.CreateConstGEP1_64(element, address, i * static_cast<uint64_t>(operand.column_stride));
      auto* const load = builder_.CreateAlignedLoad(word, place, llvm::Align(ir::SizeOf(entry.b)));
      Annotate(load, first.buffer.get());
      words[i] = load;
    }
  }
  for (llvm::Value*& w : words) {
    if (entry.fraction_bits > 0) w = EmitRoundedBeforeTruncation(builder_, w, entry.fraction_bits);
    if (entry.a == ir::DType::kFloat16) {
      w = builder_.CreateBitCast(w, llvm::FixedVectorType::get(builder_.getHalfTy(), 2));
    }
  }
  return words;
}

// 32 lanes run mma together. Each loads the part of a and b that mma takes from it, which lies in the rows and columns
// of its neighbours.
void PtxEmitter::EmitMma(const ir::Mma& mma) {
  const ir::TensorInstructionEntry& entry = EntryOf(mma.instruction);
  HONE_CHECK(entry.lanes > 1);
  const auto number = [&](int64_t n) { return builder_.getInt64(static_cast<uint64_t>(n)); };
  llvm::Value* const lane = builder_.CreateAnd(variables_.at(ir::kLaneVar), number(entry.lanes - 1));
  llvm::Value* const t = builder_.CreateAnd(lane, number(ir::kLanesOfRow - 1));
  llvm::Value* const g = builder_.CreateLShr(lane, number(std::countr_zero<uint64_t>(ir::kLanesOfRow)));
  const int64_t quarter = entry.k / ir::kLanesOfRow;
  const auto times = [&](llvm::Value* value, int64_t factor) { return builder_.CreateMul(value, number(factor)); };
  llvm::Value* const own = times(t, quarter * mma.a.column_stride);
  const auto row = EmitQuarterRow(mma.a, own, entry);
  const auto next_row = EmitQuarterRow(mma.a, builder_.CreateAdd(own, number(mma.a.stride)), entry);
  llvm::Value* const column = times(builder_.CreateSub(g, times(t, entry.n)), mma.b.stride);
  const auto b = EmitQuarterRow(mma.b, builder_.CreateAdd(column, times(t, quarter * mma.b.column_stride)), entry);
  const ir::Load& sum = *mma.sum.first.As<ir::Load>();
  llvm::Value* const first = Address(sum.buffer, sum.indices[0], builder_.getFloatTy());
  Values places, arguments = {row[0], next_row[0], row[1], next_row[1], b[0], b[1]};
  for (const int64_t place : {int64_t{0}, int64_t{1}, mma.sum.stride, mma.sum.stride + 1}) {
    places.push_back(builder_.CreateConstGEP1_64(builder_.getFloatTy(), first, static_cast<uint64_t>(place)));
    auto* const load = builder_.CreateLoad(builder_.getFloatTy(), places.back());
    Annotate(load, sum.buffer.get());
    arguments.push_back(load);
  }
  llvm::Value* const sums = builder_.CreateIntrinsic(IntrinsicOf(mma.instruction).id, {}, arguments);
  for (unsigned i = 0; i < places.size(); ++i) {
    Annotate(builder_.CreateStore(builder_.CreateExtractValue(sums, i), places[i]), sum.buffer.get());
  }
  ForgetValues();
}

}  // namespace hone::codegen
