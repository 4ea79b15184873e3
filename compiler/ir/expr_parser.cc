// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/expr_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/status.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/op_names.h"
#include "compiler/ir/typing.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

constexpr int kNestingDepthMax = 1000;
// The deepest nesting of operators. a + b + c + ... nests to the left, so its last operator is the outermost.
constexpr int kExprHeightMax = 4096;
constexpr int64_t kVectorElementsMax = 4096;  // the most elements of a vector
constexpr int64_t kBufferElementsMax = int64_t{1} << 56;

enum class Operands : uint8_t { kAny, kBool, kInt };

struct InfixRow {
  std::string_view symbol;
  BinaryOp op;
  int precedence;  // the same as in the printer's table
  Operands operands;
};

constexpr std::array<InfixRow, 20> kInfix = {
    {{"||", BinaryOp::kOr, 1, Operands::kBool},      {"&&", BinaryOp::kAnd, 2, Operands::kBool},
     {"==", BinaryOp::kEq, 3, Operands::kAny},       {"!=", BinaryOp::kNe, 3, Operands::kAny},
     {"<", BinaryOp::kLt, 3, Operands::kAny},        {"<=", BinaryOp::kLe, 3, Operands::kAny},
     {">", BinaryOp::kGt, 3, Operands::kAny},        {">=", BinaryOp::kGe, 3, Operands::kAny},
     {"|", BinaryOp::kOr, 4, Operands::kInt},        {"^", BinaryOp::kXor, 5, Operands::kAny},
     {"&", BinaryOp::kAnd, 6, Operands::kInt},       {"<<", BinaryOp::kShl, 7, Operands::kAny},
     {">>", BinaryOp::kShr, 7, Operands::kAny},      {"+", BinaryOp::kAdd, 8, Operands::kAny},
     {"-", BinaryOp::kSub, 8, Operands::kAny},       {"*", BinaryOp::kMul, 9, Operands::kAny},
     {"/", BinaryOp::kDiv, 9, Operands::kAny},       {"%", BinaryOp::kMod, 9, Operands::kAny},
     {"//", BinaryOp::kFloorDiv, 9, Operands::kAny}, {"%%", BinaryOp::kFloorMod, 9, Operands::kAny}}};

const InfixRow* FindInfix(const Token& token) {
  if (token.kind != Token::Kind::kSymbol) return nullptr;
  for (const InfixRow& row : kInfix) {
    if (row.symbol == token.text) return &row;
  }
  return nullptr;
}

bool AllowsType(Operands operands, Type type) {
  if (operands == Operands::kBool) return type.dtype == DType::kBool;
  return operands == Operands::kAny || IsInt(type.dtype);
}

absl::StatusOr<Expr> MakeInfix(const Token& at, const InfixRow& row, Expr a, Expr b) {
  if (!BinaryType(row.op, a.type(), b.type()) || !AllowsType(row.operands, a.type())) {
    return TokenStream::ErrorAt(
        at, fmt::format("'{}' does not take {} and {}", at.text, ToString(a.type()), ToString(b.type())));
  }
  return MakeBinary(row.op, std::move(a), std::move(b));
}

absl::StatusOr<Expr> MakeFloatLiteral(const Token& at, const std::string& digits, DType dtype) {
  const char* end = digits.data() + digits.size();
  double value = 0;
  std::from_chars_result result{};
  if (dtype == DType::kFloat64) {
    result = std::from_chars(digits.data(), end, value);
  } else {
    float narrow = 0;
    result = std::from_chars(digits.data(), end, narrow);
    value = narrow;
  }
  if (result.ec != std::errc() || result.ptr != end) {
    return TokenStream::ErrorAt(at, fmt::format("'{}' is out of range for {}", digits, Name(dtype)));
  }
  return MakeFloat({dtype, 1}, value);
}

absl::StatusOr<Expr> MakeIntLiteral(const Token& at, const std::string& digits, DType dtype) {
  const char* end = digits.data() + digits.size();
  int64_t value = 0;
  std::from_chars_result result{};
  if (dtype == DType::kUInt64) {
    uint64_t bits = 0;
    result = std::from_chars(digits.data(), end, bits);
    value = static_cast<int64_t>(bits);
  } else {
    result = std::from_chars(digits.data(), end, value);
  }
  const bool fits = result.ec == std::errc() && result.ptr == end && WrapTo(dtype, value) == value;
  if (!fits) return TokenStream::ErrorAt(at, fmt::format("'{}' is out of range for {}", digits, Name(dtype)));
  return MakeInt({dtype, 1}, value);
}

}  // namespace

