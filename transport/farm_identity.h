// SPDX-License-Identifier: Apache-2.0
// The identity of a program in the farm: the role and the name in its certificate.
//
// A certificate of the farm has exactly one URI, hone://farm/ROLE/NAME, among its subject alternative names. The farm's
// certificate authority signs it, so a program cannot choose its own role or name. Only the tracker's certificate has
// host names and addresses, by which clients verify it. Not here: what a role may do (tracker/access.h).
#ifndef HONE_TRANSPORT_FARM_IDENTITY_H_
#define HONE_TRANSPORT_FARM_IDENTITY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

enum class Role { kAgent, kTuner, kClient, kViewer, kAdmin };

std::string_view Name(Role role);                      // as in the URI: "agent"
std::optional<Role> ParseRole(std::string_view name);  // the inverse; nullopt: there is no such role

struct FarmIdentity {
  Role role;
  std::string name;  // 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit
};

// The identity in the URIs of a verified certificate. kUnauthenticated: there is none, there are several, or the URI
// has another form.
absl::StatusOr<FarmIdentity> IdentityFromUris(const std::vector<std::string>& uris);

// Whether the text can be FarmIdentity::name. kInvalidArgument: it cannot.
absl::Status CheckFarmName(std::string_view name);

std::string UriOf(const FarmIdentity& identity);

}  // namespace hone

#endif  // HONE_TRANSPORT_FARM_IDENTITY_H_
