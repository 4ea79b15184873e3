// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/expr_emitter.h"

#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "base/half_float.h"
#include "base/status.h"
#include "compiler/ir/match.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/safe_bounds.h"

namespace hone::codegen {

ExprEmitter::ExprEmitter(llvm::Module* module, const ir::Func& func, const EmitOptions& options)
    : module_(module),
      context_(module->getContext()),
      func_(func),
      builder_(context_),
      alias_domain_(llvm::MDBuilder(context_).createAnonymousAliasScopeDomain(func.name)),
      scaling_(options.scaling) {
  llvm::FastMathFlags flags;
  flags.setAllowContract(options.fuse);
  builder_.setFastMathFlags(flags);
}

llvm::BasicBlock* ExprEmitter::MakeBlock(const std::string& name) {
  return llvm::BasicBlock::Create(context_, name, function_);
}

void ExprEmitter::Annotate(llvm::Instruction* access, const ir::BufferNode* buffer) {
  llvm::MDNode* own = places_.at(buffer).scope;
  std::vector<llvm::Metadata*> others;
  for (llvm::MDNode* scope : scopes_) {
    if (scope != own) others.push_back(scope);
  }
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {own}));
  access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
}

llvm::Value* ExprEmitter::EmitExpr(const ir::Expr& e) {
  const auto known = emitted_.find(&e.node());
  if (known != emitted_.end()) return known->second.value;
  llvm::Value* value = EmitNode(e);
  emitted_.insert_or_assign(&e.node(), Emitted{e, value});
  return value;
}

llvm::Value* ExprEmitter::EmitNode(const ir::Expr& e) {
  return ir::Match(
      e,
      [&](const ir::IntImm& i) -> llvm::Value* {
        return llvm::ConstantInt::get(TypeOf(i.type), static_cast<uint64_t>(i.value), true);
      },
      [&](const ir::FloatImm& f) -> llvm::Value* {
        if (f.type.dtype == ir::DType::kBFloat16) return builder_.getInt16(BFloatBits(f.value));
        return llvm::ConstantFP::get(TypeOf(f.type), f.value);
      },
      [&](const ir::Var& v) -> llvm::Value* {
        const auto it = variables_.find(v.name);
        HONE_CHECK(it != variables_.end());
        return it->second;
      },
      [&](const ir::Cast& c) {
        if (llvm::Value* power = EmitRoundedPower(c)) return power;
        if (llvm::Value* quantized = EmitQuantization(c)) return quantized;
        llvm::Value* const cheaper = EmitConversion(c, 0);
        return cheaper != nullptr ? cheaper : EmitCast(builder_, EmitExpr(c.value), c.value.type(), c.type);
      },
      [&](const ir::Unary& u) { return EmitUnary(builder_, u.op, u.a.type().dtype, EmitExpr(u.a)); },
      [&](const ir::Binary& b) { return EmitBinary(e, b); }, [&](const ir::Select& s) { return EmitSelect(s); },
      [&](const ir::Load& l) { return EmitLoad(l); }, [&](const ir::Call& c) { return EmitCall(c); },
      [&](const ir::Ramp& r) -> llvm::Value* {
        llvm::Value* base = builder_.CreateVectorSplat(r.width, EmitExpr(r.base));
        llvm::Value* stride = builder_.CreateVectorSplat(r.width, EmitExpr(r.stride));
        return builder_.CreateAdd(base, builder_.CreateMul(builder_.CreateStepVector(base->getType()), stride));
      },
      [&](const ir::Broadcast& b) -> llvm::Value* { return builder_.CreateVectorSplat(b.width, EmitExpr(b.value)); });
}

llvm::Value* ExprEmitter::EmitBinary(const ir::Expr& e, const ir::Binary& binary) {
  if (llvm::Value* cheaper = EmitIndexBinary(e, binary)) return cheaper;
  if (const ir::Cast* cast = binary.a.As<ir::Cast>(); cast != nullptr && binary.op == ir::BinaryOp::kSub) {
    const ir::Broadcast* same = binary.b.As<ir::Broadcast>();
    const ir::FloatImm* less = same != nullptr ? same->value.As<ir::FloatImm>() : nullptr;
    llvm::Value* const cheaper = less != nullptr ? EmitConversion(*cast, less->value) : nullptr;
    if (cheaper != nullptr) return cheaper;
  }
  llvm::Value* a = EmitExpr(binary.a);
  llvm::Value* b = EmitExpr(binary.b);
  if (binary.op == ir::BinaryOp::kMin || binary.op == ir::BinaryOp::kMax) return EmitMinMax(binary, a, b);
  if (!ir::IsFloat(binary.a.type().dtype)) return EmitIntArithmetic(binary, a, b);
  return binary.op == ir::BinaryOp::kMod ? EmitFloatMod(a, b) : EmitFloatBinary(builder_, binary.op, a, b);
}

