// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/printer.h"

#include <charconv>
#include <cmath>

#include "compiler/ir/match.h"
#include "compiler/ir/op_names.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr int kPrimary = 11;
constexpr int kUnaryPrecedence = 10;
constexpr int kComparePrecedence = 3;

// The operator's precedence; 0 if it is written as a function.
int Precedence(BinaryOp op, bool logical) {
  switch (op) {
    case BinaryOp::kMul:
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
      return 9;
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      return 8;
    case BinaryOp::kShl:
    case BinaryOp::kShr:
      return 7;
    case BinaryOp::kAnd:
      return logical ? 2 : 6;
    case BinaryOp::kXor:
      return 5;
    case BinaryOp::kOr:
      return logical ? 1 : 4;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return 0;
    default:
      return kComparePrecedence;
  }
}

bool IsPlainIdentifier(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9') || name[0] == '.') return false;
  for (char c : name) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    if (!ok) return false;
  }
  return !IsReserved(name);
}

void AppendQuoted(std::string_view text, char quote, std::string* out) {
  *out += quote;
  for (char c : text) {
    if (c == quote || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      *out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      *out += c;
    }
  }
  *out += quote;
}

template <typename Float>
std::string Shortest(Float value) {
  char text[64];
  const auto result = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, result.ptr);
}

}  // namespace

void Printer::WriteName(std::string_view name) {
  if (IsPlainIdentifier(name)) {
    text_ += name;
  } else {
    AppendQuoted(name, '`', &text_);
  }
}

void Printer::WriteString(std::string_view text) { AppendQuoted(text, '"', &text_); }

void Printer::WriteDouble(double value) { text_ += Shortest(value); }

void Printer::WriteOpenSize(const OpenSize& size) {
  Write("size ");
  WriteName(size.name);
  text_ += fmt::format(" in [{}, {}]\n", size.min, size.max);
}

void Printer::WriteBufferName(const Buffer& buffer) {
  auto [entry, is_new] = buffer_names_.try_emplace(buffer.get(), buffer->name);
  if (is_new) {
    for (int n = 2; !used_names_.insert(entry->second).second; ++n) {
      entry->second = fmt::format("{}.{}", buffer->name, n);
    }
  }
  WriteName(entry->second);
}

void Printer::WriteDeclaration(const Buffer& buffer) {
  WriteBufferName(buffer);
  text_ += fmt::format(": {}[", Name(buffer->dtype));
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    if (d != 0) text_ += ',';
    WriteSize(buffer->shape[d]);
  }
  text_ += ']';
}

void Printer::WriteList(const std::vector<Expr>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (i != 0) text_ += ", ";
    Write(list[i]);
  }
}

void Printer::WriteAccess(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, int64_t stride,
                          int64_t column_stride) {
  WriteBufferName(buffer);
  text_ += '[';
  WriteList(indices);
  if (mask.defined()) {
    text_ += indices.empty() ? "where " : " where ";
    Write(mask);
  }
  if (stride != 0) text_ += fmt::format("{}stride {}", indices.empty() ? "" : " ", stride);
  if (column_stride != 1) text_ += fmt::format(" apart {}", column_stride);
  text_ += ']';
}

void Printer::WriteFloat(const FloatImm& imm) {
  const std::string_view suffix = Name(imm.type.dtype);
  if (std::isnan(imm.value)) {
    text_ += fmt::format("nan_{}", suffix);
  } else if (std::isinf(imm.value)) {
    text_ += fmt::format("{}inf_{}", imm.value < 0 ? "-" : "", suffix);
  } else {
    std::string digits =
        imm.type.dtype == DType::kFloat64 ? Shortest(imm.value) : Shortest(static_cast<float>(imm.value));
    if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
    text_ += digits;
    text_ += suffix;
  }
}

void Printer::WriteUnary(const Unary& node, int precedence) {
  const bool prefix = node.op == UnaryOp::kNeg || node.op == UnaryOp::kNot;
  if (!prefix) {
    text_ += Name(node.op);
    text_ += '(';
    Write(node.a);
    text_ += ')';
    return;
  }
  const bool parentheses = precedence > kUnaryPrecedence;
  if (parentheses) text_ += '(';
  const bool logical = node.op == UnaryOp::kNot && node.a.type().dtype == DType::kBool;
  text_ += logical ? "!" : Name(node.op);
  // "-1" is read back as a constant, so the negation of the constant 1 is written "-(1)".
  const bool constant = node.a.As<IntImm>() || node.a.As<FloatImm>();
  if (constant) text_ += '(';
  Write(node.a, kPrimary);
  if (constant) text_ += ')';
  if (parentheses) text_ += ')';
}

void Printer::WriteBinary(const Binary& node, int precedence) {
  const bool logical = node.a.type().dtype == DType::kBool;
  const int own = Precedence(node.op, logical);
  if (own == 0) {
    text_ += Name(node.op);
    text_ += '(';
    Write(node.a);
    text_ += ", ";
    Write(node.b);
    text_ += ')';
    return;
  }
  const bool parentheses = precedence > own;
  if (parentheses) text_ += '(';
  Write(node.a, own == kComparePrecedence ? own + 1 : own);
  text_ += ' ';
  if (logical && node.op == BinaryOp::kAnd) {
    text_ += "&&";
  } else if (logical && node.op == BinaryOp::kOr) {
    text_ += "||";
  } else {
    text_ += Name(node.op);
  }
  text_ += ' ';
  Write(node.b, own + 1);
  if (parentheses) text_ += ')';
}

void Printer::WriteCall(const Call& node) {
  text_ += Name(node.function);
  if (node.function == Intrinsic::kReinterpret) text_ += "<" + ToString(node.type) + ">";
  text_ += '(';
  WriteList(node.args);
  text_ += ')';
}

void Printer::Write(const Expr& e, int precedence) {
  Match(
      e,
      [&](const IntImm& n) {
        if (n.type == kBoolType) {
          text_ += n.value ? "true" : "false";
        } else {
          text_ +=
              n.type.dtype == DType::kUInt64 ? std::to_string(static_cast<uint64_t>(n.value)) : std::to_string(n.value);
          if (n.type != kIndexType) text_ += Name(n.type.dtype);
        }
      },
      [&](const FloatImm& n) { WriteFloat(n); }, [&](const Var& n) { WriteName(n.name); },
      [&](const Cast& n) {
        text_ += ToString(n.type) + "(";
        Write(n.value);
        text_ += ')';
      },
      [&](const Unary& n) { WriteUnary(n, precedence); }, [&](const Binary& n) { WriteBinary(n, precedence); },
      [&](const Select& n) {
        text_ += "select(";
        WriteList({n.condition, n.on_true, n.on_false});
        text_ += ')';
      },
      [&](const Load& n) { WriteAccess(n.buffer, n.indices, n.mask); }, [&](const Call& n) { WriteCall(n); },
      [&](const Ramp& n) {
        text_ += "ramp(";
        WriteList({n.base, n.stride});
        text_ += fmt::format(", {})", n.width);
      },
      [&](const Broadcast& n) {
        text_ += "broadcast(";
        Write(n.value);
        text_ += fmt::format(", {})", n.width);
      });
}

}  // namespace hone::ir
