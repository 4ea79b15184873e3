// SPDX-License-Identifier: Apache-2.0
// The gRPC services JoinService and IdentityService. Each RPC is one call of Membership, with the request checked and
// errors converted.
#ifndef HONE_TRACKER_IDENTITY_SERVICES_H_
#define HONE_TRACKER_IDENTITY_SERVICES_H_

#include <memory>
#include <vector>

#include "grpcpp/impl/codegen/service_type.h"
#include "tracker/membership.h"

namespace hone::tracker {

// Appends both services to `services`. `membership` must outlive them.
void AddIdentityServices(const Membership* membership, std::vector<std::unique_ptr<grpc::Service>>& services);

}  // namespace hone::tracker

#endif  // HONE_TRACKER_IDENTITY_SERVICES_H_
