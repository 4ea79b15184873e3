// SPDX-License-Identifier: Apache-2.0
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <cmath>

#include "base/status.h"
#include "compiler/codegen/llvm/emitter.h"
#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/safe_bounds.h"

namespace hone::codegen {
namespace {

// A scalar that is true if and only if all elements of the mask are; undefined where that is not seen.
ir::Expr AllElements(const ir::Expr& mask, const ir::Ranges& ranges) {
  if (const ir::Broadcast* same = mask.As<ir::Broadcast>()) return same->value;
  const ir::Binary* binary = mask.As<ir::Binary>();
  if (binary == nullptr) return {};
  if (binary->op == ir::BinaryOp::kAnd) {
    const ir::Expr a = AllElements(binary->a, ranges), b = AllElements(binary->b, ranges);
    return a.defined() && b.defined() ? a && b : ir::Expr();
  }
  const ir::Ramp* ramp = binary->a.As<ir::Ramp>();
  const ir::Broadcast* bound = binary->b.As<ir::Broadcast>();
  const int64_t stride = ramp == nullptr ? 0 : ir::ConstantValue(ramp->stride).value_or(0);
  const bool below = binary->op == ir::BinaryOp::kLt || binary->op == ir::BinaryOp::kLe;
  const bool above = binary->op == ir::BinaryOp::kGt || binary->op == ir::BinaryOp::kGe;
  if (bound == nullptr || stride <= 0 || (!below && !above) || ramp->base.type() != ir::kIndexType) return {};
  if (!ir::HasSafeBounds(binary->a, ranges)) return {};  // it may wrap
  const ir::Expr farthest = below ? ramp->base + ir::Expr(stride * (ramp->width - 1)) : ramp->base;
  return ir::MakeBinary(binary->op, farthest, bound->value);
}

}  // namespace

llvm::Type* Emitter::MemoryTypeOf(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kFloat16:
      return builder_.getHalfTy();
    case ir::DType::kFloat32:
      return builder_.getFloatTy();
    case ir::DType::kFloat64:
      return builder_.getDoubleTy();
    default:
      return builder_.getIntNTy(8 * ir::SizeOf(dtype));
  }
}

llvm::Type* Emitter::TypeOf(ir::Type type) {
  llvm::Type* element = type.dtype == ir::DType::kBool ? builder_.getInt1Ty() : MemoryTypeOf(type.dtype);
  return type.width == 1 ? element : llvm::FixedVectorType::get(element, type.width);
}

// Buffers never overlap: an access to one cannot touch what is in the scopes of the others.
void Emitter::Annotate(llvm::Instruction* access, const ir::BufferNode* buffer) {
  llvm::MDNode* own = places_.at(buffer).scope;
  std::vector<llvm::Metadata*> others;
  for (llvm::MDNode* scope : scopes_) {
    if (scope != own) others.push_back(scope);
  }
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {own}));
  access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
}

llvm::Value* Emitter::EmitExpr(const ir::Expr& e) {
  const auto known = emitted_.find(&e.node());
  if (known != emitted_.end()) return known->second.value;
  llvm::Value* value = EmitNode(e);
  emitted_.insert_or_assign(&e.node(), Emitted{e, value});
  return value;
}

llvm::Value* Emitter::EmitNode(const ir::Expr& e) {
  return ir::Match(
      e,
      [&](const ir::IntImm& i) -> llvm::Value* {
        return llvm::ConstantInt::get(TypeOf(i.type), static_cast<uint64_t>(i.value), true);
      },
      [&](const ir::FloatImm& f) -> llvm::Value* {
        if (f.type.dtype == ir::DType::kBFloat16) return builder_.getInt16(ir::BFloatBits(f.value));
        return llvm::ConstantFP::get(TypeOf(f.type), f.value);
      },
      [&](const ir::Var& v) -> llvm::Value* {
        const auto it = variables_.find(v.name);
        HONE_CHECK(it != variables_.end());
        return it->second;
      },
      [&](const ir::Cast& c) { return EmitCast(c); }, [&](const ir::Unary& u) { return EmitUnary(u); },
      [&](const ir::Binary& b) { return EmitBinary(e, b); }, [&](const ir::Select& s) { return EmitSelect(s); },
      [&](const ir::Load& l) { return EmitLoad(l); }, [&](const ir::Call& c) { return EmitCall(c); },
      [&](const ir::Ramp& r) -> llvm::Value* {
        llvm::Value* base = builder_.CreateVectorSplat(r.width, EmitExpr(r.base));
        llvm::Value* stride = builder_.CreateVectorSplat(r.width, EmitExpr(r.stride));
        return builder_.CreateAdd(base, builder_.CreateMul(builder_.CreateStepVector(base->getType()), stride));
      },
      [&](const ir::Broadcast& b) -> llvm::Value* { return builder_.CreateVectorSplat(b.width, EmitExpr(b.value)); });
}

