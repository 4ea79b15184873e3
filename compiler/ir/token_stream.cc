// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/token_stream.h"

#include <algorithm>
#include <charconv>

#include "base/status.h"
#include "compiler/ir/op_names.h"
#include "fmt/format.h"

namespace hone::ir {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

class Lexer {
 public:
  Lexer(std::string_view text, size_t tokens_max) : text_(text), tokens_max_(tokens_max) {}

  absl::StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (true) {
      SkipBlank();
      Token token;
      token.line = line_;
      token.column = static_cast<int>(at_ - line_start_) + 1;
      if (at_ == text_.size()) {
        tokens.push_back(std::move(token));
        return tokens;
      }
      if (tokens.size() == tokens_max_)
        return TokenStream::ErrorAt(token, fmt::format("the text has more than {} tokens", tokens_max_));
      HONE_RETURN_IF_ERROR(Lex(&token));
      tokens.push_back(std::move(token));
    }
  }

 private:
  char Char(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void SkipBlank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n') {
        ++at_;
        ++line_;
        line_start_ = at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  absl::Status Lex(Token* token) {
    const char c = Char();
    if (IsLetter(c)) {
      token->kind = Token::Kind::kWord;
      while (IsLetter(Char()) || IsDigit(Char()) || Char() == '.') token->text += text_[at_++];
      return absl::OkStatus();
    }
    if (IsDigit(c)) {
      LexNumber(token);
      return absl::OkStatus();
    }
    if (c == '`' || c == '"') return LexQuoted(token);
    return LexSymbol(token);
  }

  void LexNumber(Token* token) {
    token->kind = Token::Kind::kNumber;
    const auto digits = [&] {
      while (IsDigit(Char())) token->text += text_[at_++];
    };
    digits();
    if (Char() == '.' && IsDigit(Char(1))) {
      token->text += text_[at_++];
      digits();
    }
    const size_t sign = Char(1) == '+' || Char(1) == '-' ? 1 : 0;
    if (Char() == 'e' && IsDigit(Char(1 + sign))) {
      token->text += text_.substr(at_, 1 + sign);
      at_ += 1 + sign;
      digits();
    }
    while (IsLetter(Char()) || IsDigit(Char())) token->suffix += text_[at_++];
  }

  absl::Status LexQuoted(Token* token) {
    const char quote = text_[at_++];
    token->kind = quote == '"' ? Token::Kind::kString : Token::Kind::kQuotedName;
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_++];
      if (c == quote) return absl::OkStatus();
      if (c != '\\') {
        token->text += c;
        continue;
      }
      const char escaped = Char();
      ++at_;
      if (escaped == quote || escaped == '\\') {
        token->text += escaped;
      } else if (escaped == 'x' && HexDigit(Char()) >= 0 && HexDigit(Char(1)) >= 0) {
        token->text += static_cast<char>(HexDigit(Char()) * 16 + HexDigit(Char(1)));
        at_ += 2;
      } else {
        return TokenStream::ErrorAt(*token, "unknown escape in quotes; known are \\\\, the quote and \\xHH");
      }
    }
    return TokenStream::ErrorAt(*token, fmt::format("missing closing {}", quote));
  }

  absl::Status LexSymbol(Token* token) {
    static constexpr std::string_view kTwo[] = {"//", "%%", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+="};
    static constexpr std::string_view kOne = "+-*/%&|^<>!~=()[]{},:";
    token->kind = Token::Kind::kSymbol;
    const std::string_view two = text_.substr(at_, 2);
    if (std::find(std::begin(kTwo), std::end(kTwo), two) != std::end(kTwo)) {
      token->text = two;
    } else if (kOne.find(Char()) != std::string_view::npos) {
      token->text = Char();
    } else {
      return TokenStream::ErrorAt(*token, fmt::format("unexpected character '{}'", Printable(Char())));
    }
    at_ += token->text.size();
    return absl::OkStatus();
  }

  static std::string Printable(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }

  std::string_view text_;
  const size_t tokens_max_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
};

std::string Describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kString:
      return fmt::format("\"{}\"", token.text);
    case Token::Kind::kQuotedName:
      return fmt::format("`{}`", token.text);
    default:
      return fmt::format("'{}{}'", token.text, token.suffix);
  }
}

}  // namespace

absl::StatusOr<TokenStream> TokenStream::Make(std::string_view text, size_t tokens_max) {
  TokenStream stream;
  HONE_ASSIGN_OR_RETURN(stream.tokens_, Lexer(text, tokens_max).Run());
  return stream;
}

absl::Status TokenStream::ErrorAt(const Token& token, std::string_view message) {
  return absl::InvalidArgumentError(fmt::format("line {}, column {}: {}", token.line, token.column, message));
}

const Token& TokenStream::Peek(size_t ahead) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }

Token TokenStream::Next() {
  Token token = Peek();
  if (next_ + 1 < tokens_.size()) ++next_;
  return token;
}

bool TokenStream::PeekIs(std::string_view text, size_t ahead) const {
  const Token& token = Peek(ahead);
  return (token.kind == Token::Kind::kWord || token.kind == Token::Kind::kSymbol) && token.text == text;
}

bool TokenStream::Accept(std::string_view text) {
  if (!PeekIs(text)) return false;
  ++next_;
  return true;
}

absl::Status TokenStream::Expect(std::string_view text) {
  if (Accept(text)) return absl::OkStatus();
  return Error(fmt::format("expected '{}' but found {}", text, Describe(Peek())));
}

absl::StatusOr<std::string> TokenStream::ExpectName(std::string_view what) {
  const Token& token = Peek();
  if (token.kind == Token::Kind::kWord && IsReserved(token.text)) {
    return Error(fmt::format("'{0}' is a reserved word; as {1} write `{0}`", token.text, what));
  }
  if (token.kind != Token::Kind::kWord && token.kind != Token::Kind::kQuotedName) {
    return Error(fmt::format("expected {} but found {}", what, Describe(token)));
  }
  return Next().text;
}

absl::StatusOr<int64_t> TokenStream::ExpectInteger(std::string_view what) {
  const Token& token = Peek();
  int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind != Token::Kind::kNumber || !token.suffix.empty()) {
    return Error(fmt::format("expected {} (an integer) but found {}", what, Describe(token)));
  }
  const auto result = std::from_chars(token.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    return Error(fmt::format("expected {} (an integer of 64 bits) but found {}", what, Describe(token)));
  }
  Next();
  return value;
}

absl::StatusOr<double> TokenStream::ExpectDouble(std::string_view what) {
  const bool negative = Accept("-");
  const Token& token = Peek();
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind != Token::Kind::kNumber || !token.suffix.empty()) {
    return Error(fmt::format("expected {} (a number) but found {}", what, Describe(token)));
  }
  const auto result = std::from_chars(token.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) {
    return Error(fmt::format("{} {} is out of range for a double", what, Describe(token)));
  }
  Next();
  return negative ? -value : value;
}

absl::StatusOr<std::string> TokenStream::ExpectString(std::string_view what) {
  if (Peek().kind != Token::Kind::kString) {
    return Error(fmt::format("expected {} in double quotes but found {}", what, Describe(Peek())));
  }
  return Next().text;
}

}  // namespace hone::ir
