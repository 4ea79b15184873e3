// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/parse.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/split.h"
#include "base/status.h"
#include "records/record.h"

namespace hone::tracker {
namespace {

constexpr size_t kTargetBytesMax = 8192;

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

absl::Status Bad(std::string_view what) {
  return absl::InvalidArgumentError("the address of the request cannot be read: " + std::string(what));
}

// Decodes percent escapes. plus: whether '+' means a space, as in a query.
absl::StatusOr<std::string> Decode(std::string_view text, bool plus) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto high = i + 2 < text.size() ? HexDigit(text[i + 1]) : std::nullopt;
      const auto low = high.has_value() ? HexDigit(text[i + 2]) : std::nullopt;
      if (!low.has_value()) return Bad("a % is not followed by two hexadecimal digits");
      c = static_cast<char>(*high * 16 + *low);
      i += 2;
    } else if (plus && c == '+') {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return Bad("it has control characters");
    decoded += c;
  }
  if (records::CleanText(decoded, decoded.size()) != decoded) return Bad("it is not UTF-8");
  return decoded;
}

absl::Status AddSegment(std::string_view text, std::vector<std::string>& path) {
  HONE_ASSIGN_OR_RETURN(std::string segment, Decode(text, false));
  if (segment.empty() || segment == "." || segment == ".." || segment.find_first_of("/\\") != std::string::npos) {
    return Bad("a segment of the path is empty, '.', '..', or has an escaped separator");
  }
  path.push_back(std::move(segment));
  return absl::OkStatus();
}

absl::Status AddParameter(std::string_view text, Target& target) {
  if (text.empty()) return absl::OkStatus();
  const size_t equals = std::min(text.find('='), text.size());
  HONE_ASSIGN_OR_RETURN(std::string name, Decode(text.substr(0, equals), true));
  HONE_ASSIGN_OR_RETURN(std::string value, Decode(text.substr(std::min(equals + 1, text.size())), true));
  const bool added = target.query.emplace(name, std::move(value)).second;
  return added ? absl::OkStatus() : Bad("'" + name + "' is given twice");
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view target) {
  if (target.size() > kTargetBytesMax) return Bad("it is too long");
  if (target.empty() || target[0] != '/') return Bad("it does not begin with /");
  Target parsed;
  const size_t question = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(1, question - 1);
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    HONE_RETURN_IF_ERROR(AddSegment(path.substr(0, slash), parsed.path));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  const std::string_view query = target.substr(std::min(question + 1, target.size()));
  for (const std::string_view parameter : SplitAt(query, '&')) {
    HONE_RETURN_IF_ERROR(AddParameter(parameter, parsed));
  }
  return parsed;
}

std::string_view CookieIn(std::string_view header, std::string_view name) {
  for (std::string_view cookie : SplitAt(header, ';')) {
    while (!cookie.empty() && (cookie[0] == ' ' || cookie[0] == ',')) cookie.remove_prefix(1);
    if (RemovePrefix(cookie, name) && RemovePrefix(cookie, "=")) return cookie;
  }
  return "";
}

std::string HostIn(std::string_view authority) {
  std::string_view host = authority, port;
  if (!host.empty() && host[0] == '[') {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return "";
    port = host.substr(end + 1);
    host = host.substr(1, end - 1);
  } else {
    const size_t colon = std::min(host.find(':'), host.size());
    port = host.substr(colon);
    host = host.substr(0, colon);
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!port.empty() && (port[0] != ':' || !std::all_of(port.begin() + 1, port.end(), digit))) return "";
  std::string lower;
  for (const char c : host) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool known = digit(small) || (small >= 'a' && small <= 'z') || small == '.' || small == '-' || small == ':';
    if (!known) return "";
    lower += small;
  }
  return lower;
}

}  // namespace hone::tracker
