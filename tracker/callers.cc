// SPDX-License-Identifier: Apache-2.0
#include "tracker/callers.h"

#include <optional>

#include "absl/time/clock.h"

namespace hone::tracker {

// The gate admitted the caller before, but the certificate may have been revoked since.
Present WhileAllowed(const PresentedCertificate& shown, Register& members) {
  const int64_t revocation = members.RevocationCount(shown.identity.name);
  if (revocation > 0 && !members.Admit(shown.identity, shown.certificate, absl::Now()).ok())
    return [] { return false; };
  return [name = shown.identity.name, until = shown.certificate.until, revocation, &members] {
    return absl::Now() < until && members.RevocationCount(name) == revocation;
  };
}

Present Callers::PresentIn(grpc::ServerContextBase* context) const {
  if (membership_ == nullptr) return [context] { return !context->IsCancelled(); };
  absl::StatusOr<PresentedCertificate> shown = PresentedIn(*context->auth_context(), *membership_);
  if (!shown.ok()) return [] { return false; };
  return [context, allowed = WhileAllowed(*shown, membership_->members())] {
    return !context->IsCancelled() && allowed();
  };
}

std::string Callers::IdentityIn(const grpc::ServerContextBase& context) {
  const std::optional<FarmIdentity> caller = CallerOf(*context.auth_context());
  return caller.has_value() ? UriOf(*caller) : "";
}

void Callers::Note(const grpc::ServerContextBase& context, std::string_view method, std::string_view object,
                   const absl::Status& result) const {
  if (membership_ == nullptr) return;
  const absl::StatusOr<PresentedCertificate> shown = PresentedIn(*context.auth_context(), *membership_);
  membership_->audit().Add(
      {shown.ok() ? std::string(Name(shown->identity.role)) : "", shown.ok() ? shown->identity.name : "",
       context.peer(), std::string(method), std::string(object)},
      result, absl::Now());
}

}  // namespace hone::tracker
