#include "tracker/callers.h"

#include <utility>

#include "absl/time/clock.h"

namespace hone::tracker {

Present WhileWelcome(Shown shown, Register& members) {
  return [shown = std::move(shown), &members, asked_at = int64_t{-1}]() mutable {
    if (absl::Now() >= shown.certificate.until) return false;
    const int64_t revocations = members.revocations();  // before Admit: one that comes between is asked about again
    if (revocations == asked_at) return true;
    if (!members.Admit(shown.identity, shown.certificate, absl::Now()).ok()) return false;
    asked_at = revocations;
    return true;
  };
}

Present Callers::PresentIn(grpc::ServerContextBase* context) const {
  if (membership_ == nullptr) return [context] { return !context->IsCancelled(); };
  absl::StatusOr<Shown> shown = ShownIn(*context->auth_context(), *membership_);
  if (!shown.ok()) return [] { return false; };
  return [context, welcome = WhileWelcome(*std::move(shown), membership_->members())] {
    return !context->IsCancelled() && welcome();
  };
}

void Callers::Note(const grpc::ServerContextBase& context, std::string_view method, std::string_view object,
                   const absl::Status& result) const {
  if (membership_ == nullptr) return;
  const absl::StatusOr<Shown> shown = ShownIn(*context.auth_context(), *membership_);
  membership_->audit().Add(
      {shown.ok() ? std::string(Name(shown->identity.role)) : "", shown.ok() ? shown->identity.name : "",
       context.peer(), std::string(method), std::string(object)},
      result, absl::Now());
}

}  // namespace hone::tracker
