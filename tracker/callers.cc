#include "tracker/callers.h"

#include "absl/time/clock.h"
#include "tracker/access.h"

namespace hone::tracker {

Shell::Present Callers::Present(grpc::ServerContext* context) const {
  if (membership_ == nullptr) return [context] { return !context->IsCancelled(); };
  const absl::StatusOr<Shown> shown = ShownIn(*context->auth_context());
  if (!shown.ok()) return [] { return false; };
  return [context, shown = *shown, &members = membership_->members()] {
    return !context->IsCancelled() && members.Admit(shown.identity, shown.certificate, absl::Now()).ok();
  };
}

void Callers::Note(const grpc::ServerContext& context, std::string_view method, std::string_view object,
                   const absl::Status& result) const {
  if (membership_ == nullptr) return;
  const absl::StatusOr<Shown> shown = ShownIn(*context.auth_context());
  membership_->audit().Add(
      {shown.ok() ? std::string(Name(shown->identity.role)) : "", shown.ok() ? shown->identity.name : "",
       context.peer(), std::string(method), std::string(object)},
      result, absl::Now());
}

}  // namespace hone::tracker