llvm::Value* Emitter::EmitCast(const ir::Cast& cast) {
  const ir::Type from = cast.value.type();
  llvm::Value* value = EmitExpr(cast.value);
  if (from.dtype != ir::DType::kBFloat16) return EmitCast(value, from, cast.type);
  return EmitCast(EmitFromBFloat(builder_, value), {ir::DType::kFloat32, from.width}, cast.type);
}

// The integers as f64, for rounding them to a much shorter type: exact, or where that cannot be, off every tie.
llvm::Value* Emitter::EmitIntToFloat64(llvm::Value* value, ir::Type from) {
  const ir::Type type{ir::DType::kFloat64, from.width};
  if (ir::SizeOf(from.dtype) < 8) return EmitCast(value, from, type);
  constexpr int64_t kExact = int64_t{1} << 53;
  constexpr int64_t kBelow =
      0xFFF;  // bits that make no difference to what is rounded to far fewer, but for being there
  llvm::Type* ints = value->getType();
  const auto number = [&](int64_t n) { return llvm::ConstantInt::get(ints, static_cast<uint64_t>(n), true); };
  llvm::Value* rest = builder_.CreateAnd(value, number(kBelow));
  llvm::Value* some = builder_.CreateZExt(builder_.CreateICmpNE(rest, number(0)), ints);
  llvm::Value* odd = builder_.CreateOr(builder_.CreateAnd(value, number(~kBelow)), builder_.CreateShl(some, 11));
  llvm::Value* size = ir::IsSignedInt(from.dtype)
                          ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, builder_.getFalse())
                          : value;
  return EmitCast(builder_.CreateSelect(builder_.CreateICmpULT(size, number(kExact)), value, odd), from, type);
}

// Saturating; NaN gives 0. LLVM would convert vectors for x86, and those of short integers for all CPUs, element by
// element: they are clamped as floats first, and what is left is converted by one instruction, of short integers that
// for i32.
llvm::Value* Emitter::EmitFloatToInt(llvm::Value* value, ir::Type given, ir::Type result) {
  llvm::Type* type = TypeOf(result);
  const bool is_signed = ir::IsSignedInt(result.dtype), is_short = ir::SizeOf(result.dtype) <= 2;
  if (given.width == 1 || (!is_short && !llvm::Triple(module_->getTargetTriple()).isX86())) {
    const auto id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return builder_.CreateIntrinsic(id, {type, value->getType()}, {value});
  }
  if (given.dtype == ir::DType::kFloat16) value = EmitCast(value, given, {ir::DType::kFloat32, given.width});
  const unsigned bits = type->getScalarSizeInBits();
  const double range = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));
  const bool is_double = given.dtype == ir::DType::kFloat64;
  const double highest = std::floor(is_double ? std::nextafter(range, 0.0) : std::nextafterf(range, 0.0F));
  llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
  llvm::Value* low = llvm::ConstantFP::get(value->getType(), is_signed ? -range : 0.0);
  llvm::Value* high = llvm::ConstantFP::get(value->getType(), highest);
  llvm::Value* clamped = builder_.CreateSelect(builder_.CreateFCmpORD(value, zero), value, zero);
  clamped = builder_.CreateSelect(builder_.CreateFCmpOLT(clamped, low), low, clamped);
  clamped = builder_.CreateSelect(builder_.CreateFCmpOGT(clamped, high), high, clamped);
  if (is_short) {
    return builder_.CreateTrunc(builder_.CreateFPToSI(clamped, TypeOf({ir::DType::kInt32, result.width})), type);
  }
  llvm::Value* whole = is_signed ? builder_.CreateFPToSI(clamped, type) : builder_.CreateFPToUI(clamped, type);
  if (highest >= range - 1) return whole;  // the highest integer is a float, too
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  llvm::Value* above = builder_.CreateFCmpOGT(value, high);  // and therefore beyond every integer
  return builder_.CreateSelect(above, llvm::ConstantInt::get(type, most), whole);
}

