// SPDX-License-Identifier: Apache-2.0
#include "tracker/http/notifier.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "proto/convert.h"
#include "tracker/http/names.h"
#include "tracker/job_json.h"
#include "tracker/queue/notice_url.h"
#include "tracker/watch_json.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kRetryWaitMin = absl::Seconds(5), kRetryWaitMax = absl::Hours(1);
constexpr auto kRoundPeriod = std::chrono::seconds(1);

// The receiver of a notice: scheme, host and port of its URL.
std::string ReceiverOf(const std::string& url) {
  const absl::StatusOr<NoticeUrl> parsed = ParseNoticeUrl(url);
  if (!parsed.ok()) return url;
  return fmt::format("{}://{}:{}", parsed->tls ? "https" : "http", parsed->host, parsed->port);
}

}  // namespace

absl::Duration WaitAfterAttempt(int attempts) {
  absl::Duration wait = kRetryWaitMin;
  for (int i = 1; i < attempts && wait < kRetryWaitMax; ++i) wait *= 2;
  return std::min(wait, kRetryWaitMax);
}

std::string NoticeBody(const v1::Job& job) {
  nlohmann::ordered_json body = {{"job", job.id()},
                                 {"group", job.spec().group()},
                                 {"model", job.spec().name()},
                                 {"target", job.spec().target()},
                                 {"devices", nlohmann::ordered_json(job.spec().devices())},
                                 {"state", StateName(job.state())},
                                 {"error", job.error()},
                                 {"trials", job.progress().trials()},
                                 {"latency_ms_before", nullptr},
                                 {"latency_ms_after", nullptr},
                                 {"confirmation", ConfirmationToJson(job)},
                                 {"ended", absl::FormatTime(FromProto(job.ended()), absl::UTCTimeZone())}};
  if (job.progress().has_latency_before_seconds()) {
    body["latency_ms_before"] = job.progress().latency_before_seconds() * 1e3;
  }
  if (job.progress().has_latency_after_seconds()) {
    body["latency_ms_after"] = job.progress().latency_after_seconds() * 1e3;
  }
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string NoticeBody(const NightNotice& notice) {
  nlohmann::ordered_json body = {{"watch", notice.watch}, {"device", notice.device}};
  body.update(FleetNightToJson(notice.night));
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::unique_ptr<Notifier> Notifier::Start(Shell* shell, std::vector<std::string> allowed, Post post) {
  auto notifier = std::make_unique<Notifier>(shell, std::move(allowed), std::move(post));
  notifier->thread_ = std::jthread([n = notifier.get()](const std::stop_token& stop) { n->Loop(stop); });
  return notifier;
}

void Notifier::Loop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    SendDueNotices(absl::Now(), stop);
    stopped.wait_for(lock, stop, kRoundPeriod, [] { return false; });
  }
}

void Notifier::SendDueNotices(absl::Time now, const std::stop_token& stop) {
  std::erase_if(not_before_, [now](const auto& wait) { return wait.second <= now; });
  failed_.clear();
  for (const v1::Job& job : shell_->JobsToNotify()) {
    const Attempt attempt{fmt::format("job {}", job.id()), job.spec().notify_url(), FromProto(job.ended())};
    const std::optional<v1::JobNotice> notice = Send(attempt, [&] { return NoticeBody(job); }, job.notice(), now, stop);
    if (notice.has_value()) shell_->RecordNotice(job.id(), *notice);
  }
  for (const NightNotice& night : shell_->NightsToNotify()) {
    const Attempt attempt{fmt::format("watch {} on {}, job {}", night.watch, night.device, night.night.job_id()),
                          night.url, FromProto(night.night.ended())};
    const std::optional<v1::JobNotice> notice =
        Send(attempt, [&] { return NoticeBody(night); }, night.notice, now, stop);
    if (notice.has_value()) shell_->RecordNotice(night, *notice);
  }
}

std::optional<v1::JobNotice> Notifier::Send(const Attempt& attempt, const std::function<std::string()>& body,
                                            v1::JobNotice notice, absl::Time now, const std::stop_token& stop) {
  const std::string receiver = ReceiverOf(attempt.url);
  if (stop.stop_requested() || not_before_.contains(attempt.subject) || failed_.contains(receiver)) return std::nullopt;
  const absl::Status allowed = CheckNoticeUrl(attempt.url, allowed_);
  if (!allowed.ok()) {
    notice.set_problem(std::string(allowed.message()));
    notice.set_closed(true);
    spdlog::warn("{}: the notice was not sent: {}", attempt.subject, notice.problem());
    return notice;
  }
  notice.set_attempts(notice.attempts() + 1);
  const absl::Status told = post_(attempt.url, body(), stop);
  if (!told.ok() && stop.stop_requested()) return std::nullopt;  // the next start repeats the attempt
  notice.set_problem(std::string(told.message()));
  notice.set_closed(told.ok() || now - attempt.ended > kGiveUpAfter);
  if (told.ok()) return notice;
  spdlog::warn("{}: the notice failed, attempt {}{}: {}", attempt.subject, notice.attempts(),
               notice.closed() ? ", the last" : "", notice.problem());
  not_before_[attempt.subject] = now + WaitAfterAttempt(notice.attempts());
  failed_.insert(receiver);
  return notice;
}

}  // namespace hone::tracker
