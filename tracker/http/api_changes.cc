// SPDX-License-Identifier: Apache-2.0
// Handlers of requests that change something: sessions, jobs, agents.
#include <fmt/format.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "tracker/held_call.h"
#include "tracker/http/api.h"

namespace hone::tracker {
namespace {

constexpr size_t kReasonBytesMax = 1000;

Json SessionToJson(const FarmIdentity& identity, bool session) {
  return {{"role", Name(identity.role)}, {"name", identity.name}, {"session", session}};
}

// The answer after a change of the agent that the path names.
absl::StatusOr<HttpResponse> Changed(const Question& question, const absl::Status& status) {
  if (!status.ok()) return status;
  return JsonResponse({{"agent", question.names[0]}});
}

}  // namespace

absl::StatusOr<HttpResponse> BeginSession(const Sources& sources, const Question& question) {
  HONE_ASSIGN_OR_RETURN(const std::string token, question.Text("token"));
  HONE_ASSIGN_OR_RETURN(const Visitors::Session session,
                        sources.visitors->Begin(token, question.request.peer, absl::Now()));
  HttpResponse response = JsonResponse(SessionToJson(session.identity, true));
  response.headers.emplace_back("Set-Cookie", session.cookie);
  return response;
}

absl::StatusOr<HttpResponse> ShowSession(const Sources&, const Question& question) {
  return JsonResponse(SessionToJson(question.visitor.identity, question.visitor.session));
}

absl::StatusOr<HttpResponse> EndSession(const Sources& sources, const Question& question) {
  HONE_ASSIGN_OR_RETURN(const std::string cookie,
                        sources.visitors->End(question.visitor, question.request.peer, absl::Now()));
  HttpResponse response = JsonResponse(SessionToJson(question.visitor.identity, false));
  response.headers.emplace_back("Set-Cookie", cookie);
  return response;
}

absl::StatusOr<HttpResponse> CancelJob(const Sources& sources, const Question& question) {
  const std::string& id = question.names[0];
  bool changed = false;
  const auto job = Await<v1::Job>([&](Done<v1::Job> done) { changed = sources.shell->CancelJob(id, std::move(done)); });
  if (changed || !job.ok()) {
    sources.visitors->Note(question.visitor, question.request.peer, "JobService/Cancel", id, job.status());
  }
  if (!job.ok()) return job.status();
  return JsonResponse({{"job", job->id()}});
}

absl::StatusOr<HttpResponse> DrainAgent(const Sources& sources, const Question& question) {
  const std::string& agent = question.names[0];
  HONE_ASSIGN_OR_RETURN(const std::string reason, question.Text("reason"));
  if (reason.size() > kReasonBytesMax) {
    return absl::InvalidArgumentError(fmt::format("the reason is too long; the limit is {} bytes", kReasonBytesMax));
  }
  const auto drained = Await<v1::DrainResponse>(
      [&](Done<v1::DrainResponse> done) { sources.shell->Drain(agent, reason, std::move(done)); });
  sources.visitors->Note(question.visitor, question.request.peer, "AdminService/Drain", agent, drained.status());
  return Changed(question, drained.status());
}

absl::StatusOr<HttpResponse> ReleaseAgent(const Sources& sources, const Question& question) {
  const std::string& agent = question.names[0];
  const auto released = Await<v1::UndrainResponse>(
      [&](Done<v1::UndrainResponse> done) { sources.shell->Undrain(agent, std::move(done)); });
  sources.visitors->Note(question.visitor, question.request.peer, "AdminService/Undrain", agent, released.status());
  return Changed(question, released.status());
}

}  // namespace hone::tracker
