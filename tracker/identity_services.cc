// SPDX-License-Identifier: Apache-2.0
#include "tracker/identity_services.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/identity.grpc.pb.h"
#include "pki/token.h"
#include "proto/convert.h"
#include "tracker/access.h"
#include "tracker/callers.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kTokenLifeDefault = absl::Hours(1), kTokenLifeMax = absl::Hours(24 * 30);
constexpr int kTokenUsesMax = 1000;
constexpr int kAuditEntriesDefault = 100, kAuditEntriesMax = 10'000;

class JoinServiceShell final : public v1::JoinService::Service {
 public:
  explicit JoinServiceShell(const Membership* membership) : membership_(membership), callers_(membership) {}

  grpc::Status Join(grpc::ServerContext* context, const v1::JoinRequest* request, v1::JoinResponse* response) override {
    const auto& metadata = context->client_metadata();
    const auto token = metadata.find(pki::kTokenMetadata);
    const std::string secret = token == metadata.end() ? "" : std::string(token->second.data(), token->second.size());
    const absl::Time now = absl::Now();
    auto enrolled = membership_->members().Enrol({secret, request->role(), request->name(), request->host_name()},
                                                 membership_->SignerOf(request->certificate_request(), now), now);
    callers_.Note(*context, "JoinService/Join",
                  fmt::format("{}/{}", request->role(), enrolled.ok() ? enrolled->identity.name : request->name()),
                  enrolled.status());
    if (!enrolled.ok()) return ToGrpc(enrolled.status());
    response->set_certificate(std::move(enrolled->certificate));
    response->set_name(std::move(enrolled->identity.name));
    return grpc::Status::OK;
  }

  grpc::Status Renew(grpc::ServerContext* context, const v1::RenewRequest* request,
                     v1::RenewResponse* response) override {
    absl::StatusOr<PresentedCertificate> shown = PresentedIn(*context->auth_context(), *membership_);
    if (!shown.ok()) return ToGrpc(shown.status());
    const absl::Time now = absl::Now();
    auto certificate = membership_->members().Renew(shown->identity, shown->certificate,
                                                    membership_->SignerOf(request->certificate_request(), now), now);
    callers_.Note(*context, "JoinService/Renew", "", certificate.status());
    if (!certificate.ok()) return ToGrpc(certificate.status());
    response->set_certificate(*std::move(certificate));
    return grpc::Status::OK;
  }

  grpc::Status WhoAmI(grpc::ServerContext* context, const v1::WhoAmIRequest*, v1::WhoAmIResponse* response) override {
    const absl::StatusOr<PresentedCertificate> shown = PresentedIn(*context->auth_context(), *membership_);
    if (!shown.ok()) return ToGrpc(shown.status());
    response->set_role(std::string(Name(shown->identity.role)));
    response->set_name(shown->identity.name);
    *response->mutable_time() = ToProto(absl::Now());
    return grpc::Status::OK;
  }

 private:
  const Membership* const membership_;
  const Callers callers_;
};

// The token that the request asks for, or why it is refused.
absl::StatusOr<Register::NewToken> ParseTokenRequest(const v1::CreateTokenRequest& request, absl::Time now) {
  const std::optional<Role> role = ParseRole(request.role());
  if (!role.has_value()) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a role; give agent, tuner, client, viewer or admin", request.role()));
  }
  if (!request.name().empty()) HONE_RETURN_IF_ERROR(CheckFarmName(request.name()));
  const int most = request.name().empty() ? kTokenUsesMax : 1;
  const int uses = request.uses() == 0 ? 1 : request.uses();
  if (uses < 1 || uses > most) {
    return absl::InvalidArgumentError(fmt::format(
        "a token has 1 to {} uses, and 1 if it is for one name; the request asks for {}", kTokenUsesMax, uses));
  }
  const absl::Duration life = request.has_time_to_live() ? FromProto(request.time_to_live()) : kTokenLifeDefault;
  if (life <= absl::ZeroDuration() || life > kTokenLifeMax) {
    return absl::InvalidArgumentError("the lifetime of a token must be above 0 and at most 30 days");
  }
  return Register::NewToken{pki::RandomSecret(), *role, request.name(), uses, now + life, ""};
}

