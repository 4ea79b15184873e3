// SPDX-License-Identifier: Apache-2.0
// What the services ask about whoever calls: whether it is still there and still welcome; and what they write down of
// it.
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

// False once the certificate is over, or was revoked. The register must outlive what is returned, which waits for no
// disk; this may, where the name was revoked before.
Present WhileWelcome(const Shown& shown, Register& members);

// Copied freely; a call may be answered by any thread. `membership`: null on a socket, where all is this user's.
class Callers {
 public:
  explicit Callers(const Membership* membership) : membership_(membership) {}

  // False once the caller has gone, its certificate is over, or it was revoked. `context` must outlive what is
  // returned.
  Present PresentIn(grpc::ServerContextBase* context) const;
  // Whose calls are counted together: an identity; "" on a socket, where all are one user's.
  static std::string WhoIn(const grpc::ServerContextBase& context);

  // Writes an act into the audit log. method: "JobService/Cancel".
  void Note(const grpc::ServerContextBase& context, std::string_view method, std::string_view object,
            const absl::Status& result) const;

 private:
  const Membership* membership_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_CALLERS_H_