llvm::Value* ExprEmitter::EmitIntArithmetic(const ir::Binary& binary, llvm::Value* a, llvm::Value* b) {
  const ir::Type type = binary.a.type();
  const bool is_signed = ir::IsSignedInt(type.dtype);
  switch (binary.op) {
    case ir::BinaryOp::kDiv:
    case ir::BinaryOp::kMod:
    case ir::BinaryOp::kFloorDiv:
    case ir::BinaryOp::kFloorMod: {
      const ir::IntImm* imm = binary.b.As<ir::IntImm>();
      const bool positive = imm != nullptr && imm->value > 0;
      const bool is_unsigned =
          !is_signed || (positive && type == ir::kIndexType && ir::SafeBoundsOf(binary.a, ranges_).low >= 0);
      return EmitDivision(builder_, binary.op, {.is_unsigned = is_unsigned, .divisor_is_positive = positive}, a, b);
    }
    default:
      return EmitIntBinary(builder_, binary.op, is_signed, a, b);
  }
}

llvm::Value* ExprEmitter::EmitMinMax(const ir::Binary& binary, llvm::Value* a, llvm::Value* b) {
  const bool is_min = binary.op == ir::BinaryOp::kMin;
  const ir::DType dtype = binary.a.type().dtype;
  if (!ir::IsFloat(dtype)) return EmitIntMinMax(builder_, is_min, ir::IsSignedInt(dtype), a, b);
  // If one operand is a constant other than NaN, one comparison keeps a NaN of the other: mostly a single instruction.
  const auto constant = [](const ir::Expr& e) {
    const ir::Broadcast* broadcast = e.As<ir::Broadcast>();
    const ir::FloatImm* imm = broadcast != nullptr ? broadcast->value.As<ir::FloatImm>() : e.As<ir::FloatImm>();
    return imm != nullptr && imm->value == imm->value ? imm : nullptr;
  };
  const ir::FloatImm* number = constant(binary.b);
  if (number == nullptr && (number = constant(binary.a)) != nullptr) std::swap(a, b);
  if (number != nullptr) {
    // Between zeros of both signs min gives -0, max gives +0.
    const bool if_equal = number->value == 0 && std::signbit(number->value) == is_min;
    using Predicate = llvm::CmpInst::Predicate;
    const Predicate replaces = is_min ? (if_equal ? Predicate::FCMP_OLE : Predicate::FCMP_OLT)
                                      : (if_equal ? Predicate::FCMP_OGE : Predicate::FCMP_OGT);
    return builder_.CreateSelect(builder_.CreateFCmp(replaces, b, a), b, a);
  }
  return EmitFloatMinMax(builder_, is_min, a, b);
}

// An arm with a load is only evaluated where it is selected: by a branch if all elements agree. Otherwise both arms are
// evaluated, and the loads in them carry masks of their own.
llvm::Value* ExprEmitter::EmitSelect(const ir::Select& select) {
  const ir::Broadcast* uniform = select.condition.As<ir::Broadcast>();
  llvm::Value* condition = EmitExpr(uniform != nullptr ? uniform->value : select.condition);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {  // in an unrolled loop
    return EmitExpr(known->isOne() ? select.on_true : select.on_false);
  }
  const bool elements_differ = uniform == nullptr && select.on_true.type().width > 1;
  if (elements_differ || (!ir::HasLoad(select.on_true) && !ir::HasLoad(select.on_false))) {
    return builder_.CreateSelect(condition, EmitExpr(select.on_true), EmitExpr(select.on_false));
  }
  return EmitIfElse(condition, [&] { return EmitExpr(select.on_true); }, [&] { return EmitExpr(select.on_false); });
}

