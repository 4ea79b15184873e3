// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/statement.h"

#include <cctype>
#include <charconv>

#include "base/status.h"
#include "fmt/format.h"

namespace hone::ptx {
namespace {

bool IsOfWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%'; }

// The end of the word that begins at `at`. "::" is part of a word, a single ":" ends a label.
size_t EndOfWord(std::string_view text, size_t at) {
  if (text[at] == '"') return std::min(text.find('"', at + 1), text.size() - 1) + 1;
  size_t end = at + 1;
  while (end < text.size()) {
    if (IsOfWord(text[end]) || text[end] == '.') {
      ++end;
    } else if (text.substr(end, 2) == "::") {
      end += 2;
    } else {
      break;
    }
  }
  return end;
}

// The end of the comment that begins at `at`, or `at`.
size_t EndOfComment(std::string_view text, size_t at) {
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  if (text.substr(at, 2) == "/*") return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  return at;
}

}  // namespace

Tokens::Tokens(std::string_view text) {
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    size_t end = EndOfComment(text, at);
    if (end == at) {
      const char c = text[at];
      const bool is_number = c == '-' && at + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[at + 1]));
      const bool is_word = IsOfWord(c) || c == '"' || c == '.' || is_number;
      end = is_word ? EndOfWord(text, at) : at + 1;
      if (std::isspace(static_cast<unsigned char>(c)) == 0) tokens_.push_back({text.substr(at, end - at), line});
    }
    for (; at < end; ++at) line += text[at] == '\n' ? 1 : 0;
  }
}

std::string_view Tokens::Peek(size_t ahead) const {
  return next_ + ahead < tokens_.size() ? tokens_[next_ + ahead].text : std::string_view();
}
std::string_view Tokens::Take() { return AtEnd() ? std::string_view() : tokens_[next_++].text; }
bool Tokens::TakeIf(std::string_view text) {
  if (Peek() != text) return false;
  ++next_;
  return true;
}
absl::Status Tokens::Expect(std::string_view text) {
  return TakeIf(text) ? absl::OkStatus() : Error(fmt::format("'{}' should stand", text));
}
absl::StatusOr<int64_t> Tokens::TakeInteger() {
  const absl::StatusOr<uint64_t> bits = ParseNumber(Peek());
  if (!bits.ok()) return Error("a number should stand");
  ++next_;
  return static_cast<int64_t>(*bits);
}
void Tokens::SkipPast(std::string_view text) {
  while (!AtEnd() && Take() != text) {
  }
}
int Tokens::line() const {
  if (tokens_.empty()) return 1;
  return tokens_[std::min(next_, tokens_.size() - 1)].line;
}
absl::Status Tokens::Error(std::string_view what) const {
  return absl::InvalidArgumentError(
      fmt::format("line {}: {} where '{}' stands", line(), what, AtEnd() ? "the end" : Peek()));
}
std::string Tokens::TextFrom(size_t place) const {
  std::string text;
  if (place >= next_) return text;
  const std::string_view last = tokens_[next_ - 1].text;
  for (const char* c = tokens_[place].text.data(); c != last.data() + last.size(); ++c) {
    const bool is_space = std::isspace(static_cast<unsigned char>(*c)) != 0;
    if (!is_space) text += *c;
    if (is_space && !text.ends_with(' ')) text += ' ';
  }
  return text;
}

absl::StatusOr<uint64_t> ParseNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  int base = 10;
  for (const std::string_view prefix : {"0x", "0X", "0f", "0F", "0d", "0D"}) {
    if (digits.starts_with(prefix)) base = 16;
  }
  if (base == 16) digits.remove_prefix(2);
  if (digits.ends_with('U')) digits.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return absl::InvalidArgumentError(fmt::format("'{}' is no number", text));
  }
  return negative ? -value : value;
}

namespace {

absl::StatusOr<Operand> TakeOperand(Tokens* tokens) {
  Operand operand;
  if (tokens->TakeIf("[")) {
    operand.form = Operand::Form::kAddress;
    operand.text = tokens->Take();
    if (tokens->TakeIf("+")) {
      HONE_ASSIGN_OR_RETURN(operand.offset, tokens->TakeInteger());
    } else if (tokens->Peek().starts_with('-')) {
      HONE_ASSIGN_OR_RETURN(operand.offset, tokens->TakeInteger());
    }
    HONE_RETURN_IF_ERROR(tokens->Expect("]"));
    return operand;
  }
  if (tokens->TakeIf("{")) {
    operand.form = Operand::Form::kList;
    do {
      HONE_ASSIGN_OR_RETURN(Operand part, TakeOperand(tokens));
      operand.parts.push_back(std::move(part));
    } while (tokens->TakeIf(","));
    HONE_RETURN_IF_ERROR(tokens->Expect("}"));
    return operand;
  }
  operand.negated = tokens->TakeIf("!");
  operand.text = tokens->Take();
  if (operand.text.empty() || (operand.text.size() == 1 && !IsOfWord(operand.text[0]))) {
    return tokens->Error("an operand is missing");
  }
  if (tokens->TakeIf("|")) operand.second = tokens->Take();
  return operand;
}

}  // namespace

absl::StatusOr<Statement> TakeStatement(Tokens* tokens) {
  Statement statement;
  const size_t begin = tokens->place();
  statement.line = tokens->line();
  if (tokens->TakeIf("@")) {
    statement.guard_negated = tokens->TakeIf("!");
    statement.guard = tokens->Take();
  }
  statement.name = tokens->Take();
  if (tokens->Peek() != ";") {
    do {
      HONE_ASSIGN_OR_RETURN(Operand operand, TakeOperand(tokens));
      statement.operands.push_back(std::move(operand));
    } while (tokens->TakeIf(","));
  }
  statement.source = tokens->TextFrom(begin);
  HONE_RETURN_IF_ERROR(tokens->Expect(";"));
  return statement;
}

}  // namespace hone::ptx