absl::Status ExprParser::Enter() {
  if (++depth_ > kNestingDepthMax)
    return tokens_.Error(fmt::format("the text is nested more than {} levels deep", kNestingDepthMax));
  return absl::OkStatus();
}

absl::Status ExprParser::Grow() {
  if (++tallest_ <= kExprHeightMax) return absl::OkStatus();
  return tokens_.Error(fmt::format("the expression has more than {} operators nested in each other", kExprHeightMax));
}

std::optional<Type> ExprParser::BindVar(const std::string& name, Type type) {
  const auto found = vars_.find(name);
  const std::optional<Type> before = found == vars_.end() ? std::nullopt : std::optional(found->second);
  vars_[name] = type;
  return before;
}

void ExprParser::RestoreVar(const std::string& name, std::optional<Type> before) {
  if (before) {
    vars_[name] = *before;
  } else {
    vars_.erase(name);
  }
}

Buffer ExprParser::BindBuffer(const std::string& name, Buffer buffer) {
  std::swap(buffers_[name], buffer);
  return buffer;
}

void ExprParser::RestoreBuffer(const std::string& name, Buffer before) { buffers_[name] = std::move(before); }

absl::StatusOr<Buffer> ExprParser::ParseBufferName() {
  const Token at = tokens_.Peek();
  HONE_ASSIGN_OR_RETURN(const std::string name, tokens_.ExpectName("a buffer"));
  const auto found = buffers_.find(name);
  if (found == buffers_.end() || found->second == nullptr) {
    return TokenStream::ErrorAt(at, fmt::format("there is no buffer '{}' here; declare it first", name));
  }
  return found->second;
}

absl::StatusOr<Buffer> ExprParser::ParseDeclaration(Scope scope) {
  HONE_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName("a buffer"));
  HONE_RETURN_IF_ERROR(tokens_.Expect(":"));
  const Token at = tokens_.Next();
  const auto dtype = ParseDType(at.text);
  if (at.kind != Token::Kind::kWord || !dtype) {
    return TokenStream::ErrorAt(at, fmt::format("expected an element type (f32, i8, ...) but found '{}'", at.text));
  }
  HONE_RETURN_IF_ERROR(tokens_.Expect("["));
  Shape shape;
  int64_t elements = 1;
  while (!tokens_.Accept("]")) {
    if (!shape.empty()) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
    HONE_ASSIGN_OR_RETURN(Size extent, ParseSize("an extent"));
    if (__builtin_mul_overflow(elements, std::max<int64_t>(extent.max(), 1), &elements) ||
        elements > kBufferElementsMax) {
      return tokens_.Error(fmt::format("buffer '{}' has more than 2^56 elements", name));
    }
    shape.push_back(std::move(extent));
  }
  return MakeBuffer(std::move(name), *dtype, std::move(shape), scope);
}

absl::StatusOr<OpenSize> ExprParser::ParseOpenSize() {
  const Token at = tokens_.Peek();
  OpenSize size;
  HONE_ASSIGN_OR_RETURN(size.name, tokens_.ExpectName("a size"));
  HONE_RETURN_IF_ERROR(tokens_.Expect("in"));
  HONE_RETURN_IF_ERROR(tokens_.Expect("["));
  HONE_ASSIGN_OR_RETURN(size.min, tokens_.ExpectInteger("the smallest value"));
  HONE_RETURN_IF_ERROR(tokens_.Expect(","));
  HONE_ASSIGN_OR_RETURN(size.max, tokens_.ExpectInteger("the largest value"));
  HONE_RETURN_IF_ERROR(tokens_.Expect("]"));
  if (size.min < 0 || size.min >= size.max) {
    return TokenStream::ErrorAt(at, fmt::format("size '{}' must have at least two values, none negative", size.name));
  }
  sizes_.push_back(size);
  BindVar(size.name, kIndexType);
  return size;
}

void ExprParser::BindNumber(const std::string& name, const Expr& number) {
  const auto* integer = number.As<IntImm>();
  if (integer != nullptr && number.type() == kIndexType && integer->value >= 0) {
    sizes_.push_back({name, integer->value, integer->value});
  }
  BindVar(name, number.type());
}

absl::StatusOr<Size> ExprParser::ParseSize(std::string_view wanted) {
  const Token at = tokens_.Peek();
  const bool is_number = at.kind == Token::Kind::kNumber && (tokens_.PeekIs(",", 1) || tokens_.PeekIs("]", 1));
  if (sizes_.empty() || is_number) return tokens_.ExpectInteger(wanted);
  HONE_ASSIGN_OR_RETURN(const Expr e, ParseExpr());
  std::optional<Size> size = ToSize(e, sizes_);
  if (!size.has_value()) return TokenStream::ErrorAt(at, fmt::format("{} must be arithmetic on sizes", wanted));
  return *std::move(size);
}