llvm::Value* ExprEmitter::EmitIfElse(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                                     const std::function<llvm::Value*()>& otherwise) {
  llvm::BasicBlock* blocks[2];
  blocks[0] = MakeBlock("taken");
  blocks[1] = MakeBlock("other");
  llvm::BasicBlock* join = MakeBlock("join");
  builder_.CreateCondBr(condition, blocks[0], blocks[1]);
  llvm::Value* values[2];
  const auto before = emitted_;  // values of one arm dominate neither the other arm nor what follows
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

llvm::Value* ExprEmitter::EmitGuarded(llvm::Value* condition, llvm::Type* type,
                                      const std::function<llvm::Value*()>& then) {
  llvm::BasicBlock* const before = builder_.GetInsertBlock();
  llvm::BasicBlock* const taken = MakeBlock("guarded");
  llvm::BasicBlock* const join = MakeBlock("join");
  builder_.CreateCondBr(condition, taken, join);
  builder_.SetInsertPoint(taken);
  const auto known = emitted_;  // values of the guarded block do not dominate what follows
  llvm::Value* const value = then();
  emitted_ = known;
  llvm::BasicBlock* const end = builder_.GetInsertBlock();
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  if (type == nullptr) return nullptr;
  llvm::PHINode* const phi = builder_.CreatePHI(type, 2);
  phi->addIncoming(value, end);
  phi->addIncoming(llvm::Constant::getNullValue(type), before);
  return phi;
}

ir::Expr ExprEmitter::BranchCondition(const ir::Expr& mask, ir::Type type, const ir::Expr& index) {
  if (!mask.defined() || HasMaskedAccess(type, index)) return {};
  if (mask.type().width == 1) return mask;
  const ir::Broadcast* const uniform = mask.As<ir::Broadcast>();
  return uniform != nullptr ? uniform->value : ir::Expr();
}

llvm::Value* ExprEmitter::EmitMasked(const ir::Expr& mask, ir::Type /*type*/,
                                     const std::function<llvm::Value*(llvm::Value*)>& access) {
  return access(mask.defined() ? EmitExpr(mask) : nullptr);
}

llvm::Align ExprEmitter::AlignOf(const ir::BufferNode& buffer, const ir::Expr& /*first*/) const {
  return llvm::Align(static_cast<uint64_t>(ir::SizeOf(buffer.dtype)));
}

// The constant part of the index is added last, so that neighbouring elements share the rest.
llvm::Value* ExprEmitter::Address(const ir::Buffer& buffer, const ir::Expr& index, llvm::Type* element,
                                  bool may_be_outside) {
  llvm::Value* pointer = places_.at(buffer.get()).pointer;
  const ir::Binary* sum = index.As<ir::Binary>();
  const ir::IntImm* offset = sum != nullptr && (sum->op == ir::BinaryOp::kAdd || sum->op == ir::BinaryOp::kSub)
                                 ? sum->b.As<ir::IntImm>()
                                 : nullptr;
  if (offset == nullptr) {
    llvm::Value* place = EmitExpr(index);
    return may_be_outside ? builder_.CreateGEP(element, pointer, place)
                          : builder_.CreateInBoundsGEP(element, pointer, place);
  }
  llvm::Value* base = builder_.CreateGEP(element, pointer, EmitExpr(sum->a));
  return builder_.CreateGEP(element, base,
                            builder_.getInt64(sum->op == ir::BinaryOp::kAdd ? offset->value : -offset->value));
}

llvm::Value* ExprEmitter::EmitVectorLoad(const ir::Load& load, llvm::Type* element, llvm::FixedVectorType* vector) {
  const llvm::Align align(ir::SizeOf(load.buffer->dtype));
  llvm::Value* mask = load.mask.defined() ? EmitExpr(load.mask) : nullptr;
  llvm::Value* zero = llvm::Constant::getNullValue(vector);
  const ir::Expr& index = load.indices[0];
  if (const ir::Broadcast* broadcast = index.As<ir::Broadcast>()) {
    llvm::Value* address = Address(load.buffer, broadcast->value, element, mask != nullptr);
    if (mask != nullptr) {  // if no element is wanted, theirs may not exist; the buffer's first one always does
      address = builder_.CreateSelect(builder_.CreateOrReduce(mask), address, places_.at(load.buffer.get()).pointer);
    }
    llvm::Instruction* access = builder_.CreateAlignedLoad(element, address, AlignOf(*load.buffer, broadcast->value));
    Annotate(access, load.buffer.get());
    llvm::Value* splat = builder_.CreateVectorSplat(load.indices[0].type().width, access);
    return mask == nullptr ? splat : builder_.CreateSelect(mask, splat, zero);
  }
  const ir::Ramp* ramp = index.As<ir::Ramp>();
  const int64_t stride = ramp == nullptr ? 0 : ir::ConstantValue(ramp->stride).value_or(0);
  if (stride > 1 && mask == nullptr) {
    if (llvm::Value* strided = EmitStridedLoad(load, stride, vector)) return strided;
  }
  if (stride == 1) {
    llvm::Value* address = Address(load.buffer, ramp->base, element, mask != nullptr);
    return EmitContiguousLoad(load, address, vector, mask);
  }
  llvm::Value* addresses = builder_.CreateGEP(element, places_.at(load.buffer.get()).pointer, EmitExpr(index));
  llvm::Instruction* access = builder_.CreateMaskedGather(vector, addresses, align, mask, zero);
  Annotate(access, load.buffer.get());
  return access;
}

llvm::Value* ExprEmitter::EmitContiguousLoad(const ir::Load& load, llvm::Value* address, llvm::FixedVectorType* vector,
                                             llvm::Value* /*mask*/) {
  const llvm::Align align(ir::SizeOf(load.buffer->dtype));
  return EmitMasked(load.mask, {load.buffer->dtype, load.indices[0].type().width}, [&](llvm::Value* wanted) {
    llvm::Instruction* const access =
        wanted == nullptr
            ? static_cast<llvm::Instruction*>(builder_.CreateAlignedLoad(vector, address, align))
            : builder_.CreateMaskedLoad(vector, address, align, wanted, llvm::Constant::getNullValue(vector));
    Annotate(access, load.buffer.get());
    return access;
  });
}

llvm::Value* ExprEmitter::EmitLoad(const ir::Load& load) {
  const ir::Type type{load.buffer->dtype, load.indices[0].type().width};
  if (const ir::Expr condition = BranchCondition(load.mask, type, load.indices[0]); condition.defined()) {
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

llvm::Value* ExprEmitter::EmitCall(const ir::Call& call) {
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
      return single ? EmitFloat32Call(call, args) : EmitWideCall(call, args);
  }
}

// A power of doubles that is rounded to f32 at once needs no last bit of a double, so no library function computes it.
llvm::Value* ExprEmitter::EmitRoundedPower(const ir::Cast& cast) {
  const ir::Call* call = cast.value.As<ir::Call>();
  if (call == nullptr || call->function != ir::Intrinsic::kPow || cast.type.dtype != ir::DType::kFloat32 ||
      call->type.dtype != ir::DType::kFloat64) {
    return nullptr;
  }
  const Values args = {EmitExpr(call->args[0]), EmitExpr(call->args[1])};
  return EmitCast(builder_, EmitWideFunction(builder_, call->function, args), call->type, cast.type);
}

llvm::Value* ExprEmitter::EmitFloat32Call(const ir::Call& call, const Values& args) {
  llvm::Value* const value = EmitFunction(builder_, call.function, args[0], scaling_);
  if (value == nullptr) return EmitWideFunction(builder_, call.function, args);
  const bool is_angle = call.function == ir::Intrinsic::kSin || call.function == ir::Intrinsic::kCos ||
                        call.function == ir::Intrinsic::kTan;
  return is_angle ? EmitLargeAngles(call, args, value) : value;
}

// A function of a type other than f32. The C library has no sigmoid, so that one is computed from exp.
llvm::Value* ExprEmitter::EmitWideCall(const ir::Call& call, const Values& args) {
  if (call.function == ir::Intrinsic::kSigmoid) {
    const ir::Call exp{call.type, ir::Intrinsic::kExp, {}};
    llvm::Value* const one = llvm::ConstantFP::get(args[0]->getType(), 1.0);
    return builder_.CreateFDiv(one, builder_.CreateFAdd(one, EmitWideCall(exp, {builder_.CreateFNeg(args[0])})));
  }
  return EmitFloat64Call(call, args);
}

}  // namespace hone::codegen
