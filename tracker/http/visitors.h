// SPDX-License-Identifier: Apache-2.0
// Who asks over HTTP, and what he may: the same roles, the same table and the same audit log as over gRPC (access.h).
//
// Over TLS a visitor shows a certificate of the farm, or a session, which is a certificate that the tracker keeps for
// him (docs/decisions/0153): he shows a token once, as a machine does that joins, and gets a cookie. It ends with its
// time, or when its name is revoked. On loopback without TLS, where the farm is one user's, he shows the key that is in
// the address that the tracker printed. Also here: what keeps other sites of his browser out. Safe from any thread.
#ifndef HONE_TRACKER_HTTP_VISITORS_H_
#define HONE_TRACKER_HTTP_VISITORS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pki/token.h"
#include "tracker/access.h"
#include "tracker/held_call.h"
#include "tracker/http/exchange.h"
#include "tracker/membership.h"

namespace hone::tracker {

struct Visitor {
  FarmIdentity identity;
  std::optional<Shown> shown;  // nullopt on loopback, where all is this user's
  bool session = false;        // it was shown by a cookie
};

class Visitors {
 public:
  // membership, gate: null on loopback without TLS. secret: of the farm, the same for as long as its state is there:
  // key and cookies are made with it. hosts: names and addresses by which the server is reached.
  Visitors(const Membership* membership, Gate* gate, const std::string& secret, std::vector<std::string> hosts);

  // What is in the address after '#', on loopback.
  const std::string& key() const { return key_; }

  // Whether the request is for this server and comes from its own pages, or from no page at all.
  // kPermissionDenied: another host's name (a DNS entry that leads here), or a page of another origin.
  absl::Status CheckOrigin(const HttpRequest& request) const;

  // What he shows, unread: whoever makes one up is refused. "" where he shows nothing.
  std::string ProofOf(const HttpRequest& request) const;

  // kUnauthenticated: nobody that is known; what to show.
  absl::StatusOr<Visitor> Identify(const HttpRequest& request) const;

  // Whether he may call the method of a gRPC service ("/hone.v1.JobService/Cancel"). Errors as Gate::Check, of which an
  // audit log tells.
  absl::Status Check(const Visitor& visitor, std::string_view method, const std::string& peer) const;

  // The same, of which no audit log tells: for what is answered either way.
  bool May(const Visitor& visitor, std::string_view method) const;

  // Writes an act into the audit log; method as there: "JobService/Cancel".
  void Note(const Visitor& visitor, const std::string& peer, std::string_view method, std::string_view object,
            const absl::Status& result) const;

  // False once he is not welcome any more.
  Present WhileWelcome(const Visitor& visitor) const;

  struct Session {
    FarmIdentity identity;
    absl::Time until;
    std::string cookie;  // the value of Set-Cookie
  };
  // Spends one use of a token, ROLE.SECRET.FINGERPRINT, on a session. kInvalidArgument: it is no token, or one of a
  // machine; kUnauthenticated, kResourceExhausted, kAlreadyExists: as Gate::CheckToken and Register::Enrol;
  // kFailedPrecondition: without TLS, or the tracker has no key to sign with.
  absl::StatusOr<Session> Begin(const std::string& token, const std::string& peer, absl::Time now) const;
  // Revokes what the session showed; the value of Set-Cookie that makes a browser forget it. kFailedPrecondition: he
  // came otherwise.
  absl::StatusOr<std::string> End(const Visitor& visitor, const std::string& peer, absl::Time now) const;

 private:
  absl::StatusOr<Register::Enrolled> Enrol(const pki::Token& token, absl::Time now) const;
  std::string CookieOf(const std::string& certificate_pem) const;
  absl::StatusOr<std::string> CertificateIn(std::string_view cookie) const;

  const Membership* const membership_;
  Gate* const gate_;
  const std::string key_, cookie_key_;
  const std::vector<std::string> hosts_;
};

}  // namespace hone::tracker

#endif  // HONE_TRACKER_HTTP_VISITORS_H_