llvm::Value* Emitter::EmitCast(llvm::Value* value, ir::Type given, ir::Type result) {
  const ir::DType from = given.dtype, to = result.dtype;
  if (to == ir::DType::kBFloat16) {
    return EmitToBFloat(builder_, ir::IsFloat(from) ? value : EmitIntToFloat64(value, given));
  }
  llvm::Type* type = TypeOf(result);
  if (to == ir::DType::kBool) {
    llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
    return ir::IsFloat(from) ? builder_.CreateFCmpUNE(value, zero) : builder_.CreateICmpNE(value, zero);
  }
  if (ir::IsFloat(from) && ir::IsFloat(to)) {
    // Else x86 would call a function of the compiler's library, which a machine may lack.
    const bool called =
        from == ir::DType::kFloat64 && to == ir::DType::kFloat16 && llvm::Triple(module_->getTargetTriple()).isX86();
    return builder_.CreateFPCast(called ? EmitOddSingle(builder_, value) : value, type);
  }
  if (ir::IsFloat(from)) return EmitFloatToInt(value, given, result);
  if (ir::IsFloat(to))
    return ir::IsSignedInt(from) ? builder_.CreateSIToFP(value, type) : builder_.CreateUIToFP(value, type);
  return ir::IsSignedInt(from) ? builder_.CreateSExtOrTrunc(value, type) : builder_.CreateZExtOrTrunc(value, type);
}

llvm::Value* Emitter::EmitUnary(const ir::Unary& unary) {
  llvm::Value* a = EmitExpr(unary.a);
  const bool is_float = ir::IsFloat(unary.a.type().dtype);
  const auto intrinsic = [&](llvm::Intrinsic::ID id) { return is_float ? builder_.CreateUnaryIntrinsic(id, a) : a; };
  switch (unary.op) {
    case ir::UnaryOp::kNeg:
      return is_float ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
    case ir::UnaryOp::kAbs:
      if (is_float) return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a);
      if (!ir::IsSignedInt(unary.a.type().dtype)) return a;
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, builder_.getFalse());
    case ir::UnaryOp::kNot:
      return builder_.CreateNot(a);
    case ir::UnaryOp::kFloor:
      return intrinsic(llvm::Intrinsic::floor);
    case ir::UnaryOp::kCeil:
      return intrinsic(llvm::Intrinsic::ceil);
    case ir::UnaryOp::kRound:
      return intrinsic(llvm::Intrinsic::roundeven);
    case ir::UnaryOp::kTrunc:
      return intrinsic(llvm::Intrinsic::trunc);
    case ir::UnaryOp::kSqrt:
      return intrinsic(llvm::Intrinsic::sqrt);
  }
  return nullptr;
}

llvm::Value* Emitter::EmitBinary(const ir::Expr& e, const ir::Binary& binary) {
  if (llvm::Value* narrow = EmitNarrow(e, binary)) return narrow;
  llvm::Value* a = EmitExpr(binary.a);
  llvm::Value* b = EmitExpr(binary.b);
  if (binary.op == ir::BinaryOp::kMin || binary.op == ir::BinaryOp::kMax) return EmitMinMax(binary, a, b);
  return ir::IsFloat(binary.a.type().dtype) ? EmitFloatBinary(binary, a, b) : EmitIntBinary(binary, a, b);
}