class IdentityServiceShell final : public v1::IdentityService::Service {
 public:
  explicit IdentityServiceShell(const Membership* membership) : membership_(membership), callers_(membership) {}

  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    const absl::Status created = Create(*context, *request, response);
    callers_.Note(*context, "IdentityService/CreateToken",
                  fmt::format("{} for {}/{}", response->token().id(), request->role(), request->name()), created);
    return ToGrpc(created);
  }

  grpc::Status ListTokens(grpc::ServerContext*, const v1::ListTokensRequest*,
                          v1::ListTokensResponse* response) override {
    auto tokens = membership_->members().Tokens();
    if (!tokens.ok()) return ToGrpc(tokens.status());
    response->mutable_tokens()->Assign(tokens->begin(), tokens->end());
    return grpc::Status::OK;
  }

  grpc::Status RevokeToken(grpc::ServerContext* context, const v1::RevokeTokenRequest* request,
                           v1::RevokeTokenResponse*) override {
    const absl::Status revoked = membership_->members().RevokeToken(request->id());
    callers_.Note(*context, "IdentityService/RevokeToken", request->id(), revoked);
    return ToGrpc(revoked);
  }

  grpc::Status ListIdentities(grpc::ServerContext*, const v1::ListIdentitiesRequest*,
                              v1::ListIdentitiesResponse* response) override {
    auto identities = membership_->members().Identities();
    if (!identities.ok()) return ToGrpc(identities.status());
    response->mutable_identities()->Assign(identities->begin(), identities->end());
    return grpc::Status::OK;
  }

  grpc::Status RevokeIdentity(grpc::ServerContext* context, const v1::RevokeIdentityRequest* request,
                              v1::RevokeIdentityResponse* response) override {
    const auto revoked = membership_->members().Revoke(request->name(), absl::Now());
    callers_.Note(*context, "IdentityService/RevokeIdentity", request->name(), revoked.status());
    if (!revoked.ok()) return ToGrpc(revoked.status());
    response->set_certificates(static_cast<int32_t>(*revoked));
    return grpc::Status::OK;
  }

  grpc::Status ListAudit(grpc::ServerContext*, const v1::ListAuditRequest* request,
                         v1::ListAuditResponse* response) override {
    const int limit = request->limit() == 0 ? kAuditEntriesDefault : request->limit();
    if (limit < 1 || limit > kAuditEntriesMax) {
      return ToGrpc(
          absl::InvalidArgumentError(fmt::format("the limit must be from 1 to {} entries", kAuditEntriesMax)));
    }
    auto entries = membership_->audit().Newest(limit);
    if (!entries.ok()) return ToGrpc(entries.status());
    response->mutable_entries()->Assign(entries->begin(), entries->end());
    return grpc::Status::OK;
  }

 private:
  absl::Status Create(const grpc::ServerContext& context, const v1::CreateTokenRequest& request,
                      v1::CreateTokenResponse* response) const {
    if (!membership_->signs()) {
      return absl::FailedPreconditionError(
          "no program can join this farm, because its tracker has no key to sign with (authority.key)");
    }
    const absl::Time now = absl::Now();
    HONE_ASSIGN_OR_RETURN(Register::NewToken token, ParseTokenRequest(request, now));
    HONE_ASSIGN_OR_RETURN(const PresentedCertificate shown, PresentedIn(*context.auth_context(), *membership_));
    token.created_by = shown.identity.name;
    HONE_ASSIGN_OR_RETURN(*response->mutable_fingerprint(), membership_->Fingerprint());
    HONE_ASSIGN_OR_RETURN(*response->mutable_token(), membership_->members().AddToken(token, now));
    response->set_secret(token.secret);
    return absl::OkStatus();
  }

  const Membership* const membership_;
  const Callers callers_;
};

}  // namespace

void AddIdentityServices(const Membership* membership, std::vector<std::unique_ptr<grpc::Service>>& services) {
  services.push_back(std::make_unique<JoinServiceShell>(membership));
  services.push_back(std::make_unique<IdentityServiceShell>(membership));
}

}  // namespace hone::tracker
