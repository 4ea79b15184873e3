// SPDX-License-Identifier: Apache-2.0
#include "tracker/access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/protocol_version.h"
#include "base/split.h"
#include "base/status.h"
#include "pki/token.h"
#include "tracker/queue/quotas.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

constexpr Rate kCallRate = {kQuotas.calls_per_second, kQuotas.calls_burst};  // per identity
constexpr Rate kWrongTokenRate = {1, 20};                                    // for all callers together
constexpr size_t kMethodBytesMax = 200;                                      // in the audit log

struct Rule {
  std::string_view method;
  std::vector<Role> roles;
};

const std::vector<Rule>& Rules() {
  using enum Role;
  static const std::vector<Rule> rules = {
      {"/hone.v1.AgentService/Synchronize", {kAgent}},
      {"/hone.v1.TunerService/LeaseJob", {kTuner}},
      {"/hone.v1.TunerService/ReportProgress", {kTuner}},
      {"/hone.v1.TunerService/SubmitBatch", {kTuner}},
      {"/hone.v1.TunerService/WaitBatch", {kTuner}},
      {"/hone.v1.TunerService/CompleteJob", {kTuner}},
      {"/hone.v1.JobService/Submit", {kClient, kAdmin}},
      {"/hone.v1.JobService/List", {kViewer, kClient, kAdmin}},
      {"/hone.v1.JobService/Get", {kViewer, kClient, kAdmin}},
      {"/hone.v1.JobService/Watch", {kViewer, kClient, kAdmin}},
      {"/hone.v1.JobService/Cancel", {kClient, kAdmin}},
      // A client may change its own watches only; an admin may change all of them (watch_requests.h).
      {"/hone.v1.FleetWatchService/Add", {kClient, kAdmin}},
      {"/hone.v1.FleetWatchService/List", {kViewer, kClient, kAdmin}},
      {"/hone.v1.FleetWatchService/Get", {kViewer, kClient, kAdmin}},
      {"/hone.v1.FleetWatchService/Run", {kClient, kAdmin}},
      {"/hone.v1.FleetWatchService/Accept", {kClient, kAdmin}},
      {"/hone.v1.FleetWatchService/Remove", {kClient, kAdmin}},
      {"/hone.v1.AdminService/ListDevices", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.AdminService/ListTuners", {kViewer, kClient, kAdmin}},
      {"/hone.v1.AdminService/Drain", {kAdmin}},
      {"/hone.v1.AdminService/Undrain", {kAdmin}},
      {"/hone.v1.AdminService/GetFarm", {kViewer, kClient, kAdmin}},
      // Records decide what is compiled. Agents' results are recorded by the tracker; a tuner may only append that a
      // candidate could not be built.
      {"/hone.v1.RecordService/Append", {kTuner, kAdmin}},
      {"/hone.v1.RecordService/Best", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/ListBest", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/Query", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/Stats", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/Export", {kViewer, kClient, kAdmin}},
      // Clients bring models, packages and inputs, agents outputs, and tuners the packages of a job's model. Which
      // files they may fetch: file_rights.h.
      {"/hone.v1.FileService/Offer", {kAgent, kTuner, kClient, kAdmin}},
      {"/hone.v1.FileService/Put", {kAgent, kTuner, kClient, kAdmin}},
      {"/hone.v1.FileService/Describe", {kAgent, kTuner, kClient, kAdmin}},
      {"/hone.v1.FileService/Get", {kAgent, kTuner, kClient, kAdmin}},
      {kJoinMethod, {}},  // needs a token instead of a role
      {"/hone.v1.JoinService/Renew", {kAgent, kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.JoinService/WhoAmI", {kAgent, kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.IdentityService/CreateToken", {kAdmin}},
      {"/hone.v1.IdentityService/ListTokens", {kAdmin}},
      {"/hone.v1.IdentityService/RevokeToken", {kAdmin}},
      {"/hone.v1.IdentityService/ListIdentities", {kAdmin}},
      {"/hone.v1.IdentityService/RevokeIdentity", {kAdmin}},
      {"/hone.v1.IdentityService/ListAudit", {kAdmin}},
      // Watch is missing, because gRPC keeps its stream open for ever, even after the certificate was revoked.
      {"/grpc.health.v1.Health/Check", {kAgent, kTuner, kViewer, kClient, kAdmin}},
  };
  return rules;
}

const Rule* Find(std::string_view method) {
  const auto rule = std::find_if(Rules().begin(), Rules().end(), [&](const Rule& r) { return r.method == method; });
  return rule == Rules().end() ? nullptr : &*rule;
}

std::string_view Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.empty() ? std::string_view() : std::string_view(values.front().data(), values.front().size());
}

// The method as the audit log shows it: "JobService/Cancel".
std::string WithoutPackage(std::string_view method) {
  constexpr std::string_view kPackage = "/hone.v1.";
  RemovePrefix(method, kPackage);
  return std::string(method.substr(0, kMethodBytesMax));
}

bool OverTls(const grpc::AuthContext& context) {
  const std::string_view type = Property(context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  return type == GRPC_TLS_TRANSPORT_SECURITY_TYPE || type == GRPC_SSL_TRANSPORT_SECURITY_TYPE;
}

absl::StatusOr<FarmIdentity> IdentityOf(const grpc::AuthContext& context) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return IdentityFromUris(uris);
}

}  // namespace

bool HasRule(std::string_view method) { return Find(method) != nullptr; }