llvm::Value* Emitter::EmitMinMax(const ir::Binary& binary, llvm::Value* a, llvm::Value* b) {
  const bool is_min = binary.op == ir::BinaryOp::kMin;
  const ir::DType dtype = binary.a.type().dtype;
  if (!ir::IsFloat(dtype)) {
    if (ir::IsSignedInt(dtype))
      return builder_.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::smin : llvm::Intrinsic::smax, a, b);
    return builder_.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::umin : llvm::Intrinsic::umax, a, b);
  }
  // Against a constant that is no NaN one compare propagates the other's NaN, mostly in a single instruction.
  const auto constant = [](const ir::Expr& e) {
    const ir::Broadcast* broadcast = e.As<ir::Broadcast>();
    const ir::FloatImm* imm = broadcast != nullptr ? broadcast->value.As<ir::FloatImm>() : e.As<ir::FloatImm>();
    return imm != nullptr && imm->value == imm->value ? imm : nullptr;
  };
  const ir::FloatImm* number = constant(binary.b);
  if (number == nullptr && (number = constant(binary.a)) != nullptr) std::swap(a, b);
  if (number != nullptr) {
    // Of two zeros min wants the negative one, max the positive one.
    const bool if_equal = number->value == 0 && std::signbit(number->value) == is_min;
    using Predicate = llvm::CmpInst::Predicate;
    const Predicate replaces = is_min ? (if_equal ? Predicate::FCMP_OLE : Predicate::FCMP_OLT)
                                      : (if_equal ? Predicate::FCMP_OGE : Predicate::FCMP_OGT);
    return builder_.CreateSelect(builder_.CreateFCmp(replaces, b, a), b, a);
  }
  return EmitFloatMinMax(is_min, a, b);
}

llvm::Value* Emitter::EmitFloatMinMax(bool is_min, llvm::Value* a, llvm::Value* b) {
  if (llvm::Triple(module_->getTargetTriple()).isX86()) {
    if (!is_min) return EmitMaxOfX86(builder_, a, b);
    // LLVM 19 would make it a minimum of halves where they are widened and narrowed again, and that of a NaN and -0 -0.
    return builder_.CreateFNeg(EmitMaxOfX86(builder_, builder_.CreateFNeg(a), builder_.CreateFNeg(b)));
  }
  return builder_.CreateBinaryIntrinsic(is_min ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum, a, b);
}

llvm::Value* Emitter::EmitFloatBinary(const ir::Binary& binary, llvm::Value* a, llvm::Value* b) {
  switch (binary.op) {
    case ir::BinaryOp::kAdd:
      return builder_.CreateFAdd(a, b);
    case ir::BinaryOp::kSub:
      return builder_.CreateFSub(a, b);
    case ir::BinaryOp::kMul:
      return builder_.CreateFMul(a, b);
    case ir::BinaryOp::kDiv:
      return builder_.CreateFDiv(a, b);
    case ir::BinaryOp::kMod:
      return func_.grid.defined() ? EmitWideFmod(builder_, a, b) : builder_.CreateFRem(a, b);
    case ir::BinaryOp::kEq:
      return builder_.CreateFCmpOEQ(a, b);
    case ir::BinaryOp::kNe:
      return builder_.CreateFCmpUNE(a, b);
    case ir::BinaryOp::kLt:
      return builder_.CreateFCmpOLT(a, b);
    case ir::BinaryOp::kLe:
      return builder_.CreateFCmpOLE(a, b);
    case ir::BinaryOp::kGt:
      return builder_.CreateFCmpOGT(a, b);
    case ir::BinaryOp::kGe:
      return builder_.CreateFCmpOGE(a, b);
    default:
      HONE_CHECK(false);
      return nullptr;
  }
}

