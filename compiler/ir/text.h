// SPDX-License-Identifier: Apache-2.0
// The IR as text: printer and parser. docs/IR.md has the grammar; Parse(Print(x)) equals x.
#ifndef HONE_COMPILER_IR_TEXT_H_
#define HONE_COMPILER_IR_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::ir {

std::string Print(const Expr& e);
std::string Print(const Stmt& s, int indent = 0);
std::string Print(const Func& func);
// Errors: InvalidArgument with line and column. Types are checked, but not the other rules of Verify (verify.h). Params
// get the scope kParam; an alloc names its scope.
absl::StatusOr<Func> ParseFunc(std::string_view text);

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_TEXT_H_
