// SPDX-License-Identifier: Apache-2.0
// The spelling of operators: in the printed IR, in error messages, and back.
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

std::optional<UnaryOp> ParseUnaryFunction(std::string_view name);  // those written as functions
std::optional<Intrinsic> ParseIntrinsic(std::string_view name);
std::optional<LoopKind> ParseLoopKind(std::string_view name);
std::optional<Scope> ParseScope(std::string_view name);
std::optional<Reduction> ParseReduction(std::string_view name);  // never kNone

// The word is a keyword of the text: as a name it must be quoted. Functions and types are no keywords, since "(" tells
// them from names: the axis i8 and the cast i8(x) go together.
bool IsReserved(std::string_view name);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_OP_NAMES_H_