absl::StatusOr<ExprParser::Access> ExprParser::ParseAccess() { return ParseAccess(nullptr); }

absl::StatusOr<MatrixOperand> ExprParser::ParseMatrix() {
  MatrixOperand matrix;
  HONE_ASSIGN_OR_RETURN(Access access, ParseAccess(&matrix));
  if (access.mask.defined() || access.type.width != 1) {
    return TokenStream::ErrorAt(access.at, "an operand of 'contract' must be its first element, without a mask");
  }
  matrix.first = MakeLoad(std::move(access.buffer), std::move(access.indices));
  return matrix;
}

absl::StatusOr<ExprParser::Access> ExprParser::ParseAccess(MatrixOperand* matrix) {
  const auto sees = [&](std::string_view word) {
    return matrix != nullptr && tokens_.PeekIs(word) && tokens_.Peek(1).kind == Token::Kind::kNumber;
  };
  Access access;
  access.at = tokens_.Peek();
  HONE_ASSIGN_OR_RETURN(access.buffer, ParseBufferName());
  HONE_RETURN_IF_ERROR(tokens_.Expect("["));
  while (!tokens_.PeekIs("]") && !tokens_.PeekIs("where") && !sees("stride") && !sees("apart")) {
    if (!access.indices.empty()) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
    HONE_ASSIGN_OR_RETURN(Expr index, ParseExpr());
    access.indices.push_back(std::move(index));
  }
  if (tokens_.Accept("where")) {
    HONE_ASSIGN_OR_RETURN(access.mask, ParseExpr());
  }
  if (sees("stride")) {
    tokens_.Next();
    HONE_ASSIGN_OR_RETURN(matrix->stride, tokens_.ExpectInteger("the stride, the elements from row to row"));
  }
  if (sees("apart")) {
    tokens_.Next();
    HONE_ASSIGN_OR_RETURN(matrix->column_stride,
                          tokens_.ExpectInteger("the column stride, the elements from column to column"));
  }
  HONE_RETURN_IF_ERROR(tokens_.Expect("]"));
  const auto type = AccessType(*access.buffer, access.indices, access.mask);
  if (!type) {
    return TokenStream::ErrorAt(
        access.at,
        fmt::format("access to '{}' needs {} scalar i64 indices (the last may be a vector) or one flat index, "
                    "and a bool mask of the same width",
                    access.buffer->name, access.buffer->shape.size()));
  }
  access.type = *type;
  return access;
}

absl::StatusOr<Expr> ExprParser::ParseExpr() {
  HONE_RETURN_IF_ERROR(Enter());
  HONE_ASSIGN_OR_RETURN(Expr e, ParseBinary(1));
  Leave();
  return e;
}

absl::StatusOr<Expr> ExprParser::ParseBinary(int min_precedence) {
  const int around = std::exchange(tallest_, 0);
  HONE_ASSIGN_OR_RETURN(Expr left, ParseUnary());
  while (true) {
    const InfixRow* row = FindInfix(tokens_.Peek());
    if (row == nullptr || row->precedence < min_precedence) break;
    const Token at = tokens_.Next();
    HONE_ASSIGN_OR_RETURN(Expr right, ParseBinary(row->precedence + 1));  // tallest_ now covers both operands
    HONE_RETURN_IF_ERROR(Grow());
    HONE_ASSIGN_OR_RETURN(left, MakeInfix(at, *row, std::move(left), std::move(right)));
  }
  tallest_ = std::max(tallest_, around);
  return left;
}

absl::StatusOr<Expr> ExprParser::ParseUnary() {
  const Token at = tokens_.Peek();
  if (tokens_.Accept("-")) {
    const Token& next = tokens_.Peek();
    if (next.kind == Token::Kind::kNumber) return ParseNumber(true);
    if (next.kind == Token::Kind::kWord && next.text.starts_with("inf_")) {
      HONE_ASSIGN_OR_RETURN(const Expr infinity, ParsePrimary());
      return MakeFloat(infinity.type(), -std::numeric_limits<double>::infinity());
    }
  } else if (!tokens_.Accept("!") && !tokens_.Accept("~")) {
    return ParsePrimary();
  }
  HONE_RETURN_IF_ERROR(Enter());
  HONE_ASSIGN_OR_RETURN(Expr operand, ParseUnary());
  Leave();
  HONE_RETURN_IF_ERROR(Grow());
  const UnaryOp op = at.text == "-" ? UnaryOp::kNeg : UnaryOp::kNot;
  const bool logical = operand.type().dtype == DType::kBool;
  if (!UnaryType(op, operand.type()) || (at.text == "!") != logical) {
    return TokenStream::ErrorAt(at, fmt::format("'{}' does not take {}", at.text, ToString(operand.type())));
  }
  return MakeUnary(op, std::move(operand));
}

