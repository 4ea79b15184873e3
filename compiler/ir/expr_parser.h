// SPDX-License-Identifier: Apache-2.0
// The parser of expressions and declarations, with the names in scope. The Func and Workload parsers are built on it.
//
// It checks all types, so that bad text gives a Status with line and column and never aborts. The text may be hostile,
// so nesting, widths and sizes are limited.
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
  // Parses "name: f32[1,2]". Does not bind the buffer.
  absl::StatusOr<Buffer> ParseDeclaration(Scope scope);
  // Parses "name[i, j where m]", the target of a store. The name must be bound.
  struct Access {
    Token at;
    Buffer buffer;
    std::vector<Expr> indices;
    Expr mask;
    Type type;
  };
  absl::StatusOr<Access> ParseAccess();
  // Parses "name[i, j stride 16 apart 2]", a matrix given by its first element. The defaults are stride 0 and apart 1.
  absl::StatusOr<MatrixOperand> ParseMatrix();
  absl::StatusOr<Buffer> ParseBufferName();
  // Parses a number, or arithmetic on sizes that are bound. `wanted` says what is expected here, for the error.
  absl::StatusOr<Size> ParseSize(std::string_view wanted);

  // Parses "n in [1, 512]", what follows the keyword of a declared size, and binds the size for the rest of the text.
  absl::StatusOr<OpenSize> ParseOpenSize();

  // Binds the name to a number for the rest of the text. An index that is not negative may stand in sizes as well.
  void BindNumber(const std::string& name, const Expr& number);

  // Bring a name into scope. Bind returns the previous meaning of the name, which Restore puts back.
  std::optional<Type> BindVar(const std::string& name, Type type);
  void RestoreVar(const std::string& name, std::optional<Type> before);
  Buffer BindBuffer(const std::string& name, Buffer buffer);
  void RestoreBuffer(const std::string& name, Buffer before);

  // Enters one level of nesting of the text. Fails if the text is nested too deeply.
  absl::Status Enter();
  void Leave() { --depth_; }

 private:
  // Counts one more operator around the deepest expression. Fails where recursive code could run out of stack.
  absl::Status Grow();
  // matrix: receives the strides; null if no strides are allowed.
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
  std::vector<OpenSize> sizes_;
  int depth_ = 0;
  int tallest_ = 0;  // depth of the deepest operand read so far, in nested operators
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_EXPR_PARSER_H_
