// SPDX-License-Identifier: Apache-2.0
// Who a program of the farm is: the role and the name in its certificate.
//
// A certificate of the farm carries one URI, hone://farm/ROLE/NAME, among its subject alternative names. The authority
// vouches for it, so nobody chooses a name or a role by himself. Only the tracker's has host names or addresses, by
// which those who connect know it. What a role may do is the tracker's affair (tracker/access.h).
#ifndef HONE_TRANSPORT_FARM_IDENTITY_H_
#define HONE_TRANSPORT_FARM_IDENTITY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

enum class Role { kAgent, kTuner, kClient, kViewer, kAdmin };

std::string_view Name(Role role);  // as the URI spells it: "agent"
std::optional<Role> RoleNamed(std::string_view name);

struct FarmIdentity {
  Role role;
  std::string name;  // 1 to 64 letters, digits, '.', '_' and '-', the first a letter or digit
};

// The identity among the URIs of a certificate that was verified.
// kUnauthenticated: there is none, there are several, or it is not of this form.
absl::StatusOr<FarmIdentity> IdentityAmong(const std::vector<std::string>& uris);

// kInvalidArgument: it cannot be the name of an identity.
absl::Status CheckFarmName(std::string_view name);

std::string UriOf(const FarmIdentity& identity);

}  // namespace hone

#endif  // HONE_TRANSPORT_FARM_IDENTITY_H_
