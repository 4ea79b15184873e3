// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/op_names.h"

#include <array>
#include <cstddef>

namespace hone::ir {
namespace {

// Every table is indexed by its enum. The texts are stored in records and must not change.
constexpr std::array<std::string_view, 8> kUnary = {"-", "abs", "~", "floor", "ceil", "round", "trunc", "sqrt"};
constexpr std::array<std::string_view, 20> kBinary = {"+", "-", "*",  "/",  "%",  "//", "%%", "min", "max", "&",
                                                      "|", "^", "<<", ">>", "==", "!=", "<",  "<=",  ">",   ">="};
constexpr std::array<std::string_view, 21> kIntrinsic = {
    "exp",  "log",  "tanh", "erf",   "sigmoid", "pow",   "sin",   "cos",   "tan", "asin",       "acos",
    "atan", "sinh", "cosh", "asinh", "acosh",   "atanh", "isnan", "isinf", "fma", "reinterpret"};
constexpr std::array<std::string_view, 6> kLoop = {"for", "parallel", "vectorized", "unrolled", "group", "lane"};
constexpr std::array<std::string_view, 6> kReduction = {"none", "sum", "prod", "max", "min", "order"};
constexpr std::array<std::string_view, 26> kKeywords = {
    "func",     "alloc",  "let",  "if",     "else",  "block",  "in",       "where",       "true",
    "false",    "over",   "of",   "input",  "const", "output", "workload", "reinterpret", "barrier",
    "contract", "settle", "copy", "commit", "wait",  "merge",  "prefetch", "size"};
constexpr std::array<std::string_view, 5> kScope = {"param", "workspace", "local", "shared", "swizzled"};

template <typename Enum, size_t n>
std::optional<Enum> Find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(UnaryOp op) { return kUnary[static_cast<size_t>(op)]; }
std::string_view Name(BinaryOp op) { return kBinary[static_cast<size_t>(op)]; }
std::string_view Name(Intrinsic function) { return kIntrinsic[static_cast<size_t>(function)]; }
std::string_view Name(LoopKind kind) { return kLoop[static_cast<size_t>(kind)]; }
std::string_view Name(Reduction reduction) { return kReduction[static_cast<size_t>(reduction)]; }
std::string_view Name(Scope scope) { return kScope[static_cast<size_t>(scope)]; }

std::optional<UnaryOp> ParseUnaryFunction(std::string_view name) { return Find<UnaryOp>(kUnary, name); }
std::optional<Intrinsic> ParseIntrinsic(std::string_view name) { return Find<Intrinsic>(kIntrinsic, name); }
std::optional<LoopKind> ParseLoopKind(std::string_view name) { return Find<LoopKind>(kLoop, name); }
std::optional<Scope> ParseScope(std::string_view name) { return Find<Scope>(kScope, name); }

std::optional<Reduction> ParseReduction(std::string_view name) {
  const auto found = Find<Reduction>(kReduction, name);
  return found == Reduction::kNone ? std::nullopt : found;
}

bool IsReserved(std::string_view name) {
  for (std::string_view keyword : kKeywords) {
    if (keyword == name) return true;
  }
  if (name.starts_with("inf_") || name.starts_with("nan_")) return true;
  return ParseLoopKind(name) || ParseReduction(name);
}

}  // namespace hone::ir
