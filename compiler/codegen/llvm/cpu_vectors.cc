// SPDX-License-Identifier: Apache-2.0
// Vector code of CPUs: masked and strided accesses, and reductions over the elements of one vector.
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Target/TargetMachine.h>

#include <numeric>

#include "compiler/codegen/llvm/cpu_emitter.h"
#include "compiler/ir/match.h"
#include "compiler/ir/safe_bounds.h"

namespace hone::codegen {
namespace {

// A scalar that is true if and only if all elements of the mask are; undefined where the form of the mask does not show
// it.
ir::Expr AllElementsCondition(const ir::Expr& mask, const ir::Ranges& ranges) {
  if (const ir::Broadcast* same = mask.As<ir::Broadcast>()) return same->value;
  const ir::Binary* binary = mask.As<ir::Binary>();
  if (binary == nullptr) return {};
  if (binary->op == ir::BinaryOp::kAnd) {
    const ir::Expr a = AllElementsCondition(binary->a, ranges), b = AllElementsCondition(binary->b, ranges);
    return a.defined() && b.defined() ? a && b : ir::Expr();
  }
  const ir::Ramp* ramp = binary->a.As<ir::Ramp>();
  const ir::Broadcast* bound = binary->b.As<ir::Broadcast>();
  const int64_t stride = ramp == nullptr ? 0 : ir::ConstantValue(ramp->stride).value_or(0);
  const bool below = binary->op == ir::BinaryOp::kLt || binary->op == ir::BinaryOp::kLe;
  const bool above = binary->op == ir::BinaryOp::kGt || binary->op == ir::BinaryOp::kGe;
  if (bound == nullptr || stride <= 0 || (!below && !above) || ramp->base.type() != ir::kIndexType) return {};
  if (!ir::HasSafeBounds(binary->a, ranges)) return {};  // the index may wrap
  const ir::Expr farthest = below ? ramp->base + ir::Expr(stride * (ramp->width - 1)) : ramp->base;
  return ir::MakeBinary(binary->op, farthest, bound->value);
}

}  // namespace

// for v { s[c] = s[c] op b[base + v] }: the last step of a reduction over the elements of a vector, as one vector load
// and a tree of shuffles.
bool CpuEmitter::EmitLoopByPattern(const ir::For& loop) {
  const ir::IntImm* extent = loop.extent.As<ir::IntImm>();
  const ir::Store* store = loop.body.As<ir::Store>();
  if (!fuse_ || extent == nullptr || extent->value < 4 || extent->value > 64 ||
      (extent->value & (extent->value - 1)) != 0)
    return false;
  if (store == nullptr || store->mask.defined() || store->value.type() != ir::Type{ir::DType::kFloat32, 1})
    return false;
  const ir::Binary* update = store->value.As<ir::Binary>();
  if (update == nullptr || ir::UsesVar(store->indices[0], loop.var)) return false;
  const ir::Load* total = update->a.As<ir::Load>();
  const ir::Load* part = update->b.As<ir::Load>();
  if (total == nullptr || part == nullptr || total->buffer != store->buffer ||
      !ir::Equal(total->indices[0], store->indices[0]))
    return false;
  if (part->buffer == store->buffer || part->mask.defined()) return false;
  const ir::Expr step =
      ir::Substitute(part->indices[0], {{loop.var, ir::MakeVar(loop.var) + ir::Expr(1)}}) - part->indices[0];
  if (ir::ConstantValue(step) != 1) return false;
  const bool is_min = update->op == ir::BinaryOp::kMin;
  if (!is_min && update->op != ir::BinaryOp::kMax && update->op != ir::BinaryOp::kAdd) return false;
  const ir::Expr first = ir::Simplify(ir::Substitute(part->indices[0], {{loop.var, ir::Expr(0)}}), ranges_);
  llvm::Value* parts =
      EmitExpr(ir::MakeLoad(part->buffer, {ir::MakeRamp(first, ir::Expr(1), static_cast<int>(extent->value))}));
  llvm::Value* before = EmitExpr(update->a);
  llvm::Value* result = nullptr;
  if (update->op == ir::BinaryOp::kAdd) {
    llvm::CallInst* sum = builder_.CreateFAddReduce(before, parts);
    sum->setHasAllowReassoc(true);
    result = sum;
  } else {
    for (int half = static_cast<int>(extent->value) / 2; half > 0; half /= 2) {
      llvm::SmallVector<int> low(static_cast<size_t>(half)), high(static_cast<size_t>(half));
      std::iota(low.begin(), low.end(), 0);
      std::iota(high.begin(), high.end(), half);
      parts = EmitFloatMinMax(builder_, is_min, builder_.CreateShuffleVector(parts, low),
                              builder_.CreateShuffleVector(parts, high));
    }
    result = EmitFloatMinMax(builder_, is_min, before, builder_.CreateExtractElement(parts, uint64_t{0}));
  }
  llvm::Type* element = MemoryTypeOf(store->buffer->dtype);
  Annotate(builder_.CreateAlignedStore(result, Address(store->buffer, store->indices[0], element), llvm::Align(4)),
           store->buffer.get());
  ForgetValues();
  return true;
}

// Numbers of 4 bits index a table of 16 floats in a vector register. The instruction uses the low 4 bits of each
// element only, so that it replaces a mask, a conversion and a subtraction.
llvm::Value* CpuEmitter::EmitConversion(const ir::Cast& cast, double less) {
  constexpr unsigned kEntries = 16;
  const ir::Binary* low = cast.value.As<ir::Binary>();
  const ir::Broadcast* mask = low != nullptr ? low->b.As<ir::Broadcast>() : nullptr;
  if (mask == nullptr || low->op != ir::BinaryOp::kAnd || ir::ConstantValue(mask->value) != kEntries - 1)
    return nullptr;
  const ir::DType from = cast.value.type().dtype;
  if (cast.type != ir::Type{ir::DType::kFloat32, kEntries} ||
      (from != ir::DType::kInt32 && from != ir::DType::kUInt32)) {
    return nullptr;
  }
  if (!machine_.getTargetTriple().isX86() || !machine_.getSubtargetImpl(*function_)->checkFeatures("+avx512f")) {
    return nullptr;
  }
  std::vector<float> table(kEntries);
  for (unsigned i = 0; i < kEntries; ++i) table[i] = static_cast<float>(i) - static_cast<float>(less);
  return builder_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                                  {llvm::ConstantDataVector::get(context_, table), EmitExpr(low->a)});
}

