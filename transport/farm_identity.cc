// SPDX-License-Identifier: Apache-2.0
#include "transport/farm_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/status.h"

namespace hone {
namespace {

constexpr std::string_view kPrefix = "hone://farm/";
constexpr size_t kNameBytesMax = 64;

constexpr std::array<std::pair<Role, std::string_view>, 5> kRoles = {{{Role::kAgent, "agent"},
                                                                      {Role::kTuner, "tuner"},
                                                                      {Role::kClient, "client"},
                                                                      {Role::kViewer, "viewer"},
                                                                      {Role::kAdmin, "admin"}}};

// ASCII only, whatever the locale is.
bool LetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kNameBytesMax && LetterOrDigit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return LetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

std::optional<FarmIdentity> Parse(std::string_view uri) {
  uri.remove_prefix(kPrefix.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos || !IsName(uri.substr(slash + 1))) return std::nullopt;
  const std::optional<Role> role = ParseRole(uri.substr(0, slash));
  if (!role.has_value()) return std::nullopt;
  return FarmIdentity{*role, std::string(uri.substr(slash + 1))};
}

}  // namespace

std::string_view Name(Role role) {
  return std::find_if(kRoles.begin(), kRoles.end(), [&](const auto& entry) { return entry.first == role; })->second;
}

std::optional<Role> ParseRole(std::string_view name) {
  const auto entry = std::find_if(kRoles.begin(), kRoles.end(), [&](const auto& e) { return e.second == name; });
  if (entry == kRoles.end()) return std::nullopt;
  return entry->first;
}

absl::StatusOr<FarmIdentity> IdentityFromUris(const std::vector<std::string>& uris) {
  std::optional<FarmIdentity> identity;
  int found = 0;
  for (const std::string& uri : uris) {
    if (!uri.starts_with(kPrefix)) continue;
    identity = Parse(uri);
    ++found;
  }
  if (found == 1 && identity.has_value()) return *std::move(identity);
  return absl::UnauthenticatedError(
      "the certificate has no farm identity: it must have one subject alternative name of the form "
      "URI:hone://farm/ROLE/NAME, where ROLE is agent, tuner, client, viewer or admin");
}

absl::Status CheckFarmName(std::string_view name) {
  if (IsName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}' cannot be a name: use 1 to {} letters, digits, '.', '_' and '-', the first a letter or digit",
                  name, kNameBytesMax));
}

std::string UriOf(const FarmIdentity& identity) {
  return fmt::format("{}{}/{}", kPrefix, Name(identity.role), identity.name);
}

}  // namespace hone
