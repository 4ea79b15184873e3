// SPDX-License-Identifier: Apache-2.0
// The spelling of operators, loop kinds and scopes in the IR's text and in error messages, in both directions.
#ifndef HONE_COMPILER_IR_OP_NAMES_H_
#define HONE_COMPILER_IR_OP_NAMES_H_

#include <optional>
#include <string_view>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/workload.h"

namespace hone::ir {

std::string_view Name(UnaryOp op);   // "-", "abs", "~", "sqrt"; kNot of bool is written "!"
std::string_view Name(BinaryOp op);  // "+", "//", "%%", "min"; kAnd and kOr of bool are written "&&" and "||"
std::string_view Name(Intrinsic function);
std::string_view Name(LoopKind kind);  // "for", "parallel", "vectorized", "unrolled"
std::string_view Name(Reduction reduction);
std::string_view Name(Scope scope);

// An operator that is written as a function. name: a word; the signs "-" and "~" would be found, too.
std::optional<UnaryOp> ParseUnaryFunction(std::string_view name);
std::optional<Intrinsic> ParseIntrinsic(std::string_view name);
std::optional<LoopKind> ParseLoopKind(std::string_view name);
std::optional<Scope> ParseScope(std::string_view name);
std::optional<Reduction> ParseReduction(std::string_view name);  // never returns kNone

// Whether the word is a keyword of the text. As a name it must be quoted. Function and type names are no keywords,
// because a following "(" distinguishes them: an axis may be called i8 although i8(x) is a cast.
bool IsReserved(std::string_view name);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_OP_NAMES_H_