absl::StatusOr<Expr> ExprParser::ParseNumber(bool negative) {
  const Token token = tokens_.Next();
  const std::string digits = (negative ? "-" : "") + token.text;
  const bool whole = token.text.find_first_of(".e") == std::string::npos;
  const auto dtype = token.suffix.empty() ? std::optional(kIndexType.dtype) : ParseDType(token.suffix);
  if (!dtype || *dtype == DType::kBool) {
    return TokenStream::ErrorAt(
        token, fmt::format("'{}' is not a number type; write for example 1.5f32 or 7i32", token.suffix));
  }
  if (IsFloat(*dtype)) return MakeFloatLiteral(token, digits, *dtype);
  if (!whole)
    return TokenStream::ErrorAt(
        token, fmt::format("'{}' is not an integer and needs a float type: write {}f32", digits, digits));
  return MakeIntLiteral(token, digits, *dtype);
}

absl::StatusOr<Expr> ExprParser::ParsePrimary() {
  const Token& token = tokens_.Peek();
  if (tokens_.Accept("(")) {
    HONE_ASSIGN_OR_RETURN(Expr e, ParseExpr());
    HONE_RETURN_IF_ERROR(tokens_.Expect(")"));
    return e;
  }
  if (token.kind == Token::Kind::kNumber) return ParseNumber(false);
  if (token.kind == Token::Kind::kWord || token.kind == Token::Kind::kQuotedName) return ParseWord();
  return tokens_.Error(fmt::format("expected an expression but found {}",
                                   tokens_.AtEnd() ? "the end of the text" : "'" + token.text + "'"));
}

absl::StatusOr<Expr> ExprParser::ParseNonFinite() {
  const Token token = tokens_.Next();
  const auto dtype = ParseDType(std::string_view(token.text).substr(4));
  if (!dtype || !IsFloat(*dtype)) return TokenStream::ErrorAt(token, "expected a float type after inf_ or nan_");
  const bool infinite = token.text[0] == 'i';
  using Limits = std::numeric_limits<double>;
  return MakeFloat({*dtype, 1}, infinite ? Limits::infinity() : Limits::quiet_NaN());
}

absl::StatusOr<Expr> ExprParser::ParseWord() {
  const Token token = tokens_.Peek();
  if (token.kind == Token::Kind::kWord) {
    if (tokens_.Accept("true")) return MakeBool(true);
    if (tokens_.Accept("false")) return MakeBool(false);
    if (token.text.starts_with("inf_") || token.text.starts_with("nan_")) return ParseNonFinite();
    if (tokens_.PeekIs("(", 1) || token.text == Name(Intrinsic::kReinterpret)) {
      tokens_.Next();
      HONE_ASSIGN_OR_RETURN(Expr call, ParseFunction(token));
      HONE_RETURN_IF_ERROR(Grow());
      return call;
    }
    if (IsReserved(token.text)) {
      return tokens_.Error(fmt::format("'{0}' is a reserved word; as a name write `{0}`", token.text));
    }
  }
  if (tokens_.PeekIs("[", 1)) {
    HONE_ASSIGN_OR_RETURN(Access access, ParseAccess());
    HONE_RETURN_IF_ERROR(Grow());
    return MakeLoad(std::move(access.buffer), std::move(access.indices), std::move(access.mask));
  }
  const auto found = vars_.find(token.text);
  if (found == vars_.end()) return tokens_.Error(fmt::format("there is no variable '{}' here", token.text));
  return MakeVar(tokens_.Next().text, found->second);
}

absl::StatusOr<std::vector<Expr>> ExprParser::ParseArgs(size_t count) {
  HONE_RETURN_IF_ERROR(tokens_.Expect("("));
  std::vector<Expr> args;
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) HONE_RETURN_IF_ERROR(tokens_.Expect(","));
    HONE_ASSIGN_OR_RETURN(Expr arg, ParseExpr());
    args.push_back(std::move(arg));
  }
  HONE_RETURN_IF_ERROR(tokens_.Expect(")"));
  return args;
}

