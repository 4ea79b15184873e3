// SPDX-License-Identifier: Apache-2.0
// The parser of expressions and declarations, with the scopes they are read in. The Func and Workload parsers are built
// on it.
//
// Everything is type-checked here, so that bad text is a Status with line and column, never an abort. Text may come
// from strangers: nesting, widths and sizes are bounded.
#ifndef HONE_COMPILER_IR_EXPR_PARSER_H_
#define HONE_COMPILER_IR_EXPR_PARSER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/token_stream.h"

namespace hone::ir {

class ExprParser {
 public:
  explicit ExprParser(TokenStream tokens) : tokens_(std::move(tokens)) {}

  TokenStream& tokens() { return tokens_; }

  absl::StatusOr<Expr> ParseExpr();
  // name: f32[1,2]. Does not bind the buffer.
  absl::StatusOr<Buffer> ParseDeclaration(Scope scope);
  // name[i, j where m] for a store; the name is bound.
  struct Access {
    Token at;
    Buffer buffer;
    std::vector<Expr> indices;
    Expr mask;
    Type type;
  };
  absl::StatusOr<Access> ParseAccess();
  // name[i, j stride 16 apart 2]: a matrix by its first element; 0 and 1 if it is not said.
  absl::StatusOr<MatrixOperand> ParseMatrix();
  absl::StatusOr<Buffer> ParseBufferName();

  // Names in scope. Bind returns what the name meant before; Restore takes that back.
  std::optional<Type> BindVar(const std::string& name, Type type);
  void RestoreVar(const std::string& name, std::optional<Type> before);
  Buffer BindBuffer(const std::string& name, Buffer buffer);
  void RestoreBuffer(const std::string& name, Buffer before);

  // Counts one more level of nesting of the text; an error when the text is nested too deeply to be genuine.
  absl::Status Enter();
  void Leave() { --depth_; }

 private:
  // Counts one more operator around the tallest expression that is there; an error where code that follows expressions
  // down could run out of stack.
  absl::Status Grow();
  // matrix: null where no matrix may stand; else its strides go there.
  absl::StatusOr<Access> ParseAccess(MatrixOperand* matrix);
  absl::StatusOr<Expr> ParseBinary(int min_precedence);
  absl::StatusOr<Expr> ParseUnary();
  absl::StatusOr<Expr> ParsePrimary();
  absl::StatusOr<Expr> ParseNumber(bool negative);
  absl::StatusOr<Expr> ParseNonFinite();
  absl::StatusOr<Expr> ParseWord();
  absl::StatusOr<std::vector<Expr>> ParseArgs(size_t count);
  absl::StatusOr<int> ParseWidth();
  absl::StatusOr<Expr> ParseFunction(const Token& name);
  absl::StatusOr<Expr> ParseIntrinsicCall(const Token& name, Intrinsic function);
  absl::StatusOr<Expr> ParseRampOrBroadcast(const Token& name);

  TokenStream tokens_;
  std::map<std::string, Type, std::less<>> vars_;
  std::map<std::string, Buffer, std::less<>> buffers_;
  int depth_ = 0;
  int tallest_ = 0;  // of the operands read so far: how many operators lie one around the other
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_EXPR_PARSER_H_
