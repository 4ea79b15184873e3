// SPDX-License-Identifier: Apache-2.0
// The tokens of the IR's texts, with a cursor. Shared by the parsers of Func and Workload.
//
// Blanks and # comments only separate tokens. Not here: the meaning of tokens (expr_parser.h).
#ifndef HONE_COMPILER_IR_TOKEN_STREAM_H_
#define HONE_COMPILER_IR_TOKEN_STREAM_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::ir {

struct Token {
  enum class Kind : uint8_t { kEnd, kWord, kQuotedName, kString, kNumber, kSymbol };
  Kind kind = Kind::kEnd;
  std::string text;    // unescaped; a number without its suffix
  std::string suffix;  // the suffix of a number, as "f32" in 1.5f32; empty: none
  int line = 1, column = 1;
};

class TokenStream {
 public:
  // Splits the text into tokens. Errors, here and below: InvalidArgument with line and column. tokens_max: the limit on
  // the number of tokens.
  static absl::StatusOr<TokenStream> Make(std::string_view text, size_t tokens_max = SIZE_MAX);

  const Token& Peek(size_t ahead = 0) const;  // kEnd behind the last token
  Token Next();
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }
  // Whether the token is this unquoted word or symbol.
  bool PeekIs(std::string_view text, size_t ahead = 0) const;
  bool Accept(std::string_view text);
  absl::Status Expect(std::string_view text);
  // Takes a plain or quoted identifier; `what` describes it in the error. A reserved word must be quoted.
  absl::StatusOr<std::string> ExpectName(std::string_view what);
  absl::StatusOr<int64_t> ExpectInteger(std::string_view what);  // no sign, no suffix
  absl::StatusOr<double> ExpectDouble(std::string_view what);    // sign allowed, no suffix
  absl::StatusOr<std::string> ExpectString(std::string_view what);

  static absl::Status ErrorAt(const Token& token, std::string_view message);
  absl::Status Error(std::string_view message) const { return ErrorAt(Peek(), message); }

 private:
  std::vector<Token> tokens_;  // the last one is kEnd
  size_t next_ = 0;
};

}  // namespace hone::ir

#endif  // HONE_COMPILER_IR_TOKEN_STREAM_H_