llvm::Value* Emitter::EmitIntBinary(const ir::Binary& binary, llvm::Value* a, llvm::Value* b) {
  const bool is_signed = ir::IsSignedInt(binary.a.type().dtype);
  const auto compare = [&](llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u) {
    return builder_.CreateICmp(is_signed ? s : u, a, b);
  };
  const auto shift = [&](llvm::Value* shifted) {
    llvm::Value* width = llvm::ConstantInt::get(a->getType(), a->getType()->getScalarSizeInBits());
    return builder_.CreateSelect(builder_.CreateICmpULT(b, width), shifted, llvm::Constant::getNullValue(a->getType()));
  };
  switch (binary.op) {
    case ir::BinaryOp::kAdd:
      return builder_.CreateAdd(a, b);
    case ir::BinaryOp::kSub:
      return builder_.CreateSub(a, b);
    case ir::BinaryOp::kMul:
      return builder_.CreateMul(a, b);
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kMod:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod:
      return EmitDivision(binary, a, b);
    case ir::BinaryOp::kAnd:
      return builder_.CreateAnd(a, b);
    case ir::BinaryOp::kOr:
      return builder_.CreateOr(a, b);
    case ir::BinaryOp::kXor:
      return builder_.CreateXor(a, b);
    case ir::BinaryOp::kShl:
      return shift(builder_.CreateShl(a, b));
    case ir::BinaryOp::kShr:
      return shift(is_signed ? builder_.CreateAShr(a, b) : builder_.CreateLShr(a, b));
    case ir::BinaryOp::kEq:
      return builder_.CreateICmpEQ(a, b);
    case ir::BinaryOp::kNe:
      return builder_.CreateICmpNE(a, b);
    case ir::BinaryOp::kLt:
      return compare(llvm::CmpInst::ICMP_SLT, llvm::CmpInst::ICMP_ULT);
    case ir::BinaryOp::kLe:
      return compare(llvm::CmpInst::ICMP_SLE, llvm::CmpInst::ICMP_ULE);
    case ir::BinaryOp::kGt:
      return compare(llvm::CmpInst::ICMP_SGT, llvm::CmpInst::ICMP_UGT);
    case ir::BinaryOp::kGe:
      return compare(llvm::CmpInst::ICMP_SGE, llvm::CmpInst::ICMP_UGE);
    default:
      HONE_CHECK(false);
      return nullptr;
  }
}

// Division by zero yields 0 and the lowest value by -1 wraps; neither may trap.
llvm::Value* Emitter::EmitDivision(const ir::Binary& binary, llvm::Value* a, llvm::Value* b) {
  const ir::Type type = binary.a.type();
  const bool is_signed = ir::IsSignedInt(type.dtype);
  const bool modulo = binary.op == ir::BinaryOp::kMod || binary.op == ir::BinaryOp::kFloorMod;
  const bool floors = binary.op == ir::BinaryOp::kFloorDiv || binary.op == ir::BinaryOp::kFloorMod;
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* one = llvm::ConstantInt::get(a->getType(), 1);
  const ir::IntImm* imm = binary.b.As<ir::IntImm>();
  const bool positive = imm != nullptr && imm->value > 0;
  if (!is_signed || (positive && type == ir::kIndexType && ir::SafeBoundsOf(binary.a, ranges_).low >= 0)) {
    llvm::Value* safe = positive ? b : builder_.CreateSelect(builder_.CreateICmpEQ(b, zero), one, b);
    llvm::Value* result = modulo ? builder_.CreateURem(a, safe) : builder_.CreateUDiv(a, safe);
    return positive ? result : builder_.CreateSelect(builder_.CreateICmpEQ(b, zero), zero, result);
  }
  llvm::Value* minus_one = llvm::Constant::getAllOnesValue(a->getType());
  llvm::Value* is_zero = builder_.CreateICmpEQ(b, zero);
  llvm::Value* is_minus_one = builder_.CreateICmpEQ(b, minus_one);
  llvm::Value* safe = builder_.CreateSelect(builder_.CreateOr(is_zero, is_minus_one), one, b);
  llvm::Value* quotient = builder_.CreateSDiv(a, safe);
  llvm::Value* rest = builder_.CreateSRem(a, safe);
  if (floors) {
    llvm::Value* signs_differ = builder_.CreateICmpSLT(builder_.CreateXor(rest, safe), zero);
    llvm::Value* adjust = builder_.CreateAnd(builder_.CreateICmpNE(rest, zero), signs_differ);
    quotient = builder_.CreateSub(quotient, builder_.CreateZExt(adjust, a->getType()));
    rest = builder_.CreateAdd(rest, builder_.CreateSelect(adjust, safe, zero));
  }
  llvm::Value* by_minus_one = modulo ? zero : builder_.CreateNeg(a);
  llvm::Value* result = builder_.CreateSelect(is_minus_one, by_minus_one, modulo ? rest : quotient);
  return builder_.CreateSelect(is_zero, zero, result);
}

