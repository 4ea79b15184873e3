// SPDX-License-Identifier: Apache-2.0
// Identifies the callers of the HTTP side and checks their roles, with the same table and audit log as gRPC (access.h).
//
// Over TLS a visitor presents a certificate of the farm, or a session cookie. A session is a certificate that the
// tracker keeps for the visitor (docs/decisions/0153): the visitor sends a token once, as a joining machine does, and
// gets a cookie. The session ends at its expiry or when its name is revoked. On loopback without TLS, where the farm is
// one user's, the visitor sends the key from the URL that the tracker printed. Also here: the check that keeps other
// sites in the visitor's browser out. Safe from any thread.
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
  std::optional<PresentedCertificate> shown;  // nullopt on loopback, where all is this user's
  bool session = false;                       // `shown` is the certificate of a session

  // As CallerOf for gRPC: nullopt for the user who owns the tracker.
  std::optional<FarmIdentity> caller() const { return shown.has_value() ? std::optional(identity) : std::nullopt; }
};

class Visitors {
 public:
  // membership, gate: null on loopback without TLS. secret: a secret that never changes while the farm's state exists;
  // key and cookies are derived from it. hosts: names and addresses of the server, for CheckOrigin.
  Visitors(const Membership* membership, Gate* gate, const std::string& secret, std::vector<std::string> hosts);

  // The key in the URL of a tracker on loopback, after "#key=".
  const std::string& key() const { return key_; }

  // Checks that the request is for this server and comes from its own pages, or from no page. A link on another site
  // may open a page, which is not secret, but may not call the API. kPermissionDenied: the request names another host
  // (a foreign DNS entry that points here), or it comes from a page of another origin.
  absl::Status CheckOrigin(const HttpRequest& request) const;

  // The credential in the request, unverified, as HttpServer::ClientKey. "" where there is none.
  std::string ClientKeyOf(const HttpRequest& request) const;

  // Verifies the credential, but not whether it has expired or was revoked, which Check does. On loopback the visitor
  // is an admin. kUnauthenticated: the credential is missing or invalid; the text says what to send.
  absl::StatusOr<Visitor> Identify(const HttpRequest& request) const;

  // Whether the visitor may call a gRPC method ("/hone.v1.JobService/Cancel"). Errors as Gate::Check; refusals are
  // written into the audit log.
  absl::Status Check(const Visitor& visitor, std::string_view method, const std::string& peer) const;

  // The same without the audit log, for requests that are answered in either case.
  bool IsAllowed(const Visitor& visitor, std::string_view method) const;

  // Writes a change into the audit log. method: "JobService/Cancel".
  void Note(const Visitor& visitor, const std::string& peer, std::string_view method, std::string_view object,
            const absl::Status& result) const;

  // The returned function says whether the visitor is still allowed.
  Present WhileAllowed(const Visitor& visitor) const;

  struct Session {
    FarmIdentity identity;
    absl::Time until;
    std::string cookie;  // the value of Set-Cookie
  };
  // Begins a session with one use of a token, ROLE.SECRET.FINGERPRINT. kInvalidArgument: it is no token, or one for a
  // machine; kUnauthenticated, kResourceExhausted, kAlreadyExists: as Gate::CheckToken and Register::Enrol;
  // kFailedPrecondition: there is no TLS, or the tracker has no key to sign with.
  absl::StatusOr<Session> Begin(const std::string& token, const std::string& peer, absl::Time now) const;
  // Ends the visitor's session by revoking its certificate. Returns the value of Set-Cookie that makes a browser delete
  // the cookie. kFailedPrecondition: the visitor has no session.
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
