// SPDX-License-Identifier: Apache-2.0
// The callers of the gRPC services: whether a caller is still connected and still allowed, and the audit log of its
// calls.
#ifndef HONE_TRACKER_CALLERS_H_
#define HONE_TRACKER_CALLERS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "tracker/access.h"
#include "tracker/held_call.h"
#include "tracker/membership.h"

namespace hone::tracker {

// The returned function says whether the certificate is still valid: neither expired nor revoked. It never waits for a
// disk; WhileAllowed itself may, where the name was revoked before. The register must outlive the function.
Present WhileAllowed(const PresentedCertificate& shown, Register& members);

// Cheap to copy; safe from any thread. `membership`: null on the private socket, where all callers are its owner.
class Callers {
 public:
  explicit Callers(const Membership* membership) : membership_(membership) {}

  // The returned function says whether the caller is still connected and its certificate still valid. `context` must
  // outlive the function.
  Present PresentIn(grpc::ServerContextBase* context) const;
  // The identity whose calls are counted together by quotas; "" on the private socket, where all are one user's.
  static std::string IdentityIn(const grpc::ServerContextBase& context);

  // Writes a call that changes something into the audit log. method: "JobService/Cancel". object: the id it changes.
  void Note(const grpc::ServerContextBase& context, std::string_view method, std::string_view object,
            const absl::Status& result) const;

 private:
  const Membership* membership_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_CALLERS_H_
