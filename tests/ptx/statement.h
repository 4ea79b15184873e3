// SPDX-License-Identifier: Apache-2.0
// Splits the text of PTX into tokens, and these into statements.
#ifndef HONE_TESTS_PTX_STATEMENT_H_
#define HONE_TESTS_PTX_STATEMENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::ptx {

// A word (a name with its dots, a number, a quoted string) or a single punctuation mark.
struct Token {
  std::string_view text;
  int line = 0;
};

class Tokens {
 public:
  explicit Tokens(std::string_view text);
  bool AtEnd() const { return next_ >= tokens_.size(); }
  std::string_view Peek(size_t ahead = 0) const;  // empty at the end
  std::string_view Take();
  bool TakeIf(std::string_view text);
  absl::Status Expect(std::string_view text);
  absl::StatusOr<int64_t> TakeInteger();
  void SkipPast(std::string_view text);
  int line() const;
  absl::Status Error(std::string_view what) const;
  // The text from the token at `place` to the next one, on one line.
  size_t place() const { return next_; }
  std::string TextFrom(size_t place) const;

 private:
  std::vector<Token> tokens_;
  size_t next_ = 0;
};

struct Operand {
  enum class Form : uint8_t { kPlain, kAddress, kList };
  Form form = Form::kPlain;
  std::string text;            // a register, number or symbol; for an address, the base that `offset` is added to
  std::string second;          // of "p|q"
  bool negated = false;        // "!p"
  int64_t offset = 0;          // of an address
  std::vector<Operand> parts;  // of a list in braces
};

struct Statement {
  int line = 0;
  std::string source, guard, name;
  bool guard_negated = false;
  std::vector<Operand> operands;
};

// Takes a statement, from its guard or name to its semicolon.
absl::StatusOr<Statement> TakeStatement(Tokens* tokens);
// The bits of an integer, or of a float written in hexadecimal. InvalidArgument: not a number.
absl::StatusOr<uint64_t> ParseNumber(std::string_view text);

}  // namespace hone::ptx

#endif  // HONE_TESTS_PTX_STATEMENT_H_
