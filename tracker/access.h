// SPDX-License-Identifier: Apache-2.0
// Who may call what: one table over all methods of all services, and the check that every call over TLS goes through.
//
// What is not in the table nobody may call. On the socket of one user there is no check: whoever gets that far is that
// user, to whom everything belongs (tracker/private_socket.h).
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
#include "tracker/allowance.h"
#include "tracker/membership.h"
#include "transport/farm_identity.h"

namespace hone::tracker {

// The one method that is called without a certificate, with a token.
inline constexpr std::string_view kJoin = "/hone.v1.JoinService/Join";

// method: "/hone.v1.AgentService/Synchronize". kPermissionDenied: says which roles may.
absl::Status CheckRole(Role role, std::string_view method);

// Whether the table has an entry for the method.
bool HasRule(std::string_view method);

// The caller of a method that the check let through; nullopt: this user, on the socket.
std::optional<FarmIdentity> CallerOf(const grpc::AuthContext& context);

// A caller may act under no other name than its own. kPermissionDenied.
absl::Status CheckName(const std::optional<FarmIdentity>& caller, std::string_view name);

// A job above the ordinary priority, 0, goes before everybody else's, and takes tuners from them: an admin's to allow.
// kPermissionDenied.
absl::Status CheckPriority(const std::optional<FarmIdentity>& caller, int priority);

// Who shows the certificate of a TLS connection, and that certificate. kUnauthenticated: there is none, or it does not
// say who it is for.
struct Shown {
  FarmIdentity identity;
  pki::CertificateFacts certificate;
};
absl::StatusOr<Shown> ShownIn(const grpc::AuthContext& context, const Membership& membership);

// What everybody who calls must pass, by gRPC or by HTTP: one count of how often for both. `membership` must outlive
// it. Safe from any thread; it reads the register, which may wait for a disk.
class Gate {
 public:
  // steady: the time by a clock that nobody sets, for what may be done so often.
  explicit Gate(const Membership* membership, std::function<absl::Time()> steady = SteadyNow);

  // kUnauthenticated: the certificate is over or revoked; kPermissionDenied: it has not the role; kResourceExhausted:
  // it calls too often.
  absl::Status Check(const Shown& shown, std::string_view method);
  const Membership& membership() const { return *membership_; }
  // Whether the secret of a token lets somebody join. kUnauthenticated; kResourceExhausted: too many wrong ones came.
  absl::Status CheckToken(const std::string& secret);
  // Writes down who was refused; caller: nullptr where nobody knows.
  void NoteRefusal(const FarmIdentity* caller, const std::string& peer, std::string_view method,
                   const absl::Status& why) const;

 private:
  // kResourceExhausted: there were too many lately with this key.
  absl::Status CountCall(const FarmIdentity& caller, const std::string& key);

  const Membership* const membership_;
  const std::function<absl::Time()> steady_;
  std::mutex mutex_;
  Allowance calls_, wrong_tokens_;
};

// Refuses a call, before its message is read, that does not pass the gate (UNAUTHENTICATED, PERMISSION_DENIED,
// RESOURCE_EXHAUSTED), and one to join that comes without a good token. It is asked at every call: that a connection,
// or the TLS session it resumed, was good once says nothing. For the credentials of the server; `gate` must outlive
// them.
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
