// SPDX-License-Identifier: Apache-2.0
// Merges: lanes read each other's registers, by shuffles.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/plain.h"

namespace hone::codegen {

// What the lane `distance` away has of it, whatever its type. `members`: the lanes that shuffle, one bit each.
llvm::Value* Emitter::EmitShuffle(llvm::Value* value, int64_t distance, llvm::Value* members) {
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

// The lanes that have parts of what this lane merges, one bit of a warp each: no others need come.
llvm::Value* Emitter::EmitMembers(int64_t parts) {
  if (parts == ir::kMostParts) return builder_.getInt32(UINT32_MAX);
  const ir::Expr lane = ir::MakeVar(ir::kLaneVar);
  const ir::Expr first = ir::FloorMod(lane, ir::Expr(ir::kMostParts)) - ir::FloorMod(lane, ir::Expr(parts));
  llvm::Value* const place = builder_.CreateTrunc(EmitExpr(first), builder_.getInt32Ty());
  return builder_.CreateShl(builder_.getInt32((uint32_t{1} << parts) - 1), place);
}

void Emitter::EmitMerge(const ir::Merge& merge) {
  if (!func_.grid.defined()) return EmitStmt(ir::OneByOne(merge));
  const ir::Type type = merge.value.type();
  const std::string own_name = "merge\nown", other_name = "merge\nother";  // no Var of the func has a line's end
  const ir::Expr own = ir::MakeVar(own_name, type), other = ir::MakeVar(other_name, type);
  const ir::Expr both = ir::Combine(merge.reduction, own, other);
  const ir::Expr part =
      merge.mask.defined() ? ir::MakeSelect(merge.mask, merge.value, ir::Identity(merge.reduction, type)) : merge.value;
  llvm::Value* value = EmitExpr(part);
  emitted_.clear();
  llvm::Value* const members = EmitMembers(merge.parts);
  // A sum that is fused with a product before it would differ from lane to lane.
  const bool adds = merge.reduction == ir::Reduction::kSum && ir::IsFloat(type.dtype);
  const auto add = type.dtype == ir::DType::kFloat64 ? llvm::Intrinsic::nvvm_add_rn_d : llvm::Intrinsic::nvvm_add_rn_f;
  for (int64_t distance = merge.parts / 2; distance > 0; distance /= 2) {
    variables_[own_name] = value;
    variables_[other_name] = EmitShuffle(value, distance, members);
    value = adds ? builder_.CreateIntrinsic(add, {}, {value, variables_[other_name]}) : EmitExpr(both);
    emitted_.clear();
  }
  variables_[own_name] = value;
  const ir::Load& place = *merge.place.As<ir::Load>();
  ir::Expr writes = merge.mask;
  if (place.buffer->scope != ir::Scope::kLocal) {
    const ir::Expr first = ir::Equals(merge.part, ir::Expr(0));
    writes = writes.defined() ? first && writes : first;
  }
  const ir::Stmt store = ir::MakeStore(place.buffer, place.indices, own);
  EmitStmt(writes.defined() ? ir::MakeIf(writes, store) : store);
  variables_.erase(own_name);
  variables_.erase(other_name);
}

}  // namespace hone::codegen
