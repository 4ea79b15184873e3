// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/visitors.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/digest.h"
#include "base/identity.h"
#include "base/status.h"
#include "tracker/callers.h"
#include "tracker/http/parse.h"
#include "tracker/http/site.h"

namespace hone::tracker {
namespace {

// With the prefix __Host- a browser accepts the cookie only over TLS and sends it only to this host.
constexpr std::string_view kCookie = "__Host-hone";
constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----\n", kEnd = "-----END CERTIFICATE-----\n";
constexpr size_t kPemLine = 64;
constexpr size_t kCookieBytesMax = 4096;
constexpr absl::Duration kSessionLife = absl::Hours(24 * 30);

// A keyed hash, applied twice as in HMAC.
std::string Keyed(const std::string& key, std::string_view text) {
  return Sha256Hex(key + "outer" + Sha256Hex(fmt::format("{}inner{}", key, text)));
}

// Compares in constant time, so that the time does not tell how many characters are right.
bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

absl::Status NoSession() {
  return absl::UnauthenticatedError(
      "no valid credential: send a certificate of the farm, or begin a session with a token from one of its admins "
      "(hone token create --role viewer)");
}

// Whether the address is of a page or one of its files, which is every address outside the API.
bool IsPage(std::string_view address) {
  const absl::StatusOr<Target> target = ParseTarget(address);
  if (!target.ok() || target->path.empty()) return target.ok();
  return std::none_of(Routes().begin(), Routes().end(), [&](const Route& route) {
    return route.path.substr(1, route.path.find('/', 1) - 1) == target->path.front();
  });
}

bool IsPersons(Role role) { return role == Role::kViewer || role == Role::kClient || role == Role::kAdmin; }

absl::StatusOr<PresentedCertificate> PresentedIn(const std::string& pem) {
  HONE_ASSIGN_OR_RETURN(pki::CertificateFacts facts, pki::ReadCertificate(pem));
  HONE_ASSIGN_OR_RETURN(FarmIdentity identity, IdentityFromUris(facts.uris));
  return PresentedCertificate{std::move(identity), std::move(facts)};
}

}  // namespace

Visitors::Visitors(const Membership* membership, Gate* gate, const std::string& secret, std::vector<std::string> hosts)
    : membership_(membership),
      gate_(gate),
      key_(membership == nullptr ? Keyed(secret, "the key of the dashboard") : ""),
      cookie_key_(Keyed(secret, "the cookies of the dashboard")),
      hosts_(std::move(hosts)) {}

absl::Status Visitors::CheckOrigin(const HttpRequest& request) const {
  const std::string_view host = request.Header("host");
  if (std::find(hosts_.begin(), hosts_.end(), HostIn(host)) == hosts_.end()) {
    return absl::PermissionDeniedError(
        "the request names another host; use the address that the tracker printed, or a name in its certificate");
  }
  const std::string_view origin = request.Header("origin");
  const std::string own = fmt::format("{}://{}", membership_ == nullptr ? "http" : "https", host);
  const std::string_view site = request.Header("sec-fetch-site");
  const bool foreign = (!origin.empty() && origin != own) || site == "cross-site" || site == "same-site";
  // A link on another site may open a page, which is not secret. Only requests of our own pages may read or change
  // data.
  const bool follows_link = request.method == "GET" && origin.empty() &&
                            request.Header("sec-fetch-mode") == "navigate" &&
                            request.Header("sec-fetch-dest") == "document" && IsPage(request.target);
  if (!foreign || follows_link) return absl::OkStatus();
  return absl::PermissionDeniedError("the request comes from a page of another site; open the tracker's own page");
}

std::string Visitors::ClientKeyOf(const HttpRequest& request) const {
  if (membership_ == nullptr) return std::string(request.Header("authorization"));
  if (!request.certificate_pem.empty()) return request.certificate_pem;
  return std::string(CookieIn(request.Header("cookie"), kCookie));
}

absl::StatusOr<Visitor> Visitors::Identify(const HttpRequest& request) const {
  if (membership_ == nullptr) {
    const std::string_view shown = request.Header("authorization");
    if (shown.starts_with(kBearer) && Same(shown.substr(kBearer.size()), key_)) {
      return Visitor{.identity = {Role::kAdmin, UserName()}};
    }
    return absl::UnauthenticatedError(
        "the key is missing or wrong: send the one in the URL that the tracker printed (http://HOST:PORT/#key=KEY) as "
        "Authorization: Bearer KEY");
  }
  std::string pem = request.certificate_pem;
  const bool session = pem.empty();
  if (session) {
    HONE_ASSIGN_OR_RETURN(pem, CertificateIn(CookieIn(request.Header("cookie"), kCookie)));
  }
  HONE_ASSIGN_OR_RETURN(PresentedCertificate shown, PresentedIn(pem));
  return Visitor{.identity = shown.identity, .shown = shown, .session = session};
}

absl::Status Visitors::Check(const Visitor& visitor, std::string_view method, const std::string& peer) const {
  if (!visitor.shown.has_value()) return absl::OkStatus();
  const absl::Status checked = gate_->Check(*visitor.shown, method);
  if (!checked.ok()) gate_->NoteRefusal(&visitor.identity, peer, method, checked);
  return checked;
}

bool Visitors::IsAllowed(const Visitor& visitor, std::string_view method) const {
  return !visitor.shown.has_value() || gate_->Check(*visitor.shown, method).ok();
}

void Visitors::Note(const Visitor& visitor, const std::string& peer, std::string_view method, std::string_view object,
                    const absl::Status& result) const {
  if (membership_ == nullptr) return;
  membership_->audit().Add(
      {std::string(Name(visitor.identity.role)), visitor.identity.name, peer, std::string(method), std::string(object)},
      result, absl::Now());
}

Present Visitors::WhileAllowed(const Visitor& visitor) const {
  if (!visitor.shown.has_value()) return [] { return true; };
  return tracker::WhileAllowed(*visitor.shown, membership_->members());
}

absl::StatusOr<Visitors::Session> Visitors::Begin(const std::string& token, const std::string& peer,
                                                  absl::Time now) const {
  if (membership_ == nullptr)
    return absl::FailedPreconditionError("without TLS there are no sessions; send the key instead");
  HONE_ASSIGN_OR_RETURN(const pki::Token parsed, pki::ParseToken(token));
  if (!IsPersons(parsed.role)) {
    return absl::InvalidArgumentError(
        "this token is for a machine; make one for a user with hone token create --role viewer, client or admin");
  }
  const absl::StatusOr<Register::Enrolled> enrolled = Enrol(parsed, now);
  const FarmIdentity who = enrolled.ok() ? enrolled->identity : FarmIdentity{parsed.role, ""};
  Note({.identity = who}, peer, "JoinService/Join", fmt::format("{}/{}", Name(who.role), who.name), enrolled.status());
  if (!enrolled.ok()) return enrolled.status();
  return Session{who, now + kSessionLife,
                 fmt::format("{}={}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={}", kCookie,
                             CookieOf(enrolled->certificate), absl::ToInt64Seconds(kSessionLife))};
}

absl::StatusOr<std::string> Visitors::End(const Visitor& visitor, const std::string& peer, absl::Time now) const {
  if (!visitor.session)
    return absl::FailedPreconditionError("there is no session to end: the request has no session cookie");
  const auto revoked = membership_->members().Revoke(visitor.identity.name, now);
  Note(visitor, peer, "IdentityService/RevokeIdentity", visitor.identity.name, revoked.status());
  if (!revoked.ok()) return revoked.status();
  return fmt::format("{}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0", kCookie);
}

absl::StatusOr<Register::Enrolled> Visitors::Enrol(const pki::Token& token, absl::Time now) const {
  HONE_RETURN_IF_ERROR(gate_->CheckToken(token.secret));
  // The private key is discarded, because the cookie identifies the session.
  HONE_ASSIGN_OR_RETURN(const std::string request, pki::MakeRequest(pki::MakeKey()));
  return membership_->members().Enrol({token.secret, std::string(Name(token.role)), "", "web", /*session=*/true},
                                      membership_->SignerOf(request, now, kSessionLife), now);
}

// The body of the certificate's PEM, a '.', and a keyed hash that only this tracker can compute.
std::string Visitors::CookieOf(const std::string& certificate_pem) const {
  const size_t begin = certificate_pem.find(kBegin), end = certificate_pem.find(kEnd);
  HONE_CHECK(begin != std::string::npos && end != std::string::npos);
  std::string body = certificate_pem.substr(begin + kBegin.size(), end - begin - kBegin.size());
  body.erase(std::remove(body.begin(), body.end(), '\n'), body.end());
  return body + "." + Keyed(cookie_key_, body);
}

absl::StatusOr<std::string> Visitors::CertificateIn(std::string_view cookie) const {
  const size_t dot = cookie.rfind('.');
  const bool ours = cookie.size() <= kCookieBytesMax && dot != std::string_view::npos &&
                    Same(cookie.substr(dot + 1), Keyed(cookie_key_, cookie.substr(0, dot)));
  if (!ours) return NoSession();
  std::string pem(kBegin);
  for (size_t at = 0; at < dot; at += kPemLine)
    pem += fmt::format("{}\n", cookie.substr(at, std::min(kPemLine, dot - at)));
  pem += kEnd;
  // A thief of the farm's secret could compute the hash for any certificate, but cannot sign one.
  if (!membership_->IsOfFarm(pem)) return NoSession();
  return pem;
}

}  // namespace hone::tracker
