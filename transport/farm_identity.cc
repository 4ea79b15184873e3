#include "transport/farm_identity.h"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"

namespace hone {
namespace {

constexpr std::string_view kPrefix = "hone://farm/";
constexpr size_t kLongestName = 64;

constexpr std::array<std::pair<Role, std::string_view>, 5> kRoles = {{{Role::kAgent, "agent"},
                                                                      {Role::kTuner, "tuner"},
                                                                      {Role::kClient, "client"},
                                                                      {Role::kViewer, "viewer"},
                                                                      {Role::kAdmin, "admin"}}};

// ASCII, whatever the locale says.
bool LetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && LetterOrDigit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return LetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

std::optional<FarmIdentity> Parse(std::string_view uri) {
  uri.remove_prefix(kPrefix.size());
  const size_t slash = uri.find('/');
  if (slash == std::string_view::npos || !IsName(uri.substr(slash + 1))) return std::nullopt;
  for (const auto& [role, name] : kRoles) {
    if (uri.substr(0, slash) == name) return FarmIdentity{role, std::string(uri.substr(slash + 1))};
  }
  return std::nullopt;
}

std::vector<std::string> UrisOf(const X509* certificate) {
  std::vector<std::string> uris;
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  GENERAL_NAMES_free(names);
  return uris;
}

}  // namespace

std::string_view Name(Role role) {
  return std::find_if(kRoles.begin(), kRoles.end(), [&](const auto& entry) { return entry.first == role; })->second;
}

absl::StatusOr<FarmIdentity> IdentityAmong(const std::vector<std::string>& uris) {
  std::optional<FarmIdentity> identity;
  int found = 0;
  for (const std::string& uri : uris) {
    if (uri.rfind(kPrefix, 0) != 0) continue;
    identity = Parse(uri);
    ++found;
  }
  if (found == 1 && identity.has_value()) return *std::move(identity);
  return absl::UnauthenticatedError(
      "the certificate does not say who it is for: it must have one subject alternative name of the form "
      "URI:hone://farm/ROLE/NAME, ROLE being agent, tuner, client, viewer or admin");
}

absl::StatusOr<std::string> NameInFile(const std::string& path, Role role) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      file == nullptr ? nullptr : PEM_read_X509(file.get(), nullptr, nullptr, nullptr), X509_free);
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(fmt::format("cannot read a certificate (PEM) from '{}'", path));
  }
  absl::StatusOr<FarmIdentity> identity = IdentityAmong(UrisOf(certificate.get()));
  if (!identity.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", path, std::string(identity.status().message())));
  }
  if (identity->role == role) return std::move(identity->name);
  return absl::InvalidArgumentError(
      fmt::format("{} is for role {}; role {} is needed here", path, Name(identity->role), Name(role)));
}

}  // namespace hone
