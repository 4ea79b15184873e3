// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "base/status.h"
#include "compiler/codegen/opencl/emitter.h"
#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/safe_bounds.h"
#include "compiler/ir/typing.h"

namespace hone::codegen::opencl {
namespace {

using ir::BinaryOp;
using ir::DType;

Text Primary(std::string code, bool narrow = false) { return {std::move(code), Level::kPrimary, narrow}; }
Text Call1(std::string_view name, const Text& a) { return Primary(fmt::format("{}({})", name, a.code)); }
Text Call2(std::string_view name, const Text& a, const Text& b) {
  return Primary(fmt::format("{}({}, {})", name, a.code, b.code));
}
Text Joined(const Text& a, std::string_view op, const Text& b, Level level, bool narrow = false) {
  const Level right = level == Level::kAdd ? Level::kMultiply : level == Level::kMultiply ? Level::kUnary : Level::kAdd;
  const Level left = level == Level::kOther ? Level::kAdd : level;
  return {fmt::format("{} {} {}", InParens(a, left), op, InParens(b, right)), level, narrow};
}
Text Prefixed(std::string_view op, const Text& a, bool narrow = false) {
  const bool doubled = op == "-" && a.code.starts_with("-");
  return {fmt::format("{}{}", op, InParens(a, doubled ? Level::kPrimary : Level::kUnary)), Level::kUnary, narrow};
}
Text CCast(std::string_view type, const Text& a) { return Prefixed(fmt::format("({})", type), a); }

// "(float4)(1.0f)"
std::string Splat(ir::Type type, std::string_view value, bool narrow = false) {
  return fmt::format("({})({})", TypeName(type, narrow), value);
}

const ir::FloatImm* NumberIn(const ir::Expr& e) {
  const ir::Broadcast* broadcast = e.As<ir::Broadcast>();
  const ir::FloatImm* imm = (broadcast != nullptr ? broadcast->value : e).As<ir::FloatImm>();
  return imm != nullptr && imm->value == imm->value ? imm : nullptr;
}

bool IsUnitRamp(const ir::Expr& index) {
  const ir::Ramp* ramp = index.As<ir::Ramp>();
  const ir::IntImm* stride = ramp != nullptr ? ramp->stride.As<ir::IntImm>() : nullptr;
  return stride != nullptr && stride->value == 1;
}

bool IsBroadcast(const ir::Expr& e) { return e.As<ir::Broadcast>() != nullptr; }

}  // namespace

std::string InParens(const Text& text, Level loosest) {
  return text.level <= loosest ? text.code : "(" + text.code + ")";
}

ir::Interval Emitter::BoundsOf(const ir::Expr& e) {
  const auto [it, is_new] = bounds_.try_emplace(&e.node());
  if (is_new) it->second = ir::SafeBoundsOf(e, ranges_);
  return it->second;
}

// The expression, or a local variable with its value if it is large and used more than once. An expression with a load
// that is not always executed gets no variable, because declaring it would execute the load.
Text Emitter::Value(const ir::Expr& e, const Element& wanted) {
  const Element element = e.type().width == 1 ? Element{} : wanted;
  const ir::IntImm* number = element.all() ? nullptr : element.number.As<ir::IntImm>();
  const std::pair key{&e.node(), element.all() ? -1 : number != nullptr ? number->value : -2};
  if (const auto it = named_.find(key); it != named_.end()) return it->second;
  Text text = Node(e, element);
  const Facts facts = Count(e);
  if (facts.uses < 2 || facts.size < 8 || (lazy_ > 0 && facts.has_load)) return text;
  const ir::Type type = e.type().WithWidth(element.all() ? e.type().width : 1);
  const std::string name = names_.Take("t");
  Line(fmt::format("const {} {} = {};", TypeName(type, text.narrow), name, text.code));
  return named_[key] = Primary(name, text.narrow);
}

Text Emitter::Node(const ir::Expr& e, const Element& element) {
  const int width = element.all() ? e.type().width : 1;
  if (width > 1 && NeedsElements(e)) return Gather(e);
  return ir::Match(
      e, [&](const ir::IntImm& i) { return Constant(i); }, [&](const ir::FloatImm& f) { return Constant(f); },
      [&](const ir::Var& v) { return VarOf(v, element); }, [&](const ir::Cast& c) { return CastOf(c, element, width); },
      [&](const ir::Unary& u) { return UnaryOf(u, element, width); },
      [&](const ir::Binary& b) { return BinaryOf(e, b, element, width); },
      [&](const ir::Select& s) { return SelectOf(s, element, width); },
      [&](const ir::Load& l) { return LoadOf(l, element, width); },
      [&](const ir::Call& c) { return CallOf(c, element, width); },
      [&](const ir::Ramp& r) { return RampOf(e, r, element, width); },
      [&](const ir::Broadcast& b) {
        const Text value = Value(b.value);
        if (width == 1) return value;
        const std::string code = b.value.type() == ir::kBoolType ? Prefixed("-", value).code : value.code;
        return Primary(Splat(e.type(), code, value.narrow), value.narrow);
      });
}

// Whether OpenCL C has no vector form of the operation.
bool Emitter::NeedsElements(const ir::Expr& e) {
  if (const ir::Load* load = e.As<ir::Load>()) {
    const ir::Expr& index = load->indices[0];
    return (load->mask.defined() && !IsBroadcast(load->mask)) || !(IsUnitRamp(index) || IsBroadcast(index));
  }
  if (const ir::Select* s = e.As<ir::Select>()) {
    return !IsBroadcast(s->condition) && (HasLoad(s->on_true) || HasLoad(s->on_false));
  }
  if (const ir::Cast* cast = e.As<ir::Cast>()) return IsStorageFloat(cast->type.dtype);
  if (const ir::Call* call = e.As<ir::Call>(); call != nullptr && call->function == ir::Intrinsic::kReinterpret) {
    const DType from = call->args[0].type().dtype, to = call->type.dtype;
    return IsStorageFloat(from) || IsStorageFloat(to) || from == DType::kBool || to == DType::kBool;
  }
  if (const ir::Ramp* ramp = e.As<ir::Ramp>()) {
    return e.type().dtype != DType::kInt64 || ramp->stride.As<ir::IntImm>() == nullptr || !ir::IsBounded(BoundsOf(e));
  }
  return false;
}

Text Emitter::Gather(const ir::Expr& e) {
  std::string elements;
  bool narrow = e.type().dtype == DType::kInt64;
  for (int i = 0; i < e.type().width; ++i) {
    const Text value = Value(e, Element{ir::Expr(i)});
    narrow &= value.narrow;
    elements += (i == 0 ? "" : ", ") + (e.type().dtype == DType::kBool ? Prefixed("-", value).code : value.code);
  }
  return Primary(Splat(e.type(), elements, narrow), narrow);
}

Text Emitter::Constant(const ir::IntImm& i) {
  const int64_t value = i.value;
  switch (i.type.dtype) {
    case DType::kUInt32:
      return Primary(fmt::format("{}u", static_cast<uint32_t>(value)));
    case DType::kUInt64:
      return Primary(fmt::format("{}ul", static_cast<uint64_t>(value)));
    case DType::kInt64:
      if (value < INT32_MIN || value > INT32_MAX) {
        if (value == INT64_MIN) return {"-9223372036854775807l - 1", Level::kAdd};
        return {fmt::format("{}l", value), value < 0 ? Level::kUnary : Level::kPrimary};
      }
      break;
    default:
      break;
  }
  const bool narrow = i.type.dtype == DType::kInt64;
  if (value == INT32_MIN) return {"-2147483647 - 1", Level::kAdd, narrow};
  return {fmt::format("{}", value), value < 0 ? Level::kUnary : Level::kPrimary, narrow};
}

Text Emitter::Constant(const ir::FloatImm& f) {
  const bool is_double = f.type.dtype == DType::kFloat64;
  if (std::isnan(f.value)) return Primary(is_double ? "as_double(0x7ff8000000000000ul)" : "as_float(0x7fc00000u)");
  const Level level = std::signbit(f.value) ? Level::kUnary : Level::kPrimary;
  if (std::isinf(f.value)) {
    return {fmt::format("{}{}INFINITY", f.value < 0 ? "-" : "", is_double ? "(double)" : ""), Level::kUnary};
  }
  std::string digits = is_double ? fmt::format("{}", f.value) : fmt::format("{}", static_cast<float>(f.value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return {digits + (is_double ? "" : "f"), level};
}

Text Emitter::VarOf(const ir::Var& v, const Element& element) {
  const auto it = variables_.find(v.name);
  HONE_CHECK(it != variables_.end());
  const Variable& variable = it->second;
  if (element.all()) return Primary(variable.name, variable.narrow);
  if (!IsNative(v.type.width)) {
    return Primary(fmt::format("{}[{}]", variable.name, Value(element.number).code), variable.narrow);
  }
  const std::string component = fmt::format("{}.s{:x}", variable.name, element.number.As<ir::IntImm>()->value);
  // One element of a vector of bools is -1 or 0.
  if (v.type.dtype == DType::kBool) return {component + " != 0", Level::kOther};
  return Primary(component, variable.narrow);
}

// The result of OpenCL's comparison of such operands, as a bool or a vector of ints.
Text Emitter::Mask(ir::Type operand, bool narrow, std::string compare) {
  const bool is_int =
      operand.dtype == DType::kBool || IsStorageFloat(operand.dtype) || narrow || ir::SizeOf(operand.dtype) == 4;
  if (operand.width == 1 || is_int) return {std::move(compare), Level::kOther};
  return Primary(fmt::format("convert_int{}({})", operand.width, compare));
}

Text Emitter::Widened(Text value, int width) {
  if (!value.narrow) return value;
  if (width > 1) return Primary(fmt::format("convert_long{}({})", width, value.code));
  return CCast("long", value);
}

// A value of any type, rounded once to f16 or bf16.
Text Emitter::ToStorageFloat(DType from, DType to, const Text& value) {
  const bool exact = IsStorageFloat(from) || from == DType::kFloat32 || from == DType::kBool ||
                     (ir::IsInt(from) && ir::SizeOf(from) < 4);
  // From 65520 on f16 is infinity, and a float holds every integer below.
  const bool as_float = exact || (to == DType::kFloat16 && !ir::IsFloat(from));
  const Text single = as_float ? CCast("float", value) : Call1(prelude_.RoundToOdd(from), value);
  return Call1(prelude_.Round(to), single);
}

Text Emitter::CastOf(const ir::Cast& cast, const Element& element, int width) {
  const DType from = cast.value.type().dtype, to = cast.type.dtype;
  const ir::Type from_type{from, width}, type{to, width};
  Text value = Value(cast.value, element);
  if (from == to) return value;
  if (IsStorageFloat(to)) return ToStorageFloat(from, to, value);
  if (to == DType::kBool) {
    const std::string zero = width > 1 ? Splat(from_type, "0", value.narrow) : "0";
    return Mask(from_type, value.narrow, fmt::format("{} != {}", InParens(value, Level::kAdd), zero));
  }
  if (ir::IsFloat(from) && ir::IsFloat(to)) {
    if (to == DType::kFloat32 && from != DType::kFloat64) return value;
  } else if (ir::IsFloat(from)) {
    const DType held = IsStorageFloat(from) ? DType::kFloat32 : from;
    return Call1(prelude_.FloatToInt({held, width}, type), value);
  }
  if (from == DType::kBool && width > 1) value = {InParens(value, Level::kAdd) + " & 1", Level::kOther};
  const bool narrow = to == DType::kInt64 && from != DType::kUInt32 && from != DType::kUInt64;
  if (narrow && from == DType::kInt32) return {value.code, value.level, true};
  if (to == DType::kInt32 && value.narrow) return {value.code, value.level, false};
  if (width > 1) return Primary(fmt::format("convert_{}({})", TypeName(type, narrow), value.code), narrow);
  Text result = CCast(TypeName(type, narrow), value);
  result.narrow = narrow;
  return result;
}

Text Emitter::UnaryOf(const ir::Unary& unary, const Element& element, int width) {
  static constexpr std::string_view kFunctions[] = {"", "fabs", "", "floor", "ceil", "rint", "trunc", "sqrt"};
  const Text a = Value(unary.a, element);
  const ir::Type type = unary.a.type().WithWidth(width);
  if (unary.op == ir::UnaryOp::kNot) {
    if (type.dtype == DType::kBool) return Prefixed(width > 1 ? "~" : "!", a);
    const Text flipped = Prefixed("~", a, a.narrow);
    return width == 1 && ir::SizeOf(type.dtype) < 4 ? CCast(TypeName(type), flipped) : flipped;
  }
  if (ir::IsFloat(type.dtype)) {
    if (unary.op == ir::UnaryOp::kNeg) return Prefixed("-", a);
    return Call1(kFunctions[static_cast<size_t>(unary.op)], a);
  }
  if (unary.op == ir::UnaryOp::kAbs && ir::IsUnsignedInt(type.dtype)) return a;
  if (unary.op != ir::UnaryOp::kAbs && unary.op != ir::UnaryOp::kNeg) return a;  // integers are whole
  return Call1(prelude_.Unary(unary.op, type), Widened(a, width));
}

Text Emitter::BinaryOf(const ir::Expr& e, const ir::Binary& binary, const Element& element, int width) {
  Text a = Value(binary.a, element), b = Value(binary.b, element);
  const ir::Type type = binary.a.type().WithWidth(width);
  if (type.dtype == DType::kBool) return BoolBinary(binary.op, std::move(a), std::move(b), width);
  if (width > 1 && a.narrow != b.narrow) {
    a = Widened(std::move(a), width);
    b = Widened(std::move(b), width);
  }
  if (ir::IsCompare(binary.op)) return Compare(binary.op, std::move(a), std::move(b), type);
  if (ir::IsFloat(type.dtype)) return FloatBinary(binary, a, b, type);
  if (type.dtype == DType::kInt64) return IndexBinary(e, binary, std::move(a), std::move(b), width);
  return IntBinary(binary.op, a, b, type);
}

Text Emitter::BoolBinary(BinaryOp op, Text a, Text b, int width) {
  switch (op) {
    case BinaryOp::kAnd:
    case BinaryOp::kMin:
      return Joined(a, "&", b, Level::kOther);
    case BinaryOp::kOr:
    case BinaryOp::kMax:
      return Joined(a, "|", b, Level::kOther);
    case BinaryOp::kXor:
      return Joined(a, "^", b, Level::kOther);
    default:
      if (width > 1) std::swap(a, b);  // true is -1 in a vector
      return Compare(op, std::move(a), std::move(b), {DType::kBool, width});
  }
}

Text Emitter::Compare(BinaryOp op, Text a, Text b, ir::Type type) {
  return Mask(type, a.narrow && b.narrow, Joined(a, ir::Name(op), b, Level::kOther).code);
}

Text Emitter::FloatBinary(const ir::Binary& binary, const Text& a, const Text& b, ir::Type type) {
  switch (binary.op) {
    case BinaryOp::kAdd:
      return Joined(a, "+", b, Level::kAdd);
    case BinaryOp::kSub:
      return Joined(a, "-", b, Level::kAdd);
    case BinaryOp::kMul:
      return Joined(a, "*", b, Level::kMultiply);
    case BinaryOp::kDiv:
      return Joined(a, "/", b, Level::kMultiply);
    case BinaryOp::kMod:
      return Call2("fmod", a, b);
    default:
      break;
  }
  const bool is_min = binary.op == BinaryOp::kMin;
  const ir::FloatImm* number = NumberIn(binary.b);
  const bool swapped = number == nullptr && (number = NumberIn(binary.a)) != nullptr;
  if (number == nullptr) return Call2(prelude_.Binary(binary.op, type), a, b);
  // Between zeros of both signs min gives -0, max gives +0.
  const bool is_wanted_zero = number->value != 0 || std::signbit(number->value) == is_min;
  return Call2(prelude_.MinMaxWithNumber(is_min, is_wanted_zero, type), swapped ? b : a, swapped ? a : b);
}

Text Emitter::IndexBinary(const ir::Expr& e, const ir::Binary& binary, Text a, Text b, int width) {
  const ir::Type type{DType::kInt64, width};
  const ir::Interval bounds = BoundsOf(e), divisor = BoundsOf(binary.b);
  const bool narrow = a.narrow && b.narrow;
  const auto plain = [&](std::string_view op, Level level) {
    const bool fits = narrow && ir::FitsInt(bounds);
    if (narrow && !fits) a = Widened(std::move(a), width);
    if (narrow && !fits && width > 1) b = Widened(std::move(b), width);
    return Joined(a, op, b, level, fits);
  };
  const auto function = [&] {
    return Call2(prelude_.Binary(binary.op, type), Widened(std::move(a), width), Widened(std::move(b), width));
  };
  switch (binary.op) {
    case BinaryOp::kAdd:
      return ir::IsBounded(bounds) ? plain("+", Level::kAdd) : function();
    case BinaryOp::kSub:
      return ir::IsBounded(bounds) ? plain("-", Level::kAdd) : function();
    case BinaryOp::kMul:
      return ir::IsBounded(bounds) ? plain("*", Level::kMultiply) : function();
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: {
      const bool quotient = binary.op == BinaryOp::kDiv || binary.op == BinaryOp::kFloorDiv;
      if (divisor.low > 0 && divisor.IsPoint() && BoundsOf(binary.a).low >= 0) {
        return Joined(a, quotient ? "/" : "%", b, Level::kMultiply, narrow);
      }
      if (!narrow || !ir::FitsInt(bounds)) return function();
      Text result = Call2(prelude_.Binary(binary.op, {DType::kInt32, width}), a, b);
      result.narrow = true;
      return result;
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (!narrow) return function();
      return Primary(fmt::format("{}({}, {})", ir::Name(binary.op), a.code, b.code), true);
    case BinaryOp::kAnd:
      return Joined(a, "&", b, Level::kOther, narrow);
    case BinaryOp::kOr:
      return Joined(a, "|", b, Level::kOther, narrow);
    case BinaryOp::kXor:
      return Joined(a, "^", b, Level::kOther, narrow);
    default:
      return function();
  }
}

Text Emitter::IntBinary(BinaryOp op, const Text& a, const Text& b, ir::Type type) {
  // In OpenCL C these types wrap on overflow, as in the IR.
  const bool wraps = ir::IsUnsignedInt(type.dtype) && (type.width > 1 || ir::SizeOf(type.dtype) >= 4);
  switch (op) {
    case BinaryOp::kAnd:
      return Joined(a, "&", b, Level::kOther);
    case BinaryOp::kOr:
      return Joined(a, "|", b, Level::kOther);
    case BinaryOp::kXor:
      return Joined(a, "^", b, Level::kOther);
    case BinaryOp::kAdd:
      if (wraps) return Joined(a, "+", b, Level::kAdd);
      break;
    case BinaryOp::kSub:
      if (wraps) return Joined(a, "-", b, Level::kAdd);
      break;
    case BinaryOp::kMul:
      if (wraps) return Joined(a, "*", b, Level::kMultiply);
      break;
    default:
      break;
  }
  return Call2(prelude_.Binary(op, type), a, b);
}

Text Emitter::SelectOf(const ir::Select& select, const Element& element, int width) {
  const ir::Type type = select.on_true.type().WithWidth(width);
  const ir::Broadcast* uniform = width > 1 ? select.condition.As<ir::Broadcast>() : nullptr;
  Text condition = uniform != nullptr ? Value(uniform->value) : Value(select.condition, element);
  ++lazy_;
  Text a = Value(select.on_true, element), b = Value(select.on_false, element);
  --lazy_;
  const bool narrow = a.narrow && b.narrow;
  if (!narrow) {
    a = Widened(std::move(a), width);
    b = Widened(std::move(b), width);
  }
  if (width > 1 && uniform == nullptr && !narrow && type.dtype != DType::kBool && !IsStorageFloat(type.dtype) &&
      ir::SizeOf(type.dtype) != 4) {
    const ir::DType ints[] = {DType::kInt8, DType::kInt16, DType::kInt64};
    for (const DType dtype : ints) {
      if (ir::SizeOf(dtype) != ir::SizeOf(type.dtype)) continue;
      condition = Primary(fmt::format("convert_{}({})", TypeName({dtype, width}), condition.code));
    }
  }
  return {
      fmt::format("{} ? {} : {}", InParens(condition, Level::kAdd), InParens(a, Level::kAdd), InParens(b, Level::kAdd)),
      Level::kOther, narrow};
}

Text Emitter::RampOf(const ir::Expr& e, const ir::Ramp& ramp, const Element& element, int width) {
  if (width == 1) {
    const ir::Type type = ramp.base.type();
    const ir::IntImm *stride = ramp.stride.As<ir::IntImm>(), *number = element.number.As<ir::IntImm>();
    ir::Expr offset;
    if (stride != nullptr && number != nullptr) {
      offset = ir::MakeInt(
          type, static_cast<int64_t>(static_cast<uint64_t>(stride->value) * static_cast<uint64_t>(number->value)));
    } else {
      offset = ir::MakeCast(type, element.number) * ramp.stride;
    }
    kept_.push_back(number != nullptr && number->value == 0 && !ir::IsFloat(type.dtype) ? ramp.base
                                                                                        : ramp.base + offset);
    return Value(kept_.back());
  }
  const Text base = Value(ramp.base);
  const bool narrow = base.narrow && ir::FitsInt(BoundsOf(e));
  const int64_t stride = ramp.stride.As<ir::IntImm>()->value;
  std::string offsets;
  for (int i = 0; i < width; ++i) offsets += fmt::format("{}{}", i == 0 ? "" : ", ", i * stride);
  return {fmt::format("{} + {}", Splat(e.type(), base.code, narrow), Splat(e.type(), offsets, narrow)), Level::kAdd,
          narrow};
}

std::string Emitter::Place(const ir::BufferNode& buffer, bool for_store) {
  const std::string& name = places_.at(&buffer);
  if (buffer.dtype != DType::kFloat16 || buffer.scope == ir::Scope::kParam) return name;
  return fmt::format("(({}{}half*){})", ir::IsShared(buffer.scope) ? "__local " : "", for_store ? "" : "const ", name);
}

Text Emitter::LoadElement(const ir::BufferNode& buffer, const std::string& index) {
  const std::string place = Place(buffer, false);
  if (buffer.dtype == DType::kFloat16) return Primary(fmt::format("vload_half({}, {})", index, place));
  const std::string component = fmt::format("{}[{}]", place, index);
  if (buffer.dtype == DType::kBFloat16) return Primary(fmt::format("as_float((uint){} << 16)", component));
  if (buffer.dtype == DType::kBool) return {component + " != 0", Level::kOther};
  return Primary(component);
}

// index: as an operand of "+".
Text Emitter::LoadVector(const ir::BufferNode& buffer, const std::string& index, int width) {
  const std::string place = Place(buffer, false);
  if (buffer.dtype == DType::kFloat16) return Primary(fmt::format("vload_half{}(0, {} + {})", width, place, index));
  const std::string vector = fmt::format("vload{}(0, {} + {})", width, place, index);
  if (buffer.dtype == DType::kBFloat16) {
    return Primary(fmt::format("as_float{0}(convert_uint{0}({1}) << (uint{0})(16))", width, vector));
  }
  if (buffer.dtype == DType::kBool) {
    return Primary(fmt::format("convert_int{0}({1} != (uchar{0})(0))", width, vector));
  }
  return Primary(vector);
}

Text Emitter::LoadOf(const ir::Load& load, const Element& element, int width) {
  const ir::BufferNode& buffer = *load.buffer;
  const ir::Type type{buffer.dtype, width};
  const ir::Broadcast* uniform = load.mask.defined() ? load.mask.As<ir::Broadcast>() : nullptr;
  Text mask;
  if (load.mask.defined()) mask = uniform != nullptr ? Value(uniform->value) : Value(load.mask, element);
  lazy_ += load.mask.defined() ? 1 : 0;
  Text value;
  if (width == 1) {
    value = LoadElement(buffer, Value(load.indices[0], element).code);
  } else if (const ir::Broadcast* same = load.indices[0].As<ir::Broadcast>()) {
    const Text element = LoadElement(buffer, Value(same->value).code);
    value = Primary(Splat(type, buffer.dtype == DType::kBool ? Prefixed("-", element).code : element.code));
  } else {
    const Text base = Value(load.indices[0].As<ir::Ramp>()->base);
    value = LoadVector(buffer, InParens(base, Level::kMultiply), width);
  }
  if (!load.mask.defined()) return value;
  --lazy_;
  const std::string zero = width > 1 ? Splat(type, "0") : "0";
  return {fmt::format("{} ? {} : {}", InParens(mask, Level::kAdd), InParens(value, Level::kAdd), zero), Level::kOther};
}

Text Emitter::Reinterpret(const ir::Call& call, const Text& value, int width) {
  const DType from = call.args[0].type().dtype, to = call.type.dtype;
  if (from == to) return value;
  Text bits = value;
  if (IsStorageFloat(from)) {
    bits = Call1(prelude_.ToBits(from), value);
  } else if (width == 1 && ir::SizeOf(from) < 4) {
    bits = CCast(from == DType::kBool ? "uchar" : TypeName({from, 1}), value);  // C may have promoted it to int
  } else {
    bits = Widened(value, width);
  }
  if (to == DType::kBool) return {InParens(bits, Level::kAdd) + " != 0", Level::kOther};
  if (IsStorageFloat(to)) return Call1(prelude_.FromBits(to), Call1("as_ushort", bits));
  return Call1("as_" + TypeName({to, width}), bits);
}

Text Emitter::CallOf(const ir::Call& call, const Element& element, int width) {
  std::vector<Text> args;
  for (const ir::Expr& arg : call.args) args.push_back(Value(arg, element));
  const ir::Type type = call.args[0].type().WithWidth(width);
  switch (call.function) {
    case ir::Intrinsic::kReinterpret:
      return Reinterpret(call, args[0], width);
    case ir::Intrinsic::kIsNan:
      return Compare(BinaryOp::kNe, args[0], args[0], type);
    case ir::Intrinsic::kIsInf: {
      const std::string infinity = type.dtype == DType::kFloat64 ? "(double)INFINITY" : "INFINITY";
      return Compare(BinaryOp::kEq, Call1("fabs", args[0]), Primary(width > 1 ? Splat(type, infinity) : infinity),
                     type);
    }
    case ir::Intrinsic::kSigmoid:
      return Call1(prelude_.Sigmoid(type), args[0]);
    case ir::Intrinsic::kFma:
      return Primary(fmt::format("fma({}, {}, {})", args[0].code, args[1].code, args[2].code));
    case ir::Intrinsic::kPow:
      return Call2("pow", args[0], args[1]);
    default:
      return Call1(ir::Name(call.function), args[0]);  // OpenCL has the names of the IR
  }
}

}  // namespace hone::codegen::opencl
