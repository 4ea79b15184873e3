// SPDX-License-Identifier: Apache-2.0
// Access control: one table that says which role may call which method, and the check of every call over TLS.
//
// A method that is not in the table is refused for all roles. Calls over the private socket are not checked: only the
// user who owns the tracker can connect to it (tracker/private_socket.h).
#ifndef HONE_TRACKER_ACCESS_H_
#define HONE_TRACKER_ACCESS_H_

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/auth_metadata_processor.h"
#include "tracker/membership.h"
#include "tracker/rate_limiter.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

// The only method that is called without a certificate. It takes a token instead.
inline constexpr std::string_view kJoinMethod = "/hone.v1.JoinService/Join";

// Whether the role may call the method. method: "/hone.v1.AgentService/Synchronize". kPermissionDenied: the text names
// the roles that may.
absl::Status CheckRole(Role role, std::string_view method);

// Whether the table has an entry for the method.
bool HasRule(std::string_view method);

// The caller of a method that passed the check; nullopt: the owner of the private socket.
std::optional<FarmIdentity> CallerOf(const grpc::AuthContext& context);

// A caller of any role, also an admin, may act only under its own name. kPermissionDenied: `name` is another one. The
// owner of the private socket (nullopt) may use any name.
absl::Status CheckName(const std::optional<FarmIdentity>& caller, std::string_view name);

// Only an admin may give a job a priority above 0, because such a job goes before those of other users and takes their
// tuners. kPermissionDenied.
absl::Status CheckPriority(const std::optional<FarmIdentity>& caller, int priority);

// The certificate that a TLS client presented, and the identity in it.
struct PresentedCertificate {
  FarmIdentity identity;
  pki::CertificateFacts certificate;
};
// kUnauthenticated: the connection has no certificate, or it holds no identity of the farm.
absl::StatusOr<PresentedCertificate> PresentedIn(const grpc::AuthContext& context, const Membership& membership);

// The check of every caller, for gRPC and HTTP. Rate limits count the calls of both together. `membership` must outlive
// it. Safe from any thread; it reads the register and may therefore wait for a disk.
class Gate {
 public:
  // steady: a steady clock, for the rate limits.
  explicit Gate(const Membership* membership, std::function<absl::Time()> steady = SteadyNow);

  // Checks one call. kUnauthenticated: the certificate has expired or was revoked; kPermissionDenied: its role may not
  // call the method; kResourceExhausted: its identity calls too often.
  absl::Status Check(const PresentedCertificate& shown, std::string_view method);
  const Membership& membership() const { return *membership_; }
  // Checks that the secret is that of a valid token. A valid one always passes, however many wrong ones came. Wrong:
  // kUnauthenticated, or kResourceExhausted if too many wrong secrets came lately.
  absl::Status CheckToken(const std::string& secret);
  // Writes a refused call into the audit log. caller: nullptr where it is unknown.
  void NoteRefusal(const FarmIdentity* caller, const std::string& peer, std::string_view method,
                   const absl::Status& why) const;

 private:
  // Counts a call under `key`. kResourceExhausted: there were too many lately.
  absl::Status CountCall(const FarmIdentity& caller, const std::string& key);

  const Membership* const membership_;
  const std::function<absl::Time()> steady_;
  std::mutex mutex_;
  RateLimiter calls_, wrong_tokens_;
};

// Refuses calls that do not pass the gate (UNAUTHENTICATED, PERMISSION_DENIED, RESOURCE_EXHAUSTED), calls of Join
// without a valid token, and callers of another protocol version (FAILED_PRECONDITION), before their message is read.
// Refusals are written into the audit log. It checks every call, because a certificate may be revoked while
// its connection or TLS session lives. Attached to the server's credentials; `gate` must outlive them.
class RoleCheck final : public grpc::AuthMetadataProcessor {
 public:
  explicit RoleCheck(Gate* gate) : gate_(gate) {}
  bool IsBlocking() const override { return true; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata* consumed,
                       OutputMetadata* response) override;

 private:
  absl::Status Check(const InputMetadata& metadata, const grpc::AuthContext& context, std::string_view method);

  Gate* const gate_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_ACCESS_H_