// Whether one instruction moves the wanted elements of such a vector. Otherwise LLVM tests each element and moves it
// alone.
bool CpuEmitter::HasMaskedMoves(ir::Type type) {
  llvm::Type* vector = llvm::FixedVectorType::get(MemoryTypeOf(type.dtype), type.width);
  return machine_.getTargetTransformInfo(*function_).isLegalMaskedLoad(vector, llvm::Align(ir::SizeOf(type.dtype)));
}

bool CpuEmitter::HasMaskedAccess(ir::Type type, const ir::Expr& index) {
  return HasMaskedMoves(type) && !ir::HasLoad(index);
}

// Where elements would be moved one by one, a branch takes the common case first: that all of them are wanted.
llvm::Value* CpuEmitter::EmitMasked(const ir::Expr& mask, ir::Type type,
                                    const std::function<llvm::Value*(llvm::Value*)>& access) {
  if (!mask.defined()) return access(nullptr);
  llvm::Value* const wanted = EmitExpr(mask);
  if (HasMaskedMoves(type)) return access(wanted);
  const ir::Expr all = AllElementsCondition(mask, ranges_);
  return EmitIfElse(
      all.defined() ? EmitExpr(all) : builder_.CreateAndReduce(wanted), [&] { return access(nullptr); },
      [&] { return access(wanted); });
}

// Loads the vectors that the elements lie in and shuffles them together, which costs far less than a gather. The last
// vector ends with the last element wanted: nothing beyond it is touched.
llvm::Value* CpuEmitter::EmitStridedLoad(const ir::Load& load, int64_t distance, llvm::FixedVectorType* vector) {
  if (distance > kShuffledStrideMax) return nullptr;
  const int stride = static_cast<int>(distance);
  llvm::Value* const address = Address(load.buffer, load.indices[0].As<ir::Ramp>()->base, vector->getElementType());
  const llvm::Align align(ir::SizeOf(load.buffer->dtype));
  const int width = static_cast<int>(vector->getNumElements());
  llvm::Value* result = nullptr;
  for (int v = 0; v < stride; ++v) {
    const int start = v + 1 < stride ? v * width : (width - 1) * (stride - 1);
    llvm::Instruction* access = builder_.CreateAlignedLoad(
        vector, builder_.CreateConstInBoundsGEP1_64(vector->getElementType(), address, start), align);
    Annotate(access, load.buffer.get());
    std::vector<int> picks(static_cast<size_t>(width));
    for (int i = 0; i < width; ++i) {
      const int place = i * stride - start;  // in this vector
      const bool is_here = place >= 0 && place < width;
      picks[static_cast<size_t>(i)] = v == 0 ? (is_here ? place : 0) : is_here ? width + place : i;
    }
    result = v == 0 ? builder_.CreateShuffleVector(access, picks) : builder_.CreateShuffleVector(result, access, picks);
  }
  return result;
}

}  // namespace hone::codegen