// Lazy: an arm with a load is a branch, unless elements differ in what they take: then the loads carry their masks.
llvm::Value* Emitter::EmitSelect(const ir::Select& select) {
  const ir::Broadcast* uniform = select.condition.As<ir::Broadcast>();
  llvm::Value* condition = EmitExpr(uniform != nullptr ? uniform->value : select.condition);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {  // in a loop that is written out
    return EmitExpr(known->isOne() ? select.on_true : select.on_false);
  }
  const bool elements_differ = uniform == nullptr && select.on_true.type().width > 1;
  if (elements_differ || (!ir::HasLoad(select.on_true) && !ir::HasLoad(select.on_false))) {
    return builder_.CreateSelect(condition, EmitExpr(select.on_true), EmitExpr(select.on_false));
  }
  return EmitEither(condition, [&] { return EmitExpr(select.on_true); }, [&] { return EmitExpr(select.on_false); });
}

// Runs one of the two; the value of that one. Where values are null, there is none.
llvm::Value* Emitter::EmitEither(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                                 const std::function<llvm::Value*()>& otherwise) {
  llvm::BasicBlock* blocks[2] = {llvm::BasicBlock::Create(context_, "taken", function_),
                                 llvm::BasicBlock::Create(context_, "other", function_)};
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
  builder_.CreateCondBr(condition, blocks[0], blocks[1]);
  llvm::Value* values[2];
  const auto before = emitted_;  // values of one arm do not dominate the other, nor what follows
  for (int i = 0; i < 2; ++i) {
    builder_.SetInsertPoint(blocks[i]);
    values[i] = i == 0 ? then() : otherwise();
    blocks[i] = builder_.GetInsertBlock();
    builder_.CreateBr(join);
    emitted_ = before;
  }
  builder_.SetInsertPoint(join);
  if (values[0] == nullptr) return nullptr;
  llvm::PHINode* phi = builder_.CreatePHI(values[0]->getType(), 2);
  phi->addIncoming(values[0], blocks[0]);
  phi->addIncoming(values[1], blocks[1]);
  return phi;
}

// Whether one instruction moves some elements of such a vector. Elsewhere LLVM asks for each element, and moves it
// alone.
bool Emitter::HasMaskedMoves(ir::Type type) {
  llvm::Type* vector = llvm::FixedVectorType::get(MemoryTypeOf(type.dtype), type.width);
  return machine_.getTargetTransformInfo(*function_).isLegalMaskedLoad(vector, llvm::Align(ir::SizeOf(type.dtype)));
}

// A move by `access`, which is told the mask, or null for all elements. Where elements would be moved one by one, it is
// asked first whether all of them are wanted.
llvm::Value* Emitter::EmitMasked(const ir::Expr& mask, ir::Type type,
                                 const std::function<llvm::Value*(llvm::Value*)>& access) {
  if (!mask.defined()) return access(nullptr);
  llvm::Value* const wanted = EmitExpr(mask);
  if (func_.grid.defined() || HasMaskedMoves(type)) return access(wanted);
  const ir::Expr all = AllElements(mask, ranges_);
  return EmitEither(
      all.defined() ? EmitExpr(all) : builder_.CreateAndReduce(wanted), [&] { return access(nullptr); },
      [&] { return access(wanted); });
}

// The constant part of the index goes last, so that neighbours share the rest.
llvm::Value* Emitter::Address(const ir::Buffer& buffer, const ir::Expr& index, llvm::Type* element, bool masked) {
  llvm::Value* pointer = places_.at(buffer.get()).pointer;
  if (buffer->scope == ir::Scope::kSwizzled) return EmitSwizzled(*buffer, index);
  const ir::Binary* sum = index.As<ir::Binary>();
  const ir::IntImm* offset = sum != nullptr && (sum->op == ir::BinaryOp::kAdd || sum->op == ir::BinaryOp::kSub)
                                 ? sum->b.As<ir::IntImm>()
                                 : nullptr;
  if (offset == nullptr) {
    llvm::Value* place = EmitExpr(index);  // with a mask perhaps of an element that is not there, and not wanted
    return masked ? builder_.CreateGEP(element, pointer, place) : builder_.CreateInBoundsGEP(element, pointer, place);
  }
  llvm::Value* base = builder_.CreateGEP(element, pointer, EmitExpr(sum->a));
  return builder_.CreateGEP(element, base,
                            builder_.getInt64(sum->op == ir::BinaryOp::kAdd ? offset->value : -offset->value));
}

