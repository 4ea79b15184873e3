#include "tracker/http/notifier.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "tracker/http/names.h"
#include "tracker/queue/times.h"

namespace hone::tracker {
namespace {

constexpr absl::Duration kFirstWait = absl::Seconds(5), kLongestWait = absl::Hours(1);
constexpr auto kRoundEvery = std::chrono::seconds(1);

}  // namespace

absl::Duration WaitAfterAttempt(int attempts) {
  absl::Duration wait = kFirstWait;
  for (int i = 1; i < attempts && wait < kLongestWait; ++i) wait *= 2;
  return std::min(wait, kLongestWait);
}

std::string NoticeBody(const v1::Job& job) {
  nlohmann::ordered_json body = {{"job", job.id()},
                                 {"group", job.spec().group()},
                                 {"model", job.spec().name()},
                                 {"target", job.spec().target()},
                                 {"state", StateName(job.state())},
                                 {"error", job.error()},
                                 {"trials", job.progress().trials()},
                                 {"latency_ms_before", nullptr},
                                 {"latency_ms_after", nullptr},
                                 {"ended", absl::FormatTime(FromProto(job.ended()), absl::UTCTimeZone())}};
  if (job.progress().has_latency_before_seconds()) {
    body["latency_ms_before"] = job.progress().latency_before_seconds() * 1e3;
  }
  if (job.progress().has_latency_after_seconds()) {
    body["latency_ms_after"] = job.progress().latency_after_seconds() * 1e3;
  }
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::unique_ptr<Notifier> Notifier::Start(Shell* shell, Post post) {
  auto notifier = std::make_unique<Notifier>(shell, std::move(post));
  notifier->thread_ = std::thread([n = notifier.get()] { n->Loop(); });
  return notifier;
}

Notifier::~Notifier() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Notifier::Loop() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kRoundEvery, [this] { return ending_; })) {
    lock.unlock();
    Round(absl::Now());
    lock.lock();
  }
}

void Notifier::Round(absl::Time now) {
  std::erase_if(not_before_, [now](const auto& wait) { return wait.second <= now; });
  for (const v1::Job& job : shell_->JobsToTell()) {
    if (not_before_.contains(job.id())) continue;
    v1::JobNotice notice = job.notice();
    notice.set_attempts(notice.attempts() + 1);
    const absl::Status told = post_(job.spec().notify_url(), NoticeBody(job));
    notice.set_problem(std::string(told.message()));
    notice.set_closed(told.ok() || now - FromProto(job.ended()) > kGiveUpAfter);
    if (!told.ok()) {
      spdlog::warn("job {}: nobody was told that it ended, attempt {}{}: {}", job.id(), notice.attempts(),
                   notice.closed() ? ", the last" : "", notice.problem());
      not_before_[job.id()] = now + WaitAfterAttempt(notice.attempts());
    }
    shell_->TakeNotice(job.id(), notice);
  }
}

}  // namespace hone::tracker
