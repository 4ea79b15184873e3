#include "tracker/callers.h"

#include "absl/time/clock.h"
#include "tracker/access.h"

namespace hone::tracker {

Present Callers::PresentIn(grpc::ServerContextBase* context) const {
  if (membership_ == nullptr) return [context] { return !context->IsCancelled(); };
  const absl::StatusOr<Shown> shown = ShownIn(*context->auth_context());
  if (!shown.ok()) return [] { return false; };
  Register& members = membership_->members();
  return [context, shown = *shown, &members, asked_at = int64_t{-1}]() mutable {
    if (context->IsCancelled() || absl::Now() >= shown.certificate.until) return false;
    const int64_t revocations = members.revocations();  // before Admit: one that comes between is asked about again
    if (revocations == asked_at) return true;
    if (!members.Admit(shown.identity, shown.certificate, absl::Now()).ok()) return false;
    asked_at = revocations;
    return true;
  };
}

void Callers::Note(const grpc::ServerContextBase& context, std::string_view method, std::string_view object,
                   const absl::Status& result) const {
  if (membership_ == nullptr) return;
  const absl::StatusOr<Shown> shown = ShownIn(*context.auth_context());
  membership_->audit().Add(
      {shown.ok() ? std::string(Name(shown->identity.role)) : "", shown.ok() ? shown->identity.name : "",
       context.peer(), std::string(method), std::string(object)},
      result, absl::Now());
}

}  // namespace hone::tracker