// Every `stride`th of the elements from `address` on: the vectors they lie in are loaded whole and shuffled together,
// which costs far less than a gather. The last vector ends with the last element wanted: nothing beyond it is touched.
llvm::Value* Emitter::EmitStridedLoad(const ir::Load& load, llvm::Value* address, llvm::FixedVectorType* vector,
                                      int stride) {
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
      const bool here = place >= 0 && place < width;
      picks[static_cast<size_t>(i)] = v == 0 ? (here ? place : 0) : here ? width + place : i;
    }
    result = v == 0 ? builder_.CreateShuffleVector(access, picks) : builder_.CreateShuffleVector(result, access, picks);
  }
  return result;
}

llvm::Value* Emitter::EmitVectorLoad(const ir::Load& load, llvm::Type* element, llvm::FixedVectorType* vector) {
  if (const auto made = transposed_.find(&load); made != transposed_.end()) return made->second;
  const llvm::Align align(ir::SizeOf(load.buffer->dtype));
  llvm::Value* mask = load.mask.defined() ? EmitExpr(load.mask) : nullptr;
  llvm::Value* zero = llvm::Constant::getNullValue(vector);
  const ir::Expr& index = load.indices[0];
  if (const ir::Broadcast* broadcast = index.As<ir::Broadcast>()) {
    llvm::Value* address = Address(load.buffer, broadcast->value, element, mask != nullptr);
    if (mask != nullptr) {  // where no mask is set the element may not exist; the buffer's first one does
      address = builder_.CreateSelect(builder_.CreateOrReduce(mask), address, places_.at(load.buffer.get()).pointer);
    }
    llvm::Instruction* access = builder_.CreateAlignedLoad(element, address, AlignOf(*load.buffer, broadcast->value));
    Annotate(access, load.buffer.get());
    llvm::Value* splat = builder_.CreateVectorSplat(load.indices[0].type().width, access);
    return mask == nullptr ? splat : builder_.CreateSelect(mask, splat, zero);
  }
  const ir::Ramp* ramp = index.As<ir::Ramp>();
  const int64_t stride = ramp == nullptr ? 0 : ir::ConstantValue(ramp->stride).value_or(0);
  if (stride > 1 && stride <= kMostShuffledStride && mask == nullptr && !func_.grid.defined()) {
    return EmitStridedLoad(load, Address(load.buffer, ramp->base, element), vector, static_cast<int>(stride));
  }
  if (stride == 1) {
    llvm::Value* address = Address(load.buffer, ramp->base, element, mask != nullptr);
    if (func_.grid.defined()) {
      return EmitParts(*load.buffer, address, vector, mask == nullptr ? AlignOf(*load.buffer, ramp->base) : align,
                       mask);
    }
    return EmitMasked(load.mask, {load.buffer->dtype, index.type().width}, [&](llvm::Value* wanted) {
      llvm::Instruction* const access =
          wanted == nullptr ? static_cast<llvm::Instruction*>(builder_.CreateAlignedLoad(vector, address, align))
                            : builder_.CreateMaskedLoad(vector, address, align, wanted, zero);
      Annotate(access, load.buffer.get());
      return access;
    });
  }
  llvm::Value* addresses = builder_.CreateGEP(element, places_.at(load.buffer.get()).pointer, EmitExpr(index));
  llvm::Instruction* access = builder_.CreateMaskedGather(vector, addresses, align, mask, zero);
  Annotate(access, load.buffer.get());
  return access;
}

llvm::Value* Emitter::EmitLoad(const ir::Load& load) {
  const ir::Type type{load.buffer->dtype, load.indices[0].type().width};
  if (const ir::Expr condition = BranchOf(load.mask, type, load.indices[0]); condition.defined()) {
    return EmitGuarded(EmitExpr(condition), TypeOf(type), [&] { return EmitLoad({load.buffer, load.indices, {}}); });
  }
  llvm::Type* element = MemoryTypeOf(load.buffer->dtype);
  const int width = load.indices[0].type().width;
  llvm::Value* value = nullptr;
  if (width > 1) {
    value = EmitVectorLoad(load, element, llvm::FixedVectorType::get(element, width));
  } else {
    HONE_CHECK(!load.mask.defined());
    llvm::LoadInst* access = builder_.CreateAlignedLoad(element, Address(load.buffer, load.indices[0], element),
                                                        AlignOf(*load.buffer, load.indices[0]));
    Annotate(access, load.buffer.get());
    value = access;
  }
  return load.buffer->dtype == ir::DType::kBool
             ? builder_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()))
             : value;
}