absl::StatusOr<int> ExprParser::ParseWidth() {
  HONE_RETURN_IF_ERROR(tokens_.Expect(","));
  HONE_ASSIGN_OR_RETURN(const int64_t width, tokens_.ExpectInteger("the width of a vector"));
  if (width < 2 || width > kVectorElementsMax)
    return tokens_.Error(fmt::format("the width of a vector must be in 2..{}", kVectorElementsMax));
  HONE_RETURN_IF_ERROR(tokens_.Expect(")"));
  return static_cast<int>(width);
}

absl::StatusOr<Expr> ExprParser::ParseFunction(const Token& name) {
  const auto ill_typed = [&] {
    return TokenStream::ErrorAt(name, fmt::format("the arguments of '{}' have the wrong types", name.text));
  };
  if (name.text == "ramp" || name.text == "broadcast") return ParseRampOrBroadcast(name);
  if (name.text == "select") {
    HONE_ASSIGN_OR_RETURN(auto args, ParseArgs(3));
    if (!SelectType(args[0].type(), args[1].type(), args[2].type())) return ill_typed();
    return MakeSelect(std::move(args[0]), std::move(args[1]), std::move(args[2]));
  }
  if (name.text == "min" || name.text == "max") {
    HONE_ASSIGN_OR_RETURN(auto args, ParseArgs(2));
    const BinaryOp op = name.text == "min" ? BinaryOp::kMin : BinaryOp::kMax;
    if (!BinaryType(op, args[0].type(), args[1].type())) return ill_typed();
    return MakeBinary(op, std::move(args[0]), std::move(args[1]));
  }
  if (const auto type = ParseType(name.text)) {
    HONE_ASSIGN_OR_RETURN(auto args, ParseArgs(1));
    if (!CastType(*type, args[0].type())) return ill_typed();
    return MakeCast(*type, std::move(args[0]));
  }
  if (const auto op = ParseUnaryFunction(name.text)) {
    HONE_ASSIGN_OR_RETURN(auto args, ParseArgs(1));
    if (!UnaryType(*op, args[0].type())) return ill_typed();
    return MakeUnary(*op, std::move(args[0]));
  }
  if (const auto function = ParseIntrinsic(name.text)) return ParseIntrinsicCall(name, *function);
  return TokenStream::ErrorAt(name, fmt::format("there is no function '{}'", name.text));
}

absl::StatusOr<Expr> ExprParser::ParseIntrinsicCall(const Token& name, Intrinsic function) {
  std::optional<Type> type;
  if (function == Intrinsic::kReinterpret) {
    HONE_RETURN_IF_ERROR(tokens_.Expect("<"));
    type = ParseType(tokens_.Peek().text);
    if (!type) return tokens_.Error("expected a type: reinterpret<f32>(...)");
    tokens_.Next();
    HONE_RETURN_IF_ERROR(tokens_.Expect(">"));
  }
  HONE_ASSIGN_OR_RETURN(auto args, ParseArgs(static_cast<size_t>(ArgCount(function))));
  if (!type) {
    const bool to_bool = function == Intrinsic::kIsNan || function == Intrinsic::kIsInf;
    type = to_bool ? kBoolType.WithWidth(args[0].type().width) : args[0].type();
  }
  if (!CallType(*type, function, args)) {
    return TokenStream::ErrorAt(name, fmt::format("the arguments of '{}' have the wrong types", name.text));
  }
  return MakeCall(*type, function, std::move(args));
}

absl::StatusOr<Expr> ExprParser::ParseRampOrBroadcast(const Token& name) {
  HONE_RETURN_IF_ERROR(tokens_.Expect("("));
  HONE_ASSIGN_OR_RETURN(Expr first, ParseExpr());
  if (name.text == "broadcast") {
    HONE_ASSIGN_OR_RETURN(const int width, ParseWidth());
    if (!BroadcastType(first.type(), width)) return TokenStream::ErrorAt(name, "broadcast takes a scalar");
    return MakeBroadcast(std::move(first), width);
  }
  HONE_RETURN_IF_ERROR(tokens_.Expect(","));
  HONE_ASSIGN_OR_RETURN(Expr stride, ParseExpr());
  HONE_ASSIGN_OR_RETURN(const int width, ParseWidth());
  if (!RampType(first.type(), stride.type(), width)) {
    return TokenStream::ErrorAt(name, "ramp takes two scalars of the same type");
  }
  return MakeRamp(std::move(first), std::move(stride), width);
}

}  // namespace hone::ir
