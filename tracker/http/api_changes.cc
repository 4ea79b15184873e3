// SPDX-License-Identifier: Apache-2.0
// Handlers of requests that change something: sessions, jobs, agents.
#include <fmt/format.h>

#include <utility>

#include "absl/time/clock.h"
#include "base/identity.h"
#include "base/status.h"
#include "tracker/held_call.h"
#include "tracker/http/api.h"
#include "tracker/submission.h"

namespace hone::tracker {
namespace {

constexpr size_t kReasonBytesMax = 1000;

Json SessionToJson(const ApiContext& context, const FarmIdentity& identity, bool session) {
  return {{"role", Name(identity.role)}, {"name", identity.name}, {"session", session}, {"tracker", context.tracker}};
}

// The answer after a change of the agent that the path names.
absl::StatusOr<HttpResponse> Changed(const ApiCall& call, const absl::Status& status) {
  if (!status.ok()) return status;
  return JsonResponse({{"agent", call.names[0]}});
}

}  // namespace

absl::StatusOr<HttpResponse> BeginSession(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const std::string token, call.Text("token"));
  HONE_ASSIGN_OR_RETURN(const Visitors::Session session,
                        context.visitors->Begin(token, call.request.peer, absl::Now()));
  HttpResponse response = JsonResponse(SessionToJson(context, session.identity, true));
  response.headers.emplace_back("Set-Cookie", session.cookie);
  return response;
}

absl::StatusOr<HttpResponse> ShowSession(const ApiContext& context, const ApiCall& call) {
  return JsonResponse(SessionToJson(context, call.visitor.identity, call.visitor.session));
}

absl::StatusOr<HttpResponse> EndSession(const ApiContext& context, const ApiCall& call) {
  HONE_ASSIGN_OR_RETURN(const std::string cookie, context.visitors->End(call.visitor, call.request.peer, absl::Now()));
  HttpResponse response = JsonResponse(SessionToJson(context, call.visitor.identity, false));
  response.headers.emplace_back("Set-Cookie", cookie);
  return response;
}

absl::StatusOr<HttpResponse> SubmitJob(const ApiContext& context, const ApiCall& call) {
  v1::JobSpec spec;
  HONE_RETURN_IF_ERROR(ReadBody(call, "job", &spec));
  if (spec.request_id().empty()) spec.set_request_id(RandomId());
  HONE_ASSIGN_OR_RETURN(const v1::Job job, SubmitFor(*context.shell, *context.file_rights, call.visitor.caller(),
                                                     std::move(spec), NoteOf(context, call, "JobService/Submit")));
  return JsonResponse(JobDetailToJson(job, {}, absl::Now()));
}

absl::StatusOr<HttpResponse> CancelJob(const ApiContext& context, const ApiCall& call) {
  const std::string& id = call.names[0];
  bool changed = false;
  const auto job = Await<v1::Job>([&](Done<v1::Job> done) { changed = context.shell->CancelJob(id, std::move(done)); });
  if (changed || !job.ok()) {
    NoteOf(context, call, "JobService/Cancel")(id, job.status());
  }
  if (!job.ok()) return job.status();
  return JsonResponse({{"job", job->id()}});
}

absl::StatusOr<HttpResponse> DrainAgent(const ApiContext& context, const ApiCall& call) {
  const std::string& agent = call.names[0];
  HONE_ASSIGN_OR_RETURN(const std::string reason, call.Text("reason"));
  if (reason.size() > kReasonBytesMax) {
    return absl::InvalidArgumentError(fmt::format("the reason is too long; the limit is {} bytes", kReasonBytesMax));
  }
  const auto drained = Await<v1::DrainResponse>(
      [&](Done<v1::DrainResponse> done) { context.shell->Drain(agent, reason, std::move(done)); });
  NoteOf(context, call, "AdminService/Drain")(agent, drained.status());
  return Changed(call, drained.status());
}

absl::StatusOr<HttpResponse> ReleaseAgent(const ApiContext& context, const ApiCall& call) {
  const std::string& agent = call.names[0];
  const auto released = Await<v1::UndrainResponse>(
      [&](Done<v1::UndrainResponse> done) { context.shell->Undrain(agent, std::move(done)); });
  NoteOf(context, call, "AdminService/Undrain")(agent, released.status());
  return Changed(call, released.status());
}

}  // namespace hone::tracker