llvm::Value* Emitter::EmitCall(const ir::Call& call) {
  Values args;
  for (const ir::Expr& arg : call.args) args.push_back(EmitExpr(arg));
  const bool single = call.args[0].type().dtype == ir::DType::kFloat32;
  const bool inspects = call.function == ir::Intrinsic::kIsNan || call.function == ir::Intrinsic::kIsInf;
  if (inspects && call.args[0].type().dtype == ir::DType::kBFloat16) args[0] = EmitFromBFloat(builder_, args[0]);
  switch (call.function) {
    case ir::Intrinsic::kReinterpret:
      return builder_.CreateBitCast(args[0], TypeOf(call.type));
    case ir::Intrinsic::kFma:
      return builder_.CreateIntrinsic(llvm::Intrinsic::fma, {args[0]->getType()}, args);
    case ir::Intrinsic::kIsNan:
      return builder_.CreateFCmpUNO(args[0], args[0]);
    case ir::Intrinsic::kIsInf:
      return builder_.CreateFCmpOEQ(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]),
                                    llvm::ConstantFP::getInfinity(args[0]->getType()));
    default:
      return single ? EmitSingle(call, args) : EmitDouble(call, args);
  }
}

llvm::Value* Emitter::EmitSingle(const ir::Call& call, const Values& args) {
  llvm::Value* const value = EmitFunction(builder_, call.function, args[0], scaling_);
  if (value == nullptr) return EmitWideFunction(builder_, call.function, args);
  const bool turns = call.function == ir::Intrinsic::kSin || call.function == ir::Intrinsic::kCos ||
                     call.function == ir::Intrinsic::kTan;
  if (!turns || func_.grid.defined()) return value;
  llvm::Value* const size = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]);
  llvm::Value* const large = builder_.CreateFCmpOGE(size, llvm::ConstantFP::get(size->getType(), kMostAngle));
  llvm::Value* const any = call.type.width == 1 ? large : builder_.CreateOrReduce(large);
  llvm::Value* const exact = EmitGuarded(any, TypeOf(call.type), [&] { return CallLibm(call, args); });
  return builder_.CreateSelect(large, exact, value);
}

llvm::Value* Emitter::EmitDouble(const ir::Call& call, const Values& args) {
  if (call.function == ir::Intrinsic::kSigmoid) {
    const ir::Call exp{call.type, ir::Intrinsic::kExp, {}};
    llvm::Value* const one = llvm::ConstantFP::get(args[0]->getType(), 1.0);
    return builder_.CreateFDiv(one, builder_.CreateFAdd(one, EmitDouble(exp, {builder_.CreateFNeg(args[0])})));
  }
  return func_.grid.defined() ? EmitWideFunction(builder_, call.function, args) : CallLibm(call, args);
}

// One call of the C library per element; functions have its names. None is asked for errno: a call is what its
// arguments say, as an instruction is.
llvm::Value* Emitter::CallLibm(const ir::Call& call, const Values& args) {
  std::string name(ir::Name(call.function));
  if (call.type.dtype == ir::DType::kFloat32) name += "f";
  llvm::Type* scalar = MemoryTypeOf(call.type.dtype);
  const std::vector<llvm::Type*> parameters(args.size(), scalar);
  llvm::FunctionCallee callee = module_->getOrInsertFunction(name, llvm::FunctionType::get(scalar, parameters, false));
  auto* const function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  if (call.type.width == 1) return builder_.CreateCall(callee, args);
  llvm::Value* result = llvm::PoisonValue::get(TypeOf(call.type));
  for (int i = 0; i < call.type.width; ++i) {
    Values element_args;
    for (llvm::Value* arg : args) element_args.push_back(builder_.CreateExtractElement(arg, i));
    result = builder_.CreateInsertElement(result, builder_.CreateCall(callee, element_args), i);
  }
  return result;
}

}  // namespace hone::codegen
