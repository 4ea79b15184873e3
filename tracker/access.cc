#include "tracker/access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "transport/transport.h"

namespace hone::tracker {
namespace {

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
      {"/hone.v1.AdminService/ListDevices", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.AdminService/Drain", {kAdmin}},
      {"/hone.v1.AdminService/Undrain", {kAdmin}},
      {"/hone.v1.AdminService/GetFarm", {kViewer, kClient, kAdmin}},
      // Whoever compiles believes records: agents measured them, or a tuner says that a candidate could not be built.
      {"/hone.v1.RecordService/Append", {kTuner, kAdmin}},
      {"/hone.v1.RecordService/Best", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/ListBest", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/Query", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/Stats", {kTuner, kViewer, kClient, kAdmin}},
      {"/hone.v1.RecordService/Export", {kViewer, kClient, kAdmin}},
      {"/grpc.health.v1.Health/Check", {kAgent, kTuner, kViewer, kClient, kAdmin}},
      {"/grpc.health.v1.Health/Watch", {kAgent, kTuner, kViewer, kClient, kAdmin}},
  };
  return rules;
}

const Rule* Find(std::string_view method) {
  const auto rule = std::find_if(Rules().begin(), Rules().end(), [&](const Rule& r) { return r.method == method; });
  return rule == Rules().end() ? nullptr : &*rule;
}

absl::StatusOr<FarmIdentity> IdentityOf(const grpc::AuthContext& context) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return IdentityAmong(uris);
}

}  // namespace

bool HasRule(std::string_view method) { return Find(method) != nullptr; }

absl::Status CheckRole(Role role, std::string_view method) {
  const Rule* rule = Find(method);
  if (rule == nullptr) return absl::PermissionDeniedError(fmt::format("nobody may call {}", method));
  if (std::find(rule->roles.begin(), rule->roles.end(), role) != rule->roles.end()) return absl::OkStatus();
  std::vector<std::string_view> names;
  for (const Role allowed : rule->roles) names.push_back(Name(allowed));
  return absl::PermissionDeniedError(fmt::format("a certificate of role {} may not call {}; it takes {}", Name(role),
                                                 method, fmt::join(names, " or ")));
}

std::optional<FarmIdentity> CallerOf(const grpc::AuthContext& context) {
  if (!context.IsPeerAuthenticated()) return std::nullopt;  // over TLS every peer is
  absl::StatusOr<FarmIdentity> identity = IdentityOf(context);
  HONE_CHECK(identity.ok());  // RoleCheck has seen it
  return *std::move(identity);
}

absl::Status CheckName(const std::optional<FarmIdentity>& caller, std::string_view name) {
  if (!caller.has_value() || name == caller->name) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "the certificate is for '{}', not for '{}'; leave --name out, or enrol under that name", caller->name, name));
}

grpc::Status RoleCheck::Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                                OutputMetadata*) {
  const absl::StatusOr<FarmIdentity> identity = IdentityOf(*context);
  if (!identity.ok()) return ToGrpc(identity.status());
  const auto path = metadata.find(":path");
  const grpc::string_ref method = path == metadata.end() ? grpc::string_ref() : path->second;
  return ToGrpc(CheckRole(identity->role, {method.data(), method.size()}));
}

}  // namespace hone::tracker
