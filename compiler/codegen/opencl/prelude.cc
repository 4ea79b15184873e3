// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/opencl/prelude.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/str_replace.h"
#include "base/status.h"

namespace hone::codegen::opencl {
namespace {

using ir::BinaryOp;
using ir::DType;

std::string VectorName(std::string_view element, int width) {
  return width == 1 ? std::string(element) : fmt::format("{}{}", element, width);
}

std::string_view IntName(int bytes, bool is_signed) {
  static constexpr std::string_view kSigned[] = {"char", "short", "int", "long"};
  static constexpr std::string_view kUnsigned[] = {"uchar", "ushort", "uint", "ulong"};
  const int i = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  return is_signed ? kSigned[i] : kUnsigned[i];
}

// Division by zero gives 0, the lowest integer by -1 wraps, and no operand traps.
std::string Division(BinaryOp op, bool is_signed) {
  const bool modulo = op == BinaryOp::kMod || op == BinaryOp::kFloorMod;
  const bool floors = op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
  if (!is_signed) {
    return fmt::format("  $T safe = b == ($T)(0) ? ($T)(1) : b;\n  return b == ($T)(0) ? ($T)(0) : ($T)(a {} safe);\n",
                       modulo ? "%" : "/");
  }
  std::string text = "  $T safe = ((b == ($T)(0)) | (b == ($T)(-1))) ? ($T)(1) : b;\n";
  if (!modulo) text += "  $T result = a / safe;\n";
  if (modulo || floors) text += fmt::format("  $T {} = a % safe;\n", modulo ? "result" : "rest");
  if (floors) {
    text += fmt::format("  result = (({0} != ($T)(0)) & (($T)({0} ^ safe) < ($T)(0))) ? ($T)(result {1}) : result;\n",
                        modulo ? "result" : "rest", modulo ? "+ safe" : "- ($T)(1)");
  }
  const char* by_minus_one = modulo ? "($T)(0)" : "as_$T(($U)(($U)(0) - as_$U(a)))";
  return text + fmt::format("  return b == ($T)(0) ? ($T)(0) : b == ($T)(-1) ? {} : result;\n", by_minus_one);
}

std::string IntBinary(BinaryOp op, ir::Type type) {
  const bool is_signed = ir::IsSignedInt(type.dtype);
  switch (op) {
    case BinaryOp::kAdd:
      return "  return as_$T(($U)(as_$U(a) + as_$U(b)));\n";
    case BinaryOp::kSub:
      return "  return as_$T(($U)(as_$U(a) - as_$U(b)));\n";
    case BinaryOp::kMul:
      // C would multiply narrow scalars as int, which may overflow.
      if (type.width == 1 && ir::SizeOf(type.dtype) < 4) return "  return as_$T(($U)((uint)(a) * (uint)(b)));\n";
      return "  return as_$T(($U)(as_$U(a) * as_$U(b)));\n";
    case BinaryOp::kShl:
      return "  return as_$U(b) < ($U)($W) ? as_$T(($U)(as_$U(a) << (as_$U(b) & ($U)($W - 1)))) : ($T)(0);\n";
    case BinaryOp::kShr:
      return "  return as_$U(b) < ($U)($W) ? ($T)(a >> (b & ($T)($W - 1))) : ($T)(0);\n";
    case BinaryOp::kMin:
      return "  return a < b ? a : b;\n";
    case BinaryOp::kMax:
      return "  return a < b ? b : a;\n";
    default:
      return Division(op, is_signed);
  }
}

// A NaN wins, and -0 is below +0.
std::string FloatMinMax(bool is_min) {
  return fmt::format(
      "  return ((a != a) | (b != b)) ? a + b : (a == b) ? as_$T(as_$U(a) {} as_$U(b)) : (a {} b) ? a : b;\n",
      is_min ? "|" : "&", is_min ? "<" : ">");
}

std::string_view OpName(BinaryOp op) {
  static constexpr std::string_view kNames[] = {"add", "sub", "mul", "div", "mod", "floordiv", "floormod",
                                                "min", "max", "and", "or",  "xor", "shl",      "shr"};
  return kNames[static_cast<size_t>(op)];
}

}  // namespace

bool IsNative(int width) { return width == 2 || width == 4 || width == 8 || width == 16; }

std::string TypeName(ir::Type type, bool narrow) {
  HONE_CHECK(type.width == 1 || IsNative(type.width));
  switch (type.dtype) {
    case DType::kBool:
      return type.width == 1 ? "bool" : VectorName("int", type.width);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
      return VectorName("float", type.width);
    case DType::kFloat64:
      return VectorName("double", type.width);
    default:
      return VectorName(IntName(narrow ? 4 : ir::SizeOf(type.dtype), ir::IsSignedInt(type.dtype)), type.width);
  }
}

std::string Prelude::Add(const std::string& what, ir::Type type, std::string text) {
  const std::string name = fmt::format("op_{}_{}", what, ir::ToString(type));
  if (!known_.insert(name).second) return name;
  absl::StrReplaceAll({{"$N", name},
                       {"$T", TypeName(type)},
                       {"$U", VectorName(IntName(ir::SizeOf(type.dtype), false), type.width)},
                       {"$W", std::to_string(8 * ir::SizeOf(type.dtype))}},
                      &text);
  // Several sources may be joined to one program, so each function is defined only if it is not there yet.
  text_ += fmt::format("\n#ifndef {0}\n#define {0} {0}\n{1}#endif\n", name, text);
  return name;
}

std::string Prelude::Binary(BinaryOp op, ir::Type type) {
  const std::string body = ir::IsFloat(type.dtype) ? FloatMinMax(op == BinaryOp::kMin) : IntBinary(op, type);
  return Add(std::string(OpName(op)), type, "static $T $N($T a, $T b) {\n" + body + "}\n");
}

std::string Prelude::Unary(ir::UnaryOp op, ir::Type type) {
  const bool neg = op == ir::UnaryOp::kNeg;
  const char* negated = "as_$T(($U)(($U)(0) - as_$U(a)))";
  return Add(neg ? "neg" : "abs", type,
             fmt::format("static $T $N($T a) {{\n  return {}{};\n}}\n", neg ? "" : "a >= ($T)(0) ? a : ", negated));
}

std::string Prelude::MinMaxWithNumber(bool is_min, bool second_if_equal, ir::Type type) {
  const std::string what = fmt::format("{}{}", is_min ? "atmost" : "atleast", second_if_equal ? "" : "_first");
  const char* compare = is_min ? (second_if_equal ? ">=" : ">") : (second_if_equal ? "<=" : "<");
  return Add(what, type,
             fmt::format("static $T $N($T a, $T number) {{\n  return a {} number ? number : a;\n}}\n", compare));
}

std::string Prelude::FloatToInt(ir::Type from, ir::Type to) {
  const std::string zero_if_nan =
      ir::SizeOf(from.dtype) == ir::SizeOf(to.dtype) || from.width == 1
          ? "a == a"
          : fmt::format("convert_{}(a == a)", VectorName(IntName(ir::SizeOf(to.dtype), true), to.width));
  return Add("int_of_" + ir::ToString(from), to,
             fmt::format("static $T $N({} a) {{\n  return {} ? convert_$T_sat_rtz(a) : ($T)(0);\n}}\n", TypeName(from),
                         zero_if_nan));
}

std::string Prelude::Sigmoid(ir::Type type) {
  const char* one = type.dtype == DType::kFloat64 ? "1.0" : "1.0f";
  return Add("sigmoid", type,
             fmt::format("static $T $N($T a) {{\n  $T e = exp(-fabs(a));\n"
                         "  return (a < ($T)(0) ? e : ($T)({0})) / (($T)({0}) + e);\n}}\n",
                         one));
}

std::string Prelude::Round(DType to) {
  if (to == DType::kBFloat16) {
    return Add(
        "round", {to, 1},
        "static float $N(float a) {\n"
        "  uint bits = as_uint(a), rest = bits & 0x7fffffffu;\n"
        "  uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;\n"
        "  return rest > 0x7f800000u ? as_float(0x7fc00000u) : rest == 0x7f800000u ? a : as_float(rounded);\n}\n");
  }
  // From 65520 on the result is infinity; below 2^-14 it is a multiple of 2^-24.
  return Add("round", {to, 1},
             "static float $N(float a) {\n"
             "  uint bits = as_uint(a), rest = bits & 0x7fffffffu, sign = bits & 0x80000000u;\n"
             "  uint rounded = (rest + 0xfffu + ((rest >> 13) & 1u)) & 0xffffe000u;\n"
             "  uint tiny = as_uint(rint(fabs(a) * 16777216.0f) * 5.9604645e-8f);\n"
             "  uint finite = rest < 0x38800000u ? tiny : rest >= 0x477ff000u ? 0x7f800000u : rounded;\n"
             "  return rest >= 0x7f800000u ? a : as_float(finite | sign);\n}\n");
}

std::string Prelude::RoundToOdd(DType from) {
  return Add("odd", {from, 1},
             "static float $N($T a) {\n"
             "  float toward_zero = convert_float_rtz(a);\n"
             "  return ($T)toward_zero == a || a != a ? toward_zero : as_float(as_uint(toward_zero) | 1u);\n}\n");
}

std::string Prelude::ToBits(DType from) {
  if (from == DType::kBFloat16) {
    const std::string round = Round(from);
    return Add("bits", {from, 1},
               "static ushort $N(float a) {\n  return (ushort)(as_uint(" + round + "(a)) >> 16);\n}\n");
  }
  return Add(
      "bits", {from, 1},
      "static ushort $N(float a) {\n"
      "  uint bits = as_uint(a), rest = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;\n"
      "  uint finite = rest < 0x38800000u ? (uint)(fabs(a) * 16777216.0f) : (rest - 0x38000000u) >> 13;\n"
      "  uint result = rest > 0x7f800000u ? 0x7e00u : rest == 0x7f800000u ? (sign | 0x7c00u) : (sign | finite);\n"
      "  return (ushort)result;\n}\n");
}

std::string Prelude::FromBits(DType to) {
  if (to == DType::kBFloat16) {
    return Add("value", {to, 1}, "static float $N(ushort a) {\n  return as_float((uint)a << 16);\n}\n");
  }
  return Add("value", {to, 1},
             "static float $N(ushort a) {\n"
             "  uint rest = a & 0x7fffu, sign = (uint)(a & 0x8000u) << 16;\n"
             "  uint tiny = as_uint((float)rest * 5.9604645e-8f);\n"
             "  uint finite = rest < 0x400u ? tiny : rest >= 0x7c00u ? (0x7f800000u | (rest << 13)) : ((rest << 13) + "
             "0x38000000u);\n"
             "  return as_float(finite | sign);\n}\n");
}

}  // namespace hone::codegen::opencl