absl::Status CheckRole(Role role, std::string_view method) {
  const Rule* rule = Find(method);
  if (rule == nullptr) return absl::PermissionDeniedError(fmt::format("no role may call {}", method));
  if (std::find(rule->roles.begin(), rule->roles.end(), role) != rule->roles.end()) return absl::OkStatus();
  std::vector<std::string_view> names;
  for (const Role allowed : rule->roles) names.push_back(Name(allowed));
  return absl::PermissionDeniedError(fmt::format("a certificate of role {} may not call {}; it needs role {}",
                                                 Name(role), method, fmt::join(names, " or ")));
}

std::optional<FarmIdentity> CallerOf(const grpc::AuthContext& context) {
  if (!OverTls(context)) return std::nullopt;
  absl::StatusOr<FarmIdentity> identity = IdentityOf(context);
  HONE_CHECK(identity.ok());  // RoleCheck refuses calls without one
  return *std::move(identity);
}

absl::Status CheckName(const std::optional<FarmIdentity>& caller, std::string_view name) {
  if (!caller.has_value() || name == caller->name) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "the certificate is for '{}', not for '{}'; omit --name, or join under that name", caller->name, name));
}

absl::Status CheckPriority(const std::optional<FarmIdentity>& caller, int priority) {
  if (!caller.has_value() || priority <= 0 || caller->role == Role::kAdmin) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("priority {} is above the default 0, which only an admin may give; omit --priority, or ask an admin "
                  "to submit the job",
                  priority));
}

absl::StatusOr<PresentedCertificate> PresentedIn(const grpc::AuthContext& context, const Membership& membership) {
  const std::string_view pem = Property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.empty()) {
    return absl::UnauthenticatedError(
        "the call has no certificate; join the farm first, with a token from one of its admins: hone-agent join, hone "
        "join");
  }
  HONE_ASSIGN_OR_RETURN(FarmIdentity identity, IdentityOf(context));
  HONE_ASSIGN_OR_RETURN(pki::CertificateFacts certificate, membership.certificates().Read(pem));
  return PresentedCertificate{std::move(identity), std::move(certificate)};
}

Gate::Gate(const Membership* membership, std::function<absl::Time()> steady)
    : membership_(membership), steady_(std::move(steady)), calls_(kCallRate), wrong_tokens_(kWrongTokenRate) {}

absl::Status Gate::Check(const PresentedCertificate& shown, std::string_view method) {
  const absl::Status admitted = membership_->members().Admit(shown.identity, shown.certificate, absl::Now());
  // Refused calls count too, because they cost a look-up and an entry in the audit log. A call with a refused
  // certificate counts for its serial number, because another certificate may have its name.
  const std::string name = UriOf(shown.identity);
  HONE_RETURN_IF_ERROR(
      CountCall(shown.identity, admitted.ok() ? name : fmt::format("{} {}", name, shown.certificate.serial)));
  HONE_RETURN_IF_ERROR(admitted);
  return CheckRole(shown.identity.role, method);
}

absl::Status Gate::CountCall(const FarmIdentity& caller, const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (calls_.Take(key, steady_())) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "'{}' made more than {:.0f} calls a second; call less often, or spread the calls over several identities",
      caller.name, kCallRate.per_second));
}

absl::Status Gate::CheckToken(const std::string& secret) {
  const absl::Status good = membership_->members().CheckToken(secret, absl::Now());
  if (good.ok()) return good;
  // A valid token always passes, so that a flood of wrong tokens keeps no program from joining.
  const std::lock_guard lock(mutex_);
  if (wrong_tokens_.Take("", steady_())) return good;
  return absl::ResourceExhaustedError("too many calls with a wrong token; try again in a minute");
}

void Gate::NoteRefusal(const FarmIdentity* caller, const std::string& peer, std::string_view method,
                       const absl::Status& why) const {
  membership_->audit().Add({caller == nullptr ? "" : std::string(Name(caller->role)),
                            caller == nullptr ? "" : caller->name, peer, WithoutPackage(method), ""},
                           why, absl::Now());
}

grpc::Status RoleCheck::Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                                OutputMetadata*) {
  const auto path = metadata.find(":path");
  const std::string_view method =
      path == metadata.end() ? std::string_view() : std::string_view(path->second.data(), path->second.size());
  const absl::Status checked = Check(metadata, *context, method);
  if (!checked.ok()) {
    const absl::StatusOr<FarmIdentity> caller = IdentityOf(*context);
    gate_->NoteRefusal(caller.ok() ? &*caller : nullptr, "", method, checked);
  }
  return ToGrpc(checked);
}

absl::Status RoleCheck::Check(const InputMetadata& metadata, const grpc::AuthContext& context,
                              std::string_view method) {
  const auto name = metadata.find("user-agent");
  if (name != metadata.end()) {
    HONE_RETURN_IF_ERROR(
        CheckProtocol(ProtocolVersionOf({name->second.data(), name->second.size()}), "program that calls"));
  }
  if (method == kJoinMethod) {
    const auto token = metadata.find(pki::kTokenMetadata);
    return gate_->CheckToken(token == metadata.end() ? "" : std::string(token->second.data(), token->second.size()));
  }
  HONE_ASSIGN_OR_RETURN(const PresentedCertificate shown, PresentedIn(context, gate_->membership()));
  return gate_->Check(shown, method);
}

}  // namespace hone::tracker
