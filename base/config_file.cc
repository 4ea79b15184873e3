// SPDX-License-Identifier: Apache-2.0
#include "base/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/status.h"

namespace hone {
namespace {

bool IsKeyLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// The edit distance of two keys: the number of letters to insert, delete or change.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row[b.size()];
}

class ConfigParser {
 public:
  ConfigParser(std::string_view name, std::string_view text, const std::vector<std::string>& known)
      : name_(name), text_(text), known_(known) {}

  absl::StatusOr<std::vector<ConfigEntry>> Parse() {
    for (SkipBlank(true); !AtEnd(); SkipBlank(true)) {
      HONE_ASSIGN_OR_RETURN(ConfigEntry entry, ParseEntry());
      const auto [first, is_new] = lines_.emplace(entry.key, entry.line);
      if (!is_new) {
        return Wrong(entry.line, fmt::format("'{}' is given twice; the first is in line {}", entry.key, first->second));
      }
      entries_.push_back(std::move(entry));
    }
    return std::move(entries_);
  }

 private:
  bool AtEnd() const { return at_ == text_.size(); }
  char Next() const { return AtEnd() ? '\n' : text_[at_]; }
  char Take() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }
  absl::Status Wrong(int line, std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("{}:{}: {}", name_, line, what));
  }

  // Skips spaces and comments; with `lines`, also line ends.
  void SkipBlank(bool lines) {
    while (!AtEnd()) {
      const char c = Next();
      if (c == '#') {
        while (!AtEnd() && Next() != '\n') Take();
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        Take();
      } else {
        return;
      }
    }
  }

  absl::Status CheckKey(const std::string& key) const {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) return absl::OkStatus();
    const auto nearest = std::min_element(known_.begin(), known_.end(), [&key](const auto& a, const auto& b) {
      return Distance(key, a) < Distance(key, b);
    });
    const std::string advice = nearest == known_.end() ? "" : fmt::format("; the nearest one is '{}'", *nearest);
    return Wrong(line_, fmt::format("there is no option '{}'{}", key, advice));
  }

  absl::StatusOr<ConfigEntry> ParseEntry() {
    if (Next() == '[') return Wrong(line_, "sections are not supported; write OPTION = VALUE");
    ConfigEntry entry{.line = line_};
    while (IsKeyLetter(Next())) entry.key += Take();
    SkipBlank(false);
    if (entry.key.empty() || Next() != '=') return Wrong(line_, "write OPTION = VALUE, or # before a comment");
    HONE_RETURN_IF_ERROR(CheckKey(entry.key));
    Take();
    SkipBlank(false);
    if (Next() == '[') {
      HONE_ASSIGN_OR_RETURN(entry.values, ParseList());
    } else {
      HONE_ASSIGN_OR_RETURN(entry.values.emplace_back(), ParseValue());
    }
    SkipBlank(false);
    if (Next() != '\n') {
      return Wrong(line_,
                   "unexpected text after the value; put a value with spaces in quotes, several values in brackets");
    }
    return entry;
  }

  absl::StatusOr<std::vector<std::string>> ParseList() {
    const int begun = line_;
    std::vector<std::string> values;
    Take();
    for (SkipBlank(true); !AtEnd() && Next() != ']'; SkipBlank(true)) {
      HONE_ASSIGN_OR_RETURN(values.emplace_back(), ParseValue());
      SkipBlank(true);
      if (Next() == ']') break;
      if (AtEnd() || Next() != ',') return Wrong(line_, "a ',' or ']' is missing in the list");
      Take();
    }
    if (AtEnd()) return Wrong(begun, "the list that begins here has no ']'");
    Take();
    return values;
  }

  absl::StatusOr<std::string> ParseValue() {
    const char quote = Next();
    if (quote == '"' || quote == '\'') return ParseQuoted();
    std::string value;
    while (std::string_view(" \t\r\n#,[]\"'").find(Next()) == std::string_view::npos) value += Take();
    if (value.empty()) return Wrong(line_, "the value is missing; write \"\" for an empty value");
    return value;
  }

  absl::StatusOr<std::string> ParseQuoted() {
    const char quote = Take();
    std::string value;
    while (Next() != quote) {
      if (Next() == '\n') return Wrong(line_, fmt::format("the closing {} is missing", quote));
      char c = Take();
      if (quote == '"' && c == '\\') {
        c = Next();
        if (c != '"' && c != '\\')
          return Wrong(line_, "in \"...\", \\ may stand only before \" or \\; in '...', \\ is an ordinary character");
        Take();
      }
      value += c;
    }
    Take();
    return value;
  }

  const std::string_view name_, text_;
  const std::vector<std::string>& known_;
  size_t at_ = 0;
  int line_ = 1;
  std::map<std::string, int> lines_;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(std::string_view name, std::string_view text,
                                                     const std::vector<std::string>& known) {
  return ConfigParser(name, text, known).Parse();
}

}  // namespace hone
